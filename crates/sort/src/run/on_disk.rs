//! A sorted run on disk: pages, each with the keys and ordinals of its rows.
//!
//! ```text
//! ┌──────────┬──────┬──────────┬──────┬──────────┬──────┬─ ─
//! │ page     │ keys │ ordinals │ ends │ page     │ keys │         in files without names
//! └──────────┴──────┴──────────┴──────┴──────────┴──────┴─ ─
//! ```
//!
//! A page is written as it is, with its checksum. The extents of blocks, and the checksums of their
//! keys, stay in memory. Keys are written because the columns that they were encoded from are gone.
//!
//! A large page has one row, which fits in no page of the usual size. It is read only when that row
//! is output, and stays in its place when its run is merged into a longer one. A merge of many runs
//! of very wide rows therefore takes the memory of one such row, and each is written once.

use std::sync::Arc;

use dray_format::crc32c;
use dray_page::{Layout, Object, PagePool, VerifiedPage};

use super::spill_file::Extent;
use crate::error::{Error, Result};
use crate::key::{PREFIX_BYTES, key_prefix};
use crate::memory::BlockKeys;

/// Sorted rows on disk.
#[derive(Debug)]
pub(crate) struct DiskRun {
    key_width: Option<usize>,
    blocks: Vec<BlockMeta>,
    /// The key prefix of the last row.
    last_key: Box<[u8]>,
    /// The ordinals of the first and of the last row.
    ordinals: [u64; 2],
    rows: u64,
    block_bytes_max: usize,
    transient_bytes_max: usize,
}

/// Where a block of a run is.
#[derive(Debug)]
pub(super) struct BlockMeta {
    /// The key prefix of its first row.
    pub first_key: Box<[u8]>,
    pub page: Extent,
    pub kind: PageKind,
    pub rows: usize,
    /// Keys, ordinals, and the ends of keys of variable size.
    pub keys: Extent,
    /// The bytes of the keys alone.
    pub key_bytes: usize,
    /// The CRC-32C of `keys`.
    pub checksum: u32,
}

/// When a page is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageKind {
    /// Read together with the keys of its block.
    Regular,
    /// Holds a single row, and is read when that row is output.
    Large,
}

impl BlockMeta {
    fn ordinals_bytes(&self) -> usize {
        self.rows * size_of::<u64>()
    }

    /// The memory of the block until the next one is read. Ordinals and ends are in memory twice
    /// for a moment.
    fn bytes(&self) -> usize {
        let page_bytes = if self.kind == PageKind::Large { 0 } else { self.page.bytes() };
        page_bytes + 2 * self.keys.bytes() - self.key_bytes
    }

    /// The memory that is taken only while the block is read.
    fn transient_bytes(&self) -> usize {
        let page_bytes = if self.kind == PageKind::Large { self.page.bytes() } else { 0 };
        (page_bytes + self.page.compressed_bytes()).max(self.keys.compressed_bytes())
    }
}

impl DiskRun {
    /// A run without rows. `key_width` is the bytes of every key; `None` if they differ in size.
    pub(super) fn new(key_width: Option<usize>) -> Self {
        Self {
            key_width,
            blocks: Vec::new(),
            last_key: Box::default(),
            ordinals: [0; 2],
            rows: 0,
            block_bytes_max: 0,
            transient_bytes_max: 0,
        }
    }

    pub(super) fn key_width(&self) -> Option<usize> {
        self.key_width
    }

    /// Appends a block: the key prefix of its last row, and the ordinals of its first and its last
    /// row.
    pub(super) fn push(&mut self, block: BlockMeta, last_key: Box<[u8]>, ordinals: [u64; 2]) {
        debug_assert!(block.rows > 0, "a block has rows");
        debug_assert!(self.last_key <= block.first_key, "blocks are in the order of their keys");
        debug_assert!(block.first_key <= last_key, "the rows of a block are in order");
        self.ordinals = [if self.rows > 0 { self.ordinals[0] } else { ordinals[0] }, ordinals[1]];
        self.rows += block.rows as u64;
        self.last_key = last_key;
        self.block_bytes_max = self.block_bytes_max.max(block.bytes());
        self.transient_bytes_max = self.transient_bytes_max.max(block.transient_bytes());
        self.blocks.push(block);
    }

