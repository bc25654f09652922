//! One statement: have it planned, send what its producers make, and watch the client meanwhile.

mod prepare;
mod produce;
mod send;
mod settings;
mod start;
mod stop;

use std::sync::Arc;
use std::time::{Duration, Instant};

use dray_format::FIELDS_MAX;
use dray_wire::{Encoded, ErrorKind, Finished, Known, Query, Refusal, Started};
use tracing::info;

use self::prepare::{DropElsewhere, planned, turn};
use self::send::Transfer;
use self::start::{Begun, Running};
use self::stop::Stop;
use crate::connection::{Closed, Connection, ns_since};
use crate::engine;

/// A result that is known to have so many values is a long one: with two bits each it would be.
const LONG_RESULT_VALUES: u64 = 1 << 20;

/// Runs a statement and sends its result, or its error. The connection stays unless it breaks.
pub(crate) async fn run(connection: &mut Connection, query: Query) -> Result<(), Closed> {
    let started = Instant::now();
    let query = Arc::new(query);
    let ended = match run_to_end(connection, &query, started).await {
        Ok(()) => Ok(None),
        Err(Stop::Failed(error)) => {
            let mut out = Vec::new();
            connection.session.failed(error.clone(), &mut out).map_err(|_| Closed)?;
            connection.send(out).await.map(|()| Some(error))
        }
        Err(Stop::Closed) => Err(Closed),
    };
    let (rows, chunks) = connection.session.sent();
    let outcome = match &ended {
        Ok(None) => "finished".to_owned(),
        Ok(Some(error)) => format!("failed: {}", error.message),
        Err(Closed) => "abandoned".to_owned(),
    };
    connection.shared.metrics.statement_ended(matches!(ended, Ok(None)), started.elapsed());
    info!(
        statement = query.statement,
        rows,
        chunks,
        ms = started.elapsed().as_millis(),
        sql = query.sql,
        "{outcome}"
    );
    ended.map(|_| ())
}

async fn run_to_end(
    connection: &mut Connection,
    query: &Arc<Query>,
    arrived: Instant,
) -> Result<(), Stop> {
    let shared = connection.shared.clone();
    let turn = turn(connection).await?;
    let lease = shared.compute.lease(Some(turn)).map_err(|cause| {
        let what = format!("the server can't start a thread for the statement: {cause}");
        engine::error(ErrorKind::Resources, "53000", what, "try again later")
    })?;
    let begun = planned(connection, &lease, query).await?;
    // Whatever comes: what joins hold is in there.
    let _elsewhere = DropElsewhere {
        plan: Some(begun.plan.clone()).filter(|plan| !plan.is_small()),
        lease: &lease,
    };
    let Begun { plan, plan_ns, compression, checksums, running } = begun;
    let mut out = Vec::new();
    let started = Started {
        statement: query.statement,
        // The session fills it in.
        query: 0,
        schema: plan.schema.clone(),
        estimate: plan.estimate,
        compression,
        checksums,
        plan_ns,
    };
    if let Err(cause) = connection.session.started(&started, &mut out) {
        let (sqlstate, hint) = match cause.refusal() {
            Refusal::Frame => ("54011", "select fewer columns"),
            _ if plan.schema.nodes() > FIELDS_MAX => ("54011", "select fewer columns"),
            _ => ("0A000", ""),
        };
        return Err(engine::error(ErrorKind::Query, sqlstate, cause.to_string(), hint).into());
    }
    let mut finished = Finished { planned_only: query.plan_only, ..Finished::default() };
    if let Some(Running { producers, chunks, adaptive, times, admitted: _admitted }) = running {
        if let Some(way) = &mut connection.way {
            // What passed before is no part of this.
            let _ = way.passage();
            if let Known::Exact(rows) = plan.estimate.rows
                && rows.saturating_mul(plan.schema.fields.len() as u64) >= LONG_RESULT_VALUES
            {
                way.expect_much();
            }
        }
        let encoded = vec![Encoded::default(); plan.schema.fields.len()];
        let mut transfer = Transfer {
            connection,
            plan: &plan,
            producers,
            adaptive,
            encoded,
            out,
            sent_bytes: 0,
            socket_ns: 0,
        };
        transfer.run(chunks).await?;
        transfer.report();
        let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        finished.execute_ns = ns(times.execute());
        finished.encode_ns = ns(times.encode());
        finished.queue_ns = ns(times.queue());
        finished.socket_ns = transfer.socket_ns;
        out = transfer.out;
    }
    finished.total_ns = ns_since(arrived);
    connection.shared.metrics.rows_sent(connection.session.sent().0);
    connection.session.finished(finished, &mut out).map_err(|_| Closed)?;
    Ok(connection.send(out).await?)
}
