//! What a sort is told.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dray_page::{PAGE_BYTES, PAGE_BYTES_MIN};

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::key::{SORT_PAGE_BYTES_MAX, SortColumn};
use crate::memory::MemoryBudget;

/// A budget has at least so many pages.
pub(crate) const PAGES_MIN: usize = 16;

/// Which rows are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Distinct {
    /// None.
    #[default]
    No,
    /// All but the first of rows whose values are all the same.
    Rows,
    /// All but the first of rows with the same values in the columns that are sorted by.
    Keys,
}

/// How what is spilled is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SpillCompression {
    /// OrderBy LZ4 where the disk takes longer for what that spares than it takes.
    #[default]
    Auto,
    /// OrderBy LZ4, whatever becomes smaller.
    Lz4,
    /// Not at all.
    None,
}

/// Room on disk for the files of one sort, or of several at a time.
#[derive(Debug)]
pub struct SpillSpace {
    bytes_max: u64,
    taken: AtomicU64,
}

impl SpillSpace {
    /// Room for so many bytes.
    pub fn new(bytes_max: u64) -> Arc<Self> {
        Arc::new(Self { bytes_max, taken: AtomicU64::new(0) })
    }

    /// How many there may be.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// How many there are now.
    pub fn bytes(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Takes bytes, which [`Self::give_back`] returns; false if there is no room, and then none are
    /// taken.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let more = |taken: u64| taken.checked_add(bytes).filter(|taken| *taken <= self.bytes_max);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    pub(crate) fn give_back(&self, bytes: u64) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// What a sort is told.
#[derive(Debug, Clone)]
pub struct Options {
    /// The columns that rows are sorted by, the first of which decides first. Rows that are equal
    /// in these stay in their order.
    pub by: Vec<SortColumn>,
    /// Where memory is reserved before it is taken.
    pub memory: Arc<dyn MemoryBudget>,
    /// Where files without names are made if memory does not suffice.
    pub spill_folder: Option<PathBuf>,
    /// How much of the disk these may take, together with the other sorts that share it.
    pub spill_space: Arc<SpillSpace>,
    /// How they are compressed.
    pub spill_compression: SpillCompression,
    /// The size of a page: a power of two from 4 KiB to 16 MiB. None chooses one of at most 256
    /// KiB, smaller for little memory.
    pub page_bytes: Option<usize>,
    /// So many spilled runs are merged at a time, at least 2.
    pub fan_in_max: usize,
    /// So many rows a batch of the result has at most.
    pub batch_rows: usize,
    /// So many rows of the result are wanted.
    pub limit: Option<u64>,
    /// Which rows are dropped.
    pub distinct: Distinct,
    /// What tells the sort to stop.
    pub cancel: Cancel,
}

impl Options {
    /// Sorts all rows by these columns within this memory, and nowhere else.
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

    /// The size of pages, if all settings can be.
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
