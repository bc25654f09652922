//! The settings of a sort.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dray_page::{PAGE_BYTES, PAGE_BYTES_MIN};

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::key::{SORT_PAGE_BYTES_MAX, SortColumn};
use crate::memory::MemoryBudget;

/// The fewest pages that a budget has room for.
pub(crate) const PAGES_MIN: usize = 16;

/// Which rows are dropped as duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Distinct {
    /// None.
    #[default]
    No,
    /// All but the first of the rows that are equal in all columns.
    Rows,
    /// All but the first of the rows that are equal in the columns they are sorted by.
    Keys,
}

/// How spilled data is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SpillCompression {
    /// LZ4, as long as compressing takes less time than writing the bytes that it saves.
    #[default]
    Auto,
    /// LZ4, whenever that is smaller.
    Lz4,
    /// No compression.
    None,
}

/// A limit on the spill files of one sort, or of several sorts that share it, in bytes.
#[derive(Debug)]
pub struct SpillSpace {
    bytes_max: u64,
    taken: AtomicU64,
}

impl SpillSpace {
    /// A limit of `bytes_max` bytes.
    pub fn new(bytes_max: u64) -> Arc<Self> {
        Arc::new(Self { bytes_max, taken: AtomicU64::new(0) })
    }

    /// The most bytes that may be on disk at a time.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// The bytes that are on disk now.
    pub fn bytes(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Takes `bytes`, which [`release`](Self::release) gives back; false if fewer are left, and
    /// then none are taken.
    pub(crate) fn try_take(&self, bytes: u64) -> bool {
        let more = |taken: u64| taken.checked_add(bytes).filter(|taken| *taken <= self.bytes_max);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    pub(crate) fn release(&self, bytes: u64) {
        let before = self.taken.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "{bytes} of {before} bytes on disk were released");
    }
}

/// The settings of a sort.
#[derive(Debug, Clone)]
pub struct Options {
    /// The columns that rows are sorted by, the most significant first. The sort is stable: rows
    /// that are equal in these columns keep their order.
    pub by: Vec<SortColumn>,
    /// The budget that memory is reserved from.
    pub memory: Arc<dyn MemoryBudget>,
    /// The folder of the spill files, which have no names. `None` keeps the sort in memory.
    pub spill_folder: Option<PathBuf>,
    /// The limit on the bytes of spill files, which other sorts may share.
    pub spill_space: Arc<SpillSpace>,
    /// How spill files are compressed.
    pub spill_compression: SpillCompression,
    /// The bytes of a page, a power of two from 4 KiB to 16 MiB. `None` chooses at most 256 KiB,
    /// and less for a small budget.
    pub page_bytes: Option<usize>,
    /// The most runs on disk that are merged at a time, at least 2.
    pub fan_in_max: usize,
    /// The most rows of a batch of the result, at least 1.
    pub batch_rows: usize,
    /// The most rows of the result. `None` is unlimited.
    pub limit: Option<u64>,
    /// Which rows are dropped as duplicates.
    pub distinct: Distinct,
    /// Cancels the sort.
    pub cancel: Cancel,
}

impl Options {
    /// Sorts all rows by the columns `by`, within `memory` and without spilling.
    pub fn new(by: Vec<SortColumn>, memory: Arc<dyn MemoryBudget>) -> Self {
        Self {
            by,
            memory,
            spill_folder: None,
            spill_space: SpillSpace::new(u64::MAX),
            spill_compression: SpillCompression::Auto,
            page_bytes: None,
            fan_in_max: 256,
            batch_rows: 16 << 10,
            limit: None,
            distinct: Distinct::No,
            cancel: Cancel::default(),
        }
    }

    /// Checks the settings, and chooses the size of a page in bytes.
    ///
    /// # Errors
    /// [`Error::Setting`] for a setting out of range, and [`Error::Memory`] for too small a budget.
    pub(crate) fn check(&self) -> Result<usize> {
        if self.fan_in_max < 2 || self.batch_rows < 1 {
            let (runs, rows) = (self.fan_in_max, self.batch_rows);
            let what = format!(
                "runs merged {runs} at a time in batches of {rows} rows, expected at least 2 and 1"
            );
            return Err(Error::Setting(what));
        }
        let bytes_max = self.memory.bytes_max();
        let page_bytes = match self.page_bytes {
            Some(page_bytes) => page_bytes,
            None => (1 << (bytes_max / (4 * PAGES_MIN)).max(1).ilog2())
                .clamp(PAGE_BYTES_MIN, PAGE_BYTES),
        };
        if !page_bytes.is_power_of_two()
            || !(PAGE_BYTES_MIN..=SORT_PAGE_BYTES_MAX).contains(&page_bytes)
        {
            let range =
                format!("expected a power of two from {PAGE_BYTES_MIN} to {SORT_PAGE_BYTES_MAX}");
            return Err(Error::Setting(format!("pages of {page_bytes} bytes to sort, {range}")));
        }
        let needed = PAGES_MIN * page_bytes;
        if needed > bytes_max {
            return Err(Error::Memory {
                needed,
                bytes_max,
                may_spill: self.spill_folder.is_some(),
            });
        }
        Ok(page_bytes)
    }
}
