//! Plans of parts, and the parts of plans.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dray_format::Limits;
use dray_wire::{
    Checksums, CompressionChoice, ErrorKind, PartRequest, PlanRequest, Planned, PlannedPart, Query,
    RowLayout, ServerError,
};
use tracing::info;

use super::prepare::{acquire_slot, lease, while_planning};
use super::stop::Stop;
use super::{run, schema_error};
use crate::connection::{Closed, Connection, Shared};
use crate::engine::{self, Division};
use crate::planning::Planning;
use crate::tickets::check_lease;

/// Divides a statement into parts, and sends the plan or an error. Fails only if the connection
/// ends.
pub(crate) async fn plan(connection: &mut Connection, request: PlanRequest) -> Result<(), Closed> {
    let (arrived, sql) = (Instant::now(), request.sql.clone());
    let ended = plan_to_end(connection, request).await;
    let outcome = match &ended {
        Ok(parts) => format!("planned {parts} parts"),
        Err(Stop::Failed(error)) => format!("failed: {}", error.message),
        Err(Stop::Closed) => "abandoned".to_owned(),
    };
    connection.shared.metrics.statement_ended(ended.is_ok(), arrived.elapsed());
    info!(ms = arrived.elapsed().as_millis(), sql, "{outcome}");
    match ended {
        Ok(_) => Ok(()),
        Err(Stop::Failed(error)) => fail(connection, error).await,
        Err(Stop::Closed) => Err(Closed),
    }
}

/// Runs a part, and sends its rows or an error. Fails only if the connection ends.
pub(crate) async fn run_part(connection: &mut Connection, part: PartRequest) -> Result<(), Closed> {
    if let Some(relay) = &connection.relay {
        let error = no_parts(&relay.name);
        return fail(connection, error).await;
    }
    let PartRequest { query, ticket } = part;
    match connection.shared.tickets.open(&ticket, &query) {
        Ok((plan, _)) if connection.plan.is_some_and(|only| only != plan) => {
            connection.refuse_beyond_pass().await
        }
        Ok((_, portion)) => run(connection, query, portion).await,
        Err(error) => {
            info!("refused: {}", error.message);
            fail(connection, error).await
        }
    }
}

fn no_parts(source: &str) -> ServerError {
    let what = format!("statements for {source} can't be divided into parts");
    let hint = "run the statement, or plan it with a connection to the database itself";
    engine::error(ErrorKind::Query, "0A000", what, hint)
}

async fn fail(connection: &mut Connection, error: ServerError) -> Result<(), Closed> {
    let mut out = Vec::new();
    connection.session.failed(error, &mut out).map_err(|_| Closed)?;
    connection.send(out).await
}

/// The number of parts.
async fn plan_to_end(connection: &mut Connection, request: PlanRequest) -> Result<usize, Stop> {
    let shared = connection.shared.clone();
    let PlanRequest { statement, sql, parameters, parts_max, lease_ms } = request;
    let query = Arc::new(Query {
        statement,
        sql,
        parameters,
        limits: Limits::default(),
        chunk_rows: 0,
        compression: CompressionChoice::Auto,
        checksums: Checksums::Auto,
        plan_only: true,
        layout: RowLayout::Chunks,
    });
    let duration = Duration::from_millis(lease_ms);
    check_lease(duration)?;
    if let Some(relay) = &connection.relay {
        return Err(no_parts(&relay.name).into());
    }
    let slot = acquire_slot(connection).await?;
    let lease = lease(&shared, slot)?;
    let planning = Planning::new();
    let (planner, asked, of_engine) = (planning.clone(), query.clone(), shared.clone());
    let work = move |workers: &tokio::runtime::Handle| {
        workers.block_on(async {
            let divided = engine::plan_parts(&of_engine.engine, &asked, parts_max, &planner).await;
            planner.finish();
            divided
        })
    };
    let division = while_planning(connection, &lease, planning, work).await?;
    let schema = division.schema.clone();
    let (count, planned) = planned(&shared, division, duration, &query)?;
    let mut out = Vec::new();
    connection
        .session
        .planned(planned, &mut out)
        .map_err(|cause| schema_error(&schema, cause.refusal(), cause.to_string()))?;
    connection.send(out).await?;
    Ok(count)
}

fn planned(
    shared: &Shared,
    division: Division,
    lease: Duration,
    query: &Query,
) -> Result<(usize, Planned), ServerError> {
    let Division { schema, reason, parts } = division;
    let lease = shared.tickets.lease(lease)?;
    let parts = parts.into_iter().map(|(portion, expected)| PlannedPart {
        rows: expected.rows.value(),
        bytes: expected.bytes.value(),
        ticket: shared.tickets.ticket(&lease, portion.as_ref(), query),
    });
    let parts = parts.collect::<Vec<_>>();
    let planned = Planned {
        // The session fills in both.
        statement: 0,
        query: 0,
        schema,
        reason: reason.unwrap_or_default(),
        plan: lease.plan,
        deadline_us: lease.deadline_us,
        pass: shared.tickets.pass(&lease),
        parts,
    };
    Ok((planned.parts.len(), planned))
}
