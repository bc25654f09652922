//! What all stages of a sort share.

use std::sync::Arc;

use dray_page::Layout;

use crate::cancel::Cancel;
use crate::key::KeyEncoder;
use crate::memory::{MemoryBudget, PageCache};

/// The pages that a writer of a run needs: one that is filled, one that is written, the keys of
/// both, and a compressed page.
const RUN_WRITER_PAGES: usize = 5;

/// The approximate number of batches of a partition of the result, and the most batches in its
/// queue.
pub(crate) const PARTITION_BATCHES: usize = 2;
/// The most bytes of a batch that objects become.
const OBJECTS_BYTES_MAX: usize = 4 << 20;
/// The most rows and bytes that are gathered at a time for the result, which is returned in slices.
const GATHERED_ROWS: usize = 256 << 10;
const GATHERED_BYTES_MAX: usize = 128 << 20;
/// The least number of times that each thread gathers.
const GATHERINGS_MIN: usize = 2;

/// The settings and the shared resources of a sort.
#[derive(Debug)]
pub(crate) struct SortContext {
    /// The layout of rows as objects.
    pub layout: Arc<Layout>,
    pub encoder: KeyEncoder,
    pub page_bytes: usize,
    /// The most bytes of rows that are gathered from batches at a time, to be written to a run. A
    /// single row may be larger. 0 if all rows are stored as objects in pages.
    pub gather_bytes_max: usize,
    pub memory: Arc<dyn MemoryBudget>,
    pub page_cache: Arc<PageCache>,
    pub fan_in_max: usize,
    pub batch_rows: usize,
    pub selection: RowSelection,
    pub cancel: Cancel,
}

/// Which of the sorted rows are in the result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowSelection {
    /// Keeps only the first of rows with equal keys.
    pub distinct: bool,
    /// The most rows that are kept.
    pub limit: u64,
}

impl RowSelection {
    pub fn keeps_all(self) -> bool {
        !self.distinct && self.limit == u64::MAX
    }
}

/// The memory of a thread that writes a run of pages of this size.
pub(crate) fn run_writer_bytes(page_bytes: usize, gather_bytes_max: usize) -> usize {
    let gathered = if gather_bytes_max > 0 { gather_bytes_max.max(page_bytes) } else { 0 };
    RUN_WRITER_PAGES * page_bytes + gathered
}

/// The largest batch of the result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputBatchMax {
    pub rows: usize,
    /// A batch of one row may be larger.
    pub bytes: usize,
}

/// How much of the result is made at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputSize {
    /// The most rows of an output batch, which may be returned in slices.
    pub rows_max: usize,
    /// The most bytes of an output batch.
    pub bytes_max: usize,
    /// The rows of a partition that a thread makes.
    pub partition_rows: usize,
}

impl OutputSize {
    /// Objects that become columns.
    pub fn of_objects(batch_rows: usize) -> Self {
        Self {
            rows_max: batch_rows,
            bytes_max: OBJECTS_BYTES_MAX,
            partition_rows: PARTITION_BATCHES * batch_rows,
        }
    }

    /// Rows that are gathered from batches: `all_rows` rows by up to `threads` threads.
    pub fn of_gathered_rows(all_rows: usize, threads: usize, batch_rows: usize) -> Self {
        let each = all_rows.div_ceil(threads.max(1));
        let gatherings = each.div_ceil(GATHERED_ROWS).max(GATHERINGS_MIN);
        let partition_rows = each.div_ceil(gatherings).max(batch_rows);
        // Partitions vary in size, and each is gathered at once.
        let rows_max = partition_rows + partition_rows / 4;
        Self { rows_max, bytes_max: GATHERED_BYTES_MAX, partition_rows }
    }
}
