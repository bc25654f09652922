//! Merged rows as columns again, batch by batch.

use std::sync::Arc;

use dray_format::Batch;
use dray_page::ColumnsBuilder;

use super::gather::BatchGatherer;
use super::merger::Merger;
use super::sources::Sources;
use crate::context::SortContext;
use crate::error::{Error, Result};
use crate::key::KeyRange;
use crate::memory::RowLocation;
use crate::run::{RowObject, read_page};

/// So many rows are merged before they become columns.
const PENDING_MAX: usize = 1024;
/// So many objects become columns at a time: what they begin with stays in the cache.
const GATHERED: usize = 128;

/// A part of the result, or all of it.
#[derive(Debug)]
pub(crate) struct PartitionOutput {
    context: Arc<SortContext>,
    merge: Merger,
    rows: Rows,
    size: BatchSize,
    /// Merged rows: their sources, and where they are there. So many of them are used.
    pending: Vec<(usize, RowLocation)>,
    used: usize,
}

/// How large a batch is at most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchSize {
    pub rows: usize,
    /// It may have one row that is larger.
    pub bytes: usize,
}

/// The rows of the next batch.
#[derive(Debug)]
enum Rows {
    /// Of objects, as columns.
    Objects(ColumnsBuilder),
    /// Of batches, which are gathered column by column when all are known; and their bytes.
    Places { batches: Arc<BatchGatherer>, places: Vec<RowLocation>, bytes: usize },
}

impl PartitionOutput {
    /// The rows within bounds, in batches.
    pub fn new(
        context: Arc<SortContext>,
        sources: &Sources,
        bounds: &KeyRange,
        size: BatchSize,
    ) -> Result<Self> {
        let rows = match sources.batches() {
            Some(batches) => {
                Rows::Places { batches: batches.clone(), places: Vec::new(), bytes: 0 }
            }
            None => Rows::Objects(ColumnsBuilder::new(context.layout.clone(), u64::MAX)),
        };
        Self::with(rows, context, sources, bounds, size)
    }

    /// The rows within other bounds, as the ones before.
    pub fn then(self, sources: &Sources, bounds: &KeyRange) -> Result<Self> {
        let Self { context, merge, rows, size, .. } = self;
        // Its blocks go before others are read.
        drop(merge);
        Self::with(rows, context, sources, bounds, size)
    }

    fn with(
        rows: Rows,
        context: Arc<SortContext>,
        sources: &Sources,
        bounds: &KeyRange,
        size: BatchSize,
    ) -> Result<Self> {
        let merge = Merger::new(
            sources.chains(&context, bounds)?,
            context.kept.distinct,
            context.kept.limit,
        )?;
        Ok(Self { context, merge, rows, size, pending: Vec::with_capacity(PENDING_MAX), used: 0 })
    }

    /// The next batch; none if there are no more rows.
    pub fn next_batch(&mut self) -> Result<Option<Batch>> {
        loop {
            if self.used == self.pending.len() {
                self.context.cancel.check()?;
                self.merge.fill(&mut self.pending, PENDING_MAX)?;
                self.used = 0;
                if self.pending.is_empty() {
                    break;
                }
            }
            let pending = &self.pending[self.used..];
            let (taken, is_full) = match &mut self.rows {
                Rows::Objects(columns) => {
                    take_objects(columns, (&self.merge, &self.context), pending, self.size)?
                }
                Rows::Places { batches, places, bytes } => {
                    take_places((places, bytes), batches, pending, self.size)?
                }
            };
            self.used += taken;
            if is_full {
                break;
            }
        }
        let batch = match &mut self.rows {
            Rows::Objects(columns) => columns.finish(),
            Rows::Places { batches, places, bytes } => {
                *bytes = 0;
                let batch = batches.gather(places)?;
                places.clear();
                batch
            }
        };
        Ok(Some(batch).filter(|batch| batch.rows > 0))
    }
}

/// Makes columns of pending rows, and says of how many, and whether the batch is full.
fn take_objects(
    columns: &mut ColumnsBuilder,
    (merge, context): (&Merger, &SortContext),
    pending: &[(usize, RowLocation)],
    size: BatchSize,
) -> Result<(usize, bool)> {
    let mut taken = 0;
    let mut objects = Vec::with_capacity(GATHERED);
    loop {
        let pending = &pending[taken..];
        let mut bytes = columns.bytes() as usize;
        // One after the other, so that these loads, which miss the cache, don't wait for each
        // other.
        objects.clear();
        let mut late = None;
        for (source, place) in pending.iter().take(GATHERED.min(size.rows - columns.rows())) {
            let object = merge.object(*source, *place)?;
            bytes += match object {
                RowObject::InMemory(object) => object.bytes().len(),
                RowObject::OnDisk(page) => page.bytes(),
            };
            if bytes > size.bytes && (columns.rows() > 0 || !objects.is_empty()) {
                break;
            }
            match object {
                RowObject::InMemory(object) => objects.push(object),
                RowObject::OnDisk(page) => {
                    late = Some(page);
                    break;
                }
            }
        }
        if objects.is_empty() && late.is_none() {
            return Ok((taken, !pending.is_empty()));
        }
        let rows = columns.rows();
        columns.append(objects.iter().copied())?;
        taken += objects.len();
        if let Some(page) = late {
            columns.append(
                read_page(page, &context.layout, context.page_cache.rooms(), 1)?.objects(),
            )?;
            taken += 1;
        }
        let more = objects.len() + usize::from(late.is_some());
        if columns.rows() != rows + more {
            let what =
                format!("{} rows became columns of {more}", columns.rows().wrapping_sub(rows));
            return Err(Error::Internal(what));
        }
    }
}

/// The same of rows that are gathered later.
fn take_places(
    (places, bytes): (&mut Vec<RowLocation>, &mut usize),
    batches: &BatchGatherer,
    pending: &[(usize, RowLocation)],
    size: BatchSize,
) -> Result<(usize, bool)> {
    for (taken, (_, place)) in pending.iter().enumerate() {
        let more = *bytes + batches.size(*place)?;
        if places.len() == size.rows || more > size.bytes && !places.is_empty() {
            return Ok((taken, true));
        }
        *bytes = more;
        places.push(*place);
    }
    Ok((pending.len(), false))
}
