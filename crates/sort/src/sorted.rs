//! The result of a sort, batch by batch.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dray_format::Batch;

use crate::context::{OutputBatchMax, OutputSize, PARTITION_BATCHES, SortContext};
use crate::error::{Error, Result};
use crate::memory::{Reservation, slice};
use crate::merge::{DiskRuns, Sources};
use crate::output::{OnDemandOutput, ParallelOutput, Partitions, THREAD_BATCHES};
use crate::run::MemoryRun;
use crate::sample_sort::{InputBlocks, SampleSort};

/// The largest batch of the result takes `1 / BATCH_DIVISOR` of the budget.
const BATCH_DIVISOR: usize = 16;
/// The memory of a batch that a thread makes, as a multiple of its bytes: columns grow, and an
/// allocator keeps memory of each of their sizes for each thread.
const AHEAD_NUMERATOR: usize = 3;
const AHEAD_DENOMINATOR: usize = 2;
/// The least bytes of a batch when several threads merge. If memory does not suffice for batches of
/// this size, or for the largest row, fewer threads merge.
const BATCH_BYTES_MIN: usize = 4 << 10;

/// Sorted rows. They are made on demand, or ahead by threads that end on drop.
#[derive(Debug)]
pub struct Sorted {
    rows: Rows,
    batch_rows: usize,
    /// A batch that is returned in slices, and the first row that is not returned yet.
    rest: Option<(Batch, usize)>,
    /// The rows until the limit.
    rows_left: u64,
    /// The rows that are still expected; `None` if duplicates are dropped.
    rows_expected: Option<u64>,
    /// The memory for reading runs and for batches.
    _reservations: [Reservation; 2],
    spilled: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Rows {
    OnDemand(OnDemandOutput),
    Ahead(ParallelOutput),
    Ended,
}

/// The rows of a sort that are all in memory, and are sorted without a merge.
pub(crate) enum SortedInMemory {
    Buckets(SampleSort),
    InOrder(InputBlocks),
}

/// All rows of a sort, and what is reserved to merge them.
pub(crate) struct Unmerged {
    pub context: Arc<SortContext>,
    /// The rows, if they are sorted without a merge. Then there are no runs.
    pub in_memory: Option<SortedInMemory>,
    pub memory_runs: Vec<Arc<MemoryRun>>,
    pub disk_runs: DiskRuns,
    /// The memory for `spill_threads` threads that write runs. Batches of the result take it over.
    pub reservation: Reservation,
    pub spill_threads: usize,
    /// The size of the page of the largest row.
    pub page_bytes_max: usize,
    /// The number of rows that came in.
    pub rows: u64,
    pub spilled: Arc<AtomicU64>,
}

impl Sorted {
    /// Merges all rows with up to `threads` threads.
    pub(crate) fn new(unmerged: Unmerged, threads: usize) -> Result<Self> {
        let Unmerged {
            context,
            in_memory,
            mut memory_runs,
            mut disk_runs,
            mut reservation,
            spill_threads,
            page_bytes_max,
            rows: rows_in,
            spilled,
        } = unmerged;
        let (opened, mut reading) = loop {
            match disk_runs.open(&context, !memory_runs.is_empty(), spill_threads)? {
                Some(opened) => break opened,
                None if disk_runs.may_spill() && !memory_runs.is_empty() => {
                    disk_runs.spill(&context, std::mem::take(&mut memory_runs), spill_threads)?
                }
                None => {
                    let needed = disk_runs.least_bytes() + reservation.bytes();
                    return Err(disk_runs.out_of_memory(&context, needed));
                }
            }
        };
        let sources = Sources::new(memory_runs, opened);
        let batch_rows = context.batch_rows;
        let rows = if in_memory.is_some() { rows_in } else { sources.rows() };
        let all_rows = usize::try_from(rows).unwrap_or(usize::MAX);
        let threads_max = (all_rows / (PARTITION_BATCHES * batch_rows)).min(threads);
        let OutputSize { rows_max, bytes_max, partition_rows } = match &in_memory {
            Some(_) => OutputSize::of_gathered_rows(all_rows, threads_max, batch_rows),
            None => sources.payload().output_size(all_rows, threads_max, batch_rows),
        };
        let least =
            if page_bytes_max > context.page_bytes { page_bytes_max } else { BATCH_BYTES_MIN };
        let most = (context.memory.bytes_max() / BATCH_DIVISOR).min(bytes_max).max(least);
        let ahead = reserve_ahead(&mut reading, &mut reservation, threads_max, least..=most);
        let (threads, bytes) = ahead.unwrap_or_else(|| {
            // If the budget refuses, batches are as large as the reservation.
            reservation.try_grow(most.saturating_sub(reservation.bytes()));
            (1, reservation.bytes())
        });
        context.page_cache.shrink_to_users(reading.bytes());
        let selection = context.selection;
        let batch_max = OutputBatchMax { rows: rows_max, bytes };
        let cancel = context.cancel.clone();
        let partitions = match in_memory {
            Some(SortedInMemory::Buckets(mut sort)) => {
                sort.set_partitions(partition_rows, batch_max);
                Partitions::SampleSort(sort)
            }
            Some(SortedInMemory::InOrder(blocks)) => {
                let (batches, _reservations) = blocks.into_batches();
                Partitions::InOrder { batches, _reservations }
            }
            None => {
                let partition_rows = (threads > 1).then_some(partition_rows);
                Partitions::of_runs(context, sources, partition_rows, batch_max)?
            }
        };
        let is_in_order = matches!(partitions, Partitions::InOrder { .. });
        let rows = if threads > 1 && !is_in_order {
            Rows::Ahead(ParallelOutput::start(partitions, threads, cancel)?)
        } else {
            Rows::OnDemand(OnDemandOutput::new(partitions))
        };
        Ok(Self {
            rows,
            batch_rows,
            rest: None,
            rows_left: selection.limit,
            rows_expected: (!selection.distinct).then_some(rows_in.min(selection.limit)),
            _reservations: [reading, reservation],
            spilled,
        })
    }

