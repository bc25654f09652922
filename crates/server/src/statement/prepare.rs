//! What a statement waits for before its result begins: a slot, threads, a plan.

use std::sync::Arc;

use dray_wire::{ErrorKind, Query};

use super::start::{Begin, Begun, Line};
use super::stop::{Stop, panicked, watched};
use crate::compute::Lease;
use crate::connection::{Connection, stopped};
use crate::engine::{self, Plan};
use crate::planning::{Planning, StopOnDrop};
use crate::slots::Turn;
use crate::way::Way;

/// Waits until the statement may run.
pub(super) async fn turn(connection: &mut Connection) -> Result<Turn, Stop> {
    let shared = connection.shared.clone();
    let places = shared.turns.statements();
    let abandoned = shared.compute.abandoned();
    if abandoned * 2 >= places.all.max(2) {
        let what = format!(
            "{abandoned} statements that were stopped have not ended yet: no other one is begun"
        );
        return Err(engine::error(ErrorKind::Resources, "53300", what, "try again later").into());
    }
    let share = connection.place.share.clone();
    if let Some(turn) = shared.turns.take(&share) {
        return Ok(turn);
    }
    let mut stopping = shared.stopping.clone();
    let wait = async {
        tokio::select! {
            turn = tokio::time::timeout(shared.wait_timeout, shared.turns.wait(&share)) => turn.map_err(|_| {
                let (all, limit, peer) = (places.all, shared.wait_timeout, places.of_a_peer);
                let what = format!("no turn within {limit:?}: {all} statements run at a time, {peer} of one host");
                let hint = "try again later, or raise the server's --statements or --statements-per-host";
                engine::error(ErrorKind::Resources, "53300", what, hint)
            }),
            () = stopped(&mut stopping) => Err(engine::error(ErrorKind::Shutdown, "57P01", "the server is stopping", "")),
        }
    };
    Ok(watched(connection, wait).await??)
}

/// Has a statement planned and begun on its own threads.
pub(super) async fn planned(
    connection: &mut Connection,
    lease: &Lease,
    query: &Arc<Query>,
) -> Result<Begun, Stop> {
    let shared = connection.shared.clone();
    let line = Line {
        link: connection.link,
        round_trip: connection.way.as_ref().and_then(Way::round_trip).unwrap_or_default(),
        price_ns: connection.price_ns,
    };
    let (planning, limit, query) = (Planning::new(), shared.plan_timeout, query.clone());
    let stops = StopOnDrop(planning.clone());
    let work = lease.run(move |workers| {
        let begin = Begin {
            workers,
            engine: &shared.engine,
            admission: &shared.admission,
            planning: &planning,
        };
        begin.statement(&query, line)
    });
    let begun = async {
        tokio::select! {
            biased;
            begun = work => begun.unwrap_or_else(|panic| Err(panicked(panic))),
            () = stops.0.late(limit) => {
                let what = format!("planning the statement took more than {limit:?}");
                Err(engine::error(ErrorKind::Limit, "54001", what, "split the statement, or raise --plan-timeout"))
            }
        }
    };
    Ok(watched(connection, begun).await??)
}

/// Keeps a plan, and has it dropped where that may take its time.
pub(super) struct DropElsewhere<'a> {
    pub(super) plan: Option<Plan>,
    pub(super) lease: &'a Lease,
}

impl Drop for DropElsewhere<'_> {
    fn drop(&mut self) {
        if let Some(plan) = self.plan.take() {
            self.lease.dispose(plan);
        }
    }
}
