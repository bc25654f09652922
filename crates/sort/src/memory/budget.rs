//! One budget of memory: what is going to be taken is reserved before.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Where memory is reserved before it is taken. Several sorts, and whatever else, may share one.
pub trait MemoryBudget: fmt::Debug + Send + Sync {
    /// Reserves bytes, or none if there are not so many.
    fn try_reserve(&self, bytes: usize) -> bool;

    /// Gives back bytes that were reserved.
    fn release(&self, bytes: usize);

    /// The most that could be reserved at a time.
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
    /// A budget of so many bytes.
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { bytes_max, reserved: AtomicUsize::new(0), peak: AtomicUsize::new(0) })
    }

    /// The bytes that are reserved now.
    pub fn reserved(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }

    /// The most bytes that were ever reserved.
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }
}

impl MemoryBudget for FixedBudget {
    fn try_reserve(&self, bytes: usize) -> bool {
        let more = |taken: usize| taken.checked_add(bytes).filter(|taken| *taken <= self.bytes_max);
        match self.reserved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(before) => {
                self.peak.fetch_max(before + bytes, Ordering::Relaxed);
                true
            }
            Err(_) => false,
        }
    }

    fn release(&self, bytes: usize) {
        self.reserved.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn bytes_max(&self) -> usize {
        self.bytes_max
    }
}

/// Half of the memory that is available now, within the limit of the control group; 4 GiB where the
/// system does not say.
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

/// Reserved bytes, which are given back when they are dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    memory: Arc<dyn MemoryBudget>,
    bytes: usize,
}

impl Reservation {
    pub fn none(memory: &Arc<dyn MemoryBudget>) -> Self {
        Self { memory: memory.clone(), bytes: 0 }
    }

    pub fn try_new(memory: &Arc<dyn MemoryBudget>, bytes: usize) -> Option<Self> {
        let mut reservation = Self::none(memory);
        reservation.try_grow(bytes).then_some(reservation)
    }

    pub fn memory(&self) -> &Arc<dyn MemoryBudget> {
        &self.memory
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn try_grow(&mut self, more: usize) -> bool {
        let grown = self.memory.try_reserve(more);
        if grown {
            self.bytes += more;
        }
        grown
    }

    /// Gives back what is more than `bytes`.
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
