//! The result of a sort, batch by batch.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dray_format::Batch;

use crate::context::{RowSelection, SortContext};
use crate::error::{Error, Result};
use crate::key::KeyRange;
use crate::memory::Reservation;
use crate::merge::{
    BATCHES_A_PART, BATCHES_A_THREAD, BatchSize, DiskRuns, ParallelMerge, PartitionOutput, Sources,
    slice,
};
use crate::run::MemoryRun;

/// A batch of the result has at most this part of the memory, and so many bytes.
const BATCH_SHARE: usize = 16;
const BATCH_BYTES_MAX: usize = 4 << 20;
/// From batches that were kept so many rows are gathered at a time, and so many bytes, so that many
/// of them lie near each other. They are handed out in slices.
const GATHERED_ROWS: usize = 256 << 10;
const GATHERED_BYTES_MAX: usize = 128 << 20;
/// Each thread gathers at least so often.
const GATHERED_TIMES: usize = 2;
/// A batch that a thread makes takes about this much of its bytes: columns grow, and an allocator
/// keeps memory for each of their sizes in each thread.
const AHEAD_NUMERATOR: usize = 3;
const AHEAD_DENOMINATOR: usize = 2;
/// Threads are given up before batches are smaller, or have no room for the largest row.
const BATCH_BYTES_MIN: usize = 4 << 10;

/// Sorted rows, merged as they are asked for; or ahead of that, by threads that end when this is
/// dropped.
#[derive(Debug)]
pub struct Sorted {
    rows: Rows,
    batch_rows: usize,
    /// What was made, and from where on it is to be handed out.
    rest: Option<(Batch, usize)>,
    /// So many rows are still wanted.
    left: u64,
    /// So many are still to come, if that is known.
    coming: Option<u64>,
    /// For reading runs and for batches.
    _reservations: [Reservation; 2],
    spilled: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Rows {
    Here(Box<PartitionOutput>),
    Ahead(ParallelMerge),
    Ended,
}

impl Sorted {
    /// The rows of pieces in memory and of runs; `reservation` is what writing runs needs in so
    /// many threads, and after that a batch of the result; of the rows, the largest is in such a
    /// page.
    pub(crate) fn new(
        context: Arc<SortContext>,
        (mut pieces, mut runs): (Vec<Arc<MemoryRun>>, DiskRuns),
        (mut reservation, writers, largest_page_bytes): (Reservation, usize, usize),
        threads: usize,
        (rows_in, spilled): (u64, Arc<AtomicU64>),
    ) -> Result<Self> {
        let (runs, mut reading) = loop {
            match runs.open(&context, !pieces.is_empty(), writers)? {
                Some(opened) => break opened,
                None if runs.may_spill() && !pieces.is_empty() => {
                    runs.spill(&context, std::mem::take(&mut pieces), writers)?
                }
                None => {
                    return Err(runs.refused(&context, runs.least_bytes() + reservation.bytes()));
                }
            }
        };
        let sources = Sources::new(pieces, runs);
        let batch_rows = context.batch_rows;
        let all_rows = usize::try_from(sources.rows()).unwrap_or(usize::MAX);
        let most = (all_rows / (BATCHES_A_PART * batch_rows)).min(threads);
        let (rows, part_rows, bytes_max) = match sources.batches() {
            Some(_) => {
                let each = all_rows.div_ceil(most.max(1));
                let part_rows =
                    each.div_ceil(each.div_ceil(GATHERED_ROWS).max(GATHERED_TIMES)).max(batch_rows);
                // Parts are not that even.
                (part_rows + part_rows / 4, part_rows, GATHERED_BYTES_MAX)
            }
            None => (batch_rows, BATCHES_A_PART * batch_rows, BATCH_BYTES_MAX),
        };
        let least = if largest_page_bytes > context.page_bytes {
            largest_page_bytes
        } else {
            BATCH_BYTES_MIN
        };
        let wanted = (context.memory.bytes_max() / BATCH_SHARE).min(bytes_max).max(least);
        let ahead = reserve_ahead(&mut reading, &mut reservation, most, least..=wanted);
        let (threads, bytes) = ahead.unwrap_or_else(|| {
            // What there is suffices for smaller batches.
            reservation.try_grow(wanted.saturating_sub(reservation.bytes()));
            (1, reservation.bytes())
        });
        context.page_cache.keep_for(reading.bytes());
        let RowSelection { distinct, limit: left } = context.kept;
        let size = BatchSize { rows, bytes };
        let rows = if threads > 1 {
            Rows::Ahead(ParallelMerge::start(context, sources, threads, part_rows, size)?)
        } else {
            Rows::Here(Box::new(PartitionOutput::new(
                context,
                &sources,
                &KeyRange::default(),
                size,
            )?))
        };
        let coming = (!distinct).then_some(rows_in.min(left));
        Ok(Self {
            rows,
            batch_rows,
            rest: None,
            left,
            coming,
            _reservations: [reading, reservation],
            spilled,
        })
    }

    /// How many bytes were written to disk.
    pub fn spilled_bytes(&self) -> u64 {
        self.spilled.load(Ordering::Relaxed)
    }

    fn next_batch(&mut self) -> Result<Option<Batch>> {
        let rest = match self.rest.take() {
            _ if self.left == 0 => None,
            Some(rest) => Some(rest),
            None => match &mut self.rows {
                Rows::Here(part) => part.next_batch()?,
                Rows::Ahead(merge) => merge.next_batch()?,
                Rows::Ended => None,
            }
            .map(|batch| (batch, 0)),
        };
        let Some((batch, from)) = rest else { return self.end() };
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(self.batch_rows);
        let rows = wanted.min(batch.rows - from);
        self.left -= rows as u64;
        self.count(rows as u64)?;
        if rows == batch.rows {
            return Ok(Some(batch));
        }
        let slice = slice(&batch, from, rows);
        self.rest = Some((batch, from + rows)).filter(|(batch, from)| *from < batch.rows);
        Ok(Some(slice))
    }

    /// Counts rows that are handed out, of which there are not more than came in.
    fn count(&mut self, rows: u64) -> Result<()> {
        let Some(coming) = &mut self.coming else { return Ok(()) };
        let more = || Error::Internal(format!("{rows} rows where {coming} were left to come"));
        *coming = coming.checked_sub(rows).ok_or_else(more)?;
        Ok(())
    }

    /// Nothing more, if no row is missing.
    fn end(&self) -> Result<Option<Batch>> {
        match self.coming {
            None | Some(0) => Ok(None),
            Some(missing) => {
                Err(Error::Internal(format!("{missing} rows that came in did not come out")))
            }
        }
    }
}

/// How many threads may merge ahead, and how large their batches are: each reads a block of every
/// run, and is some batches ahead. Smaller batches are better than fewer threads.
fn reserve_ahead(
    reading: &mut Reservation,
    batches: &mut Reservation,
    most: usize,
    wanted: RangeInclusive<usize>,
) -> Option<(usize, usize)> {
    let block_bytes = reading.bytes();
    for threads in (2..=most).rev() {
        if !reading.try_grow(block_bytes * (threads - 1)) {
            continue;
        }
        let mut batch_bytes = *wanted.end();
        while wanted.contains(&batch_bytes) {
            let taken =
                BATCHES_A_THREAD * threads * batch_bytes * AHEAD_NUMERATOR / AHEAD_DENOMINATOR;
            let more = taken.saturating_sub(batches.bytes());
            if batches.try_grow(more) {
                return Some((threads, batch_bytes));
            }
            batch_bytes /= 2;
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
            (self.rows, self.coming) = (Rows::Ended, None);
        }
        next
    }
}