    /// Joins two runs. The rows of `next` must not be less than those of this one.
    pub fn followed_by(mut self, next: Self) -> Self {
        if next.rows > 0 {
            let first = if self.rows > 0 { self.ordinals } else { next.ordinals };
            debug_assert!(
                next.blocks.first().is_none_or(|block| self.last_key <= block.first_key),
                "the second run begins where the first one ends"
            );
            (self.last_key, self.ordinals) = (next.last_key, [first[0], next.ordinals[1]]);
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

    /// The number of blocks.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// How many blocks begin with a key less than `bound`, a key prefix.
    pub fn blocks_before(&self, bound: &[u8]) -> usize {
        self.blocks.partition_point(|block| *block.first_key < *bound)
    }

    /// The first and the last row; `None` if there are no rows.
    pub fn ends(&self) -> Option<[EndRow<'_>; 2]> {
        let first_key = &*self.blocks.first()?.first_key;
        let ends = [(first_key, self.ordinals[0]), (&*self.last_key, self.ordinals[1])];
        Some(ends.map(|(key, ordinal)| EndRow { key, ordinal, is_whole: key.len() < PREFIX_BYTES }))
    }

    /// The first key prefix of each block, and its rows: the samples that Merge Path divides a
    /// merge by.
    pub fn partition_samples(&self) -> impl Iterator<Item = (&[u8], usize)> {
        self.blocks.iter().map(|block| (&*block.first_key, block.rows))
    }

    /// For each block, a key prefix that none of its rows is greater than, and its rows: the
    /// samples of a [`CutoffKey`](super::CutoffKey).
    pub fn cutoff_samples(&self) -> impl Iterator<Item = (&[u8], usize)> {
        let next_keys = self.blocks.iter().skip(1).map(|block| &*block.first_key);
        let ends = next_keys.chain([&*self.last_key]);
        ends.zip(&self.blocks).map(|(end, block)| (end, block.rows))
    }

    /// The memory of the largest block, in bytes.
    pub fn block_bytes_max(&self) -> usize {
        self.block_bytes_max
    }

    /// The most memory that is taken only while a block or a large page is read. A thread reads one
    /// at a time, from all the runs that it merges.
    pub fn transient_bytes_max(&self) -> usize {
        self.transient_bytes_max
    }

    /// Asks the system to read a block ahead.
    pub fn read_ahead(&self, number: usize) {
        if let Some(block) = self.blocks.get(number) {
            block.keys.read_ahead();
            if block.kind == PageKind::Regular {
                block.page.read_ahead();
            }
        }
    }

    /// Reads and verifies a block.
    pub fn read(
        &self,
        layout: &Arc<Layout>,
        pool: &Arc<PagePool>,
        number: usize,
    ) -> Result<DiskBlock> {
        let block = self.blocks.get(number).ok_or_else(|| Error::missing("a block of a run"))?;
        let page = match block.kind {
            PageKind::Large => BlockPage::OnDisk(block.page.clone()),
            PageKind::Regular => {
                BlockPage::InMemory(read_page(&block.page, layout, pool, block.rows)?)
            }
        };
        let mut keys = vec![0; block.keys.bytes()];
        block.keys.read(&mut keys)?;
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
        debug_assert!(
            keys.get(0).is_some_and(|key| *key_prefix(key) == *block.first_key),
            "a block begins with its first key"
        );
        Ok(DiskBlock { page, keys, ordinals })
    }
}

/// The first or last row of a run, or of a range of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndRow<'a> {
    /// Its key, or the prefix of it.
    pub key: &'a [u8],
    pub is_whole: bool,
    pub ordinal: u64,
}

impl EndRow<'_> {
    /// Whether this row is known to come before another. False if their key prefixes don't decide.
    pub fn is_before(&self, other: &Self) -> bool {
        if self.is_whole && other.is_whole {
            return (self.key, self.ordinal) < (other.key, other.ordinal);
        }
        key_prefix(self.key) < key_prefix(other.key)
    }
}

/// Reads a page of `rows` rows, and verifies it.
pub(crate) fn read_page(
    page: &Extent,
    layout: &Arc<Layout>,
    pool: &Arc<PagePool>,
    rows: usize,
) -> Result<VerifiedPage> {
    let bytes = if page.bytes() == pool.page_bytes() {
        pool.fill(|bytes| page.read(bytes))?
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

/// A block of a run on disk that was read.
#[derive(Debug)]
pub(crate) struct DiskBlock {
    page: BlockPage,
    pub keys: BlockKeys,
    ordinals: Vec<u8>,
}

#[derive(Debug)]
enum BlockPage {
    InMemory(VerifiedPage),
    /// A large page, which is read when its row is output.
    OnDisk(Extent),
}

/// Where the object of a row is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RowObject<'a> {
    InMemory(Object<'a>),
    /// The only one of a large page.
    OnDisk(&'a Extent),
}

impl DiskBlock {
    /// How many rows have keys less than `bound`; none without a bound.
    pub fn rows_before(&self, bound: &Option<Arc<[u8]>>) -> Result<usize> {
        bound.as_deref().map_or(Ok(0), |bound| self.keys.rows_before(bound))
    }

    /// How many rows have keys less than `bound`; all without a bound.
    pub fn rows_until(&self, bound: &Option<Arc<[u8]>>) -> Result<usize> {
        bound.as_deref().map_or(Ok(self.keys.len()), |bound| self.keys.rows_before(bound))
    }

    /// The object of a row; `None` if there is no such row.
    #[inline]
    pub fn object(&self, row: usize) -> Option<RowObject<'_>> {
        match &self.page {
            BlockPage::InMemory(page) => page.object(row).map(RowObject::InMemory),
            BlockPage::OnDisk(page) => Some(RowObject::OnDisk(page)),
        }
    }

    /// The ordinal of a row; `None` if there is no such row.
    pub fn ordinal(&self, row: usize) -> Option<u64> {
        self.ordinals.as_chunks().0.get(row).map(|ordinal| u64::from_le_bytes(*ordinal))
    }
}
