//! What all parts of a sort share.

use std::sync::Arc;

use dray_page::Layout;

use crate::key::KeyEncoder;
use crate::memory::{Memory, Stock};
use crate::options::Cancel;

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