    /// The bytes that were written to disk.
    pub fn spilled_bytes(&self) -> u64 {
        self.spilled.load(Ordering::Relaxed)
    }

    fn next_batch(&mut self) -> Result<Option<Batch>> {
        let rest = match self.rest.take() {
            _ if self.rows_left == 0 => None,
            Some(rest) => Some(rest),
            None => match &mut self.rows {
                Rows::OnDemand(output) => output.next_batch()?,
                Rows::Ahead(output) => output.next_batch()?,
                Rows::Ended => None,
            }
            .map(|batch| (batch, 0)),
        };
        let Some((batch, from)) = rest else { return self.end() };
        debug_assert!(from < batch.rows, "rows of the batch are left");
        let rows_max = usize::try_from(self.rows_left).unwrap_or(usize::MAX).min(self.batch_rows);
        let rows = rows_max.min(batch.rows - from);
        self.rows_left -= rows as u64;
        self.count(rows as u64)?;
        if rows == batch.rows {
            return Ok(Some(batch));
        }
        let slice = slice(&batch, from, rows);
        self.rest = Some((batch, from + rows)).filter(|(batch, from)| *from < batch.rows);
        Ok(Some(slice))
    }

    /// Counts rows that are returned.
    ///
    /// # Errors
    /// [`Error::Internal`] if more come out than came in.
    fn count(&mut self, rows: u64) -> Result<()> {
        let Some(expected) = &mut self.rows_expected else { return Ok(()) };
        let more = || Error::Internal(format!("{rows} rows where {expected} were left to come"));
        *expected = expected.checked_sub(rows).ok_or_else(more)?;
        Ok(())
    }

    /// Ends the result.
    ///
    /// # Errors
    /// [`Error::Internal`] if rows are missing.
    fn end(&self) -> Result<Option<Batch>> {
        match self.rows_expected {
            None | Some(0) => Ok(None),
            Some(missing) => {
                Err(Error::Internal(format!("{missing} rows that came in did not come out")))
            }
        }
    }
}

/// Reserves memory for threads that merge ahead: each reads a block of every run, and is some
/// batches ahead. Returns the number of threads, at most `threads_max`, and the bytes of a batch
/// within `batch_bytes`. Smaller batches are preferred to fewer threads. `None` if the budget
/// allows fewer than two threads.
fn reserve_ahead(
    reading: &mut Reservation,
    batches: &mut Reservation,
    threads_max: usize,
    batch_bytes: RangeInclusive<usize>,
) -> Option<(usize, usize)> {
    let block_bytes = reading.bytes();
    for threads in (2..=threads_max).rev() {
        if !reading.try_grow(block_bytes * (threads - 1)) {
            continue;
        }
        let mut bytes = *batch_bytes.end();
        while batch_bytes.contains(&bytes) {
            let taken = THREAD_BATCHES * threads * bytes * AHEAD_NUMERATOR / AHEAD_DENOMINATOR;
            let more = taken.saturating_sub(batches.bytes());
            if batches.try_grow(more) {
                return Some((threads, bytes));
            }
            bytes /= 2;
        }
        reading.shrink_to(block_bytes);
    }
    None
}

impl Iterator for Sorted {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_batch().transpose();
        if !matches!(next, Some(Ok(_))) {
            (self.rows, self.rows_expected) = (Rows::Ended, None);
        }
        next
    }
}
