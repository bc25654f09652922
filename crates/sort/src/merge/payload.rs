//! The payload of merged rows, and all that depends on its layout: how merged rows become a run on
//! disk, or the batches of the result.
//!
//! Objects in pages are copied, or decoded to columns, a few rows at a time. Rows of batches are
//! gathered column by column, as many as possible at a time, so that rows of one batch are read
//! together.

use std::sync::Arc;

use dray_format::Batch;
use dray_page::ColumnsBuilder;

use super::merger::{MergedRow, Merger};
use super::output::MERGED_ROWS;
use crate::context::{OutputBatchMax, OutputSize, SortContext};
use crate::error::{Error, Result};
use crate::memory::{BatchGatherer, BlockPayload, RowLocation};
use crate::run::{DiskRunWriter, MemoryRun, RowObject, read_page};

/// The objects that are prefetched and copied at a time.
const COPIED_ROWS: usize = 64;
/// The objects that become columns at a time, so that their first bytes stay in the cache.
const DECODED_ROWS: usize = 128;

/// The bytes that a row is assumed to have when the number of rows is chosen that are merged before
/// they are gathered into a run.
const SPILLED_ROW_BYTES: usize = 128;
/// The most rows that are merged before they are gathered into a run.
const SPILLED_ROWS_MAX: usize = 256 << 10;

/// The payload of the rows of a merge.
#[derive(Debug)]
pub(crate) enum Payload {
    /// Objects in pages.
    Pages,
    /// Rows of batches.
    Batches(Arc<BatchGatherer>),
}

impl Payload {
    /// The payload of in-memory runs, which must have the same layout.
    pub fn of(runs: &[Arc<MemoryRun>]) -> Self {
        debug_assert!(
            runs.windows(2).all(|pair| pair[0].layout() == pair[1].layout()),
            "runs are merged whose payload has one layout"
        );
        let mut batches = BatchGatherer::default();
        for block in runs.iter().flat_map(|run| run.blocks()) {
            if let BlockPayload::Batch { batch, row_bytes } = &block.payload {
                batches.push(batch, row_bytes);
            }
        }
        if batches.is_empty() { Self::Pages } else { Self::Batches(Arc::new(batches)) }
    }

    /// How much of the result is made at a time, of `all_rows` rows by up to `threads` threads.
    pub fn output_size(&self, all_rows: usize, threads: usize, batch_rows: usize) -> OutputSize {
        match self {
            Self::Pages => OutputSize::of_objects(batch_rows),
            Self::Batches(_) => OutputSize::of_gathered_rows(all_rows, threads, batch_rows),
        }
    }

    /// The rows that are merged before they are written to a run.
    pub fn spilled_rows(&self, context: &SortContext) -> usize {
        match self {
            Self::Pages => MERGED_ROWS,
            Self::Batches(_) => {
                (context.gather_bytes_max / SPILLED_ROW_BYTES).clamp(MERGED_ROWS, SPILLED_ROWS_MAX)
            }
        }
    }

    /// Writes merged rows to a run.
    pub fn write(
        &self,
        merger: &Merger,
        merged: &[MergedRow],
        context: &SortContext,
        run: &mut DiskRunWriter,
    ) -> Result<()> {
        match self {
            Self::Pages => write_objects(merger, merged, run),
            Self::Batches(batches) => write_gathered(batches, merger, merged, context, run),
        }
    }

    /// An empty batch of the result.
    pub fn output_rows(&self, context: &SortContext) -> OutputRows {
        match self {
            Self::Pages => {
                OutputRows::Objects(ColumnsBuilder::new(context.layout.clone(), u64::MAX))
            }
            Self::Batches(batches) => OutputRows::Gathered(GatheredRows {
                batches: batches.clone(),
                locations: Vec::new(),
                bytes: 0,
            }),
        }
    }
}

fn write_objects(merger: &Merger, merged: &[MergedRow], run: &mut DiskRunWriter) -> Result<()> {
    for rows in merged.chunks(COPIED_ROWS) {
        merger.prefetch(rows);
        for row in rows {
            let (key, ordinal) = merger.key_and_ordinal(*row)?;
            match merger.object(*row)? {
                RowObject::InMemory(object) => run.push(object, key, ordinal)?,
                RowObject::OnDisk(page) => run.push_on_disk(page, key, ordinal)?,
            }
        }
    }
    Ok(())
}

