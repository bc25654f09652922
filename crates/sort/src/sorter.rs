//! Sorts rows that several threads put in.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use dray_format::Schema;
use dray_page::{Layout, PageBuilder};

use crate::context::{RowSelection, SortContext, run_writer_bytes};
use crate::error::{Error, Result};
use crate::key::{KeyEncoder, KeyPurpose, SortColumn};
use crate::memory::{PageCache, Reservation};
use crate::merge::{DiskRuns, is_table};
use crate::options::{Distinct, Options};
use crate::run::SpillFiles;
use crate::sorted::Sorted;
use crate::state::{SortState, lock};
use crate::writer::Writer;

/// Of the memory, such a part is reserved for rows that are gathered before they are written, and
/// at most so many bytes.
const GATHERED_SHARE: usize = 32;
const GATHERED_BYTES_MAX: usize = 32 << 20;
/// Of the memory, such a part may be held for nothing.
const SURPLUS_SHARE: usize = 8;

/// Sorts rows that come from any number of threads, in memory and on disk.
///
/// ```text
///   Writer ──▶ open piece ──sort──┐                      ┌─▶ Sorted: batches
///   Writer ──▶ open piece ──sort──┼─▶ pieces ──merge─────┤
///   Writer ──▶ open piece ──sort──┘     │                └── runs, merged with them
///                                       └──merge (memory is short)──▶ run on disk
/// ```
#[derive(Debug)]
pub struct Sorter {
    shared: Arc<SortState>,
}

/// How far a sort is.
#[derive(Debug, Clone)]
pub struct Progress {
    rows: Arc<AtomicU64>,
    spilled: Arc<AtomicU64>,
}

impl Progress {
    /// How many rows came in.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// How many bytes were written to disk.
    pub fn spilled_bytes(&self) -> u64 {
        self.spilled.load(Ordering::Relaxed)
    }
}

impl Sorter {
    /// A sort of rows of this schema.
    ///
    /// # Errors
    /// When there is no such column to sort by, the schema has no pages, a setting can't be, or the
    /// memory is less than sixteen pages of 4 KiB.
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
        // Of rows that may be dropped, nothing is to stay.
        let keeps = is_table(layout.schema())
            && options.distinct == Distinct::No
            && options.limit.is_none();
        let gather_bytes_max =
            (options.memory.bytes_max() / GATHERED_SHARE).clamp(page_bytes, GATHERED_BYTES_MAX);
        let gather_bytes_max = if keeps { gather_bytes_max } else { 0 };
        let bytes = run_writer_bytes(page_bytes, gather_bytes_max);
        let may_spill = options.spill_folder.is_some();
        let refused =
            || Error::Memory { needed: bytes, bytes_max: options.memory.bytes_max(), may_spill };
        let reserve = Reservation::try_new(&options.memory, bytes).ok_or_else(refused)?;
        let spilled = Arc::new(AtomicU64::new(0));
        let (space, compression) = (options.spill_space, options.spill_compression);
        let spill = options
            .spill_folder
            .map(|folder| SpillFiles::new(folder, space, compression, spilled.clone()));
        let kept = RowSelection {
            distinct: options.distinct != Distinct::No,
            limit: options.limit.unwrap_or(u64::MAX),
        };
        let measure = PageBuilder::new(layout.clone(), page_bytes, false)?;
        let context = Arc::new(SortContext {
            layout,
            encoder,
            page_bytes,
            gather_bytes_max,
            page_cache: Arc::new(PageCache::new(&options.memory, page_bytes)),
            memory: options.memory,
            fan_in_max: options.fan_in_max,
            batch_rows: options.batch_rows,
            kept,
            cancel: options.cancel,
        });
        Ok(Self {
            shared: Arc::new(SortState {
                context,
                measure,
                open: Mutex::default(),
                writers: AtomicUsize::new(0),
                keeps: AtomicBool::new(keeps),
                pieces: Mutex::default(),
                cutoff: Mutex::default(),
                runs: Mutex::new(DiskRuns::new(spill)),
                reserve: Mutex::new((reserve, page_bytes)),
                finished: AtomicBool::new(false),
                failed: OnceLock::new(),
                rows: Arc::default(),
                spilled,
            }),
        })
    }

    /// Whether rows of this schema can be sorted.
    ///
    /// # Errors
    /// When it has no pages.
    pub fn check_schema(schema: &Schema) -> Result<()> {
        Layout::new(schema.clone())?;
        Ok(())
    }

    /// Where one thread puts rows in.
    pub fn writer(&self) -> Writer {
        Writer::new(self.shared.clone())
    }

    /// So many bytes may batches hold together for nothing: for what is more, they are better
    /// copied.
    pub fn surplus_bytes_max(&self) -> usize {
        self.shared.context.memory.bytes_max() / SURPLUS_SHARE
    }

    /// How far this is, from now on and while it finishes.
    pub fn progress(&self) -> Progress {
        Progress { rows: self.shared.rows.clone(), spilled: self.shared.spilled.clone() }
    }

    /// The sorted rows, merged by so many threads, or by the one that asks for them if that is 1.
    /// Writers that are still there take no more.
    ///
    /// # Errors
    /// When memory does not suffice, spilling fails, the sort was cancelled, or a writer has
    /// failed.
    pub fn finish(self, threads: usize) -> Result<Sorted> {
        let shared = &self.shared;
        shared.finished.store(true, Ordering::Relaxed);
        let mut runs = lock(&shared.runs);
        shared.check_failed()?;
        shared.close_all()?;
        // What is free may be reserved for the merge.
        shared.context.page_cache.leave(usize::MAX);
        let pieces = std::mem::take(&mut *lock(&shared.pieces));
        let runs = std::mem::replace(&mut *runs, DiskRuns::new(None));
        let writers = shared.spill_threads(threads);
        let none = Reservation::none(&shared.context.memory);
        let (reserve, largest) = std::mem::replace(&mut *lock(&shared.reserve), (none, 0));
        let counted = (shared.rows.load(Ordering::Relaxed), shared.spilled.clone());
        Sorted::new(
            shared.context.clone(),
            (pieces, runs),
            (reserve, writers, largest),
            threads,
            counted,
        )
    }
}

/// Sorts by all columns, these first.
fn with_all_columns(mut by: Vec<SortColumn>, columns: usize) -> Vec<SortColumn> {
    for column in 0..columns {
        if by.iter().all(|by| by.column != column) {
            by.push(SortColumn { column, descending: false, nulls_first: false });
        }
    }
    by
}
