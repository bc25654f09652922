//! What all parts of a sort share.

use std::sync::Arc;

use dray_page::Layout;

use crate::cancel::Cancel;
use crate::key::KeyEncoder;
use crate::memory::{MemoryBudget, PageCache};

/// Pages that are reserved for writing a run: the one that is filled, the one that is written,
/// their keys, and what is packed.
const RESERVED_PAGES: usize = 5;

/// What all parts of a sort know.
#[derive(Debug)]
pub(crate) struct SortContext {
    pub layout: Arc<Layout>,
    pub encoder: KeyEncoder,
    pub page_bytes: usize,
    /// So many bytes of rows are gathered at a time to be written, if they are kept as they came;
    /// or those of a large one.
    pub gather_bytes_max: usize,
    pub memory: Arc<dyn MemoryBudget>,
    pub page_cache: Arc<PageCache>,
    pub fan_in_max: usize,
    pub batch_rows: usize,
    pub kept: RowSelection,
    pub cancel: Cancel,
}

/// What is kept of sorted rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowSelection {
    /// Of rows with equal keys only the first.
    pub distinct: bool,
    /// So many rows at most.
    pub limit: u64,
}

impl RowSelection {
    /// Whether no row is dropped.
    pub fn keeps_all(self) -> bool {
        !self.distinct && self.limit == u64::MAX
    }
}

/// What a thread takes that writes a run of such pages.
pub(crate) fn run_writer_bytes(page_bytes: usize, gather_bytes_max: usize) -> usize {
    let gathered = if gather_bytes_max > 0 { gather_bytes_max.max(page_bytes) } else { 0 };
    RESERVED_PAGES * page_bytes + gathered
}
