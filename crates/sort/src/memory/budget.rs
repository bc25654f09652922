//! The memory budget: memory is reserved before it is allocated.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A budget that memory is reserved from before it is allocated. Several sorts, and anything else,
/// may share one.
pub trait MemoryBudget: fmt::Debug + Send + Sync {
    /// Reserves `bytes`; false if fewer are left, and then none are reserved.
    fn try_reserve(&self, bytes: usize) -> bool;

    /// Gives back reserved bytes.
    fn release(&self, bytes: usize);

    /// The most bytes that can be reserved at a time.
    fn bytes_max(&self) -> usize;
}

/// A fixed number of bytes.
#[derive(Debug)]
pub struct FixedBudget {
    bytes_max: usize,
    reserved: AtomicUsize,
    peak: AtomicUsize,
}

impl FixedBudget {
    /// A budget of `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { bytes_max, reserved: AtomicUsize::new(0), peak: AtomicUsize::new(0) })
    }

    /// The bytes reserved now.
    pub fn reserved(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }

    /// The most bytes that were reserved at a time.
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }
}

impl MemoryBudget for FixedBudget {
    fn try_reserve(&self, bytes: usize) -> bool {
        let more = |reserved: usize| {
            reserved.checked_add(bytes).filter(|reserved| *reserved <= self.bytes_max)
        };
        match self.reserved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(before) => {
                self.peak.fetch_max(before + bytes, Ordering::Relaxed);
                true
            }
            Err(_) => false,
        }
    }

    fn release(&self, bytes: usize) {
        let before = self.reserved.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "{bytes} of {before} reserved bytes were released");
    }

    fn bytes_max(&self) -> usize {
        self.bytes_max
    }
}

/// Half of the memory that is available now, in bytes, within the limit of the control group. 4 GiB
/// if the system tells neither.
pub fn memory_bytes_default() -> usize {
    let available =
        std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| meminfo_available(&text));
    let limit = std::fs::read_to_string("/sys/fs/cgroup/memory.max")
        .ok()
        .and_then(|text| text.trim().parse().ok());
    match (available, limit) {
        (Some(a), Some(b)) => usize::min(a, b) / 2,
        (Some(bytes), None) | (None, Some(bytes)) => bytes / 2,
        (None, None) => 4 << 30,
    }
}

fn meminfo_available(meminfo: &str) -> Option<usize> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Reserved bytes of a budget, which are released on drop.
#[derive(Debug)]
pub(crate) struct Reservation {
    memory: Arc<dyn MemoryBudget>,
    bytes: usize,
}

impl Reservation {
    /// A reservation of no bytes yet.
    pub fn none(memory: &Arc<dyn MemoryBudget>) -> Self {
        Self { memory: memory.clone(), bytes: 0 }
    }

    /// A reservation of `bytes`; `None` if the budget refuses.
    pub fn try_new(memory: &Arc<dyn MemoryBudget>, bytes: usize) -> Option<Self> {
        let mut reservation = Self::none(memory);
        reservation.try_grow(bytes).then_some(reservation)
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reserves `more` bytes; false if the budget refuses.
    pub fn try_grow(&mut self, more: usize) -> bool {
        let grown = self.memory.try_reserve(more);
        if grown {
            self.bytes += more;
        }
        grown
    }

    /// Releases all but `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        if let Some(surplus) = self.bytes.checked_sub(bytes) {
            self.memory.release(surplus);
            self.bytes = bytes;
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}
