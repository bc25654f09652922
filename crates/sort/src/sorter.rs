//! The sorter: takes rows from several threads, and returns them sorted.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use dray_format::{Checksum, Schema};
use dray_page::{Layout, PageBuilder};

use crate::context::{RowSelection, SortContext, run_writer_bytes};
use crate::error::{Error, Result};
use crate::key::{KeyEncoder, KeyPurpose, SortColumn};
use crate::memory::{PageCache, Reservation, can_gather};
use crate::merge::DiskRuns;
use crate::options::{Distinct, Options};
use crate::run::SpillFiles;
use crate::sample_sort::{InputBlocks, SampleSort, SampleSortPlan};
use crate::sorted::{Sorted, SortedInMemory, Unmerged};
use crate::state::{SortState, SpillReserve, lock};
use crate::writer::Writer;

/// Rows that are gathered before they are written take at most `1 / GATHER_DIVISOR` of the budget,
/// and at most [`GATHER_BYTES_MAX`].
const GATHER_DIVISOR: usize = 32;
const GATHER_BYTES_MAX: usize = 32 << 20;
/// Batches may retain `1 / SURPLUS_DIVISOR` of the budget beyond their rows.
const SURPLUS_DIVISOR: usize = 8;

/// Sorts rows that come from any number of threads, in memory and on disk.
///
/// ```text
///   Writer ──▶ open run ──┐             ┌─ all rows are in memory: buckets ─┬─▶ Sorted: batches
///   Writer ──▶ open run ──┼─▶ closed ───┤                                   │
///   Writer ──▶ open run ──┘   runs      └─▶ sorted runs in memory ──merge───┤
///                                              │                            │
///                                              └─(memory is short)─merge─▶ runs on disk
/// ```
#[derive(Debug)]
pub struct Sorter {
    state: Arc<SortState>,
}

/// The progress of a sort.
#[derive(Debug, Clone)]
pub struct Progress {
    rows: Arc<AtomicU64>,
    spilled: Arc<AtomicU64>,
}

impl Progress {
    /// The number of rows that came in.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// The bytes that were written to disk.
    pub fn spilled_bytes(&self) -> u64 {
        self.spilled.load(Ordering::Relaxed)
    }
}

impl Sorter {
    /// A sort of rows of this schema.
    ///
    /// # Errors
    /// If the schema has no such column to sort by or can't be laid out in pages, a setting is out
    /// of range, or the budget is smaller than sixteen pages of 4 KiB.
    pub fn new(schema: Schema, options: Options) -> Result<Self> {
        let page_bytes = options.check()?;
        let (by, purpose) = match options.distinct {
            Distinct::No => (options.by, KeyPurpose::Order),
            Distinct::Keys => (options.by, KeyPurpose::Distinct),
            Distinct::Rows => {
                (with_all_columns(options.by, schema.fields.len()), KeyPurpose::Distinct)
            }
        };
        let encoder = KeyEncoder::new(&schema, &by, purpose)?;
        let layout = Layout::new(schema)?;
        // Rows that may be dropped become objects: a batch would keep all of its rows in memory.
        let keeps_batches = can_gather(layout.schema())
            && options.distinct == Distinct::No
            && options.limit.is_none();
        let gather_bytes_max =
            (options.memory.bytes_max() / GATHER_DIVISOR).clamp(page_bytes, GATHER_BYTES_MAX);
        let gather_bytes_max = if keeps_batches { gather_bytes_max } else { 0 };
        let bytes = run_writer_bytes(page_bytes, gather_bytes_max);
        let may_spill = options.spill_folder.is_some();
        let refused =
            || Error::Memory { needed: bytes, bytes_max: options.memory.bytes_max(), may_spill };
        let reservation = Reservation::try_new(&options.memory, bytes).ok_or_else(refused)?;
        let spilled = Arc::new(AtomicU64::new(0));
        let (space, compression) = (options.spill_space, options.spill_compression);
        let files = options
            .spill_folder
            .map(|folder| SpillFiles::new(folder, space, compression, spilled.clone()));
        let selection = RowSelection {
            distinct: options.distinct != Distinct::No,
            limit: options.limit.unwrap_or(u64::MAX),
        };
        let measure = PageBuilder::new(layout.clone(), page_bytes, Checksum::None)?;
        let context = Arc::new(SortContext {
            layout,
            encoder,
            page_bytes,
            gather_bytes_max,
            page_cache: Arc::new(PageCache::new(&options.memory, page_bytes)),
            memory: options.memory,
            fan_in_max: options.fan_in_max,
            batch_rows: options.batch_rows,
            selection,
            cancel: options.cancel,
        });
        Ok(Self {
            state: Arc::new(SortState {
                context,
                measure,
                open: Mutex::default(),
                writers: AtomicUsize::new(0),
                keeps_batches: AtomicBool::new(keeps_batches),
                unsorted: Mutex::default(),
                memory_runs: Mutex::default(),
                cutoff: Mutex::default(),
                disk_runs: Mutex::new(DiskRuns::new(files)),
                spill_reserve: Mutex::new(SpillReserve { reservation, page_bytes_max: page_bytes }),
                finished: AtomicBool::new(false),
                failed: OnceLock::new(),
                rows: Arc::default(),
                spilled,
            }),
        })
    }

