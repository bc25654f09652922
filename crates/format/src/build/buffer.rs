//! Buffers that grow within a budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result, refuse};
use crate::layout::COUNT_MAX;

/// The first capacity of a buffer. Growing from nothing in small steps would take longer than the
/// first values.
const FIRST_BYTES: usize = 256;
/// Buffers of this size or more grow by a quarter instead of doubling.
const LARGE_BYTES: usize = 4 << 20;
/// The most capacity that a buffer gets, or keeps, for the next batch.
pub(super) const REUSED_BYTES_MAX: usize = 16 << 20;

/// The budget that all columns of a batch share. One thread at a time builds a batch; the atomics
/// only let it move to another thread.
#[derive(Debug)]
pub(super) struct Budget {
    /// The bytes that all buffers needed when they last grew.
    bytes: AtomicUsize,
    bytes_max: AtomicUsize,
    row_bytes_max: AtomicUsize,
    pub(super) interrupted: Option<fn() -> bool>,
}

impl Budget {
    pub(super) fn new(interrupted: Option<fn() -> bool>) -> Arc<Self> {
        let [bytes_max, row_bytes_max] = [usize::MAX; 2].map(AtomicUsize::new);
        Arc::new(Self { bytes: AtomicUsize::new(0), bytes_max, row_bytes_max, interrupted })
    }

    pub(super) fn set_bytes_max(&self, row_bytes_max: usize, waiting_bytes_max: usize) {
        self.row_bytes_max.store(row_bytes_max, Relaxed);
        self.bytes_max.store(row_bytes_max.saturating_add(waiting_bytes_max), Relaxed);
    }

    /// Adds `bytes`.
    pub(super) fn take(&self, bytes: usize) -> Result<()> {
        let wanted = self.bytes.load(Relaxed).saturating_add(bytes);
        if wanted > self.bytes_max.load(Relaxed) {
            let row_bytes_max = self.row_bytes_max.load(Relaxed);
            refuse!(
                Limit,
                "a row needs over {row_bytes_max} bytes, which is the limit; raise row_bytes_max"
            );
        }
        self.bytes.store(wanted, Relaxed);
        Ok(())
    }

    pub(super) fn give_back(&self, bytes: usize) {
        self.bytes.store(self.bytes.load(Relaxed).saturating_sub(bytes), Relaxed);
    }
}

/// Bytes that are counted as they grow.
#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) bytes: Vec<u8>,
    /// The bytes that are counted in the budget.
    counted: usize,
    pub(super) budget: Arc<Budget>,
}

impl Buffer {
    pub(super) fn new(budget: &Arc<Budget>) -> Self {
        Self { bytes: Vec::new(), counted: 0, budget: budget.clone() }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Reserves `bytes` more bytes.
    #[inline]
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<()> {
        if self.bytes.capacity() - self.bytes.len() >= bytes { Ok(()) } else { self.grow(bytes) }
    }

    #[cold]
    fn grow(&mut self, bytes: usize) -> Result<()> {
        let wanted = self.len().saturating_add(bytes);
        if wanted > COUNT_MAX {
            refuse!(Limit, "one column of a batch has over {COUNT_MAX} bytes");
        }
        self.budget.take(wanted.saturating_sub(self.counted))?;
        self.counted = self.counted.max(wanted);
        match wanted > LARGE_BYTES {
            false if self.bytes.capacity() == 0 => self.bytes.try_reserve(bytes.max(FIRST_BYTES)),
            false => self.bytes.try_reserve(bytes),
            true => self.bytes.try_reserve_exact(bytes.max(self.len() / 4)),
        }
        .map_err(|_| no_memory(wanted))
    }

    /// Takes the bytes out, and out of the budget.
    pub(super) fn taken(&mut self, take: Take<'_>) -> Result<Bytes> {
        self.budget.give_back(std::mem::take(&mut self.counted));
        take(&mut self.bytes)
    }
}

/// Takes the bytes out of a buffer, which is empty after that.
pub(super) type Take<'a> = &'a mut dyn FnMut(&mut Vec<u8>) -> Result<Bytes>;

/// Takes the buffer itself, and leaves one with the same capacity up to a limit.
pub(super) fn take_buffer(bytes: &mut Vec<u8>) -> Result<Bytes> {
    let mut next = Vec::new();
    let capacity = bytes.len().min(REUSED_BYTES_MAX);
    next.try_reserve_exact(capacity).map_err(|_| no_memory(capacity))?;
    Ok(Bytes::from(std::mem::replace(bytes, next)))
}

#[cold]
pub(super) fn no_memory(bytes: usize) -> Error {
    Error::new(ErrorKind::Limit, format!("no memory for {bytes} bytes"))
}
