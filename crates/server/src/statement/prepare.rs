//! What happens before a statement runs: it gets a slot, and its own threads plan and start it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::Schema as ArrowSchema;
use dray_driver::Statement;
use dray_format::Schema;
use dray_format::arrow::schema_from_arrow;
use dray_wire::{ErrorKind, Query, ServerError};
use futures::FutureExt;
use tokio::runtime::Handle;

use super::source::Runner;
use super::start::{PeerNetwork, StartedStatement, Starter};
use super::stop::{Stop, panic_error, while_client_waits};
use super::work::{SourceWork, Work};
use crate::compute::Lease;
use crate::connection::{Connection, Shared, ns_since, stopped, stopping_error};
use crate::engine::{self, Portion};
use crate::planning::{CancelOnDrop, Planning};
use crate::relay::{self, Relay};
use crate::slots::StatementSlot;
use crate::tcp::TcpMonitor;

/// Waits for a slot.
pub(super) async fn acquire_slot(connection: &mut Connection) -> Result<StatementSlot, Stop> {
    let shared = connection.shared.clone();
    let limits = shared.slots.statement_limits();
    let abandoned = shared.compute.abandoned();
    if abandoned * 2 >= limits.total.max(2) {
        let what = format!(
            "{abandoned} cancelled statements are still running, so the server starts no others"
        );
        return Err(engine::error(ErrorKind::Resources, "53300", what, "try again later").into());
    }
    let peer = connection.slot.peer.clone();
    if let Some(slot) = shared.slots.try_statement(&peer) {
        return Ok(slot);
    }
    let mut stopping = shared.stopping.clone();
    let timeout = shared.wait_timeout;
    let wait = async {
        tokio::select! {
            slot = tokio::time::timeout(timeout, shared.slots.statement(&peer)) => {
                slot.map_err(|_| {
                    let what = format!(
                        "the statement waited {timeout:?} for a slot: {} statements run at a \
                         time, {} from one host",
                        limits.total, limits.per_peer
                    );
                    let hint = "try again later, or raise the server's --statements or \
                                --statements-per-host";
                    engine::error(ErrorKind::Resources, "53300", what, hint)
                })
            }
            () = stopped(&mut stopping) => Err(stopping_error()),
        }
    };
    Ok(while_client_waits(connection, wait).await??)
}

/// Threads for a statement.
pub(super) fn lease(shared: &Shared, slot: StatementSlot) -> Result<Lease, ServerError> {
    shared.compute.lease(Some(slot)).map_err(|cause| {
        let what = format!("the server can't start a thread for the statement: {cause}");
        engine::error(ErrorKind::Resources, "53000", what, "try again later")
    })
}

/// Plans a statement and starts it on its own threads, unless its plan is known and trivial: then
/// it runs right here.
pub(super) async fn start(
    connection: &mut Connection,
    lease: &Lease,
    query: &Arc<Query>,
    portion: Option<Portion>,
) -> Result<StartedStatement, Stop> {
    let shared = connection.shared.clone();
    let network = network(connection);
    let (planning, query) = (Planning::new(), query.clone());
    let looked_up = Instant::now();
    let trivial = match &portion {
        None => shared.engine.trivial_plan(&query)?,
        Some(_) => None,
    };
    if let (Some(plan), Some(workers)) = (trivial, lease.workers()) {
        let starter = Starter {
            workers,
            engine: &shared.engine,
            admission: &shared.admission,
            known_costs: &shared.known_costs,
            planning: &planning,
        };
        let start = starter.start_work(Work::Engine(plan), ns_since(looked_up), &query, network);
        let started =
            while_client_waits(connection, AssertUnwindSafe(start).catch_unwind()).await?;
        return Ok(started.unwrap_or_else(|panic| Err(panic_error(panic)))?);
    }
    let own = planning.clone();
    let work = move |workers: &Handle| {
        let starter = Starter {
            workers,
            engine: &shared.engine,
            admission: &shared.admission,
            known_costs: &shared.known_costs,
            planning: &own,
        };
        starter.start(&query, portion.as_ref(), network)
    };
    while_planning(connection, lease, planning, work).await
}

