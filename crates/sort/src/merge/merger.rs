//! Merges sorted runs, row by row.

use super::cursor::{Chain, Cursor, Next};
use super::loser_tree::{LoserTree, Player};
use crate::context::RowSelection;
use crate::error::{Error, Result};
use crate::key::{OffsetValueCode, first_difference};
use crate::memory::RowLocation;
use crate::run::RowObject;

/// The bytes of a cache line, and the most lines of an object that are prefetched.
const LINE_BYTES: usize = 64;
const LINES_MAX: usize = 16;

/// A merged row: its source, and its location there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MergedRow {
    pub source: usize,
    pub location: RowLocation,
}

/// A merge of sorted runs.
#[derive(Debug)]
pub(crate) struct Merger {
    /// The current cursor of each chain.
    cursors: Vec<Cursor>,
    /// The cursors after it, in reverse.
    successors: Vec<Vec<Cursor>>,
    tree: LoserTree,
    distinct: bool,
    /// The rows until the limit.
    rows_left: u64,
    state: WinnerState,
}

#[derive(Debug, Clone, Copy)]
enum WinnerState {
    /// The winner's row is next.
    Fresh,
    /// It was returned or dropped.
    Used,
    /// The winner has to read its next block.
    AtBlockEnd,
    /// The winner has ended, and its successor is next.
    AtEnd,
}

/// The outcome of a step of a merge.
enum Step {
    /// The row of this source is next.
    Row(usize),
    /// No row. The next step drops a block, and with it the objects of earlier rows.
    Block,
    /// No more rows.
    End,
}

impl Merger {
    /// Merges chains of cursors. Drops duplicates, and rows beyond the limit, as `selection` says.
    pub fn new(chains: Vec<Chain>, selection: RowSelection) -> Result<Self> {
        let (mut cursors, mut successors) =
            (Vec::with_capacity(chains.len()), Vec::with_capacity(chains.len()));
        let mut codes = Vec::with_capacity(chains.len());
        for mut chain in chains {
            chain.reverse();
            // An empty chain has no rows.
            let Some(mut first) = chain.pop() else { continue };
            codes.push(begin(&mut first, &mut chain)?);
            cursors.push(first);
            successors.push(chain);
        }
        let tree = LoserTree::new(&codes, &mut break_tie(&cursors))?;
        let RowSelection { distinct, limit: rows_left } = selection;
        Ok(Self { cursors, successors, tree, distinct, rows_left, state: WinnerState::Fresh })
    }

