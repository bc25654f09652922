//! Merged rows as columns again, batch by batch.

use std::sync::Arc;

use dray_format::Batch;
use dray_page::ColumnsBuilder;

use crate::cursor::{Chain, RowPlace};
use crate::error::Result;
use crate::merge::Merge;
use crate::sorter::Plan;

/// So many rows are merged before they become columns.
const PENDING_MAX: usize = 1024;
/// So many rows become columns at a time: what they begin with stays in the cache.
const GATHERED: usize = 128;

/// A part of the result, or all of it.
#[derive(Debug)]
pub(crate) struct Part {
    plan: Arc<Plan>,
    merge: Merge,
    columns: ColumnsBuilder,
    /// A batch ends before it is larger, if it has a row.
    batch_bytes: usize,
    /// Merged rows: their sources, and where they are there. So many of them are columns.
    pending: Vec<(usize, RowPlace)>,
    used: usize,
}

impl Part {
    /// The rows of these chains, in batches of about so many bytes.
    pub fn new(plan: Arc<Plan>, chains: Vec<Chain>, batch_bytes: usize) -> Result<Self> {
        let columns = ColumnsBuilder::new(plan.layout.clone(), u64::MAX);
        Self::with(columns, plan, chains, batch_bytes)
    }

    /// The rows of other chains, as the ones before.
    pub fn then(self, chains: Vec<Chain>) -> Result<Self> {
        let Self { plan, merge, columns, batch_bytes, .. } = self;
        // Its blocks go before others are read.
        drop(merge);
        Self::with(columns, plan, chains, batch_bytes)
    }

    fn with(columns: ColumnsBuilder, plan: Arc<Plan>, chains: Vec<Chain>, batch_bytes: usize) -> Result<Self> {
        let merge = Merge::new(chains, plan.kept.distinct, plan.kept.limit)?;
        Ok(Self { plan, merge, columns, batch_bytes, pending: Vec::with_capacity(PENDING_MAX), used: 0 })
    }

    /// The next batch; none if there are no more rows.
    pub fn next_batch(&mut self) -> Result<Option<Batch>> {
        loop {
            if self.used == self.pending.len() {
                self.plan.cancel.check()?;
                self.merge.fill(&mut self.pending, PENDING_MAX)?;
                self.used = 0;
                if self.pending.is_empty() {
                    break;
                }
            }
            if self.gather()? {
                break;
            }
        }
        Ok(Some(self.columns.finish()).filter(|batch| batch.rows > 0))
    }

    /// Makes columns of pending rows, and says whether the batch is full.
    fn gather(&mut self) -> Result<bool> {
        let bytes_max = self.batch_bytes;
        let mut objects = Vec::with_capacity(GATHERED);
        loop {
            let rows = self.plan.batch_rows - self.columns.rows();
            let pending = self.pending.get(self.used..).unwrap_or_default();
            let mut bytes = self.columns.bytes() as usize;
            // One after the other, so that these loads, which miss the cache, don't wait for each other.
            objects.clear();
            for (source, place) in pending.iter().take(rows.min(GATHERED)) {
                let Some(object) = self.merge.cursor(*source).and_then(|cursor| cursor.object(*place)) else {
                    continue;
                };
                bytes += object.bytes().len();
                if bytes > bytes_max && (self.columns.rows() > 0 || !objects.is_empty()) {
                    break;
                }
                objects.push(object);
            }
            if objects.is_empty() {
                return Ok(!pending.is_empty());
            }
            self.columns.append(objects.iter().copied())?;
            self.used += objects.len();
        }
    }
}
