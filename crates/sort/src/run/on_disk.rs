//! DiskRuns on disk: sorted rows as pages, each with the keys and ordinals of its rows.
//!
//! ```text
//! ┌──────────┬──────┬──────┬──────┬──────────┬──────┬─ ─
//! │ page     │ keys │ ordinals │ ends │ page     │ keys │         in files without names
//! └──────────┴──────┴──────┴──────┴──────────┴──────┴─ ─
//! ```
//!
//! A page is written as it is, with its checksum. Where blocks lie and the checksum of what belongs
//! to the page is kept in memory. Keys are written because making them again would need the columns
//! that the rows have no more.
//!
//! A large page, that of a row which fits no other, is read when its row is wanted, and stays where
//! it is when runs are merged to a longer one. So a merge of many runs of very wide rows takes the
//! memory of one of them, and each is written once.

use std::sync::Arc;

use dray_format::crc32c;
use dray_page::{Layout, Object, Rooms, VerifiedPage};

use super::spill_file::Extent;
use crate::error::{Error, Result};
use crate::key::{PREFIX_BYTES, key_prefix};
use crate::memory::BlockKeys;

/// Sorted rows on disk.
#[derive(Debug)]
pub(crate) struct DiskRun {
    key_width: Option<usize>,
    blocks: Vec<BlockMeta>,
    /// The beginning of the last row's key, and the ordinals of the first and the last one.
    last: Box<[u8]>,
    ordinals: [u64; 2],
    rows: u64,
    block_bytes_max: usize,
    transient_bytes_max: usize,
}

#[derive(Debug)]
pub(super) struct BlockMeta {
    /// The beginning of its first key: it tells blocks apart well enough to divide a merge.
    pub bound: Box<[u8]>,
    pub page: Extent,
    /// Whether the page is read only when its one row is wanted.
    pub is_large: bool,
    pub rows: usize,
    pub key_bytes: usize,
    /// Keys, ordinals and ends.
    pub beside: Extent,
    pub checksum: u32,
}

impl BlockMeta {
    fn ordinals_bytes(&self) -> usize {
        self.rows * size_of::<u64>()
    }

    /// The memory that it takes until the next one is read. Ends are there twice for a moment.
    fn bytes(&self) -> usize {
        let page_bytes = if self.is_large { 0 } else { self.page.bytes() };
        page_bytes + 2 * self.beside.bytes() - self.key_bytes
    }

    /// The memory that it takes for a moment.
    fn transient_bytes(&self) -> usize {
        let page_bytes = if self.is_large { self.page.bytes() } else { 0 };
        (page_bytes + self.page.compressed_bytes()).max(self.beside.compressed_bytes())
    }
}

impl DiskRun {
    /// A run without rows yet, whose keys have one width or many.
    pub(super) fn new(key_width: Option<usize>) -> Self {
        Self {
            key_width,
            blocks: Vec::new(),
            last: Box::default(),
            ordinals: [0; 2],
            rows: 0,
            block_bytes_max: 0,
            transient_bytes_max: 0,
        }
    }

    pub(super) fn key_width(&self) -> Option<usize> {
        self.key_width
    }

    /// Appends a block, whose last row's key begins like this, with its first and last ordinal.
    pub(super) fn push(&mut self, block: BlockMeta, last: Box<[u8]>, ordinals: [u64; 2]) {
        self.ordinals = [if self.rows > 0 { self.ordinals[0] } else { ordinals[0] }, ordinals[1]];
        self.rows += block.rows as u64;
        self.last = last;
        self.block_bytes_max = self.block_bytes_max.max(block.bytes());
        self.transient_bytes_max = self.transient_bytes_max.max(block.transient_bytes());
        self.blocks.push(block);
    }

