//! The rows of a sort in partitions, one after the other in the order of the sort.

use std::sync::Arc;

use dray_format::Batch;

use crate::context::{OutputBatchMax, SortContext};
use crate::error::{Error, Result};
use crate::key::KeyRange;
use crate::memory::{Reservation, slice};
use crate::merge::{PartitionOutput, Sources, partitions};
use crate::sample_sort::{SampleSort, SampleSortOutput};

/// The partitions of a result.
#[derive(Debug)]
pub(crate) enum Partitions {
    /// Sorted runs, which are merged: the rows of a key range are a partition.
    Merge {
        context: Arc<SortContext>,
        sources: Sources,
        ranges: Vec<KeyRange>,
        batch_max: OutputBatchMax,
    },
    /// Buckets of rows, of which some make a partition.
    SampleSort(SampleSort),
    /// Batches that came in order, each of which is a partition.
    InOrder { batches: Vec<Batch>, _reservations: Vec<Reservation> },
}

/// Makes the batches of a partition.
#[derive(Debug)]
pub(crate) enum PartitionReader {
    Merge(Box<PartitionOutput>),
    SampleSort(SampleSortOutput),
    InOrder(Option<Batch>),
}

/// Makes the partitions one after the other, in the thread that reads them.
#[derive(Debug)]
pub(crate) struct OnDemandOutput {
    partitions: Partitions,
    /// The reader of the partition that is read.
    reader: Option<PartitionReader>,
    /// The number of the partition after it.
    next: usize,
}

impl OnDemandOutput {
    pub fn new(partitions: Partitions) -> Self {
        Self { partitions, reader: None, next: 0 }
    }

    /// The next batch; `None` if there are no more rows.
    pub fn next_batch(&mut self) -> Result<Option<Batch>> {
        loop {
            if let Some(reader) = &mut self.reader
                && let Some(batch) = self.partitions.next_batch(reader)?
            {
                return Ok(Some(batch));
            }
            if self.next == self.partitions.len() {
                return Ok(None);
            }
            self.reader = Some(self.partitions.begin(self.next, self.reader.take())?);
            self.next += 1;
        }
    }
}

impl Partitions {
    /// Sorted runs in partitions of about `partition_rows` rows; in a single one if that is `None`.
    pub fn of_runs(
        context: Arc<SortContext>,
        sources: Sources,
        partition_rows: Option<usize>,
        batch_max: OutputBatchMax,
    ) -> Result<Self> {
        let ranges = match partition_rows {
            Some(rows) => partitions(&sources, rows)?,
            None => vec![KeyRange::default()],
        };
        Ok(Self::Merge { context, sources, ranges, batch_max })
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Merge { ranges, .. } => ranges.len(),
            Self::SampleSort(sort) => sort.partitions(),
            Self::InOrder { batches, .. } => batches.len(),
        }
    }

    /// Begins partition `number`. Buffers of the reader of another partition are used again.
    pub fn begin(&self, number: usize, last: Option<PartitionReader>) -> Result<PartitionReader> {
        match self {
            Self::Merge { context, sources, ranges, batch_max } => {
                let range =
                    ranges.get(number).ok_or_else(|| Error::missing("a partition to merge"))?;
                let output = match last {
                    Some(PartitionReader::Merge(last)) => last.next_partition(sources, range)?,
                    _ => PartitionOutput::new(context.clone(), sources, range, *batch_max)?,
                };
                Ok(PartitionReader::Merge(Box::new(output)))
            }
            Self::SampleSort(sort) => {
                // Its entries are freed before others are sorted.
                drop(last);
                sort.begin(number).map(PartitionReader::SampleSort)
            }
            Self::InOrder { batches, .. } => {
                let batch = batches.get(number).cloned();
                let batch = batch.ok_or_else(|| Error::missing("a batch that came in order"))?;
                Ok(PartitionReader::InOrder(Some(batch)))
            }
        }
    }

    /// The next batch of a partition; `None` at its end.
    pub fn next_batch(&self, reader: &mut PartitionReader) -> Result<Option<Batch>> {
        match (self, reader) {
            (Self::Merge { .. }, PartitionReader::Merge(output)) => output.next_batch(),
            (Self::SampleSort(sort), PartitionReader::SampleSort(output)) => {
                sort.next_batch(output)
            }
            (Self::InOrder { .. }, PartitionReader::InOrder(batch)) => {
                Ok(batch.take().map(|batch| slice(&batch, 0, batch.rows)))
            }
            _ => Err(Error::missing("the partition of a reader")),
        }
    }
}
