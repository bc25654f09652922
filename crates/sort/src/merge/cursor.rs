//! Cursors: the rows of a sorted run, in memory or on disk, or of a key range of one, row by row.

use std::sync::Arc;

use dray_page::{Layout, PagePool};

use crate::cancel::Cancel;
use crate::context::SortContext;
use crate::error::{Error, Result};
use crate::key::{Entry, KeyRange, OffsetValueCode, word};
use crate::memory::RowLocation;
use crate::run::{DiskBlock, DiskRun, EndRow, MemoryRun, RowObject};

/// A position in a sorted run.
#[derive(Debug)]
pub(crate) enum Cursor {
    Memory(MemoryRunCursor),
    Disk(Box<DiskRunCursor>),
}

/// Cursors in sequence: each begins where the one before ends.
pub(crate) type Chain = Vec<Cursor>;

/// What follows a row.
pub(crate) enum Next {
    /// A row, with its code against the row before.
    Row(OffsetValueCode),
    /// A row in the next block, which will replace this one in memory.
    Block,
    /// The end of the run, or of its key range.
    End,
}

impl Cursor {
    /// Goes to the first row, and returns its code against an empty key; [`OffsetValueCode::END`]
    /// if there are no rows.
    pub fn begin(&mut self) -> Result<OffsetValueCode> {
        let any = match self {
            Self::Memory(cursor) => {
                cursor.at = cursor.start;
                cursor.start < cursor.end
            }
            Self::Disk(cursor) => cursor.load(cursor.start)?,
        };
        Ok(if any { OffsetValueCode::new(0, word(self.key()?, 0)) } else { OffsetValueCode::END })
    }

    #[inline(always)]
    pub fn advance(&mut self) -> Result<Next> {
        match self {
            Self::Memory(cursor) => cursor.advance(),
            Self::Disk(cursor) => cursor.advance(),
        }
    }

    /// Reads the next block, after [`Next::Block`], and returns the code of its first row against
    /// the row before.
    pub fn next_block(&mut self) -> Result<OffsetValueCode> {
        match self {
            Self::Memory(_) => Err(Error::missing("a block after those of a run in memory")),
            Self::Disk(cursor) => cursor.next_block(),
        }
    }

    /// The key of the row.
    #[inline]
    pub fn key(&self) -> Result<&[u8]> {
        match self {
            Self::Memory(cursor) => cursor.key(cursor.at),
            Self::Disk(cursor) => cursor.key(cursor.row),
        }
    }

    /// The key of the last row, after [`Next::End`].
    pub fn last_key(&self) -> Result<&[u8]> {
        match self {
            Self::Memory(cursor) => cursor.key(cursor.end.wrapping_sub(1)),
            Self::Disk(cursor) => cursor.key(cursor.row),
        }
    }

    /// The least and the greatest row that the key range may have; `None` if it has no rows.
    pub fn ends(&self) -> Result<Option<[EndRow<'_>; 2]>> {
        match self {
            Self::Memory(cursor) if cursor.start < cursor.end => {
                let end = |at: usize| {
                    let (block, row) = cursor.run.entries().get(at)?.location();
                    let key = cursor.run.key_at(block, row)?;
                    let ordinal = cursor.run.ordinal_at(block, row)?;
                    Some(EndRow { key, ordinal, is_whole: true })
                };
                let end = |at: usize| {
                    end(at).ok_or_else(|| Error::missing("the first or the last row of a run"))
                };
                Ok(Some([end(cursor.start)?, end(cursor.end - 1)?]))
            }
            Self::Disk(cursor) if cursor.start < cursor.end => Ok(cursor.run.ends()),
            _ => Ok(None),
        }
    }

    /// The ordinal of the row.
    pub fn ordinal(&self) -> Result<u64> {
        self.location()
            .and_then(|location| self.ordinal_at(location))
            .ok_or_else(|| Error::missing("the place of a row in the input"))
    }

    /// The location of the row; `None` after the last one.
    #[inline(always)]
    pub fn location(&self) -> Option<RowLocation> {
        match self {
            Self::Memory(cursor) => {
                let (block, row) = cursor.entry()?.location();
                Some(RowLocation { block: cursor.first_block + block as u32, row: row as u32 })
            }
            Self::Disk(cursor) => Some(RowLocation { block: 0, row: cursor.row as u32 }),
        }
    }

    /// The object at a location whose block is still in memory; `None` if there is none.
    #[inline]
    pub fn object(&self, RowLocation { block, row }: RowLocation) -> Option<RowObject<'_>> {
        match self {
            Self::Memory(cursor) => {
                cursor.run.object(cursor.block(block)?, row as usize).map(RowObject::InMemory)
            }
            Self::Disk(cursor) => cursor.block.as_ref()?.object(row as usize),
        }
    }

    /// The key at such a location; `None` if there is none.
    #[inline]
    pub fn key_at(&self, RowLocation { block, row }: RowLocation) -> Option<&[u8]> {
        match self {
            Self::Memory(cursor) => cursor.run.key_at(cursor.block(block)?, row as usize),
            Self::Disk(cursor) => cursor.block.as_ref()?.keys.get(row as usize),
        }
    }

    /// The ordinal of the row at such a location; `None` if there is none.
    pub fn ordinal_at(&self, RowLocation { block, row }: RowLocation) -> Option<u64> {
        match self {
            Self::Memory(cursor) => cursor.run.ordinal_at(cursor.block(block)?, row as usize),
            Self::Disk(cursor) => cursor.block.as_ref()?.ordinal(row as usize),
        }
    }
}

