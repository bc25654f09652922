//! What all parts of a sort share.

use std::sync::Arc;

use dray_page::Layout;

use crate::cancel::Cancel;
use crate::key::KeyEncoder;
use crate::memory::{Memory, Stock};

/// Pages that are reserved for writing a run: the one that is filled, the one that is written,
/// their keys, and what is packed.
const RESERVED_PAGES: usize = 5;

/// What all parts of a sort know.
#[derive(Debug)]
pub(crate) struct Plan {
    pub layout: Arc<Layout>,
    pub encoder: KeyEncoder,
    pub page_bytes: usize,
    /// So many bytes of rows are gathered at a time to be written, if they are kept as they came;
    /// or those of a large one.
    pub gathered_bytes: usize,
    pub memory: Arc<dyn Memory>,
    pub stock: Arc<Stock>,
    pub fan_in_max: usize,
    pub batch_rows: usize,
    pub kept: Kept,
    pub cancel: Cancel,
}

/// What is kept of sorted rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    /// Of rows with equal keys only the first.
    pub distinct: bool,
    /// So many rows at most.
    pub limit: u64,
}

impl Kept {
    /// Whether no row is dropped.
    pub fn keeps_all(self) -> bool {
        !self.distinct && self.limit == u64::MAX
    }
}

/// What a thread takes that writes a run of such pages.
pub(crate) fn writing_bytes(page_bytes: usize, gathered_bytes: usize) -> usize {
    let gathered = if gathered_bytes > 0 { gathered_bytes.max(page_bytes) } else { 0 };
    RESERVED_PAGES * page_bytes + gathered
}
