//! Plans of a source, which are held until their leases end, and the readers of their parts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use dray_driver::{Parts, Statement};
use dray_wire::{ErrorKind, ServerError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::session::{catch, no_thread, source_thread};
use super::sink::ResultSink;
use crate::engine;
use crate::tickets::PlanId;

/// The plans of a source.
#[derive(Debug, Default)]
pub(super) struct HeldPlans(Mutex<HashMap<PlanId, Arc<HeldPlan>>>);

/// A plan, with what it counts as. Whoever reads a part has it, too, so that its connections count
/// until the last of them is closed.
#[derive(Debug)]
pub(crate) struct HeldPlan {
    parts: Arc<dyn Parts>,
    /// The plan's connections over which no part is read.
    free: Arc<Semaphore>,
    /// Those that the parts' connections count as. They come last: the parts close theirs first.
    _permits: OwnedSemaphorePermit,
}

impl HeldPlan {
    /// # Errors
    /// If the parts have more connections than there are permits.
    pub(super) fn new(
        parts: Arc<dyn Parts>,
        mut permits: OwnedSemaphorePermit,
    ) -> Result<Self, ServerError> {
        let connections = parts.connections();
        let Some(used) = permits.split(connections) else {
            let what = "the source's plan holds more connections than it may";
            return Err(engine::error(ErrorKind::Internal, "XX000", what, ""));
        };
        // The other permits are free again.
        Ok(Self { parts, free: Arc::new(Semaphore::new(connections)), _permits: used })
    }

    pub(crate) fn parts(&self) -> &Arc<dyn Parts> {
        &self.parts
    }

    /// The plan's connections over which no part is read.
    pub(crate) fn free(&self) -> Arc<Semaphore> {
        self.free.clone()
    }
}

/// Reads a part of a plan, on a thread of its own: it needs no session.
pub(crate) struct PartReader {
    pub(crate) plan: Arc<HeldPlan>,
    pub(crate) index: usize,
    /// For the connection that it is read over.
    pub(crate) permit: OwnedSemaphorePermit,
}

impl PartReader {
    /// # Errors
    /// If the system can't start more threads.
    pub(crate) fn begin(
        self,
        statement: Statement,
        mut sink: ResultSink,
    ) -> Result<(), ServerError> {
        let read = move || {
            let Self { plan, index, permit } = self;
            let ended = catch(|| plan.parts.run(index, &statement, &mut sink));
            // The client may still be slow.
            drop((permit, plan));
            sink.end(ended);
        };
        source_thread().spawn(read).map(drop).map_err(no_thread)
    }
}

impl HeldPlans {
    pub(super) fn insert(&self, plan: PlanId, held: HeldPlan) {
        let held = Arc::new(held);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(plan, held);
    }

    pub(super) fn get(&self, plan: PlanId) -> Option<Arc<HeldPlan>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&plan).cloned()
    }

    /// Gives a plan up. Parts that are being read are read to their end, if the database lets them.
    pub(super) async fn release(&self, plan: PlanId) {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&plan);
        // Closing connections may block.
        let _ = tokio::task::spawn_blocking(move || drop(held)).await;
    }
}
