//! The result of a sort, batch by batch.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dray_format::Batch;

use crate::cursor::Bounds;
use crate::error::Result;
use crate::memory::Reservation;
use crate::part::Part;
use crate::path::Sources;
use crate::piece::Piece;
use crate::sorter::Plan;
use crate::spill::Runs;
use crate::workers::{BATCHES_A_PART, BATCHES_A_THREAD, Workers};

/// A batch of the result has at most this part of the memory, and so many bytes.
const BATCH_SHARE: usize = 16;
const BATCH_BYTES_MAX: usize = 4 << 20;
/// A batch that a thread makes takes about this much of its bytes: columns grow, and an allocator keeps memory for each of their sizes in each thread.
const AHEAD_NUMERATOR: usize = 3;
const AHEAD_DENOMINATOR: usize = 2;
/// Threads are given up before batches are smaller.
const BATCH_BYTES_MIN: usize = 4 << 10;

/// Sorted rows, merged as they are asked for; or ahead of that, by threads that end when this is dropped.
#[derive(Debug)]
pub struct Sorted {
    rows: Rows,
    /// So many rows are still wanted.
    left: u64,
    /// For reading runs and for batches.
    _reservations: [Reservation; 2],
    spilled: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Rows {
    Here(Box<Part>),
    Ahead(Workers),
    Ended,
}

impl Sorted {
    /// The rows of pieces in memory and of runs; `reservation` is what writing runs needs, and after that a batch of the result.
    pub(crate) fn new(
        plan: Arc<Plan>,
        (mut pieces, mut runs): (Vec<Arc<Piece>>, Runs),
        mut reservation: Reservation,
        threads: usize,
        spilled: Arc<AtomicU64>,
    ) -> Result<Self> {
        let (runs, mut reading) = loop {
            match runs.open(&plan, !pieces.is_empty())? {
                Some(opened) => break opened,
                None if runs.may_spill() && !pieces.is_empty() => runs.spill(&plan, std::mem::take(&mut pieces), 1)?,
                None => return Err(runs.refused(&plan, runs.least_bytes() + reservation.bytes())),
            }
        };
        let sources = Sources { pieces, runs };
        let parts = sources.rows() / (BATCHES_A_PART * plan.batch_rows) as u64;
        let most = parts.min(threads as u64) as usize;
        let wanted = (plan.memory.bytes_max() / BATCH_SHARE).min(BATCH_BYTES_MAX);
        let (threads, batch_bytes) = reserve_ahead(&mut reading, &mut reservation, most, wanted).unwrap_or_else(|| {
            // What there is suffices for smaller batches.
            reservation.try_grow(wanted.saturating_sub(reservation.bytes()));
            (1, reservation.bytes())
        });
        plan.stock.keep_for(reading.bytes());
        let left = plan.kept.limit;
        let rows = if threads > 1 {
            Rows::Ahead(Workers::start(plan, sources, threads, batch_bytes)?)
        } else {
            let chains = sources.chains(&plan, &Bounds::default());
            Rows::Here(Box::new(Part::new(plan, chains, batch_bytes)?))
        };
        Ok(Self { rows, left, _reservations: [reading, reservation], spilled })
    }

    /// How many bytes were written to disk.
    pub fn spilled_bytes(&self) -> u64 {
        self.spilled.load(Ordering::Relaxed)
    }

    fn next_batch(&mut self) -> Result<Option<Batch>> {
        let batch = match &mut self.rows {
            _ if self.left == 0 => None,
            Rows::Here(part) => part.next_batch()?,
            Rows::Ahead(workers) => workers.next_batch()?,
            Rows::Ended => None,
        };
        let Some(batch) = batch else { return Ok(None) };
        let rows = usize::try_from(self.left).unwrap_or(usize::MAX).min(batch.rows);
        self.left -= rows as u64;
        Ok(Some(if rows < batch.rows { batch.slice(0, rows) } else { batch }))
    }
}

/// How many threads may merge ahead, and how large their batches are: each reads a block of every run, and is some batches ahead.
/// Smaller batches are better than fewer threads.
fn reserve_ahead(
    reading: &mut Reservation,
    batches: &mut Reservation,
    most: usize,
    wanted: usize,
) -> Option<(usize, usize)> {
    let block_bytes = reading.bytes();
    for threads in (2..=most).rev() {
        if !reading.try_grow(block_bytes * (threads - 1)) {
            continue;
        }
        let mut batch_bytes = wanted;
        while batch_bytes >= BATCH_BYTES_MIN {
            let taken = BATCHES_A_THREAD * threads * batch_bytes * AHEAD_NUMERATOR / AHEAD_DENOMINATOR;
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
            self.rows = Rows::Ended;
        }
        next
    }
}
