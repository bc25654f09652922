//! What the sorter and all its writers share, and when rows go to disk.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use dray_page::{HEADER_BYTES, Measured, PageBuilder};

use crate::context::{SortContext, run_writer_bytes};
use crate::error::{Error, Result};
use crate::memory::{PayloadLayout, Reservation};
use crate::merge::DiskRuns;
use crate::run::{CutoffKey, MemoryRun, RunBuilder};
use crate::threads::in_threads;

/// The memory for several threads that write runs is at most `1 / SPILL_DIVISOR` of the budget.
const SPILL_DIVISOR: usize = 8;
/// The rows that are appended at a time take at most `1 / SLICE_DIVISOR` of the budget.
const SLICE_DIVISOR: usize = 32;
/// The most objects that are appended at a time, and the most rows of a batch.
const SLICE_OBJECTS_MAX: usize = 1024;
const SLICE_ROWS_MAX: usize = RUN_ROWS_MAX;
/// The most rows of a run in memory.
pub(crate) const RUN_ROWS_MAX: usize = 1 << 20;
/// How often to look for free memory that other writers may take in between.
const ATTEMPTS: usize = 100;
/// The bytes of an object's slot in its page.
const SLOT_BYTES: usize = 4;

/// The run that a writer fills; `None` before its first row.
pub(crate) type OpenRun = Arc<Mutex<Option<RunBuilder>>>;

/// The state of a sort that takes rows.
#[derive(Debug)]
pub(crate) struct SortState {
    pub context: Arc<SortContext>,
    /// Measures batches. No rows are appended to it.
    pub measure: PageBuilder,
    /// The open run of each writer.
    pub open: Mutex<Vec<OpenRun>>,
    /// The number of writers.
    pub writers: AtomicUsize,
    /// Whether batches are kept as they came. Once memory is short, they are spilled, and later
    /// rows become objects in pages.
    pub keeps_batches: AtomicBool,
    /// Runs of batches that are large enough, and not sorted yet: if memory suffices for all rows,
    /// they are sorted together at the end.
    pub unsorted: Mutex<Vec<RunBuilder>>,
    pub memory_runs: Mutex<Vec<Arc<MemoryRun>>>,
    pub cutoff: Mutex<Option<CutoffKey>>,
    /// Locked by the thread that spills.
    pub disk_runs: Mutex<DiskRuns>,
    pub spill_reserve: Mutex<SpillReserve>,
    pub finished: AtomicBool,
    /// The error by which rows were lost, after which there is no result.
    pub failed: OnceLock<Error>,
    /// The number of rows that came in.
    pub rows: Arc<AtomicU64>,
    /// The bytes that were written to disk.
    pub spilled: Arc<AtomicU64>,
}

/// The memory that is reserved for writing runs.
#[derive(Debug)]
pub(crate) struct SpillReserve {
    pub reservation: Reservation,
    /// The size of the page of the largest row.
    pub page_bytes_max: usize,
}

