//! Merges sorted sources, row by row.

use super::cursor::{Chain, Cursor, Next};
use super::loser_tree::{LoserTree, Player};
use crate::error::{Error, Result};
use crate::key::{OffsetValueCode, first_difference};
use crate::memory::RowLocation;
use crate::run::RowObject;

/// A line of the cache, and so many of a row are fetched ahead.
const LINE_BYTES: usize = 64;
const LINES_MAX: usize = 16;

/// A merge of pieces and runs: for a result, and for a longer run, the same.
#[derive(Debug)]
pub(crate) struct Merger {
    /// The first of each chain, and those behind it in reverse.
    cursors: Vec<Cursor>,
    behind: Vec<Vec<Cursor>>,
    tree: LoserTree,
    distinct: bool,
    /// So many rows are still wanted.
    left: u64,
    state: State,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// The winner's row has not been looked at.
    Fresh,
    /// It was handed out or dropped.
    Used,
    /// Its source has to read a block.
    AtBlockEnd,
    /// Its source has ended, and another one is behind it.
    AtEnd,
}

/// What a merge comes to.
enum Step {
    /// The row of this source.
    Row(usize),
    /// No row: after the next step a block is gone, and with it the objects of rows before.
    Block,
    /// No more rows.
    End,
}

impl Merger {
    /// Merges chains of sources, each of which begins where the one before ends, dropping rows that
    /// are equal to the one before if `distinct`, up to `limit` rows.
    pub fn new(chains: Vec<Chain>, distinct: bool, limit: u64) -> Result<Self> {
        let (mut cursors, mut behind) =
            (Vec::with_capacity(chains.len()), Vec::with_capacity(chains.len()));
        let mut codes = Vec::with_capacity(chains.len());
        for mut chain in chains {
            chain.reverse();
            // An empty one has no rows.
            let Some(mut first) = chain.pop() else { continue };
            codes.push(begin(&mut first, &mut chain)?);
            cursors.push(first);
            behind.push(chain);
        }
        let tree = LoserTree::new(&codes, &mut settle(&cursors))?;
        Ok(Self { cursors, behind, tree, distinct, left: limit, state: State::Fresh })
    }

    pub fn cursor(&self, source: usize) -> Option<&Cursor> {
        self.cursors.get(source)
    }

    /// The object of a merged row.
    pub fn object(&self, source: usize, place: RowLocation) -> Result<RowObject<'_>> {
        let object = self.cursors.get(source).and_then(|cursor| cursor.object(place));
        object.ok_or_else(|| Error::missing("the object of a row that was merged"))
    }

    /// The next row, which is valid up to the next step.
    #[inline]
    fn step(&mut self) -> Result<Step> {
        loop {
            let Some(winner) = self.tree.winner().filter(|_| self.left > 0) else {
                return Ok(Step::End);
            };
            let source = winner.source as usize;
            match self.state {
                State::Fresh if winner.code == OffsetValueCode::END => return Ok(Step::End),
                State::Fresh => {
                    self.state = State::Used;
                    if !self.distinct || winner.code != OffsetValueCode::EQUAL {
                        self.left -= 1;
                        return Ok(Step::Row(source));
                    }
                }
                State::Used => {
                    let code = match self.cursors[source].advance()? {
                        Next::Row(code) => code,
                        Next::End if !self.behind[source].is_empty() => {
                            self.state = State::AtEnd;
                            return Ok(Step::Block);
                        }
                        Next::End => OffsetValueCode::END,
                        Next::Block => {
                            self.state = State::AtBlockEnd;
                            return Ok(Step::Block);
                        }
                    };
                    self.replace(code)?;
                }
                State::AtBlockEnd => {
                    let code = self.cursors[source].next_block()?;
                    self.replace(code)?;
                }
                State::AtEnd => {
                    let code = follow(&mut self.cursors[source], &mut self.behind[source])?;
                    self.replace(code)?;
                }
            }
        }
    }

    /// Puts the next rows, their sources and places, into `pending` in the place of those that are
    /// there, and says whether there are no more. Their blocks stay until the next call.
    pub fn fill(
        &mut self,
        pending: &mut Vec<(usize, RowLocation)>,
        rows_max: usize,
    ) -> Result<bool> {
        pending.clear();
        while pending.len() < rows_max {
            match self.step()? {
                Step::Row(source) => {
                    let place = self.cursors[source].place();
                    pending.push((
                        source,
                        place.ok_or_else(|| Error::missing("a row that was merged"))?,
                    ));
                }
                Step::Block if pending.is_empty() => {}
                Step::Block => break,
                Step::End => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Reads a byte of every line of the cache that these rows begin with, so that what follows
    /// does not wait for each of them.
    pub fn fetch(&self, pending: &[(usize, RowLocation)]) {
        let mut any = 0;
        for (source, place) in pending {
            let object = self.cursors.get(*source).and_then(|cursor| cursor.object(*place));
            let Some(RowObject::InMemory(object)) = object else { continue };
            let lines = object.bytes().iter().step_by(LINE_BYTES).take(LINES_MAX);
            any = lines.fold(any, |any, byte| any | byte);
        }
        std::hint::black_box(any);
    }

    #[inline]
    fn replace(&mut self, code: OffsetValueCode) -> Result<()> {
        self.tree.replace(code, &mut settle(&self.cursors))?;
        self.state = State::Fresh;
        Ok(())
    }
}

/// Goes to the first row of a cursor, or of those behind it.
fn begin(cursor: &mut Cursor, behind: &mut Vec<Cursor>) -> Result<OffsetValueCode> {
    loop {
        let code = cursor.begin()?;
        match behind.pop() {
            Some(next) if code == OffsetValueCode::END => *cursor = next,
            Some(next) => {
                behind.push(next);
                return Ok(code);
            }
            None => return Ok(code),
        }
    }
}

/// Goes from the last row of a cursor to the first one behind it.
fn follow(cursor: &mut Cursor, behind: &mut Vec<Cursor>) -> Result<OffsetValueCode> {
    let next = behind.pop().ok_or_else(|| Error::missing("a source behind one that has ended"))?;
    let last_key = cursor.last_key()?.to_vec();
    *cursor = next;
    match begin(cursor, behind)? {
        OffsetValueCode::END => Ok(OffsetValueCode::END),
        _ => Ok(OffsetValueCode::between(&last_key, cursor.key()?, 0)),
    }
}

/// Compares rows whose codes are the same: by what lies behind, and then by their places in the
/// input.
fn settle(cursors: &[Cursor]) -> impl FnMut(Player, Player) -> Result<(bool, OffsetValueCode)> {
    |a, b| {
        if a.code == OffsetValueCode::END {
            return Ok((true, OffsetValueCode::END));
        }
        let [of_a, of_b] = [&cursors[a.source as usize], &cursors[b.source as usize]];
        if a.code != OffsetValueCode::EQUAL
            && let Some((depth, word_a, word_b)) =
                first_difference(of_a.key()?, of_b.key()?, a.code.depth() + 1)
        {
            return Ok((word_a < word_b, OffsetValueCode::new(depth, word_a.max(word_b))));
        }
        Ok((of_a.ordinal()? < of_b.ordinal()?, OffsetValueCode::EQUAL))
    }
}
