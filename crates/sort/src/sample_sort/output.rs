//! The batches of the result.

use std::ops::Range;
use std::sync::Arc;

use dray_format::{Batch, Schema, Type};

use super::buckets::{Buckets, EntryLayout, SortedEntries, divide, overhead_bytes};
use super::input::InputBlocks;
use crate::context::{OutputBatchMax, SortContext};
use crate::error::{Error, Result};
use crate::key::KeyDifferences;
use crate::memory::{BatchGatherer, Block, Reservation, RowLocation};
use crate::run::RunBuilder;

/// A sort of rows that are all in memory, whose entries are in buckets.
#[derive(Debug)]
pub(crate) struct SampleSort {
    context: Arc<SortContext>,
    batches: BatchGatherer,
    /// For each column of the schema, whether its values are decoded from keys.
    in_key: Vec<bool>,
    /// The bytes of a row in columns; `None` if they vary.
    row_bytes: Option<usize>,
    buckets: Box<dyn Buckets>,
    /// The buckets of each partition.
    partitions: Vec<Range<usize>>,
    batch_max: OutputBatchMax,
    _reservations: Vec<Reservation>,
}

/// The sorted rows of a partition.
#[derive(Debug)]
pub(crate) struct SampleSortOutput {
    entries: Box<dyn SortedEntries>,
    /// How many of them are output.
    used: usize,
    keys: Vec<u8>,
    locations: Vec<RowLocation>,
}

/// How rows are sorted, if they can be, and the memory for that.
#[derive(Debug)]
pub(crate) struct SampleSortPlan {
    layout: EntryLayout,
    in_key: Vec<bool>,
    overhead: Reservation,
}

impl SampleSortPlan {
    /// A plan to sort the rows of `runs` with up to `threads` threads. `None` if keys vary in width
    /// or don't fit an entry, or if the budget refuses memory.
    pub fn new(context: &SortContext, runs: &[RunBuilder], threads: usize) -> Option<Self> {
        let mut differences = KeyDifferences::new(context.encoder.width()?);
        for run in runs {
            differences.merge(run.key_differences()?);
        }
        let columns = 0..context.layout.schema().fields.len();
        let in_key: Vec<bool> = columns.map(|column| context.encoder.can_decode(column)).collect();
        let blocks = || runs.iter().flat_map(RunBuilder::blocks);
        let layout = EntryLayout::new(
            &differences,
            blocks().count(),
            blocks().map(Block::len).max().unwrap_or(0),
            in_key.contains(&false),
        )?;
        let rows = runs.iter().map(RunBuilder::rows).sum();
        let overhead = overhead_bytes(rows, threads, layout.entry_bytes());
        let overhead = Reservation::try_new(&context.memory, overhead)?;
        Some(Self { layout, in_key, overhead })
    }
}

impl SampleSort {
    /// Divides the rows of the blocks for whose runs the plan was made into buckets. They become
    /// partitions by [`set_partitions`](Self::set_partitions).
    pub fn new(
        context: &Arc<SortContext>,
        plan: SampleSortPlan,
        blocks: InputBlocks,
        threads: usize,
    ) -> Result<Self> {
        let SampleSortPlan { layout, in_key, overhead } = plan;
        let InputBlocks { batches: input, keys, .. } = &blocks;
        let mut batches = BatchGatherer::default();
        input.iter().for_each(|(batch, row_bytes)| batches.push(batch, row_bytes));
        let width = context.encoder.width().ok_or_else(|| Error::missing("the width of keys"))?;
        let buckets = divide(keys, width, layout, threads, &context.cancel)?;
        let (_, mut reservations) = blocks.into_batches();
        reservations.push(overhead);
        Ok(Self {
            batches,
            in_key,
            row_bytes: row_bytes(context.layout.schema()),
            partitions: Vec::new(),
            buckets,
            batch_max: OutputBatchMax { rows: context.batch_rows, bytes: usize::MAX },
            context: context.clone(),
            _reservations: reservations,
        })
    }

    /// Makes partitions of about `partition_rows` rows, whose batches have up to `batch_max`.
    pub fn set_partitions(&mut self, partition_rows: usize, batch_max: OutputBatchMax) {
        let (mut partitions, mut from, mut rows) = (Vec::new(), 0, 0);
        for bucket in 0..self.buckets.len() {
            let more = self.buckets.rows(bucket);
            if rows > 0 && rows + more > partition_rows {
                partitions.push(from..bucket);
                (from, rows) = (bucket, 0);
            }
            rows += more;
        }
        partitions.push(from..self.buckets.len());
        (self.partitions, self.batch_max) = (partitions, batch_max);
    }

    /// The number of partitions.
    pub fn partitions(&self) -> usize {
        self.partitions.len()
    }

    /// Sorts the rows of a partition. A partition can be sorted once.
    pub fn begin(&self, partition: usize) -> Result<SampleSortOutput> {
        let buckets = self.partitions.get(partition).cloned();
        let buckets = buckets.ok_or_else(|| Error::missing("a partition to sort"))?;
        let entries = self.buckets.take_sorted(buckets, &self.context.cancel)?;
        Ok(SampleSortOutput { entries, used: 0, keys: Vec::new(), locations: Vec::new() })
    }

    /// The next batch of a partition; `None` at its end.
    pub fn next_batch(&self, output: &mut SampleSortOutput) -> Result<Option<Batch>> {
        self.context.cancel.check()?;
        let left = output.entries.len() - output.used;
        if left == 0 {
            return Ok(None);
        }
        let mut rows = left.min(self.batch_max.rows.max(1));
        if let Some(row_bytes) = self.row_bytes {
            rows = rows.min((self.batch_max.bytes / row_bytes.max(1)).max(1));
        }
        let entries = |rows: usize| output.used..output.used + rows;
        let is_gathered = self.in_key.contains(&false);
        if is_gathered {
            output.entries.locations(entries(rows), &mut output.locations);
            if self.row_bytes.is_none() {
                rows = self.rows_within(&output.locations)?;
                output.locations.truncate(rows);
            }
        }
        if self.in_key.contains(&true) {
            output.entries.keys(entries(rows), &mut output.keys);
        }
        let mut gathered = if is_gathered {
            self.batches.gather_columns(&output.locations, |column| !self.in_key[column])?
        } else {
            Vec::new()
        }
        .into_iter();
        let columns = self.in_key.iter().enumerate().map(|(column, in_key)| {
            let found = match in_key {
                true => self.context.encoder.decode(column, &output.keys),
                false => gathered.next(),
            };
            found.ok_or_else(|| Error::missing("a column of sorted rows"))
        });
        let batch = Batch { rows, columns: columns.collect::<Result<_>>()? };
        debug_assert!(batch.columns.iter().all(|column| column.rows == rows));
        output.used += rows;
        Ok(Some(batch))
    }

    /// How many of these rows make a batch: at least one.
    fn rows_within(&self, locations: &[RowLocation]) -> Result<usize> {
        let mut bytes = 0;
        for (rows, location) in locations.iter().enumerate() {
            bytes += self.batches.row_bytes(*location)?;
            if bytes > self.batch_max.bytes {
                return Ok(rows.max(1));
            }
        }
        Ok(locations.len())
    }
}

/// The bytes of a row in columns, if all values have a fixed width.
fn row_bytes(schema: &Schema) -> Option<usize> {
    let width = |data_type: &Type| match data_type {
        Type::Utf8 | Type::Binary => None,
        // A value of a type without a width takes at most a byte; so does the bit of a null.
        other => Some(other.width().unwrap_or(1) + 1),
    };
    schema.fields.iter().map(|field| width(&field.data_type)).sum()
}
