//! What is merged: a piece in memory or a run on disk, or a part of one, row by row.

use std::sync::Arc;

use dray_page::{Layout, Rooms};

use crate::code::{Code, word};
use crate::cutoff::cut;
use crate::entry::Entry;
use crate::error::Result;
use crate::options::Cancel;
use crate::piece::Piece;
use crate::run::{RowObject, Run, RunBlock};
use crate::sorter::Plan;

/// A block of a source, counted over all pieces, and a row in it.
pub(crate) type RowPlace = (u32, u32);

/// A place in a source of sorted rows.
#[derive(Debug)]
pub(crate) enum Cursor {
    Piece(PieceCursor),
    Run(Box<RunCursor>),
}

/// Sources of which each begins where the one before ends.
pub(crate) type Chain = Vec<Cursor>;

/// Which keys are meant: those that are not less than `from`, and less than `until`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bounds {
    pub from: Option<Arc<[u8]>>,
    pub until: Option<Arc<[u8]>>,
}

/// The first or last row of a source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End<'a> {
    /// Its key, or the beginning of it.
    pub key: &'a [u8],
    pub is_whole: bool,
    /// Where it was in the input.
    pub tag: u64,
}

impl End<'_> {
    /// Whether this row is known to come before the other one.
    pub fn is_before(&self, other: &Self) -> bool {
        if self.is_whole && other.is_whole {
            return (self.key, self.tag) < (other.key, other.tag);
        }
        cut(self.key) < cut(other.key)
    }
}

/// What comes after a row.
pub(crate) enum Next {
    /// A row with this code against the one before.
    Row(Code),
    /// A row in the next block, which takes the place of this one in memory.
    Block,
    /// Nothing.
    End,
}

impl Cursor {
    /// The first row's code against nothing: where it is said to differ at once.
    pub fn begin(&mut self) -> Result<Code> {
        let code = match self {
            Self::Piece(cursor) => {
                cursor.at = cursor.start;
                cursor.entry().is_some()
            }
            Self::Run(cursor) => cursor.load(cursor.start)?,
        };
        Ok(if code { Code::new(0, word(self.key(), 0)) } else { Code::END })
    }

    #[inline(always)]
    pub fn advance(&mut self) -> Next {
        match self {
            Self::Piece(cursor) => cursor.advance(),
            Self::Run(cursor) => cursor.advance(),
        }
    }

    /// Reads the next block, after [`Next::Block`].
    pub fn next_block(&mut self) -> Result<Code> {
        match self {
            Self::Piece(_) => Ok(Code::END),
            Self::Run(cursor) => cursor.next_block(),
        }
    }

    /// The key of the row.
    #[inline]
    pub fn key(&self) -> &[u8] {
        match self {
            Self::Piece(cursor) => cursor.entry().map_or(&[], |entry| cursor.piece.key(entry)),
            Self::Run(cursor) => cursor.key(cursor.row),
        }
    }

    /// The key of the last row, after [`Next::End`].
    pub fn last_key(&self) -> &[u8] {
        match self {
            Self::Piece(cursor) => cursor.last().map_or(&[], |entry| cursor.piece.key(entry)),
            Self::Run(cursor) => cursor.key(cursor.row),
        }
    }

    /// The first and the last row that it can have, if it can have any.
    pub fn ends(&self) -> Option<[End<'_>; 2]> {
        match self {
            Self::Piece(cursor) => {
                let end = |entry: Entry| {
                    let (block, row) = entry.place();
                    End { key: cursor.piece.key(entry), tag: cursor.piece.tag_at(block, row), is_whole: true }
                };
                let first = cursor.piece.entries().get(cursor.start).filter(|_| cursor.start < cursor.end)?;
                Some([end(*first), end(cursor.last()?)])
            }
            Self::Run(cursor) => cursor.run.ends().filter(|_| cursor.start < cursor.end),
        }
    }

    /// Where the row was in the input.
    pub fn tag(&self) -> u64 {
        self.tag_at(self.place())
    }

    /// Where the row is: its block and its number there.
    #[inline(always)]
    pub fn place(&self) -> RowPlace {
        match self {
            Self::Piece(cursor) => {
                let (block, row) = cursor.entry().map_or((0, 0), Entry::place);
                (cursor.first_block + block as u32, row as u32)
            }
            Self::Run(cursor) => (0, cursor.row as u32),
        }
    }

    /// The object at a place whose block is in memory still.
    #[inline]
    pub fn object(&self, (block, row): RowPlace) -> Option<RowObject<'_>> {
        match self {
            Self::Piece(cursor) => cursor.piece.object(cursor.block(block), row as usize).map(RowObject::Here),
            Self::Run(cursor) => cursor.block.as_ref()?.object(row as usize),
        }
    }

    /// Its key.
    #[inline]
    pub fn key_at(&self, (block, row): RowPlace) -> &[u8] {
        match self {
            Self::Piece(cursor) => cursor.piece.key_at(cursor.block(block), row as usize),
            Self::Run(cursor) => cursor.key(row as usize),
        }
    }

    /// Where it was in the input.
    pub fn tag_at(&self, (block, row): RowPlace) -> u64 {
        match self {
            Self::Piece(cursor) => cursor.piece.tag_at(cursor.block(block), row as usize),
            Self::Run(cursor) => cursor.block.as_ref().map_or(0, |block| block.tag(row as usize)),
        }
    }
}