    /// One run of two, of which the second one's rows are not less than the first one's.
    pub fn followed_by(mut self, next: Self) -> Self {
        if next.rows > 0 {
            let first = if self.rows > 0 { self.ordinals } else { next.ordinals };
            (self.last, self.ordinals) = (next.last, [first[0], next.ordinals[1]]);
        }
        self.blocks.extend(next.blocks);
        self.rows += next.rows;
        self.block_bytes_max = self.block_bytes_max.max(next.block_bytes_max);
        self.transient_bytes_max = self.transient_bytes_max.max(next.transient_bytes_max);
        self
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// How many blocks begin with a key that is less than `bound`, which is cut as the bounds of
    /// blocks are.
    pub fn blocks_before(&self, bound: &[u8]) -> usize {
        self.blocks.partition_point(|block| *block.bound < *bound)
    }

    /// The bounds of the blocks, and how many rows each has.
    pub fn bounds(&self) -> impl Iterator<Item = (&[u8], usize)> {
        self.blocks.iter().map(|block| (&*block.bound, block.rows))
    }

    /// The first and the last row, if there are any.
    pub fn ends(&self) -> Option<[EndRow<'_>; 2]> {
        let first = &*self.blocks.first()?.bound;
        let ends = [(first, self.ordinals[0]), (&*self.last, self.ordinals[1])];
        Some(ends.map(|(key, ordinal)| EndRow { key, ordinal, is_whole: key.len() < PREFIX_BYTES }))
    }

    /// Beginnings of keys, and how many rows more than those before are not greater.
    pub fn samples(&self) -> impl Iterator<Item = (&[u8], usize)> {
        let ends = self.blocks.iter().skip(1).map(|block| &*block.bound).chain([&*self.last]);
        ends.zip(&self.blocks).map(|(end, block)| (end, block.rows))
    }

    /// The memory that its largest block takes.
    pub fn block_bytes_max(&self) -> usize {
        self.block_bytes_max
    }

    /// The memory that reading a block, or a late page, takes for a moment; of all the runs that a
    /// thread merges, one does so at a time.
    pub fn transient_bytes_max(&self) -> usize {
        self.transient_bytes_max
    }

    /// Has the system begin to read a block that is wanted next.
    pub fn read_ahead(&self, number: usize) {
        if let Some(block) = self.blocks.get(number) {
            block.beside.read_ahead();
            if !block.is_large {
                block.page.read_ahead();
            }
        }
    }

    /// Reads a block.
    pub fn read(
        &self,
        layout: &Arc<Layout>,
        rooms: &Arc<Rooms>,
        number: usize,
    ) -> Result<DiskBlock> {
        let block = self.blocks.get(number).ok_or_else(|| Error::missing("a block of a run"))?;
        let page = match block.is_large {
            true => BlockPage::OnDisk(block.page.clone()),
            false => BlockPage::InMemory(read_page(&block.page, layout, rooms, block.rows)?),
        };
        let mut keys = vec![0; block.beside.bytes()];
        block.beside.read(&mut keys)?;
        let found = crc32c(0, &keys);
        if found != block.checksum {
            let expected = block.checksum;
            return Err(Error::Damaged(format!(
                "keys have the checksum {found:08x}, expected {expected:08x}"
            )));
        }
        let mut ordinals = keys.split_off(block.key_bytes);
        let ends = ordinals.split_off(block.ordinals_bytes());
        let keys = BlockKeys::from_parts(self.key_width, block.rows, &ends, keys)?;
        Ok(DiskBlock { page, keys, ordinals })
    }
}

/// The first or last row of a source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndRow<'a> {
    /// Its key, or the beginning of it.
    pub key: &'a [u8],
    pub is_whole: bool,
    /// Where it was in the input.
    pub ordinal: u64,
}

impl EndRow<'_> {
    /// Whether this row is known to come before the other one.
    pub fn is_before(&self, other: &Self) -> bool {
        if self.is_whole && other.is_whole {
            return (self.key, self.ordinal) < (other.key, other.ordinal);
        }
        key_prefix(self.key) < key_prefix(other.key)
    }
}

/// Reads a page of so many rows, and verifies it.
pub(crate) fn read_page(
    page: &Extent,
    layout: &Arc<Layout>,
    rooms: &Arc<Rooms>,
    rows: usize,
) -> Result<VerifiedPage> {
    let bytes = if page.bytes() == rooms.page_bytes() {
        rooms.fill(|bytes| page.read(bytes))?
    } else {
        let mut bytes = vec![0; page.bytes()];
        page.read(&mut bytes)?;
        bytes.into()
    };
    let page = VerifiedPage::verify(layout, bytes)?;
    if page.len() != rows {
        return Err(Error::Damaged(format!("a page has {} rows, expected {rows}", page.len())));
    }
    Ok(page)
}

/// A block of a run, and its rows' ordinals.
#[derive(Debug)]
pub(crate) struct DiskBlock {
    page: BlockPage,
    pub keys: BlockKeys,
    ordinals: Vec<u8>,
}

#[derive(Debug)]
enum BlockPage {
    InMemory(VerifiedPage),
    /// On disk until its row is wanted.
    OnDisk(Extent),
}

/// Where the object of a row is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RowObject<'a> {
    InMemory(Object<'a>),
    /// Alone in a page on disk.
    OnDisk(&'a Extent),
}

impl DiskBlock {
    /// How many rows have keys less than this; none if there is no bound.
    pub fn rows_before(&self, bound: &Option<Arc<[u8]>>) -> Result<usize> {
        bound.as_deref().map_or(Ok(0), |bound| self.keys.rows_before(bound))
    }

    /// How many rows have keys less than this; all if there is no bound.
    pub fn rows_until(&self, bound: &Option<Arc<[u8]>>) -> Result<usize> {
        bound.as_deref().map_or(Ok(self.keys.len()), |bound| self.keys.rows_before(bound))
    }

    #[inline]
    pub fn object(&self, row: usize) -> Option<RowObject<'_>> {
        match &self.page {
            BlockPage::InMemory(page) => page.object(row).map(RowObject::InMemory),
            BlockPage::OnDisk(page) => Some(RowObject::OnDisk(page)),
        }
    }

    pub fn ordinal(&self, row: usize) -> Option<u64> {
        self.ordinals.as_chunks().0.get(row).map(|ordinal| u64::from_le_bytes(*ordinal))
    }
}
