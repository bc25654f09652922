//! What is merged: a piece in memory or a run on disk, or a part of one, row by row.

use std::sync::Arc;

use dray_page::{Layout, Object};

use crate::code::{Code, word};
use crate::entry::Entry;
use crate::error::Result;
use crate::memory::Reservation;
use crate::options::Cancel;
use crate::piece::Piece;
use crate::run::{Run, RunBlock};

/// A place in a source of sorted rows.
#[derive(Debug)]
pub(crate) enum Cursor {
    Piece(PieceCursor),
    Run(Box<RunCursor>),
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

    /// Where the row was in the input.
    pub fn tag(&self) -> u64 {
        match self {
            Self::Piece(cursor) => cursor.entry().map_or(0, |entry| cursor.piece.tag(entry)),
            Self::Run(cursor) => cursor.tag(),
        }
    }

    /// Block and number of the row, for [`object`](Self::object).
    #[inline(always)]
    pub fn place(&self) -> (u32, u32) {
        match self {
            Self::Piece(cursor) => {
                let (block, row) = cursor.entry().map_or((0, 0), Entry::place);
                (block as u32, row as u32)
            }
            Self::Run(cursor) => (0, cursor.row as u32),
        }
    }

    /// The object at a place that is in memory still.
    #[inline]
    pub fn object(&self, (block, row): (u32, u32)) -> Option<Object<'_>> {
        match self {
            Self::Piece(cursor) => cursor.piece.object(block as usize, row as usize),
            Self::Run(cursor) => cursor.block.as_ref()?.page.object(row as usize),
        }
    }
}

/// Some entries of a piece.
#[derive(Debug)]
pub(crate) struct PieceCursor {
    piece: Arc<Piece>,
    start: usize,
    at: usize,
    end: usize,
}

impl PieceCursor {
    pub fn new(piece: Arc<Piece>, start: usize, end: usize) -> Self {
        Self { piece, start, at: start, end }
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

/// Some rows of a run, of which a block is in memory at a time.
#[derive(Debug)]
pub(crate) struct RunCursor {
    run: Arc<Run>,
    layout: Arc<Layout>,
    cancel: Cancel,
    start: (usize, usize),
    /// Where the rows end: a block and a row in it.
    end: (usize, usize),
    number: usize,
    row: usize,
    rows: usize,
    block: Option<RunBlock>,
    last_key: Vec<u8>,
    _reservation: Reservation,
}

impl RunCursor {
    /// All rows of a run. Memory for a block has been reserved.
    pub fn new(run: Arc<Run>, layout: Arc<Layout>, cancel: Cancel, reservation: Reservation) -> Self {
        let (start, end) = ((0, 0), (run.blocks(), 0));
        let (number, row, rows) = (0, 0, 0);
        let (block, last_key) = Default::default();
        Self { run, layout, cancel, start, end, number, row, rows, block, last_key, _reservation: reservation }
    }

    /// Goes to a row, and says whether there is one.
    fn load(&mut self, (number, row): (usize, usize)) -> Result<bool> {
        self.cancel.check()?;
        // Before the next one, so that there are not two in memory.
        self.block = None;
        (self.number, self.row, self.rows) = (number, row, 0);
        if (number, row) >= self.end {
            return Ok(false);
        }
        self.block = self.run.read(&self.layout, number)?;
        let rows = self.block.as_ref().map_or(0, |block| block.page.len());
        self.rows = if number == self.end.0 { self.end.1.min(rows) } else { rows };
        if row >= self.rows {
            return self.load((number + 1, 0));
        }
        Ok(true)
    }

    #[inline]
    fn key(&self, row: usize) -> &[u8] {
        self.block.as_ref().map_or(&[], |block| block.keys.get(row))
    }

    fn tag(&self) -> u64 {
        self.block.as_ref().map_or(0, |block| block.tag(self.row))
    }

    #[inline]
    fn advance(&mut self) -> Next {
        let next = self.row + 1;
        if next < self.rows {
            let code = Code::between(self.key(self.row), self.key(next), 0);
            self.row = next;
            return Next::Row(code);
        }
        if (self.number + 1, 0) < self.end { Next::Block } else { Next::End }
    }

    fn next_block(&mut self) -> Result<Code> {
        let mut last_key = std::mem::take(&mut self.last_key);
        last_key.clear();
        last_key.extend_from_slice(self.key(self.row));
        let code = match self.load((self.number + 1, 0))? {
            true => Code::between(&last_key, self.key(self.row), 0),
            false => Code::END,
        };
        self.last_key = last_key;
        Ok(code)
    }
}
