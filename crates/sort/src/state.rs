//! What the sorter and all its writers share, and when rows go to disk.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use dray_page::{HEADER_BYTES, Measured, PageBuilder};

use crate::context::{SortContext, run_writer_bytes};
use crate::error::{Error, Result};
use crate::memory::Reservation;
use crate::merge::DiskRuns;
use crate::run::{CutoffKey, MemoryRun, RunBuilder};

/// If several threads write, this is at most such a part of the memory.
const RESERVED_SHARE: usize = 8;
/// Of the memory, so much is reserved at a time for rows to append.
const SLICE_SHARE: usize = 32;
/// So often memory is looked for that other writers may have taken in between.
const ATTEMPTS: usize = 100;
/// The bytes of a page besides those of one object: its slot.
const SLOT_BYTES: usize = 4;

#[derive(Debug)]
pub(crate) struct SortState {
    pub context: Arc<SortContext>,
    /// Measures batches, and is given none.
    pub measure: PageBuilder,
    /// A place for each writer's open piece.
    pub open: Mutex<Vec<Arc<Mutex<Option<RunBuilder>>>>>,
    pub writers: AtomicUsize,
    /// Whether batches are kept as they came. When memory is short, they go to disk, and those
    /// behind them into pages.
    pub keeps: AtomicBool,
    pub pieces: Mutex<Vec<Arc<MemoryRun>>>,
    /// Rows that need not be kept.
    pub cutoff: Mutex<Option<CutoffKey>>,
    /// Whoever has it spills.
    pub runs: Mutex<DiskRuns>,
    /// For writing runs, with the size of the largest page.
    pub reserve: Mutex<(Reservation, usize)>,
    pub finished: AtomicBool,
    /// What rows were lost by: there is no result without them.
    pub failed: OnceLock<Error>,
    pub rows: Arc<AtomicU64>,
    pub spilled: Arc<AtomicU64>,
}

/// The lock of what stays whole even if a thread panicked with it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SortState {
    /// An error if rows were lost.
    pub fn check_failed(&self) -> Result<()> {
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// The result of something by which rows are lost if it fails.
    pub fn failing(&self, result: Result<()>) -> Result<()> {
        result.map_err(|error| self.failed.get_or_init(|| error).clone())
    }

    /// Rows of a batch that are taken at once, from this one on.
    pub fn strip(&self, measured: &Measured<'_>, from: usize, rows_max: usize) -> Range<usize> {
        let bytes_max = self.context.memory.bytes_max() / SLICE_SHARE;
        let key_bytes = self.context.encoder.width().unwrap_or(0);
        let sizes = &measured.sizes()[from..];
        let mut bytes = 0;
        let fits = |size: &&u32| {
            bytes += **size as usize + key_bytes;
            bytes <= bytes_max
        };
        from..from + sizes.iter().take(rows_max).take_while(fits).count().max(1)
    }

    /// Sorts an open piece. Its lock is held until it is among the others, so that who looks for
    /// memory to free finds it here or there.
    pub fn close(&self, open: &mut Option<RunBuilder>) -> Result<()> {
        let Some(piece) = open.take().filter(|piece| piece.rows() > 0) else { return Ok(()) };
        let piece = piece.sort(self.context.kept)?;
        if piece.rows() as u64 == self.context.kept.limit {
            self.cut_off(
                piece.entries().last().and_then(|last| piece.key(*last)).map(CutoffKey::behind),
            );
        }
        lock(&self.pieces).push(Arc::new(piece));
        // Rows that are not kept have left theirs.
        self.context.page_cache.keep();
        Ok(())
    }

    fn cut_off(&self, cutoff: Option<CutoffKey>) {
        if let Some(cutoff) = cutoff {
            let mut least = lock(&self.cutoff);
            *least = Some(cutoff.or(least.take()));
        }
    }

    pub fn close_all(&self) -> Result<()> {
        let all = lock(&self.open).clone();
        all.iter().try_for_each(|open| self.close(&mut lock(open)))
    }

    /// Makes sure that a run with objects of this size could be written.
    pub fn reserve_for(&self, object_bytes: u32) -> Result<()> {
        let page_bytes = (HEADER_BYTES + object_bytes as usize + SLOT_BYTES)
            .next_multiple_of(self.context.page_bytes);
        loop {
            let mut reserve = lock(&self.reserve);
            let more = run_writer_bytes(page_bytes, self.context.gather_bytes_max)
                .saturating_sub(reserve.0.bytes());
            if more == 0 || reserve.0.try_grow(more) {
                reserve.1 = reserve.1.max(page_bytes);
                return Ok(());
            }
            drop(reserve);
            self.free_memory(more)?;
        }
    }

    /// Makes it possible that as many threads write a run as put rows in, if that is no large part
    /// of the memory.
    pub fn reserve_for_writers(&self, writers: usize) {
        let (reserve, page_bytes) = &mut *lock(&self.reserve);
        let wanted = run_writer_bytes(*page_bytes, self.context.gather_bytes_max) * writers;
        if wanted <= self.context.memory.bytes_max() / RESERVED_SHARE {
            // Without it, fewer threads write.
            let _ = reserve.try_grow(wanted.saturating_sub(reserve.bytes()));
        }
    }

    /// How many threads can write a run, if so many are there.
    pub fn spill_threads(&self, threads: usize) -> usize {
        let (reserve, page_bytes) = &*lock(&self.reserve);
        let each = run_writer_bytes(*page_bytes, self.context.gather_bytes_max);
        (reserve.bytes() / each).min(threads).max(1)
    }

    /// Writes all that is in memory as one run, unless so much memory is free by now.
    pub fn free_memory(&self, needed: usize) -> Result<()> {
        let mut runs = lock(&self.runs);
        for _ in 0..ATTEMPTS {
            if Reservation::try_new(&self.context.memory, needed).is_some() {
                return Ok(());
            }
            if self.context.page_cache.clear() {
                continue;
            }
            if !runs.may_spill() {
                break;
            }
            // Before the open pieces are closed, so that no batch is kept behind those that are
            // spilled now.
            self.keeps.store(false, Ordering::Relaxed);
            self.close_all()?;
            let pieces = std::mem::take(&mut *lock(&self.pieces));
            if pieces.is_empty() {
                // Another writer may have taken memory since.
                std::thread::yield_now();
            } else {
                let writers = self.writers.load(Ordering::Relaxed);
                runs.spill(&self.context, pieces, self.spill_threads(writers))?;
                self.context.page_cache.keep();
                self.cut_off(runs.cutoff(self.context.kept));
            }
        }
        Err(runs.refused(&self.context, needed + lock(&self.reserve).0.bytes()))
    }
}
