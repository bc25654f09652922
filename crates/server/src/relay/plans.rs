//! Plans of a source, which are held until their leases end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use dray_driver::Parts;
use tokio::sync::OwnedSemaphorePermit;

use crate::tickets::PlanId;

/// The plans of a source.
#[derive(Debug, Default)]
pub(super) struct HeldPlans(Mutex<HashMap<PlanId, HeldPlan>>);

#[derive(Debug)]
struct HeldPlan {
    parts: Arc<dyn Parts>,
    /// Those that the parts' connections count as.
    _permits: OwnedSemaphorePermit,
}

impl HeldPlans {
    pub(super) fn insert(
        &self,
        plan: PlanId,
        parts: Arc<dyn Parts>,
        permits: OwnedSemaphorePermit,
    ) {
        let held = HeldPlan { parts, _permits: permits };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(plan, held);
    }

    pub(super) fn get(&self, plan: PlanId) -> Option<Arc<dyn Parts>> {
        let plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        plans.get(&plan).map(|held| held.parts.clone())
    }

    /// Gives a plan up. Parts that are being read are read to their end, if the database lets them.
    pub(super) async fn release(&self, plan: PlanId) {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&plan);
        // Closing connections may block.
        let _ = tokio::task::spawn_blocking(move || drop(held)).await;
    }
}
