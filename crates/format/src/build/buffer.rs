//! Buffers that grow within a budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result, refuse};
use crate::layout::COUNT_MAX;

/// The first room of a buffer: growing from nothing to a few values takes longer than they do.
const FIRST_BYTES: usize = 256;
/// From this size on a buffer grows by a quarter, not to twice its size.
const LARGE_BYTES: usize = 4 << 20;
/// A buffer of the next batch is made no larger than this before there are values for it.
pub(super) const KEPT_BYTES_MAX: usize = 16 << 20;

/// What all columns of a batch share. One thread builds a batch; the atomics let it move to another
/// one.
#[derive(Debug)]
pub(super) struct Budget {
    /// The bytes of all buffers when they last grew: never more than there are, and most of them.
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

    /// Counts `bytes` more.
    fn take(&self, bytes: usize) -> Result<()> {
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

    fn give_back(&self, bytes: usize) {
        self.bytes.store(self.bytes.load(Relaxed).saturating_sub(bytes), Relaxed);
    }
}

/// Bytes that are counted as they grow.
#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) bytes: Vec<u8>,
    /// How many of them the budget knows of.
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

    /// Makes room for `bytes` more bytes.
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

    /// Takes the bytes out.
    pub(super) fn taken(&mut self, take: Take<'_>) -> Result<Bytes> {
        self.budget.give_back(std::mem::take(&mut self.counted));
        take(&mut self.bytes)
    }
}

/// How bytes leave their buffer, which is empty then and has room for as many.
pub(super) type Take<'a> = &'a mut dyn FnMut(&mut Vec<u8>) -> Result<Bytes>;

/// The buffer itself becomes the bytes.
pub(super) fn take_buffer(bytes: &mut Vec<u8>) -> Result<Bytes> {
    let mut next = Vec::new();
    let kept = bytes.len().min(KEPT_BYTES_MAX);
    next.try_reserve_exact(kept).map_err(|_| no_memory(kept))?;
    Ok(Bytes::from(std::mem::replace(bytes, next)))
}

#[cold]
pub(super) fn no_memory(bytes: usize) -> Error {
    Error::new(ErrorKind::Limit, format!("no memory for {bytes} bytes"))
}
