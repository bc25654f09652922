//! What happens before a statement runs: it gets a slot, and its own threads plan and start it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use dray_wire::{ErrorKind, Query};
use futures::FutureExt;

use super::start::{PeerNetwork, StartedStatement, Starter};
use super::stop::{Stop, panic_error, while_client_waits};
use crate::compute::Lease;
use crate::connection::{Connection, ns_since, stopped, stopping_error};
use crate::engine::{self, Plan};
use crate::planning::{CancelOnDrop, Planning};
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

/// Plans a statement and starts it on its own threads, unless its plan is known and trivial: then
/// it runs right here.
pub(super) async fn start(
    connection: &mut Connection,
    lease: &Lease,
    query: &Arc<Query>,
) -> Result<StartedStatement, Stop> {
    let shared = connection.shared.clone();
    let network = PeerNetwork {
        locality: connection.locality,
        round_trip: connection.tcp.as_ref().and_then(TcpMonitor::round_trip).unwrap_or_default(),
        line: connection.line,
    };
    let (planning, timeout, query) = (Planning::new(), shared.plan_timeout, query.clone());
    let looked_up = Instant::now();
    if let (Some(plan), Some(workers)) = (shared.engine.trivial_plan(&query)?, lease.workers()) {
        let starter = Starter {
            workers,
            engine: &shared.engine,
            admission: &shared.admission,
            known_costs: &shared.known_costs,
            planning: &planning,
        };
        let start = starter.start_plan(plan, ns_since(looked_up), &query, network);
        let started =
            while_client_waits(connection, AssertUnwindSafe(start).catch_unwind()).await?;
        return Ok(started.unwrap_or_else(|panic| Err(panic_error(panic)))?);
    }
    let cancels = CancelOnDrop(planning.clone());
    let work = lease.run(move |workers| {
        let starter = Starter {
            workers,
            engine: &shared.engine,
            admission: &shared.admission,
            known_costs: &shared.known_costs,
            planning: &planning,
        };
        starter.start(&query, network)
    });
    let started = async {
        tokio::select! {
            biased;
            started = work => started.unwrap_or_else(|panic| Err(panic_error(panic))),
            () = cancels.0.timed_out(timeout) => {
                let what = format!("planning the statement took more than {timeout:?}");
                let hint = "split the statement, or raise --plan-timeout";
                Err(engine::error(ErrorKind::Limit, "54001", what, hint))
            }
        }
    };
    Ok(while_client_waits(connection, started).await??)
}

/// Drops a plan on the statement's own threads.
pub(super) struct DisposeOnDrop<'a> {
    pub(super) plan: Option<Plan>,
    pub(super) lease: &'a Lease,
}

impl Drop for DisposeOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(plan) = self.plan.take() {
            self.lease.dispose(plan);
        }
    }
}
