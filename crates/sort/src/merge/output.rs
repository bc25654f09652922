//! Merges a partition of the rows into batches of the result.

use std::sync::Arc;

use dray_format::Batch;

use super::merger::{MergedRow, Merger};
use super::payload::OutputRows;
use super::sources::Sources;
use crate::context::{OutputBatchMax, SortContext};
use crate::error::Result;
use crate::key::KeyRange;

/// Rows are merged in groups of this many before they become columns.
pub(super) const MERGED_ROWS: usize = 1024;

/// The batches of a partition of the result, or of all of it.
#[derive(Debug)]
pub(crate) struct PartitionOutput {
    context: Arc<SortContext>,
    merger: Merger,
    rows: OutputRows,
    max: OutputBatchMax,
    merged: Vec<MergedRow>,
    /// How many of the merged rows are output.
    used: usize,
}

impl PartitionOutput {
    /// The rows within `range`, in batches of at most `max`.
    pub fn new(
        context: Arc<SortContext>,
        sources: &Sources,
        range: &KeyRange,
        max: OutputBatchMax,
    ) -> Result<Self> {
        let rows = sources.payload().output_rows(&context);
        Self::with(rows, context, sources, range, max)
    }

    /// The rows within another range. Buffers of this partition are used again.
    pub fn next_partition(self, sources: &Sources, range: &KeyRange) -> Result<Self> {
        let Self { context, merger, rows, max, .. } = self;
        // Frees the blocks of this partition before others are read.
        drop(merger);
        Self::with(rows, context, sources, range, max)
    }

    fn with(
        rows: OutputRows,
        context: Arc<SortContext>,
        sources: &Sources,
        range: &KeyRange,
        max: OutputBatchMax,
    ) -> Result<Self> {
        let merger = Merger::new(sources.chains(&context, range)?, context.selection)?;
        Ok(Self { context, merger, rows, max, merged: Vec::with_capacity(MERGED_ROWS), used: 0 })
    }

    /// The next batch; `None` if there are no more rows.
    pub fn next_batch(&mut self) -> Result<Option<Batch>> {
        loop {
            if self.used == self.merged.len() {
                self.context.cancel.check()?;
                self.merger.fill(&mut self.merged, MERGED_ROWS)?;
                self.used = 0;
                if self.merged.is_empty() {
                    break;
                }
            }
            let merged = &self.merged[self.used..];
            let taken = self.rows.take(&self.merger, merged, &self.context, self.max)?;
            self.used += taken.rows;
            debug_assert!(self.used <= self.merged.len());
            if taken.is_full {
                break;
            }
        }
        let batch = self.rows.finish()?;
        debug_assert!(batch.rows <= self.max.rows);
        Ok(Some(batch).filter(|batch| batch.rows > 0))
    }
}
