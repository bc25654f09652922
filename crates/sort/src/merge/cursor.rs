//! What is merged: a piece in memory or a run on disk, or a part of one, row by row.

use std::sync::Arc;

use dray_page::{Layout, Rooms};

use crate::cancel::Cancel;
use crate::context::SortContext;
use crate::error::{Error, Result};
use crate::key::{Entry, KeyRange, OffsetValueCode, word};
use crate::memory::RowLocation;
use crate::run::{DiskBlock, DiskRun, EndRow, MemoryRun, RowObject};

/// A place in a source of sorted rows.
#[derive(Debug)]
pub(crate) enum Cursor {
    Memory(MemoryRunCursor),
    Disk(Box<DiskRunCursor>),
}

/// Sources of which each begins where the one before ends.
pub(crate) type Chain = Vec<Cursor>;

/// What comes after a row.
pub(crate) enum Next {
    /// A row with this code against the one before.
    Row(OffsetValueCode),
    /// A row in the next block, which takes the place of this one in memory.
    Block,
    /// Nothing.
    End,
}

impl Cursor {
    /// The first row's code against nothing: where it is said to differ at once.
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

    /// Reads the next block, after [`Next::Block`].
    pub fn next_block(&mut self) -> Result<OffsetValueCode> {
        match self {
            Self::Memory(_) => Err(Error::missing("a block behind those of a piece")),
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

    /// The first and the last row that it can have, if it can have any.
    pub fn ends(&self) -> Result<Option<[EndRow<'_>; 2]>> {
        match self {
            Self::Memory(cursor) if cursor.start < cursor.end => {
                let end = |at: usize| {
                    let (block, row) = cursor.piece.entries().get(at)?.place();
                    let (key, ordinal) =
                        (cursor.piece.key_at(block, row)?, cursor.piece.ordinal_at(block, row)?);
                    Some(EndRow { key, ordinal, is_whole: true })
                };
                let end = |at: usize| {
                    end(at).ok_or_else(|| Error::missing("the first or the last row of a piece"))
                };
                Ok(Some([end(cursor.start)?, end(cursor.end - 1)?]))
            }
            Self::Disk(cursor) if cursor.start < cursor.end => Ok(cursor.run.ends()),
            _ => Ok(None),
        }
    }

    /// Where the row was in the input.
    pub fn ordinal(&self) -> Result<u64> {
        self.place()
            .and_then(|place| self.ordinal_at(place))
            .ok_or_else(|| Error::missing("the place of a row in the input"))
    }

    /// Where the row is, if there is one: its block and its number there.
    #[inline(always)]
    pub fn place(&self) -> Option<RowLocation> {
        match self {
            Self::Memory(cursor) => {
                let (block, row) = cursor.entry()?.place();
                Some((cursor.first_block + block as u32, row as u32))
            }
            Self::Disk(cursor) => Some((0, cursor.row as u32)),
        }
    }

    /// The object at a place whose block is in memory still; nothing if there is none, here and
    /// below.
    #[inline]
    pub fn object(&self, (block, row): RowLocation) -> Option<RowObject<'_>> {
        match self {
            Self::Memory(cursor) => {
                cursor.piece.object(cursor.block(block)?, row as usize).map(RowObject::InMemory)
            }
            Self::Disk(cursor) => cursor.block.as_ref()?.object(row as usize),
        }
    }

    /// Its key.
    #[inline]
    pub fn key_at(&self, (block, row): RowLocation) -> Option<&[u8]> {
        match self {
            Self::Memory(cursor) => cursor.piece.key_at(cursor.block(block)?, row as usize),
            Self::Disk(cursor) => cursor.block.as_ref()?.keys.get(row as usize),
        }
    }

    /// Where it was in the input.
    pub fn ordinal_at(&self, (block, row): RowLocation) -> Option<u64> {
        match self {
            Self::Memory(cursor) => cursor.piece.ordinal_at(cursor.block(block)?, row as usize),
            Self::Disk(cursor) => cursor.block.as_ref()?.ordinal(row as usize),
        }
    }
}

/// Some entries of a piece.
#[derive(Debug)]
pub(crate) struct MemoryRunCursor {
    piece: Arc<MemoryRun>,
    /// How many blocks the pieces before it have.
    first_block: u32,
    start: usize,
    at: usize,
    end: usize,
}

impl MemoryRunCursor {
    /// The rows of a piece within bounds; its blocks are numbered from `first_block` on.
    pub fn new(piece: Arc<MemoryRun>, first_block: u32, bounds: &KeyRange) -> Result<Self> {
        let start = bounds.from.as_deref().map_or(Ok(0), |from| piece.rows_before(from))?;
        let end =
            bounds.until.as_deref().map_or(Ok(piece.rows()), |until| piece.rows_before(until))?;
        Ok(Self { piece, first_block, start, at: start, end })
    }