    /// Checks whether rows of this schema can be sorted.
    ///
    /// # Errors
    /// If the schema can't be laid out in pages.
    pub fn check_schema(schema: &Schema) -> Result<()> {
        Layout::new(schema.clone())?;
        Ok(())
    }

    /// A writer for one thread.
    pub fn writer(&self) -> Writer {
        Writer::new(self.state.clone())
    }

    /// The most bytes that all batches together should retain beyond their rows. Batches that would
    /// retain more are better copied before they are appended.
    pub fn surplus_bytes_max(&self) -> usize {
        self.state.context.memory.bytes_max() / SURPLUS_DIVISOR
    }

    /// The progress of the sort, which is up to date until the sort ends.
    pub fn progress(&self) -> Progress {
        Progress { rows: self.state.rows.clone(), spilled: self.state.spilled.clone() }
    }

    /// Ends the input, and merges the rows with up to `threads` threads; with 1, in the thread that
    /// reads the result. Writers that still exist take no more rows.
    ///
    /// # Errors
    /// If memory does not suffice, spilling fails, the sort was cancelled, or a writer has lost
    /// rows.
    pub fn finish(self, threads: usize) -> Result<Sorted> {
        let state = &self.state;
        state.finished.store(true, Ordering::Relaxed);
        let mut disk_runs = lock(&state.disk_runs);
        state.check_failed()?;
        state.close_all()?;
        // The merge may reserve the memory of free pages.
        state.context.page_cache.release(usize::MAX);
        let in_memory = self.sort_in_memory(&disk_runs, threads)?;
        state.sort_closed(threads)?;
        let memory_runs = std::mem::take(&mut *lock(&state.memory_runs));
        let disk_runs = std::mem::replace(&mut *disk_runs, DiskRuns::new(None));
        let spill_threads = state.spill_threads(threads);
        let reservation = Reservation::none(&state.context.memory);
        let nothing = SpillReserve { reservation, page_bytes_max: 0 };
        let SpillReserve { reservation, page_bytes_max } =
            std::mem::replace(&mut *lock(&state.spill_reserve), nothing);
        let unmerged = Unmerged {
            context: state.context.clone(),
            in_memory,
            memory_runs,
            disk_runs,
            reservation,
            spill_threads,
            page_bytes_max,
            rows: state.rows.load(Ordering::Relaxed),
            spilled: state.spilled.clone(),
        };
        Sorted::new(unmerged, threads)
    }

    /// Sorts all rows together, if they are in memory and were not sorted in runs, and if their
    /// keys allow it.
    fn sort_in_memory(
        &self,
        disk_runs: &DiskRuns,
        threads: usize,
    ) -> Result<Option<SortedInMemory>> {
        let state = &self.state;
        let mut unsorted = lock(&state.unsorted);
        if unsorted.is_empty() || !lock(&state.memory_runs).is_empty() || !disk_runs.is_empty() {
            return Ok(None);
        }
        let Some(plan) = SampleSortPlan::new(&state.context, &unsorted, threads) else {
            return Ok(None);
        };
        let blocks = InputBlocks::new(std::mem::take(&mut *unsorted))?;
        if blocks.is_sorted() {
            return Ok(Some(SortedInMemory::InOrder(blocks)));
        }
        let sort = SampleSort::new(&state.context, plan, blocks, threads)?;
        Ok(Some(SortedInMemory::Buckets(sort)))
    }
}

/// Appends all columns to `by` that are not in it yet.
fn with_all_columns(mut by: Vec<SortColumn>, columns: usize) -> Vec<SortColumn> {
    for column in 0..columns {
        if by.iter().all(|by| by.column != column) {
            by.push(SortColumn { column, descending: false, nulls_first: false });
        }
    }
    by
}
