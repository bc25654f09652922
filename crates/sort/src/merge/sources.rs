//! Merge Path: divides a merge of many sources into parts that can be merged side by side.
//!
//! Beginnings of keys divide the rows: those that are less than the first one are part 0, and so
//! on. Each source finds its rows of a part by binary search. Rows with equal keys are in one part,
//! so that duplicates meet. (The path of Green, Odeh and Birk goes through two sources row by row;
//! of many sources, samples say well enough where its parts end.)

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cursor::{Bounds, Chain, Cursor, PieceCursor, RunCursor};
use super::gather::Batches;
use crate::context::Plan;
use crate::error::{Error, Result};
use crate::memory::BlockRows;
use crate::run::{End, Piece, Run, cut};

/// So many samples of pieces are taken for each part.
const SAMPLES_A_PART: usize = 64;

/// All rows that are merged.
#[derive(Debug)]
pub(crate) struct Sources {
    pieces: Vec<Arc<Piece>>,
    /// How many blocks come before each piece's.
    first_blocks: Vec<u32>,
    /// Those of the pieces, if they are kept as they came.
    batches: Option<Arc<Batches>>,
    runs: Vec<Arc<Run>>,
}

impl Sources {
    pub fn new(pieces: Vec<Arc<Piece>>, runs: Vec<Arc<Run>>) -> Self {
        let mut blocks = 0;
        let first_block = |piece: &Arc<Piece>| {
            let first = blocks;
            // Each has a key or two, so memory is short before the numbers are.
            blocks += piece.blocks().len() as u32;
            first
        };
        let first_blocks = pieces.iter().map(first_block).collect();
        let mut batches = Batches::default();
        for block in pieces.iter().flat_map(|piece| piece.blocks()) {
            if let BlockRows::Batch(batch, sizes) = &block.rows {
                batches.push(batch, sizes);
            }
        }
        let batches = (!batches.is_empty()).then(|| Arc::new(batches));
        Self { pieces, first_blocks, batches, runs }
    }

    /// What rows are gathered from that are not objects in pages: all are, or none.
    pub fn batches(&self) -> Option<&Arc<Batches>> {
        self.batches.as_ref()
    }

    pub fn rows(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.rows() as u64).sum::<u64>()
            + self.runs.iter().map(|run| run.rows()).sum::<u64>()
    }

    /// Cursors for the rows within bounds, in as few chains as possible: of rows that came in
    /// order, one behind the other, there is one, and nothing to compare.
    pub fn chains(&self, plan: &Plan, bounds: &Bounds) -> Result<Vec<Chain>> {
        let piece = |(piece, first_block): (&Arc<Piece>, &u32)| {
            PieceCursor::new(piece.clone(), *first_block, bounds).map(Cursor::Piece)
        };
        let run = |run: &Arc<Run>| {
            Ok(Cursor::Run(Box::new(RunCursor::new(run.clone(), plan, bounds.clone()))))
        };
        let pieces = self.pieces.iter().zip(&self.first_blocks);
        chained(pieces.map(piece).chain(self.runs.iter().map(run)).collect::<Result<_>>()?)
    }

    /// Divides all rows into parts of about so many; larger where many keys are equal.
    pub fn parts(&self, part_rows: usize) -> Result<Vec<Bounds>> {
        let step = (part_rows / SAMPLES_A_PART).max(1);
        let mut samples: Vec<(&[u8], usize)> = Vec::new();
        for piece in &self.pieces {
            for some in piece.entries().chunks(step) {
                let key =
                    piece.key(some[0]).ok_or_else(|| Error::missing("the key of a sample"))?;
                samples.push((cut(key), some.len()));
            }
        }
        samples.extend(self.runs.iter().flat_map(|run| run.bounds()));
        samples.sort_unstable();
        let (mut parts, mut rows, mut from) = (Vec::new(), 0, None::<Arc<[u8]>>);
        for (key, weight) in samples {
            if rows >= part_rows && from.as_deref() != Some(key) {
                let until: Arc<[u8]> = key.into();
                parts.push(Bounds { from, until: Some(until.clone()) });
                (from, rows) = (Some(until), 0);
            }
            rows += weight;
        }
        parts.push(Bounds { from, until: None });
        Ok(parts)
    }
}

/// Always the source with the least first row goes behind the chain that ends first, if it can.
fn chained(cursors: Vec<Cursor>) -> Result<Vec<Chain>> {
    let mut spans: Vec<([End<'_>; 2], usize)> = Vec::with_capacity(cursors.len());
    for (number, cursor) in cursors.iter().enumerate() {
        // Those that can't have rows are left out.
        spans.extend(cursor.ends()?.map(|ends| (ends, number)));
    }
    spans.sort_unstable_by(|([a, _], _), ([b, _], _)| (a.key, a.tag).cmp(&(b.key, b.tag)));
    let mut ends = BTreeMap::new();
    let mut chains: Vec<Vec<usize>> = Vec::new();
    for ([first, last], number) in spans {
        let chain = match ends.pop_first() {
            Some((_, (end, chain))) if End::is_before(&end, &first) => chain,
            other => {
                ends.extend(other);
                chains.push(Vec::new());
                chains.len() - 1
            }
        };
        chains[chain].push(number);
        ends.insert((last.key, last.tag, number), (last, chain));
    }
    let mut cursors: Vec<Option<Cursor>> = cursors.into_iter().map(Some).collect();
    let mut take =
        |number: usize| cursors[number].take().ok_or_else(|| Error::missing("a source of a merge"));
    chains.into_iter().map(|chain| chain.into_iter().map(&mut take).collect()).collect()
}