    /// A block's number in the piece.
    #[inline(always)]
    fn block(&self, block: u32) -> Option<usize> {
        block.checked_sub(self.first_block).map(|block| block as usize)
    }

    /// The key of an entry by its number.
    #[inline]
    fn key(&self, at: usize) -> Result<&[u8]> {
        let key = self.piece.entries().get(at).and_then(|entry| self.piece.key(*entry));
        key.ok_or_else(|| Error::missing("the key of a row in memory"))
    }

    #[inline(always)]
    fn entry(&self) -> Option<Entry> {
        self.piece.entries().get(self.at).copied().filter(|_| self.at < self.end)
    }

    #[inline(always)]
    fn advance(&mut self) -> Result<Next> {
        self.at += 1;
        match self.entry() {
            Some(entry) => Ok(Next::Row(entry.code().map_or_else(|| self.deep_code(), Ok)?)),
            None => Ok(Next::End),
        }
    }

    /// The code of the entry, whose depth it has no room for.
    #[cold]
    fn deep_code(&self) -> Result<OffsetValueCode> {
        Ok(OffsetValueCode::between(self.key(self.at.wrapping_sub(1))?, self.key(self.at)?, 0))
    }
}

/// Some rows of a run, of which a block is in memory at a time. Who makes one has reserved that
/// memory.
#[derive(Debug)]
pub(crate) struct DiskRunCursor {
    run: Arc<DiskRun>,
    layout: Arc<Layout>,
    rooms: Arc<Rooms>,
    cancel: Cancel,
    bounds: KeyRange,
    /// The first block with rows within the bounds, and the one behind the last.
    start: usize,
    end: usize,
    number: usize,
    row: usize,
    rows: usize,
    block: Option<DiskBlock>,
    last_key: Vec<u8>,
}

impl DiskRunCursor {
    /// The rows of a run within bounds.
    pub fn new(run: Arc<DiskRun>, context: &SortContext, bounds: KeyRange) -> Self {
        // The block before the first one that begins within them may have rows in them, too.
        let start = run.blocks_before(bounds.from.as_deref().unwrap_or_default()).saturating_sub(1);
        let end = bounds.until.as_deref().map_or(run.blocks(), |until| run.blocks_before(until));
        let (number, row, rows) = (0, 0, 0);
        let (block, last_key) = Default::default();
        let (layout, rooms, cancel) =
            (context.layout.clone(), context.page_cache.rooms().clone(), context.cancel.clone());
        Self { run, layout, rooms, cancel, bounds, start, end, number, row, rows, block, last_key }
    }

    /// Goes to the first row within the bounds from a block on, and says whether there is one.
    fn load(&mut self, from: usize) -> Result<bool> {
        for number in from..self.end {
            self.cancel.check()?;
            // Before the next one, so that there are not two in memory.
            self.block = None;
            let block = self.run.read(&self.layout, &self.rooms, number)?;
            (self.number, self.row) = (number, block.rows_before(&self.bounds.from)?);
            self.rows = block.rows_until(&self.bounds.until)?;
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
        // The first block of a cursor may have none, the others begin within its bounds.
        if !self.load(self.number + 1)? {
            return Err(Error::missing("a row of a block that has some within bounds"));
        }
        let code = OffsetValueCode::between(&last_key, self.key(self.row)?, 0);
        self.last_key = last_key;
        Ok(code)
    }
}
