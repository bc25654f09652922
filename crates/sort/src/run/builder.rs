//! A run in memory that takes rows and is not sorted yet.

use std::ops::Range;
use std::sync::Arc;

use dray_format::{Batch, Checksum, Column};
use dray_page::{Measured, PageBuilder};

use super::cutoff::CutoffKey;
use super::entry_sort;
use super::in_memory::{MemoryRun, OrdinalSpan, ordinal_at};
use crate::context::SortContext;
use crate::error::{Error, Result};
use crate::key::{ENTRY_BLOCKS_END, Entry, KeyDifferences, KeyEncoder, Keys, VaryingBytes, word};
use crate::memory::{Block, BlockKeys, BlockPayload, PayloadLayout, Reservation, RowSizes};

/// The bits of an ordinal that number a row in its batch. The bits above are the batch's number.
pub(crate) const BATCH_ROWS_BITS: u32 = 31;

/// The memory of a column of a batch without its values: in the block, in the gatherer, and for the
/// owners of its buffers.
const COLUMN_BYTES: usize = 2 * size_of::<Column>() + 192;

/// If at most one row in this many survives duplicate removal and the limit, the survivors are
/// copied, so that the memory of all others becomes free.
const COPY_DIVISOR: usize = 4;

/// A batch that a sort takes.
pub(crate) struct InputBatch<'a> {
    pub batch: &'a Batch,
    /// The sizes of its rows as objects.
    pub measured: &'a Measured<'a>,
    /// The memory that its buffers keep alive, without what batches before it count already.
    pub retained_bytes: usize,
    /// The ordinal of its first row.
    pub ordinal: u64,
}

/// A run that takes rows, in the order of the input.
#[derive(Debug)]
pub(crate) struct RunBuilder {
    context: Arc<SortContext>,
    layout: PayloadLayout,
    pages: PageBuilder,
    blocks: Vec<Block>,
    /// The keys of rows whose page is not full yet.
    keys: BlockKeys,
    /// The bits in which keys differ. `None` if keys vary in width, or if rows are objects.
    differences: Option<KeyDifferences>,
    rows: usize,
    ordinals: Vec<OrdinalSpan>,
    /// The bytes of all payload, and of the keys of `blocks`.
    bytes: usize,
    reservation: Reservation,
}

/// The most memory that the keys of rows of these sizes take while they are encoded.
fn key_bytes(encoder: &KeyEncoder, row_bytes: &[u32]) -> usize {
    let objects: usize = row_bytes.iter().map(|bytes| *bytes as usize).sum();
    // Escaping at most doubles a string, and keys are in memory twice while they are copied.
    2 * encoder
        .width()
        .map_or(2 * objects + size_of::<usize>() * row_bytes.len(), |width| width * row_bytes.len())
}