/// Passes a statement, or a part of one, on to a source, and starts what sends its rows. The source
/// may take its time, since many databases run most of a statement before they tell its columns.
pub(super) async fn start_at_source(
    connection: &mut Connection,
    lease: &Lease,
    query: &Arc<Query>,
    relay: &Relay,
    runner: Runner,
) -> Result<StartedStatement, Stop> {
    let (shared, sent) = (connection.shared.clone(), Instant::now());
    let Some(workers) = lease.workers() else {
        return Err(engine::error(ErrorKind::Internal, "XX000", "no threads", "").into());
    };
    let statement = source_statement(query)?;
    let (sink, begins, rows) = relay.channel();
    match runner {
        Runner::Session(source) => {
            let begun = source.session.begin(statement, sink);
            while_client_waits(connection, begun).await??;
        }
        Runner::Part(reader) => reader.begin(statement, sink)?,
    }
    // If the client leaves or cancels, dropping `rows` stops the session.
    let begun = while_client_waits(connection, begins).await?;
    let begun = begun.unwrap_or_else(|_| Err(relay::lost()))?;
    let schema = Arc::new(source_schema(&begun.schema)?);
    let threads = shared.compute.threads();
    let work = SourceWork::new(&relay.name, schema, begun, threads, rows);
    let planning = Planning::new();
    let starter = Starter {
        workers,
        engine: &shared.engine,
        admission: &shared.admission,
        known_costs: &shared.known_costs,
        planning: &planning,
    };
    let network = network(connection);
    let start = starter.start_work(Work::Source(work), ns_since(sent), query, network);
    Ok(while_client_waits(connection, start).await??)
}

/// A statement as its source gets it.
pub(super) fn source_statement(query: &Query) -> Result<Statement, ServerError> {
    Ok(Statement {
        sql: query.sql.clone(),
        parameters: engine::parameter_row(query)?,
        limits: query.limits,
        plan_only: query.plan_only,
        estimate: query.estimate,
        unfit: query.unfit,
    })
}

/// The columns that a source has announced.
pub(super) fn source_schema(announced: &ArrowSchema) -> Result<Schema, ServerError> {
    schema_from_arrow(announced).map_err(|cause| {
        let hint = "cast the column in the query";
        engine::error(ErrorKind::Query, "0A000", cause.to_string(), hint)
    })
}

/// What is known of the network to the client.
fn network(connection: &Connection) -> PeerNetwork {
    PeerNetwork {
        locality: connection.locality,
        round_trip: connection.tcp.as_ref().and_then(TcpMonitor::round_trip).unwrap_or_default(),
        line: connection.line,
    }
}

/// Does work that begins with `planning` on a statement's own threads. Planning has a timeout.
pub(super) async fn while_planning<T: Send + 'static>(
    connection: &mut Connection,
    lease: &Lease,
    planning: Arc<Planning>,
    work: impl FnOnce(&Handle) -> Result<T, ServerError> + Send + 'static,
) -> Result<T, Stop> {
    let timeout = connection.shared.plan_timeout;
    let cancels = CancelOnDrop(planning);
    let work = lease.run(work);
    let done = async {
        tokio::select! {
            biased;
            done = work => done.unwrap_or_else(|panic| Err(panic_error(panic))),
            () = cancels.0.timed_out(timeout) => {
                let what = format!("planning the statement took more than {timeout:?}");
                let hint = "split the statement, or raise --plan-timeout";
                Err(engine::error(ErrorKind::Limit, "54001", what, hint))
            }
        }
    };
    Ok(while_client_waits(connection, done).await??)
}

/// Drops work on the statement's own threads.
pub(super) struct DisposeOnDrop<'a> {
    pub(super) work: Option<Work>,
    pub(super) lease: &'a Lease,
}

impl Drop for DisposeOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            self.lease.dispose(work);
        }
    }
}