    /// The object of a merged row, whose block is still in memory.
    pub fn object(&self, row: MergedRow) -> Result<RowObject<'_>> {
        let object = self.cursors.get(row.source).and_then(|cursor| cursor.object(row.location));
        object.ok_or_else(|| Error::missing("the object of a row that was merged"))
    }

    /// The key and the ordinal of a merged row, whose block is still in memory.
    pub fn key_and_ordinal(&self, row: MergedRow) -> Result<(&[u8], u64)> {
        let found = self.cursors.get(row.source).and_then(|cursor| {
            Some((cursor.key_at(row.location)?, cursor.ordinal_at(row.location)?))
        });
        found.ok_or_else(|| Error::missing("the key of a row that is spilled"))
    }

    /// Goes to the next row, which is valid until the next step.
    #[inline]
    fn step(&mut self) -> Result<Step> {
        loop {
            let Some(winner) = self.tree.winner().filter(|_| self.rows_left > 0) else {
                return Ok(Step::End);
            };
            let source = winner.source as usize;
            match self.state {
                WinnerState::Fresh if winner.code == OffsetValueCode::END => return Ok(Step::End),
                WinnerState::Fresh => {
                    self.state = WinnerState::Used;
                    if !self.distinct || winner.code != OffsetValueCode::EQUAL {
                        self.rows_left -= 1;
                        return Ok(Step::Row(source));
                    }
                }
                WinnerState::Used => {
                    let code = match self.cursors[source].advance()? {
                        Next::Row(code) => code,
                        Next::End if !self.successors[source].is_empty() => {
                            self.state = WinnerState::AtEnd;
                            return Ok(Step::Block);
                        }
                        Next::End => OffsetValueCode::END,
                        Next::Block => {
                            self.state = WinnerState::AtBlockEnd;
                            return Ok(Step::Block);
                        }
                    };
                    self.replace(code)?;
                }
                WinnerState::AtBlockEnd => {
                    let code = self.cursors[source].next_block()?;
                    self.replace(code)?;
                }
                WinnerState::AtEnd => {
                    let code = follow(&mut self.cursors[source], &mut self.successors[source])?;
                    self.replace(code)?;
                }
            }
        }
    }

    /// Replaces `merged` by the next rows, at most `rows_max`; true if there are no more after
    /// them. Their blocks stay in memory until the next call.
    pub fn fill(&mut self, merged: &mut Vec<MergedRow>, rows_max: usize) -> Result<bool> {
        merged.clear();
        while merged.len() < rows_max {
            match self.step()? {
                Step::Row(source) => {
                    let location = self.cursors[source].location();
                    merged.push(MergedRow {
                        source,
                        location: location
                            .ok_or_else(|| Error::missing("a row that was merged"))?,
                    });
                }
                Step::Block if merged.is_empty() => {}
                Step::Block => break,
                Step::End => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Prefetches the objects of merged rows: reads a byte of each of their first cache lines, so
    /// that their cache misses overlap.
    pub fn prefetch(&self, merged: &[MergedRow]) {
        let mut any = 0;
        for row in merged {
            let object =
                self.cursors.get(row.source).and_then(|cursor| cursor.object(row.location));
            let Some(RowObject::InMemory(object)) = object else { continue };
            let lines = object.bytes().iter().step_by(LINE_BYTES).take(LINES_MAX);
            any = lines.fold(any, |any, byte| any | byte);
        }
        std::hint::black_box(any);
    }

    #[inline]
    fn replace(&mut self, code: OffsetValueCode) -> Result<()> {
        self.tree.replace(code, &mut break_tie(&self.cursors))?;
        self.state = WinnerState::Fresh;
        Ok(())
    }
}

/// Goes to the first row of a cursor, or of the first of its successors that has rows.
fn begin(cursor: &mut Cursor, successors: &mut Vec<Cursor>) -> Result<OffsetValueCode> {
    loop {
        let code = cursor.begin()?;
        match successors.pop() {
            Some(next) if code == OffsetValueCode::END => *cursor = next,
            Some(next) => {
                successors.push(next);
                return Ok(code);
            }
            None => return Ok(code),
        }
    }
}

/// Goes from the last row of a cursor to the first row of its successors.
fn follow(cursor: &mut Cursor, successors: &mut Vec<Cursor>) -> Result<OffsetValueCode> {
    let next = successors.pop().ok_or_else(|| Error::missing("the successor of a source"))?;
    let last_key = cursor.last_key()?.to_vec();
    *cursor = next;
    match begin(cursor, successors)? {
        OffsetValueCode::END => Ok(OffsetValueCode::END),
        _ => {
            debug_assert!(last_key[..] <= *cursor.key()?, "a chain is in the order of its keys");
            Ok(OffsetValueCode::between(&last_key, cursor.key()?, 0))
        }
    }
}

/// Compares the rows of two sources with equal codes: by the words after the offset, and then by
/// ordinal, which makes the merge stable.
fn break_tie(cursors: &[Cursor]) -> impl FnMut(Player, Player) -> Result<(bool, OffsetValueCode)> {
    |a, b| {
        debug_assert_eq!(a.code, b.code);
        if a.code == OffsetValueCode::END {
            return Ok((true, OffsetValueCode::END));
        }
        let [of_a, of_b] = [&cursors[a.source as usize], &cursors[b.source as usize]];
        if a.code != OffsetValueCode::EQUAL
            && let Some((offset, word_a, word_b)) =
                first_difference(of_a.key()?, of_b.key()?, a.code.offset() + 1)
        {
            debug_assert_eq!(word_a < word_b, of_a.key()? < of_b.key()?);
            return Ok((word_a < word_b, OffsetValueCode::new(offset, word_a.max(word_b))));
        }
        debug_assert_eq!(of_a.key()?, of_b.key()?, "equal codes and words are of equal keys");
        Ok((of_a.ordinal()? < of_b.ordinal()?, OffsetValueCode::EQUAL))
    }
}