impl RunBuilder {
    /// A run without rows, whose payload will have this layout.
    pub fn new(context: &Arc<SortContext>, layout: PayloadLayout) -> Result<Self> {
        Ok(Self {
            layout,
            pages: PageBuilder::with_pool(
                context.layout.clone(),
                context.page_cache.pool(),
                Checksum::None,
            )?,
            blocks: Vec::new(),
            keys: BlockKeys::new(context.encoder.width()),
            differences: context
                .encoder
                .width()
                .filter(|_| layout == PayloadLayout::Batches)
                .map(KeyDifferences::new),
            rows: 0,
            ordinals: Vec::new(),
            bytes: 0,
            reservation: Reservation::none(&context.memory),
            context: context.clone(),
        })
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn layout(&self) -> PayloadLayout {
        self.layout
    }

    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The bits in which keys differ. `None` if keys vary in width, or if rows are objects.
    pub fn key_differences(&self) -> Option<&KeyDifferences> {
        self.differences.as_ref()
    }

    /// The memory that is reserved, in bytes.
    pub fn bytes(&self) -> usize {
        self.reservation.bytes()
    }

    /// Appends a range of a batch's rows, without those that `cutoff` excludes. If memory can't be
    /// reserved, appends none and returns the bytes that are needed.
    pub fn append(
        &mut self,
        input: &InputBatch<'_>,
        rows: Range<usize>,
        cutoff: Option<&CutoffKey>,
    ) -> Result<Option<usize>> {
        match self.layout {
            PayloadLayout::Pages => self.append_objects(input, rows, cutoff),
            PayloadLayout::Batches => {
                debug_assert!(cutoff.is_none(), "rows that may be excluded are objects");
                self.append_batch(input, rows)
            }
        }
    }

    fn append_objects(
        &mut self,
        input: &InputBatch<'_>,
        rows: Range<usize>,
        cutoff: Option<&CutoffKey>,
    ) -> Result<Option<usize>> {
        let measured = input.measured;
        if let Some(needed) = self.reserve(measured, rows.clone()) {
            return Ok(Some(needed));
        }
        let keys = self.context.encoder.encode(&input.batch.slice(rows.start, rows.len()));
        debug_assert_eq!(keys.len(), rows.len(), "each row has a key");
        let mut from = 0;
        while from < keys.len() {
            let is_admitted =
                |row: &usize| cutoff.is_none_or(|cutoff| cutoff.admits(keys.get(*row)));
            let until = if cutoff.is_some() {
                (from..keys.len()).take_while(is_admitted).count() + from
            } else {
                keys.len()
            };
            self.append_keyed(measured, &keys, from..until, rows.start)?;
            self.count(until - from, input.ordinal + (rows.start + from) as u64);
            from = (until..keys.len()).find(is_admitted).unwrap_or(keys.len());
        }
        self.settle_reservation();
        Ok(None)
    }

    /// Keeps the rows in the batch that they came in.
    fn append_batch(
        &mut self,
        input: &InputBatch<'_>,
        rows: Range<usize>,
    ) -> Result<Option<usize>> {
        let InputBatch { batch, retained_bytes, .. } = input;
        let slice = batch.slice(rows.start, rows.len());
        let retained_bytes = retained_bytes / batch.rows * rows.len() + retained_bytes % batch.rows;
        let row_bytes = &input.measured.sizes()[rows.clone()];
        let sizes = RowSizes::new(row_bytes);
        let payload_bytes =
            retained_bytes + COLUMN_BYTES * slice.columns.len() + sizes.memory_bytes();
        let encoder = &self.context.encoder;
        let needed =
            payload_bytes + key_bytes(encoder, row_bytes) + size_of::<Entry>() * slice.rows;
        if !self.reservation.try_grow(needed) {
            return Ok(Some(needed));
        }
        self.keys = BlockKeys::from_keys(encoder.width(), encoder.encode(&slice))?;
        if let Some(differences) = &mut self.differences {
            differences.add(self.keys.parts().0);
        }
        self.bytes += payload_bytes;
        self.count(slice.rows, input.ordinal + rows.start as u64);
        self.close_block(BlockPayload::Batch { batch: slice, row_bytes: sizes })?;
        self.settle_reservation();
        Ok(None)
    }

    /// Reserves exactly what the rows take now.
    fn settle_reservation(&mut self) {
        let ordinals = size_of::<OrdinalSpan>() * self.ordinals.capacity();
        let taken =
            self.bytes + self.keys.memory_bytes() + size_of::<Entry>() * self.rows + ordinals;
        // Keys of nested lists may be larger than was reserved for them, and are here already.
        let unexpected = taken.saturating_sub(self.reservation.bytes());
        let _ = unexpected == 0 || self.reservation.try_grow(unexpected);
        self.reservation.shrink_to(taken);
    }

    /// Reserves the least memory for appending objects. If the budget refuses, returns the bytes
    /// that are needed.
    fn reserve(&mut self, measured: &Measured<'_>, rows: Range<usize>) -> Option<usize> {
        let row_bytes = &measured.sizes()[rows.clone()];
        let page_bytes = self.pages.page_bytes_of(measured, rows);
        let needed = page_bytes
            + key_bytes(&self.context.encoder, row_bytes)
            + size_of::<Entry>() * row_bytes.len();
        // The pages come from the cache, which has reserved the free ones.
        self.context.page_cache.release(page_bytes);
        let is_reserved = self.reservation.try_grow(needed)
            || self.context.page_cache.clear() && self.reservation.try_grow(needed);
        (!is_reserved).then_some(needed)
    }

    /// Appends rows with their keys. `rows` are their indexes in `keys`, where index 0 is row
    /// `first` of the batch.
    fn append_keyed(
        &mut self,
        measured: &Measured<'_>,
        keys: &Keys,
        rows: Range<usize>,
        first: usize,
    ) -> Result<()> {
        let of_batch = first + rows.start..first + rows.end;
        self.bytes += self.pages.page_bytes_of(measured, of_batch.clone());
        self.pages.append_rows(measured, of_batch)?;
        let mut from = rows.start;
        while let Some(page) = self.pages.pop() {
            let end = from + page.len().saturating_sub(self.keys.len());
            self.keys.extend(keys, from..end)?;
            self.close_block(BlockPayload::Page(page))?;
            from = end;
        }
        self.keys.extend(keys, from..rows.end)
    }

    /// Counts rows whose ordinals follow each other from `ordinal` on.
    fn count(&mut self, rows: usize, ordinal: u64) {
        if rows == 0 {
            return;
        }
        let continues =
            |span: &OrdinalSpan| span.ordinal + (self.rows - span.row) as u64 == ordinal;
        if !self.ordinals.last().is_some_and(continues) {
            self.ordinals.push(OrdinalSpan { row: self.rows, ordinal });
        }
        self.rows += rows;
    }

    /// Makes a block of a payload and the keys that are pending.
    fn close_block(&mut self, payload: BlockPayload) -> Result<()> {
        if self.blocks.len() + 1 >= ENTRY_BLOCKS_END {
            return Err(Error::Setting(format!(
                "{ENTRY_BLOCKS_END} pages or batches in memory; make them larger"
            )));
        }
        let no_keys = BlockKeys::new(self.context.encoder.width());
        let mut keys = std::mem::replace(&mut self.keys, no_keys);
        keys.shrink();
        self.bytes += keys.memory_bytes();
        self.blocks.push(Block::new(payload, keys)?);
        Ok(())
    }

    /// The blocks of a run of batches, each with the ordinal of its first row, and the memory that
    /// is reserved for them and for an entry of each row.
    pub fn into_blocks(self) -> Result<(Vec<(u64, Block)>, Reservation)> {
        debug_assert_eq!(
            self.layout,
            PayloadLayout::Batches,
            "the rows of a batch are in one span"
        );
        let (ordinals, mut row) = (self.ordinals, 0);
        let with_ordinal = |block: Block| {
            let ordinal = ordinal_at(&ordinals, row);
            row += block.len();
            Ok((ordinal.ok_or_else(|| Error::missing("the place of a batch in the input"))?, block))
        };
        let blocks = self.blocks.into_iter().map(with_ordinal).collect::<Result<_>>()?;
        Ok((blocks, self.reservation))
    }

    /// Sorts the rows, and drops those that the sort's [`RowSelection`] does not keep.
    ///
    /// [`RowSelection`]: crate::context::RowSelection
    pub fn sort(mut self) -> Result<MemoryRun> {
        for page in self.pages.finish() {
            self.close_block(BlockPayload::Page(page))?;
        }
        let keys = self.blocks.iter().map(|block| block.keys.parts().0);
        let varying =
            self.context.encoder.width().and_then(|width| VaryingBytes::find(width, keys));
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
            let (block, row) = entry.location();
            self.blocks.get(block)?.keys.get(row)
        };
        entry_sort::sort(&mut entries, key_of, varying.as_ref())?;
        let selection = self.context.selection;
        if selection.distinct {
            entries.retain(|entry| !entry.is_duplicate());
        }
        entries.truncate(usize::try_from(selection.limit).unwrap_or(usize::MAX));
        entries.shrink_to_fit();
        let is_small = entries.len() <= self.rows / COPY_DIVISOR && self.blocks.len() > 1;
        let copy = Self::new(&self.context, self.layout)?;
        let run = self.sorted(entries);
        if is_small { copy.copy(run) } else { Ok(run) }
    }

