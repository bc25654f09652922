//! Rows in memory that are not sorted yet.

use std::ops::Range;
use std::sync::Arc;

use dray_format::{Batch, Column};
use dray_page::{Layout, Measured, PageBuilder};

use super::cutoff::CutoffKey;
use super::entry_sort;
use super::in_memory::MemoryRun;
use crate::context::RowSelection;
use crate::error::{Error, Result};
use crate::key::{ENTRY_BLOCKS_END, Entry, KeyEncoder, Keys, VaryingBytes, word};
use crate::memory::{Block, BlockKeys, BlockPayload, MemoryBudget, PageCache, Reservation};

/// The rows of a batch have so many bits in a ordinal, and its number those before.
pub(crate) const ROW_BITS: u32 = 31;

/// What a column of a kept batch takes besides its values: here, among all that rows are gathered
/// from, and for what owns its buffers.
const COLUMN_BYTES: usize = 2 * size_of::<Column>() + 192;

/// If only so small a part of the rows is kept, they are copied, so that the others' memory is
/// free.
const FEW: usize = 4;

/// Rows on their way to be sorted, in the order in which they came.
#[derive(Debug)]
pub(crate) struct RunBuilder {
    builder: PageBuilder,
    page_cache: Arc<PageCache>,
    key_width: Option<usize>,
    blocks: Vec<Block>,
    /// Keys of the rows whose page is not full yet.
    keys: BlockKeys,
    rows: usize,
    /// Where batches begin, and the ordinals of their first rows here.
    batches: Vec<(usize, u64)>,
    /// Bytes of all pages, and of the keys of those that are full.
    bytes: usize,
    reservation: Reservation,
}

/// The memory that keys of rows of these sizes take at most while they are made.
fn key_bytes(encoder: &KeyEncoder, sizes: &[u32]) -> usize {
    let objects: usize = sizes.iter().map(|bytes| *bytes as usize).sum();
    // A string has at most twice as many bytes in a key; its keys are there twice for a moment.
    2 * encoder
        .width()
        .map_or(2 * objects + size_of::<usize>() * sizes.len(), |width| width * sizes.len())
}