/// Locks a mutex whose value is consistent even if a thread panicked while it held the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SortState {
    /// Checks that no rows were lost.
    ///
    /// # Errors
    /// The error by which rows were lost, if any were.
    pub fn check_failed(&self) -> Result<()> {
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Records the error of an operation that loses rows if it fails, and returns the first such
    /// error of the sort.
    pub fn record_failure(&self, result: Result<()>) -> Result<()> {
        result.map_err(|error| self.failed.get_or_init(|| error).clone())
    }

    /// The layout of the payload of the next rows.
    pub fn layout(&self) -> PayloadLayout {
        match self.keeps_batches.load(Ordering::Relaxed) {
            true => PayloadLayout::Batches,
            false => PayloadLayout::Pages,
        }
    }

    /// The rows of a batch, from row `from` on, that are appended at a time.
    pub fn slice(
        &self,
        measured: &Measured<'_>,
        from: usize,
        layout: PayloadLayout,
    ) -> Range<usize> {
        let rows_max = match layout {
            PayloadLayout::Pages => SLICE_OBJECTS_MAX,
            PayloadLayout::Batches => SLICE_ROWS_MAX,
        };
        let bytes_max = self.context.memory.bytes_max() / SLICE_DIVISOR;
        let key_bytes = self.context.encoder.width().unwrap_or(0);
        let sizes = &measured.sizes()[from..];
        let mut bytes = 0;
        let fits = |size: &&u32| {
            bytes += **size as usize + key_bytes;
            bytes <= bytes_max
        };
        from..from + sizes.iter().take(rows_max).take_while(fits).count().max(1)
    }

    /// Closes an open run, and sorts it unless all rows may be sorted together. The caller holds
    /// its lock until the run is among the closed ones, so that a thread in search of memory finds
    /// it in one place or the other.
    pub fn close(&self, open: &mut Option<RunBuilder>) -> Result<()> {
        let Some(builder) = open.take().filter(|builder| builder.rows() > 0) else { return Ok(()) };
        if builder.key_differences().is_some() {
            lock(&self.unsorted).push(builder);
            return Ok(());
        }
        self.sort(builder)
    }

    /// Sorts a closed run.
    fn sort(&self, builder: RunBuilder) -> Result<()> {
        let run = builder.sort()?;
        if run.rows() as u64 == self.context.selection.limit {
            let last = run.entries().last().and_then(|last| run.key(*last));
            self.cut_off(last.map(CutoffKey::at));
        }
        lock(&self.memory_runs).push(Arc::new(run));
        // The pages of rows that were dropped are free.
        self.context.page_cache.retain_free();
        Ok(())
    }

    fn cut_off(&self, cutoff: Option<CutoffKey>) {
        if let Some(cutoff) = cutoff {
            let mut least = lock(&self.cutoff);
            *least = Some(cutoff.min(least.take()));
        }
    }

    /// Closes the open runs of all writers.
    pub fn close_all(&self) -> Result<()> {
        let all = lock(&self.open).clone();
        all.iter().try_for_each(|open| self.close(&mut lock(open)))
    }

    /// Sorts the closed runs that are not sorted yet, with up to `threads` threads.
    pub fn sort_closed(&self, threads: usize) -> Result<()> {
        let runs = std::mem::take(&mut *lock(&self.unsorted));
        let threads = threads.min(runs.len()).max(1);
        let runs = Mutex::new(runs);
        let work = |()| {
            loop {
                let next = lock(&runs).pop();
                let Some(run) = next else { return Ok(()) };
                self.sort(run)?;
            }
        };
        in_threads("dray-sort", "to sort", vec![(); threads], work).map(drop)
    }

    /// Reserves the memory for writing a run with objects of up to `object_bytes`.
    pub fn reserve_for_spill(&self, object_bytes: u32) -> Result<()> {
        let page_bytes = (HEADER_BYTES + object_bytes as usize + SLOT_BYTES)
            .next_multiple_of(self.context.page_bytes);
        loop {
            let mut reserve = lock(&self.spill_reserve);
            let more = run_writer_bytes(page_bytes, self.context.gather_bytes_max)
                .saturating_sub(reserve.reservation.bytes());
            if more == 0 || reserve.reservation.try_grow(more) {
                reserve.page_bytes_max = reserve.page_bytes_max.max(page_bytes);
                return Ok(());
            }
            drop(reserve);
            self.free_memory(more)?;
        }
    }

    /// Reserves the memory for writing runs with as many threads as there are writers, if that is a
    /// small share of the budget.
    pub fn reserve_for_writers(&self, writers: usize) {
        let SpillReserve { reservation, page_bytes_max } = &mut *lock(&self.spill_reserve);
        let bytes = run_writer_bytes(*page_bytes_max, self.context.gather_bytes_max) * writers;
        if bytes <= self.context.memory.bytes_max() / SPILL_DIVISOR {
            // If the budget refuses, fewer threads write.
            let _ = reservation.try_grow(bytes.saturating_sub(reservation.bytes()));
        }
    }

    /// The number of threads that can write a run with the reserved memory, from 1 to `threads`.
    pub fn spill_threads(&self, threads: usize) -> usize {
        let SpillReserve { reservation, page_bytes_max } = &*lock(&self.spill_reserve);
        let each = run_writer_bytes(*page_bytes_max, self.context.gather_bytes_max);
        (reservation.bytes() / each).min(threads).max(1)
    }

    /// Frees `needed` bytes of the budget: spills all rows in memory as one run, unless other
    /// threads free the memory first.
    ///
    /// # Errors
    /// [`Error::Memory`] without a spill folder, or if spilling does not free enough.
    pub fn free_memory(&self, needed: usize) -> Result<()> {
        let mut disk_runs = lock(&self.disk_runs);
        for _ in 0..ATTEMPTS {
            if Reservation::try_new(&self.context.memory, needed).is_some() {
                return Ok(());
            }
            if self.context.page_cache.clear() {
                continue;
            }
            if !disk_runs.may_spill() {
                break;
            }
            // First of all: a batch that was kept after the open runs were closed would not be
            // spilled.
            self.keeps_batches.store(false, Ordering::Relaxed);
            self.close_all()?;
            self.sort_closed(self.writers.load(Ordering::Relaxed))?;
            let memory_runs = std::mem::take(&mut *lock(&self.memory_runs));
            if memory_runs.is_empty() {
                // Another writer may have taken the memory since.
                std::thread::yield_now();
            } else {
                let writers = self.writers.load(Ordering::Relaxed);
                disk_runs.spill(&self.context, memory_runs, self.spill_threads(writers))?;
                self.context.page_cache.retain_free();
                self.cut_off(disk_runs.cutoff(self.context.selection));
            }
        }
        let reserved = lock(&self.spill_reserve).reservation.bytes();
        Err(disk_runs.out_of_memory(&self.context, needed + reserved))
    }
}
