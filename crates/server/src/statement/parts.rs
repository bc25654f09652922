//! Plans of parts, and the parts of plans.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dray_format::{Limits, Schema};
use dray_wire::{
    Checksums, CompressionChoice, ErrorKind, Estimate, PartRequest, PlanRequest, Planned,
    PlannedPart, Query, RowLayout, ServerError, Unfit,
};
use tracing::info;

use super::prepare::{acquire_slot, lease, source_schema, source_statement, while_planning};
use super::source::session_and_connection;
use super::stop::{Stop, while_client_waits};
use super::{Extent, run, schema_error};
use crate::connection::{Closed, Connection};
use crate::engine::{self, Division};
use crate::planning::Planning;
use crate::relay::{HeldPlan, PlanTask, Relay};
use crate::tickets::{Lease, PlanId, Share, check_lease};

/// The most connections that a plan of a source holds.
const CONNECTIONS_MAX: usize = 16;

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
    let PartRequest { query, ticket } = part;
    let (plan, share) = match connection.shared.tickets.open(&ticket, &query) {
        Ok((plan, _)) if connection.plan.is_some_and(|only| only != plan) => {
            return connection.refuse_beyond_pass().await;
        }
        Ok(opened) => opened,
        Err(error) => return refuse(connection, error).await,
    };
    let extent = match (&connection.relay, share) {
        (None, Share::Whole) => Some(Extent::Whole),
        (None, Share::Portion(portion)) => Some(Extent::Portion(portion)),
        (Some(relay), Share::OfSource(index)) => {
            relay.held(plan).map(|plan| Extent::Part(plan, index as usize))
        }
        _ => None,
    };
    match extent {
        Some(extent) => run(connection, query, extent).await,
        None => refuse(connection, wrong_source()).await,
    }
}

async fn refuse(connection: &mut Connection, error: ServerError) -> Result<(), Closed> {
    info!("refused: {}", error.message);
    fail(connection, error).await
}

fn wrong_source() -> ServerError {
    let what = "the part is of another source, or the server does not hold its plan any longer";
    engine::error(ErrorKind::Execution, "55000", what, "make a new plan")
}

fn no_parts(source: &str) -> ServerError {
    let what = format!("statements for {source} can't be divided into parts");
    let hint = "run the statement: its source has no snapshot that several connections share";
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
        estimate: false,
        unfit: Unfit::Error,
    });
    let duration = Duration::from_millis(lease_ms);
    let share = connection.share.take();
    check_lease(duration)?;
    let earlier = match &share {
        Some(share) => Some(shared.tickets.admit(share.pass.reveal()).map_err(ended)?),
        None => None,
    };
    if let Some(relay) = connection.relay.clone() {
        let earlier = earlier.map(|plan| shareable(&relay, plan)).transpose()?;
        let wanted = Wanted { parts_max, lease: duration, earlier };
        return plan_at_source(connection, &query, wanted, &relay).await;
    }
    // The server's own tables are the same for all plans of this run.
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
    let Division { schema, reason, parts } = division;
    let parts = parts.into_iter().map(|(portion, expected)| {
        let share = portion.map_or(Share::Whole, Share::Portion);
        (share, expected)
    });
    let parts = Parts { schema, reason, lease: shared.tickets.lease(duration)?, parts };
    send_plan(connection, parts, &query).await
}

/// The error of an earlier plan that this server does not know any more.
fn ended(error: ServerError) -> ServerError {
    match error.kind {
        ErrorKind::Execution => snapshot_ended(&error.message),
        _ => error,
    }
}

fn snapshot_ended(why: &str) -> ServerError {
    let what = format!("the earlier plan's snapshot has ended: {why}");
    let hint = "make all plans anew that must see the same, the first without it";
    engine::error(ErrorKind::Execution, "72000", what, hint)
}

