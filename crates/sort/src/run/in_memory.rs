//! A sorted run in memory.

use dray_page::Object;

use crate::error::Result;
use crate::key::Entry;
use crate::memory::{Block, PayloadLayout, Reservation, rows_before};

/// Rows in memory, with sorted entries.
#[derive(Debug)]
pub(crate) struct MemoryRun {
    pub(super) layout: PayloadLayout,
    pub(super) blocks: Vec<Block>,
    /// The number of the first row of each block, in the order of the input.
    pub(super) first_rows: Vec<usize>,
    pub(super) ordinals: Vec<OrdinalSpan>,
    pub(super) entries: Vec<Entry>,
    pub(super) _reservation: Reservation,
}

/// Rows of a run from `row` on, whose ordinals follow each other from `ordinal` on. An ordinal is a
/// row's place in the input: the number of its batch, and its number there.
#[derive(Debug, Clone, Copy)]
pub(super) struct OrdinalSpan {
    pub row: usize,
    pub ordinal: u64,
}

impl MemoryRun {
    pub fn layout(&self) -> PayloadLayout {
        self.layout
    }

    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub fn rows(&self) -> usize {
        self.entries.len()
    }

    /// How many rows have keys less than `key`.
    pub fn rows_before(&self, key: &[u8]) -> Result<usize> {
        rows_before(self.rows(), key, |row| self.key(*self.entries.get(row)?))
    }

    /// The key of an entry; `None` if the entry is not of this run.
    #[inline]
    pub fn key(&self, entry: Entry) -> Option<&[u8]> {
        let (block, row) = entry.location();
        self.key_at(block, row)
    }

    /// The key of a row of a block; `None` if there is no such row.
    #[inline]
    pub fn key_at(&self, block: usize, row: usize) -> Option<&[u8]> {
        self.blocks.get(block)?.keys.get(row)
    }

    /// A row as an object; `None` if there is no such row, or if the run's payload is in batches.
    #[inline]
    pub fn object(&self, block: usize, row: usize) -> Option<Object<'_>> {
        self.blocks.get(block)?.object(row)
    }

    /// The ordinal of a row; `None` if there is no such row.
    pub fn ordinal_at(&self, block: usize, row: usize) -> Option<u64> {
        ordinal_at(&self.ordinals, self.first_rows.get(block)? + row)
    }
}

/// The ordinal of a row of a run.
pub(super) fn ordinal_at(ordinals: &[OrdinalSpan], row: usize) -> Option<u64> {
    let after = ordinals.partition_point(|span| span.row <= row);
    let span = ordinals.get(after.checked_sub(1)?)?;
    Some(span.ordinal + (row - span.row) as u64)
}
