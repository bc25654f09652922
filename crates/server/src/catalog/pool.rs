//! The memory pool of all statements.

use std::fmt;

use datafusion::error::Result;
use datafusion::execution::memory_pool::{
    FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};

/// Consumers that can spill get an equal share of the memory, and more while less than half of the
/// memory is in use.
///
/// The engine's pool divides the memory by the number of operators, most of which hold nothing:
/// beside twenty statements a sort could not start, although nearly all memory was free.
#[derive(Debug)]
pub(super) struct SharingPool {
    shares: FairSpillPool,
    bytes_max: usize,
}

impl SharingPool {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { shares: FairSpillPool::new(bytes_max), bytes_max }
    }
}

impl fmt::Display for SharingPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sharing(pool_size: {})", self.bytes_max)
    }
}

impl MemoryPool for SharingPool {
    fn name(&self) -> &str {
        "sharing"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.shares.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.shares.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.shares.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.shares.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let refused = match self.shares.try_grow(reservation, additional) {
            Err(refused) if reservation.consumer().can_spill() => refused,
            done => return done,
        };
        // Two concurrent requests may exceed half by a little.
        if self.shares.reserved().saturating_add(additional) > self.bytes_max / 2 {
            return Err(refused);
        }
        self.shares.grow(reservation, additional);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.shares.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.shares.memory_limit()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use std::sync::Arc;

    use super::*;

    #[test]
    fn spilling_consumers_get_a_share_and_more_while_memory_is_free() {
        let pool: Arc<dyn MemoryPool> = Arc::new(SharingPool::new(1000));
        let spilling = || MemoryConsumer::new("sort").with_can_spill(true).register(&pool);
        let (one, other) = (spilling(), spilling());
        let _idle: Vec<_> = (0..8).map(|_| spilling()).collect();
        // The fair share is a tenth.
        one.try_grow(400).unwrap();
        assert!(one.try_grow(101).is_err());
        one.try_grow(100).unwrap();
        assert!(other.try_grow(101).is_err());
        other.try_grow(100).unwrap();
        assert!(one.try_grow(1).is_err());
        let fixed = MemoryConsumer::new("join").register(&pool);
        assert!(fixed.try_grow(401).is_err());
        fixed.try_grow(400).unwrap();
        assert_eq!(pool.reserved(), 1000);
        drop((one, other, fixed));
        assert_eq!(pool.reserved(), 0);
    }
}