impl RunBuilder {
    pub fn new(
        layout: &Arc<Layout>,
        page_cache: &Arc<PageCache>,
        key_width: Option<usize>,
        memory: &Arc<dyn MemoryBudget>,
    ) -> Result<Self> {
        Ok(Self {
            builder: PageBuilder::within(layout.clone(), page_cache.rooms(), false)?,
            page_cache: page_cache.clone(),
            key_width,
            blocks: Vec::new(),
            keys: BlockKeys::new(key_width),
            rows: 0,
            batches: Vec::new(),
            bytes: 0,
            reservation: Reservation::none(memory),
        })
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The memory that is reserved.
    pub fn bytes(&self) -> usize {
        self.reservation.bytes()
    }

    /// The least memory that is needed for these rows more, before they are there.
    pub fn needed(
        &self,
        encoder: &KeyEncoder,
        measured: &Measured<'_>,
        rows: Range<usize>,
    ) -> usize {
        let sizes = &measured.sizes()[rows.clone()];
        self.builder.page_bytes_of(measured, rows)
            + key_bytes(encoder, sizes)
            + size_of::<Entry>() * sizes.len()
    }

    /// Appends rows of a batch, if memory for them can be reserved; none that the cutoff says are
    /// not wanted. `ordinal` is that of the batch's row 0.
    pub fn append(
        &mut self,
        encoder: &KeyEncoder,
        (batch, measured): (&Batch, &Measured<'_>),
        rows: Range<usize>,
        ordinal: u64,
        cutoff: Option<&CutoffKey>,
    ) -> Result<bool> {
        if !self.reserve(encoder, measured, rows.clone()) {
            return Ok(false);
        }
        let keys = encoder.encode(&batch.slice(rows.start, rows.len()));
        let mut from = 0;
        while from < keys.len() {
            let wanted = |row: &usize| cutoff.is_none_or(|cutoff| cutoff.is_before(keys.get(*row)));
            let until = if cutoff.is_some() {
                (from..keys.len()).take_while(wanted).count() + from
            } else {
                keys.len()
            };
            self.append_keyed(measured, &keys, from..until, rows.start)?;
            self.count(until - from, ordinal + (rows.start + from) as u64);
            from = (until..keys.len()).find(wanted).unwrap_or(keys.len());
        }
        self.settle();
        Ok(true)
    }

    /// Reserves what is taken now, and no more.
    fn settle(&mut self) {
        let batches = size_of::<(usize, u64)>() * self.batches.capacity();
        let taken =
            self.bytes + self.keys.memory_bytes() + size_of::<Entry>() * self.rows + batches;
        // Keys of lists in lists may be larger than was thought. They are there now.
        let unexpected = taken.saturating_sub(self.reservation.bytes());
        let _ = unexpected == 0 || self.reservation.try_grow(unexpected);
        self.reservation.shrink_to(taken);
    }

    /// Whether it has batches as they came; nothing else can come to them then.
    pub fn is_kept(&self) -> bool {
        self.blocks.last().is_some_and(Block::is_kept)
    }

    /// Keeps a batch, which holds so much memory, with the sizes and the ordinal of its rows, unless
    /// memory can't be reserved: then it says how much.
    pub fn keep(
        &mut self,
        encoder: &KeyEncoder,
        (batch, held_bytes): (&Batch, usize),
        sizes: &[u32],
        ordinal: u64,
    ) -> Result<Option<usize>> {
        let kept = held_bytes + COLUMN_BYTES * batch.columns.len() + size_of_val(sizes);
        let needed = kept + key_bytes(encoder, sizes) + size_of::<Entry>() * batch.rows;
        if !self.reservation.try_grow(needed) {
            return Ok(Some(needed));
        }
        self.keys = BlockKeys::from_keys(self.key_width, encoder.encode(batch))?;
        self.bytes += kept;
        self.count(batch.rows, ordinal);
        self.close_block(BlockPayload::Batch(batch.clone(), sizes.into()))?;
        self.settle();
        Ok(None)
    }

    fn reserve(
        &mut self,
        encoder: &KeyEncoder,
        measured: &Measured<'_>,
        rows: Range<usize>,
    ) -> bool {
        let needed = self.needed(encoder, measured, rows.clone());
        // Pages that were dropped have left theirs.
        self.page_cache.leave(self.builder.page_bytes_of(measured, rows));
        self.reservation.try_grow(needed)
            || self.page_cache.clear() && self.reservation.try_grow(needed)
    }

    /// Appends rows with these keys, of which the first one's is that of row `first`.
    fn append_keyed(
        &mut self,
        measured: &Measured<'_>,
        keys: &Keys,
        rows: Range<usize>,
        first: usize,
    ) -> Result<()> {
        let of_batch = first + rows.start..first + rows.end;
        self.bytes += self.builder.page_bytes_of(measured, of_batch.clone());
        self.builder.append_rows(measured, of_batch)?;
        let mut from = rows.start;
        while let Some(page) = self.builder.pop() {
            let end = from + page.len().saturating_sub(self.keys.len());
            self.keys.extend(keys, from..end)?;
            self.close_block(BlockPayload::Page(page))?;
            from = end;
        }
        self.keys.extend(keys, from..rows.end)
    }

    /// Counts rows of which the first has this ordinal.
    fn count(&mut self, rows: usize, first: u64) {
        if rows == 0 {
            return;
        }
        let continues =
            |&(start, ordinal): &(usize, u64)| ordinal + (self.rows - start) as u64 == first;
        if !self.batches.last().is_some_and(continues) {
            self.batches.push((self.rows, first));
        }
        self.rows += rows;
    }

    fn close_block(&mut self, rows: BlockPayload) -> Result<()> {
        if self.blocks.len() + 1 >= ENTRY_BLOCKS_END {
            return Err(Error::Setting(format!(
                "{ENTRY_BLOCKS_END} pages or batches in memory; larger ones are fewer"
            )));
        }
        let mut keys = std::mem::replace(&mut self.keys, BlockKeys::new(self.key_width));
        keys.shrink();
        self.bytes += keys.memory_bytes();
        self.blocks.push(Block::new(rows, keys)?);
        Ok(())
    }

    /// Sorts the rows.
    pub fn sort(mut self, kept: RowSelection) -> Result<MemoryRun> {
        for page in self.builder.finish() {
            self.close_block(BlockPayload::Page(page))?;
        }
        let keys = self.blocks.iter().map(|block| block.keys.parts().0);
        let varying = self.key_width.and_then(|width| VaryingBytes::of(width, keys));
        let first_word =
            |key: &[u8]| varying.as_ref().map_or_else(|| word(key, 0), |varying| varying.word(key));
        let mut entries = Vec::with_capacity(self.rows);
        for (number, block) in self.blocks.iter().enumerate() {
            let keys = (0..block.len()).map_while(|row| block.keys.get(row)).enumerate();
            entries.extend(keys.map(|(row, key)| Entry::new(first_word(key), number, row)));
        }
        if entries.len() != self.rows {
            return Err(Error::Internal(format!(
                "{} of {} rows are there to be sorted",
                entries.len(),
                self.rows
            )));
        }
        let key_of = |entry: Entry| {
            let (block, row) = entry.place();
            self.blocks.get(block)?.keys.get(row)
        };
        entry_sort::sort(&mut entries, key_of, varying.as_ref())?;
        if kept.distinct {
            entries.retain(|entry| !entry.is_equal());
        }
        entries.truncate(usize::try_from(kept.limit).unwrap_or(usize::MAX));
        entries.shrink_to_fit();
        let few = entries.len() <= self.rows / FEW && self.blocks.len() > 1;
        let empty = self.emptied()?;
        let piece = self.sorted(entries);
        if few { empty.copied(piece) } else { Ok(piece) }
    }

    fn emptied(&self) -> Result<Self> {
        Self::new(
            self.builder.layout(),
            &self.page_cache,
            self.key_width,
            self.reservation.memory(),
        )
    }

    /// The same rows in pages that have no others, if memory for these can be reserved: there are
    /// none here yet.
    fn copied(mut self, piece: MemoryRun) -> Result<MemoryRun> {
        let row_of = |entry: Entry| {
            let (block, row) = entry.place();
            let found = || {
                Some((
                    piece.object(block, row)?,
                    piece.key_at(block, row)?,
                    piece.ordinal_at(block, row)?,
                ))
            };
            found().ok_or_else(|| Error::missing("a row that is copied"))
        };
        // A page may be left half empty, and each row may need a batch of its own.
        let row_bytes = size_of::<Entry>() + 2 * size_of::<(usize, u64)>() + 2 * size_of::<u32>();
        let mut needed = 2 * self.page_cache.rooms().page_bytes();
        for entry in piece.entries() {
            let (object, key, _) = row_of(*entry)?;
            needed += 2 * (object.bytes().len() + key.len()) + row_bytes;
        }
        if !self.reservation.try_grow(needed) {
            return Ok(piece);
        }
        let mut entries = Vec::with_capacity(piece.rows());
        for entry in piece.entries() {
            let (object, key, ordinal) = row_of(*entry)?;
            self.builder.copy(object)?;
            while let Some(page) = self.builder.pop() {
                self.bytes += page.bytes().len();
                self.close_block(BlockPayload::Page(page))?;
            }
            entries.push(entry.moved(self.blocks.len(), self.keys.len()));
            self.keys.push(key)?;
            self.count(1, ordinal);
        }
        for page in self.builder.finish() {
            self.bytes += page.bytes().len();
            self.close_block(BlockPayload::Page(page))?;
        }
        Ok(self.sorted(entries))
    }

    fn sorted(mut self, entries: Vec<Entry>) -> MemoryRun {
        let mut rows = 0;
        let begin = |block: &Block| {
            let first = rows;
            rows += block.len();
            first
        };
        let first_rows = self.blocks.iter().map(begin).collect();
        let taken = size_of::<Entry>() * entries.capacity()
            + size_of::<(usize, u64)>() * self.batches.capacity();
        self.reservation.shrink_to(self.bytes + taken);
        let (blocks, batches, reservation) = (self.blocks, self.batches, self.reservation);
        MemoryRun { blocks, first_rows, batches, entries, _reservation: reservation }
    }
}