/// The entries of a run in memory within a key range.
#[derive(Debug)]
pub(crate) struct MemoryRunCursor {
    run: Arc<MemoryRun>,
    /// The number of the run's first block, counted over all in-memory runs of the merge.
    first_block: u32,
    start: usize,
    at: usize,
    end: usize,
}

impl MemoryRunCursor {
    /// The rows of a run within `range`. Its blocks are numbered from `first_block` on.
    pub fn new(run: Arc<MemoryRun>, first_block: u32, range: &KeyRange) -> Result<Self> {
        let start = range.from.as_deref().map_or(Ok(0), |from| run.rows_before(from))?;
        let end = range.until.as_deref().map_or(Ok(run.rows()), |until| run.rows_before(until))?;
        debug_assert!(end <= run.rows() && start <= run.rows());
        Ok(Self { run, first_block, start, at: start, end })
    }

    /// The number of a block in its run.
    #[inline(always)]
    fn block(&self, block: u32) -> Option<usize> {
        block.checked_sub(self.first_block).map(|block| block as usize)
    }

    /// The key of an entry, by its number.
    #[inline]
    fn key(&self, at: usize) -> Result<&[u8]> {
        let key = self.run.entries().get(at).and_then(|entry| self.run.key(*entry));
        key.ok_or_else(|| Error::missing("the key of a row in memory"))
    }

    #[inline(always)]
    fn entry(&self) -> Option<Entry> {
        self.run.entries().get(self.at).copied().filter(|_| self.at < self.end)
    }

    #[inline(always)]
    fn advance(&mut self) -> Result<Next> {
        self.at += 1;
        match self.entry() {
            Some(entry) => Ok(Next::Row(entry.code().map_or_else(|| self.compare_keys(), Ok)?)),
            None => Ok(Next::End),
        }
    }

    /// The code of an entry whose offset does not fit in it.
    #[cold]
    fn compare_keys(&self) -> Result<OffsetValueCode> {
        Ok(OffsetValueCode::between(self.key(self.at.wrapping_sub(1))?, self.key(self.at)?, 0))
    }
}

/// The rows of a run on disk within a key range. One block is in memory at a time; the caller
/// reserves its memory.
#[derive(Debug)]
pub(crate) struct DiskRunCursor {
    run: Arc<DiskRun>,
    layout: Arc<Layout>,
    pool: Arc<PagePool>,
    cancel: Cancel,
    range: KeyRange,
    /// The first block that may have rows within the range, and the one after the last.
    start: usize,
    end: usize,
    /// The number of the block in memory.
    number: usize,
    row: usize,
    /// The rows of the block up to the end of the range.
    rows: usize,
    block: Option<DiskBlock>,
    last_key: Vec<u8>,
}

impl DiskRunCursor {
    /// The rows of a run within `range`.
    pub fn new(run: Arc<DiskRun>, context: &SortContext, range: KeyRange) -> Self {
        // The block before the first one that begins within the range may end within it.
        let start = run.blocks_before(range.from.as_deref().unwrap_or_default()).saturating_sub(1);
        let end = range.until.as_deref().map_or(run.blocks(), |until| run.blocks_before(until));
        let (number, row, rows) = (0, 0, 0);
        let (block, last_key) = Default::default();
        let layout = context.layout.clone();
        let (pool, cancel) = (context.page_cache.pool().clone(), context.cancel.clone());
        Self { run, layout, pool, cancel, range, start, end, number, row, rows, block, last_key }
    }

    /// Goes to the first row within the range, from block `from` on; false if there is none.
    fn load(&mut self, from: usize) -> Result<bool> {
        for number in from..self.end {
            self.cancel.check()?;
            // Dropped before the next one is read, so that only one is in memory.
            self.block = None;
            let block = self.run.read(&self.layout, &self.pool, number)?;
            (self.number, self.row) = (number, block.rows_before(&self.range.from)?);
            self.rows = block.rows_until(&self.range.until)?;
            self.block = Some(block);
            if number + 1 < self.end {
                self.run.read_ahead(number + 1);
            }
            if self.row < self.rows {
                return Ok(true);
            }
        }
        Ok(false)
    }

    #[inline]
    fn key(&self, row: usize) -> Result<&[u8]> {
        let key = self.block.as_ref().and_then(|block| block.keys.get(row));
        key.ok_or_else(|| Error::missing("the key of a row on disk"))
    }

    #[inline]
    fn advance(&mut self) -> Result<Next> {
        let next = self.row + 1;
        if next < self.rows {
            debug_assert!(
                self.key(self.row)? <= self.key(next)?,
                "the rows of a block are in order"
            );
            let code = OffsetValueCode::between(self.key(self.row)?, self.key(next)?, 0);
            self.row = next;
            return Ok(Next::Row(code));
        }
        Ok(if self.number + 1 < self.end { Next::Block } else { Next::End })
    }

    fn next_block(&mut self) -> Result<OffsetValueCode> {
        let mut last_key = std::mem::take(&mut self.last_key);
        last_key.clear();
        last_key.extend_from_slice(self.key(self.row)?);
        // Only the first block may have no rows within the range: the others begin within it.
        if !self.load(self.number + 1)? {
            return Err(Error::missing("a row of a block that begins within the key range"));
        }
        debug_assert!(last_key[..] <= *self.key(self.row)?, "blocks are in order");
        let code = OffsetValueCode::between(&last_key, self.key(self.row)?, 0);
        self.last_key = last_key;
        Ok(code)
    }
}
