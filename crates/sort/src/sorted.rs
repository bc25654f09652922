//! The result of a sort, batch by batch.

use std::sync::Arc;

use dray_format::Batch;
use dray_page::ColumnsBuilder;

use crate::cursor::{Cursor, PieceCursor};
use crate::error::Result;
use crate::memory::Reservation;
use crate::merge::{Merge, Step};
use crate::piece::Piece;
use crate::sorter::Plan;
use crate::spill::Runs;

/// A batch of the result has at most this part of the memory, and so many bytes.
const BATCH_SHARE: usize = 16;
const BATCH_BYTES_MAX: usize = 16 << 20;
/// So many rows are merged before they become columns.
const PENDING_MAX: usize = 1024;
/// So many rows become columns at a time: what they begin with stays in the cache.
const GATHERED: usize = 128;

/// Sorted rows, merged as they are asked for.
#[derive(Debug)]
pub struct Sorted {
    plan: Arc<Plan>,
    merge: Merge,
    columns: ColumnsBuilder,
    /// Rows that are no columns yet: their sources, and where they are there.
    pending: Vec<(usize, (u32, u32))>,
    /// How many of these are columns.
    used: usize,
    ended: bool,
    /// For the batch.
    reservation: Reservation,
}

impl Sorted {
    /// The rows of pieces in memory and of runs; `reservation` is what writing runs needs, and after that a batch of the result.
    pub(crate) fn new(
        plan: Arc<Plan>,
        mut pieces: Vec<Piece>,
        mut runs: Runs,
        mut reservation: Reservation,
    ) -> Result<Self> {
        let mut cursors = loop {
            match runs.open(&plan, !pieces.is_empty())? {
                Some(cursors) => break cursors,
                None if runs.may_spill() && !pieces.is_empty() => runs.spill(&plan, std::mem::take(&mut pieces))?,
                None => return Err(runs.refused(&plan, runs.least_bytes() + reservation.bytes())),
            }
        };
        let cursor = |piece: Piece| {
            let rows = piece.rows();
            Cursor::Piece(PieceCursor::new(Arc::new(piece), 0, rows))
        };
        cursors.extend(pieces.into_iter().map(cursor));
        let merge = Merge::new(cursors, plan.kept.distinct, plan.kept.limit)?;
        let wanted = (plan.memory.bytes_max() / BATCH_SHARE).min(BATCH_BYTES_MAX);
        // What there is suffices for smaller batches.
        reservation.try_grow(wanted.saturating_sub(reservation.bytes()));
        let columns = ColumnsBuilder::new(plan.layout.clone(), u64::MAX);
        Ok(Self { plan, merge, columns, pending: Vec::with_capacity(PENDING_MAX), used: 0, ended: false, reservation })
    }

    fn next_batch(&mut self) -> Result<Option<Batch>> {
        loop {
            if self.used == self.pending.len() {
                self.merge_some()?;
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

    /// Merges until some rows are pending, or there are no more. Their blocks stay where they are.
    fn merge_some(&mut self) -> Result<()> {
        self.plan.cancel.check()?;
        self.pending.clear();
        self.used = 0;
        while self.pending.len() < PENDING_MAX {
            match self.merge.step()? {
                Step::Row(source) => {
                    let place = self.merge.cursor(source).map_or((0, 0), Cursor::place);
                    self.pending.push((source, place));
                }
                Step::Block if self.pending.is_empty() => {}
                Step::Block | Step::End => break,
            }
        }
        Ok(())
    }

    /// Makes columns of pending rows, and says whether the batch is full.
    fn gather(&mut self) -> Result<bool> {
        let bytes_max = self.reservation.bytes();
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

impl Iterator for Sorted {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.next_batch().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}