    /// Copies the rows of a run to this one, which is empty; or returns the run as it is if memory
    /// for the copy can't be reserved.
    fn copy(mut self, run: MemoryRun) -> Result<MemoryRun> {
        debug_assert_eq!(self.layout, PayloadLayout::Pages, "only objects are dropped");
        let row_of = |entry: Entry| {
            let (block, row) = entry.location();
            let found = || {
                Some((
                    run.object(block, row)?,
                    run.key_at(block, row)?,
                    run.ordinal_at(block, row)?,
                ))
            };
            found().ok_or_else(|| Error::missing("a row that is copied"))
        };
        // A page may be left half empty, and each row may begin a span of ordinals.
        let row_overhead = size_of::<Entry>() + 2 * size_of::<OrdinalSpan>() + 2 * size_of::<u32>();
        let mut needed = 2 * self.context.page_bytes;
        for entry in run.entries() {
            let (object, key, _) = row_of(*entry)?;
            needed += 2 * (object.bytes().len() + key.len()) + row_overhead;
        }
        if !self.reservation.try_grow(needed) {
            return Ok(run);
        }
        let mut entries = Vec::with_capacity(run.rows());
        for entry in run.entries() {
            let (object, key, ordinal) = row_of(*entry)?;
            self.pages.copy(object)?;
            while let Some(page) = self.pages.pop() {
                self.bytes += page.bytes().len();
                self.close_block(BlockPayload::Page(page))?;
            }
            entries.push(entry.relocated(self.blocks.len(), self.keys.len()));
            self.keys.push(key)?;
            self.count(1, ordinal);
        }
        for page in self.pages.finish() {
            self.bytes += page.bytes().len();
            self.close_block(BlockPayload::Page(page))?;
        }
        debug_assert_eq!(entries.len(), run.rows(), "each row is copied");
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
        debug_assert_eq!(rows, self.rows, "each row is in a block");
        let taken = size_of::<Entry>() * entries.capacity()
            + size_of::<OrdinalSpan>() * self.ordinals.capacity();
        self.reservation.shrink_to(self.bytes + taken);
        let Self { layout, blocks, ordinals, reservation, .. } = self;
        MemoryRun { layout, blocks, first_rows, ordinals, entries, _reservation: reservation }
    }
}