/// Some entries of a piece.
#[derive(Debug)]
pub(crate) struct PieceCursor {
    piece: Arc<Piece>,
    /// How many blocks the pieces before it have.
    first_block: u32,
    start: usize,
    at: usize,
    end: usize,
}

impl PieceCursor {
    /// The rows of a piece within bounds; its blocks are numbered from `first_block` on.
    pub fn new(piece: Arc<Piece>, first_block: u32, bounds: &Bounds) -> Self {
        let start = bounds.from.as_deref().map_or(0, |from| piece.rows_before(from));
        let end = bounds.until.as_deref().map_or(piece.rows(), |until| piece.rows_before(until));
        Self { piece, first_block, start, at: start, end }
    }

    /// A block's number in the piece.
    #[inline(always)]
    fn block(&self, block: u32) -> usize {
        block.saturating_sub(self.first_block) as usize
    }

    fn last(&self) -> Option<Entry> {
        self.piece.entries().get(self.end.checked_sub(1)?).copied()
    }

    #[inline(always)]
    fn entry(&self) -> Option<Entry> {
        self.piece.entries().get(self.at).copied().filter(|_| self.at < self.end)
    }

    #[inline(always)]
    fn advance(&mut self) -> Next {
        self.at += 1;
        match self.entry() {
            Some(entry) => Next::Row(entry.code().unwrap_or_else(|| self.deep_code(entry))),
            None => Next::End,
        }
    }

    /// The code of an entry whose depth it has no room for.
    #[cold]
    fn deep_code(&self, entry: Entry) -> Code {
        let before = self.at.checked_sub(1).and_then(|before| self.piece.entries().get(before));
        before.map_or(Code::END, |before| Code::between(self.piece.key(*before), self.piece.key(entry), 0))
    }
}

/// Some rows of a run, of which a block is in memory at a time. Who makes one has reserved that memory.
#[derive(Debug)]
pub(crate) struct RunCursor {
    run: Arc<Run>,
    layout: Arc<Layout>,
    rooms: Arc<Rooms>,
    cancel: Cancel,
    bounds: Bounds,
    /// The first block with rows within the bounds, and the one behind the last.
    start: usize,
    end: usize,
    number: usize,
    row: usize,
    rows: usize,
    block: Option<RunBlock>,
    last_key: Vec<u8>,
}

impl RunCursor {
    /// The rows of a run within bounds.
    pub fn new(run: Arc<Run>, plan: &Plan, bounds: Bounds) -> Self {
        // The block before the first one that begins within them may have rows in them, too.
        let start = run.blocks_before(bounds.from.as_deref().unwrap_or_default()).saturating_sub(1);
        let end = bounds.until.as_deref().map_or(run.blocks(), |until| run.blocks_before(until));
        let (number, row, rows) = (0, 0, 0);
        let (block, last_key) = Default::default();
        let (layout, rooms, cancel) = (plan.layout.clone(), plan.stock.rooms().clone(), plan.cancel.clone());
        Self { run, layout, rooms, cancel, bounds, start, end, number, row, rows, block, last_key }
    }

    /// Goes to the first row within the bounds from a block on, and says whether there is one.
    fn load(&mut self, from: usize) -> Result<bool> {
        for number in from..self.end {
            self.cancel.check()?;
            // Before the next one, so that there are not two in memory.
            self.block = None;
            let block = self.run.read(&self.layout, &self.rooms, number)?;
            if number + 1 < self.end {
                self.run.read_ahead(number + 1);
            }
            (self.number, self.row, self.rows) = match &block {
                Some(block) => (number, block.rows_before(&self.bounds.from), block.rows_until(&self.bounds.until)),
                None => (number, 0, 0),
            };
            self.block = block;
            if self.row < self.rows {
                return Ok(true);
            }
        }
        Ok(false)
    }

    #[inline]
    fn key(&self, row: usize) -> &[u8] {
        self.block.as_ref().map_or(&[], |block| block.keys.get(row))
    }

    #[inline]
    fn advance(&mut self) -> Next {
        let next = self.row + 1;
        if next < self.rows {
            let code = Code::between(self.key(self.row), self.key(next), 0);
            self.row = next;
            return Next::Row(code);
        }
        if self.number + 1 < self.end { Next::Block } else { Next::End }
    }

    fn next_block(&mut self) -> Result<Code> {
        let mut last_key = std::mem::take(&mut self.last_key);
        last_key.clear();
        last_key.extend_from_slice(self.key(self.row));
        let code = match self.load(self.number + 1)? {
            true => Code::between(&last_key, self.key(self.row), 0),
            false => Code::END,
        };
        self.last_key = last_key;
        Ok(code)
    }
}
