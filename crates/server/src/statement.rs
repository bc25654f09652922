//! One statement, from its query to the trailer or an error.
//!
//! ```text
//!   prepare: a slot, threads ──▶ start: plan, memory ──▶ produce: batches ─▶ chunks ─▶ queue
//!                                                                                      │
//!                              client ◀── socket ◀── send: frames, vectored writes ◀───┘
//! ```

mod parts;
mod prepare;
mod produce;
mod send;
mod settings;
mod source;
mod start;
mod stop;
mod work;

use std::sync::Arc;
use std::time::Instant;

use dray_format::{FIELDS_MAX, Schema};
use dray_wire::{ErrorKind, Finished, Known, Query, Refusal, ServerError, Started, Unfit};
use tracing::info;

pub(crate) use self::parts::{plan, run_part};
use self::prepare::{DisposeOnDrop, acquire_slot, lease, start, start_at_source};
use self::send::ChunkWriter;
use self::source::{Runner, part_reader, session};
use self::start::{Execution, StartedStatement};
use self::stop::Stop;
pub(crate) use self::stop::panic_error;
use self::work::Work;
use crate::connection::{Closed, Connection, ns, ns_since};
use crate::engine::{self, Portion};
use crate::relay::HeldPlan;

/// A result counts as large if it is known to have at least this many values: even at two bits a
/// value it has [`send::LARGE_RESULT_BYTES`].
const LARGE_RESULT_VALUES: u64 = 1 << 20;

/// How much of a statement is run.
#[derive(Debug)]
pub(crate) enum Extent {
    Whole,
    /// Some of the partitions of the engine's plan.
    Portion(Portion),
    /// One of the parts of a source's plan.
    Part(Arc<HeldPlan>, usize),
}

/// Runs a statement, or some of it, and sends its result or its error. Fails only if the
/// connection ends.
pub(crate) async fn run(
    connection: &mut Connection,
    query: Query,
    extent: Extent,
) -> Result<(), Closed> {
    let arrived = Instant::now();
    let query = Arc::new(query);
    let ended = match run_to_end(connection, &query, extent, arrived).await {
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
    let has_finished = matches!(ended, Ok(None));
    connection.shared.metrics.statement_ended(has_finished, arrived.elapsed());
    let source = connection.relay.as_ref().map(|relay| {
        relay.metrics.statement_ended(has_finished, rows, arrived.elapsed());
        relay.name.as_str()
    });
    info!(
        source,
        statement = query.statement,
        rows,
        chunks,
        ms = arrived.elapsed().as_millis(),
        sql = query.sql,
        "{outcome}"
    );
    ended.map(|_| ())
}

async fn run_to_end(
    connection: &mut Connection,
    query: &Arc<Query>,
    extent: Extent,
    arrived: Instant,
) -> Result<(), Stop> {
    let shared = connection.shared.clone();
    let has_unfit = connection.relay.as_ref().is_some_and(|relay| relay.has_unfit_values());
    if query.unfit != Unfit::Error && !has_unfit {
        let what = "nonfinite is for sources of PostgreSQL, MySQL and MariaDB";
        return Err(engine::error(ErrorKind::Query, "0A000", what, "leave it out").into());
    }
    // Before the slot, which others may use while this statement waits for a source.
    let (at_source, portion) = match (connection.relay.clone(), extent) {
        (None, Extent::Portion(portion)) => (None, Some(portion)),
        (None, _) => (None, None),
        (Some(relay), Extent::Part(plan, index)) => {
            let reader = part_reader(connection, &relay, plan, index).await?;
            (Some((relay, Runner::Part(reader))), None)
        }
        (Some(relay), _) => {
            let session = session(connection, &relay).await?;
            (Some((relay, Runner::Session(session))), None)
        }
    };
    let slot = acquire_slot(connection).await?;
    let lease = lease(&shared, slot)?;
    let started = match at_source {
        None => start(connection, &lease, query, portion).await,
        Some((relay, runner)) => start_at_source(connection, &lease, query, &relay, runner).await,
    }?;
    // However the statement ends, its own threads drop a large plan: with the rows that its joins
    // hold, that would block the network's thread. This must be the last reference to the plan, so
    // it is declared before the others.
    let _dispose = DisposeOnDrop {
        work: Some(started.work.clone()).filter(|work| !work.is_small()),
        lease: &lease,
    };
    let StartedStatement { work, plan_ns, compression, checksums, execution } = started;
    let mut out = Vec::new();
    let started = Started {
        statement: query.statement,
        // The session fills it in.
        query: 0,
        schema: work.schema().clone(),
        estimate: work.estimate(),
        compression,
        checksums,
        plan_ns,
    };
    connection
        .session
        .started(&started, &mut out)
        .map_err(|cause| schema_error(work.schema(), cause.refusal(), cause.to_string()))?;
    if let Some(path) = work.path() {
        connection.session.path(path, &mut out).map_err(|_| Closed)?;
    }
    let mut finished = Finished { planned_only: query.plan_only, ..Finished::default() };
    if let Some(Execution { producers, chunks, chooser, times, memory: _memory }) = execution {
        prepare_tcp(connection, &work);
        let mut writer = ChunkWriter::new(connection, &work, producers, chooser, out);
        writer.run(chunks).await?;
        writer.report();
        finished.execute_ns = ns(times.execute());
        finished.encode_ns = ns(times.encode());
        finished.queue_ns = ns(times.queue());
        (out, finished.socket_ns) = writer.finish();
    }
    finished.total_ns = ns_since(arrived);
    connection.shared.metrics.rows_sent(connection.session.sent().0);
    connection.session.finished(finished, &mut out).map_err(|_| Closed)?;
    Ok(connection.send(out).await?)
}

/// The error of a schema that no `started` message can carry.
fn schema_error(schema: &Schema, refusal: Refusal, message: String) -> ServerError {
    let (sqlstate, hint) = match refusal {
        Refusal::Frame => ("54011", "select fewer columns"),
        _ if schema.nodes() > FIELDS_MAX => ("54011", "select fewer columns"),
        _ => ("0A000", ""),
    };
    engine::error(ErrorKind::Query, sqlstate, message, hint)
}

/// Resets the TCP statistics for a new transfer, and announces a result that is known to be large.
fn prepare_tcp(connection: &mut Connection, work: &Work) {
    let Some(tcp) = &mut connection.tcp else { return };
    let _ = tcp.take_delivery();
    if let Known::Exact(rows) = work.estimate().rows
        && rows.saturating_mul(work.schema().fields.len() as u64) >= LARGE_RESULT_VALUES
    {
        tcp.expect_large_result();
    }
}
