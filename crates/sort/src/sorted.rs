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
/// So many rows become columns at a time, at most.
const PENDING_MAX: usize = 1024;

/// Sorted rows, merged as they are asked for.
#[derive(Debug)]
pub struct Sorted {
    plan: Arc<Plan>,
    merge: Merge,
    columns: ColumnsBuilder,
    /// Rows that are no columns yet: their sources, and where they are there.
    pending: Vec<(usize, (u32, u32))>,
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
        Ok(Self { plan, merge, columns, pending: Vec::with_capacity(PENDING_MAX), ended: false, reservation })
    }

    fn next_batch(&mut self) -> Result<Option<Batch>> {
        if self.ended {
            return Ok(None);
        }
        let (mut bytes, bytes_max) = (0, self.reservation.bytes());
        loop {
            match self.merge.step()? {
                Step::Row(source) => {
                    let Some(cursor) = self.merge.cursor(source) else { break };
                    let place = cursor.place();
                    self.pending.push((source, place));
                    // Nothing waits for this, so that it also fetches the object.
                    bytes += cursor.object(place).map_or(0, |object| object.bytes().len());
                    if self.columns.rows() + self.pending.len() >= self.plan.batch_rows || bytes >= bytes_max {
                        break;
                    }
                    if self.pending.len() == PENDING_MAX {
                        self.flush()?;
                    }
                }
                Step::Block => self.flush()?,
                Step::End => {
                    self.ended = true;
                    break;
                }
            }
        }
        self.flush()?;
        Ok(Some(self.columns.finish()).filter(|batch| batch.rows > 0))
    }

    /// Makes columns of the rows that are waiting.
    fn flush(&mut self) -> Result<()> {
        self.plan.cancel.check()?;
        let objects = self.pending.iter().filter_map(|(source, place)| self.merge.cursor(*source)?.object(*place));
        self.columns.append(objects)?;
        self.pending.clear();
        Ok(())
    }
}

impl Iterator for Sorted {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_batch();
        self.ended |= next.is_err();
        next.transpose()
    }
}