/// An earlier plan of a source, under whose snapshot others can be made.
fn shareable(relay: &Relay, plan: PlanId) -> Result<Arc<HeldPlan>, ServerError> {
    let Some(plan) = relay.held(plan) else {
        let why = "it was released, its lease is over, or it is one of another source";
        return Err(snapshot_ended(why));
    };
    if plan.parts().snapshot().is_none() {
        let what = format!(
            "{} can't begin a transaction under the snapshot of another one, so no plan can have \
             the snapshot of an earlier one",
            relay.name
        );
        let hint = "read what must be consistent by one statement";
        return Err(engine::error(ErrorKind::Query, "0A000", what, hint));
    }
    Ok(plan)
}

/// What a plan of a source should be.
struct Wanted {
    parts_max: Option<u32>,
    lease: Duration,
    /// Whose snapshot it is to have.
    earlier: Option<Arc<HeldPlan>>,
}

/// The same for a source, whose snapshot the server holds.
async fn plan_at_source(
    connection: &mut Connection,
    query: &Arc<Query>,
    wanted: Wanted,
    relay: &Arc<Relay>,
) -> Result<usize, Stop> {
    let Wanted { parts_max, lease: duration, earlier } = wanted;
    let shared = connection.shared.clone();
    // Before the slot, which others may use while this plan waits for the source.
    let (source, mut permits) = session_and_connection(connection, relay).await?;
    let _slot = acquire_slot(connection).await?;
    let at_most = parts_max.map_or_else(|| shared.compute.threads(), |count| count as usize);
    relay.add_connections(&mut permits, at_most.min(CONNECTIONS_MAX));
    let division = dray_driver::Division {
        parts_max,
        lease: duration,
        connections_max: permits.num_permits(),
        earlier: earlier.as_ref().map(|plan| plan.parts().clone()),
    };
    let task = PlanTask { division, earlier, permits };
    let divided = source.session.plan(source_statement(query)?, task);
    let divided = while_client_waits(connection, divided).await??;
    let Some(held) = divided else { return Err(no_parts(&relay.name).into()) };
    let lease = shared.tickets.lease(duration)?;
    let (plan, parts) = (lease.plan, held.parts());
    let planned = source_schema(&parts.schema()).map(|schema| Parts {
        schema: Arc::new(schema),
        reason: parts.reason().map(str::to_owned),
        lease,
        parts: (0..).map(Share::OfSource).zip(parts.estimates().to_vec()),
    });
    relay.hold(plan, duration, held);
    let sent = match planned {
        Ok(planned) => send_plan(connection, planned, query).await,
        Err(error) => Err(error.into()),
    };
    if sent.is_err() {
        // Nobody knows of it, so nobody would give it up before its lease ends.
        relay.release(plan).await;
    }
    sent
}

/// A statement's parts, and until when they can be read.
struct Parts<I> {
    schema: Arc<Schema>,
    reason: Option<String>,
    lease: Lease,
    parts: I,
}

/// Sends a plan, and returns the number of its parts.
async fn send_plan(
    connection: &mut Connection,
    parts: Parts<impl Iterator<Item = (Share, Estimate)>>,
    query: &Query,
) -> Result<usize, Stop> {
    let Parts { schema, reason, lease, parts } = parts;
    let tickets = &connection.shared.tickets;
    let parts = parts.map(|(share, expected)| PlannedPart {
        rows: expected.rows.value(),
        bytes: expected.bytes.value(),
        ticket: tickets.ticket(&lease, &share, query),
    });
    let planned = Planned {
        // The session fills in both.
        statement: 0,
        query: 0,
        schema: schema.clone(),
        reason: reason.unwrap_or_default(),
        plan: lease.plan,
        deadline_us: lease.deadline_us,
        pass: tickets.pass(&lease),
        parts: parts.collect(),
    };
    let count = planned.parts.len();
    let mut out = Vec::new();
    connection
        .session
        .planned(planned, &mut out)
        .map_err(|cause| schema_error(&schema, cause.refusal(), cause.to_string()))?;
    connection.send(out).await?;
    Ok(count)
}
