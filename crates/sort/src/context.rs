//! What all stages of a sort share.

use std::sync::Arc;

use dray_page::Layout;

use crate::cancel::Cancel;
use crate::key::KeyEncoder;
use crate::memory::{MemoryBudget, PageCache};

/// The pages that a writer of a run needs: one that is filled, one that is written, the keys of
/// both, and a compressed page.
const RUN_WRITER_PAGES: usize = 5;

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
