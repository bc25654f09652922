//! The engine's memory pool, as the memory of Dray's sort.

use std::sync::Arc;

use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use dray_sort::MemoryBudget;

/// A sort's reservation in the pool.
#[derive(Debug)]
pub(super) struct PoolMemory {
    reservation: MemoryReservation,
    bytes_max: usize,
}

impl PoolMemory {
    /// Registers a consumer that can spill, so the pool limits it to its fair share.
    pub(super) fn new(pool: &Arc<dyn MemoryPool>) -> Self {
        let bytes_max = match pool.memory_limit() {
            MemoryLimit::Finite(bytes) => bytes,
            MemoryLimit::Infinite | MemoryLimit::Unknown => usize::MAX >> 1,
        };
        let reservation = MemoryConsumer::new("ORDER BY").with_can_spill(true).register(pool);
        Self { reservation, bytes_max }
    }
}

impl MemoryBudget for PoolMemory {
    fn try_reserve(&self, bytes: usize) -> bool {
        self.reservation.try_grow(bytes).is_ok()
    }

    fn release(&self, bytes: usize) {
        self.reservation.shrink(bytes);
    }

    fn bytes_max(&self) -> usize {
        self.bytes_max
    }
}
