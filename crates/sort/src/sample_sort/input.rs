//! The rows to sort, in the order of the input.

use dray_format::Batch;

use crate::error::{Error, Result};
use crate::memory::{Block, BlockKeys, BlockPayload, Reservation, RowSizes};
use crate::run::RunBuilder;

/// Blocks of rows, in the order of the input.
#[derive(Debug)]
pub(crate) struct InputBlocks {
    pub batches: Vec<(Batch, RowSizes)>,
    pub keys: Vec<BlockKeys>,
    /// What is reserved for the blocks of each run, and the part of it for their keys.
    reservations: Vec<(Reservation, usize)>,
}

impl InputBlocks {
    /// The blocks of runs of batches.
    pub fn new(runs: Vec<RunBuilder>) -> Result<Self> {
        let (mut blocks, mut reservations) = (Vec::new(), Vec::new());
        for run in runs {
            let (of_run, reservation) = run.into_blocks()?;
            let key_bytes = of_run.iter().map(|(_, block)| block.keys.memory_bytes()).sum();
            blocks.extend(of_run);
            reservations.push((reservation, key_bytes));
        }
        blocks.sort_by_key(|(ordinal, _)| *ordinal);
        let (mut batches, mut keys) = (Vec::new(), Vec::new());
        for (_, Block { payload, keys: of_block }) in blocks {
            let BlockPayload::Batch { batch, row_bytes } = payload else {
                return Err(Error::missing("the batch of a block"));
            };
            batches.push((batch, row_bytes));
            keys.push(of_block);
        }
        Ok(Self { batches, keys, reservations })
    }

    /// Whether the rows are in the order of their keys.
    pub fn is_sorted(&self) -> bool {
        let ends = |pair: &[BlockKeys]| match pair {
            [before, after] => before.get(before.len().wrapping_sub(1)) <= after.get(0),
            _ => true,
        };
        self.keys.windows(2).all(ends) && self.keys.iter().all(BlockKeys::is_sorted)
    }

    /// The batches, and the memory that is reserved for them.
    pub fn into_batches(self) -> (Vec<Batch>, Vec<Reservation>) {
        let Self { batches, keys, reservations } = self;
        drop(keys);
        let without_keys = |(mut reservation, key_bytes): (Reservation, usize)| {
            reservation.shrink_to(reservation.bytes().saturating_sub(key_bytes));
            reservation
        };
        let batches = batches.into_iter().map(|(batch, _)| batch).collect();
        (batches, reservations.into_iter().map(without_keys).collect())
    }
}