fn write_gathered(
    batches: &BatchGatherer,
    merger: &Merger,
    merged: &[MergedRow],
    context: &SortContext,
    run: &mut DiskRunWriter,
) -> Result<()> {
    let mut rest = merged;
    while !rest.is_empty() {
        let (mut bytes, mut count) = (0, 0);
        for row in rest {
            bytes += batches.row_bytes(row.location)?;
            if bytes > context.gather_bytes_max {
                break;
            }
            count += 1;
        }
        let (rows, others) = rest.split_at(count.max(1));
        let locations: Vec<RowLocation> = rows.iter().map(|row| row.location).collect();
        run.append(&batches.gather(&locations)?, |row| merger.key_and_ordinal(rows[row]))?;
        rest = others;
    }
    Ok(())
}

/// A batch of the result that takes merged rows.
#[derive(Debug)]
pub(crate) enum OutputRows {
    /// Columns, to which objects are decoded.
    Objects(ColumnsBuilder),
    /// Locations of rows, which are gathered when the batch is full.
    Gathered(GatheredRows),
}

#[derive(Debug)]
pub(crate) struct GatheredRows {
    batches: Arc<BatchGatherer>,
    locations: Vec<RowLocation>,
    bytes: usize,
}

/// How many merged rows a batch of the result took.
pub(crate) struct Taken {
    pub rows: usize,
    /// Whether the batch takes no more.
    pub is_full: bool,
}

impl OutputRows {
    /// Takes merged rows up to the maximum of a batch.
    pub fn take(
        &mut self,
        merger: &Merger,
        merged: &[MergedRow],
        context: &SortContext,
        max: OutputBatchMax,
    ) -> Result<Taken> {
        match self {
            Self::Objects(columns) => take_objects(columns, merger, merged, context, max),
            Self::Gathered(rows) => rows.take(merged, max),
        }
    }

    /// Returns the batch, and begins the next one.
    pub fn finish(&mut self) -> Result<Batch> {
        match self {
            Self::Objects(columns) => Ok(columns.finish()),
            Self::Gathered(rows) => {
                rows.bytes = 0;
                let batch = rows.batches.gather(&rows.locations)?;
                rows.locations.clear();
                Ok(batch)
            }
        }
    }
}

fn take_objects(
    columns: &mut ColumnsBuilder,
    merger: &Merger,
    merged: &[MergedRow],
    context: &SortContext,
    max: OutputBatchMax,
) -> Result<Taken> {
    let mut taken = 0;
    let mut objects = Vec::with_capacity(DECODED_ROWS);
    loop {
        let rest = &merged[taken..];
        let mut bytes = columns.bytes() as usize;
        // Finding all objects first lets these loads, which miss the cache, overlap.
        objects.clear();
        let mut large = None;
        for row in rest.iter().take(DECODED_ROWS.min(max.rows - columns.rows())) {
            let object = merger.object(*row)?;
            bytes += match object {
                RowObject::InMemory(object) => object.bytes().len(),
                RowObject::OnDisk(page) => page.bytes(),
            };
            if bytes > max.bytes && (columns.rows() > 0 || !objects.is_empty()) {
                break;
            }
            match object {
                RowObject::InMemory(object) => objects.push(object),
                RowObject::OnDisk(page) => {
                    large = Some(page);
                    break;
                }
            }
        }
        if objects.is_empty() && large.is_none() {
            return Ok(Taken { rows: taken, is_full: !rest.is_empty() });
        }
        let rows = columns.rows();
        columns.append(objects.iter().copied())?;
        taken += objects.len();
        if let Some(page) = large {
            let pool = context.page_cache.pool();
            columns.append(read_page(page, &context.layout, pool, 1)?.objects())?;
            taken += 1;
        }
        let more = objects.len() + usize::from(large.is_some());
        if columns.rows() != rows + more {
            let what =
                format!("{} rows became columns of {more}", columns.rows().wrapping_sub(rows));
            return Err(Error::Internal(what));
        }
    }
}

impl GatheredRows {
    fn take(&mut self, merged: &[MergedRow], max: OutputBatchMax) -> Result<Taken> {
        for (taken, row) in merged.iter().enumerate() {
            let more = self.bytes + self.batches.row_bytes(row.location)?;
            if self.locations.len() == max.rows || more > max.bytes && !self.locations.is_empty() {
                return Ok(Taken { rows: taken, is_full: true });
            }
            self.bytes = more;
            self.locations.push(row.location);
        }
        Ok(Taken { rows: merged.len(), is_full: false })
    }
}
