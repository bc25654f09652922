//! Sorted rows in memory.

use dray_page::Object;

use crate::error::Result;
use crate::key::Entry;
use crate::memory::{Block, Reservation, rows_before};

/// Rows in memory, whose entries are sorted.
#[derive(Debug)]
pub(crate) struct MemoryRun {
    pub(super) blocks: Vec<Block>,
    /// Where each block's rows begin.
    pub(super) first_rows: Vec<usize>,
    pub(super) batches: Vec<(usize, u64)>,
    pub(super) entries: Vec<Entry>,
    pub(super) _reservation: Reservation,
}

impl MemoryRun {
    /// Whether it has batches as they came.
    pub fn is_kept(&self) -> bool {
        self.blocks.last().is_some_and(Block::is_kept)
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

    /// How many rows have keys that are less than this one.
    pub fn rows_before(&self, key: &[u8]) -> Result<usize> {
        rows_before(self.rows(), key, |row| self.key(*self.entries.get(row)?))
    }

    /// The key of an entry; nothing if it is none of this piece's, here and below.
    #[inline]
    pub fn key(&self, entry: Entry) -> Option<&[u8]> {
        let (block, row) = entry.place();
        self.key_at(block, row)
    }

    #[inline]
    pub fn key_at(&self, block: usize, row: usize) -> Option<&[u8]> {
        self.blocks.get(block)?.keys.get(row)
    }

    #[inline]
    pub fn object(&self, block: usize, row: usize) -> Option<Object<'_>> {
        self.blocks.get(block)?.object(row)
    }

    /// Where a row was in the input.
    pub fn ordinal_at(&self, block: usize, row: usize) -> Option<u64> {
        let row = self.first_rows.get(block)? + row;
        let after = self.batches.partition_point(|(start, _)| *start <= row);
        let (start, ordinal) = self.batches.get(after.checked_sub(1)?)?;
        Some(ordinal + (row - start) as u64)
    }
}
