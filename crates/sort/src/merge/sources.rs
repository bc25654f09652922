//! What is merged: pieces in memory and runs on disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cursor::{Chain, Cursor, DiskRunCursor, MemoryRunCursor};
use super::gather::BatchGatherer;
use crate::context::SortContext;
use crate::error::{Error, Result};
use crate::key::KeyRange;
use crate::memory::BlockPayload;
use crate::run::{DiskRun, EndRow, MemoryRun};

/// All rows that are merged.
#[derive(Debug)]
pub(crate) struct Sources {
    pieces: Vec<Arc<MemoryRun>>,
    /// How many blocks come before each piece's.
    first_blocks: Vec<u32>,
    /// Those of the pieces, if they are kept as they came.
    batches: Option<Arc<BatchGatherer>>,
    runs: Vec<Arc<DiskRun>>,
}

impl Sources {
    pub fn new(pieces: Vec<Arc<MemoryRun>>, runs: Vec<Arc<DiskRun>>) -> Self {
        let mut blocks = 0;
        let first_block = |piece: &Arc<MemoryRun>| {
            let first = blocks;
            // Each has a key or two, so memory is short before the numbers are.
            blocks += piece.blocks().len() as u32;
            first
        };
        let first_blocks = pieces.iter().map(first_block).collect();
        let mut batches = BatchGatherer::default();
        for block in pieces.iter().flat_map(|piece| piece.blocks()) {
            if let BlockPayload::Batch(batch, sizes) = &block.rows {
                batches.push(batch, sizes);
            }
        }
        let batches = (!batches.is_empty()).then(|| Arc::new(batches));
        Self { pieces, first_blocks, batches, runs }
    }

    /// What rows are gathered from that are not objects in pages: all are, or none.
    pub fn batches(&self) -> Option<&Arc<BatchGatherer>> {
        self.batches.as_ref()
    }

    pub fn pieces(&self) -> &[Arc<MemoryRun>] {
        &self.pieces
    }

    pub fn runs(&self) -> &[Arc<DiskRun>] {
        &self.runs
    }

    pub fn rows(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.rows() as u64).sum::<u64>()
            + self.runs.iter().map(|run| run.rows()).sum::<u64>()
    }

    /// Cursors for the rows within bounds, in as few chains as possible: of rows that came in
    /// order, one behind the other, there is one, and nothing to compare.
    pub fn chains(&self, context: &SortContext, bounds: &KeyRange) -> Result<Vec<Chain>> {
        let piece = |(piece, first_block): (&Arc<MemoryRun>, &u32)| {
            MemoryRunCursor::new(piece.clone(), *first_block, bounds).map(Cursor::Memory)
        };
        let run = |run: &Arc<DiskRun>| {
            Ok(Cursor::Disk(Box::new(DiskRunCursor::new(run.clone(), context, bounds.clone()))))
        };
        let pieces = self.pieces.iter().zip(&self.first_blocks);
        chained(pieces.map(piece).chain(self.runs.iter().map(run)).collect::<Result<_>>()?)
    }
}

/// Always the source with the least first row goes behind the chain that ends first, if it can.
fn chained(cursors: Vec<Cursor>) -> Result<Vec<Chain>> {
    let mut spans: Vec<([EndRow<'_>; 2], usize)> = Vec::with_capacity(cursors.len());
    for (number, cursor) in cursors.iter().enumerate() {
        // Those that can't have rows are left out.
        spans.extend(cursor.ends()?.map(|ends| (ends, number)));
    }
    spans.sort_unstable_by(|([a, _], _), ([b, _], _)| (a.key, a.ordinal).cmp(&(b.key, b.ordinal)));
    let mut ends = BTreeMap::new();
    let mut chains: Vec<Vec<usize>> = Vec::new();
    for ([first, last], number) in spans {
        let chain = match ends.pop_first() {
            Some((_, (end, chain))) if EndRow::is_before(&end, &first) => chain,
            other => {
                ends.extend(other);
                chains.push(Vec::new());
                chains.len() - 1
            }
        };
        chains[chain].push(number);
        ends.insert((last.key, last.ordinal, number), (last, chain));
    }
    let mut cursors: Vec<Option<Cursor>> = cursors.into_iter().map(Some).collect();
    let mut take =
        |number: usize| cursors[number].take().ok_or_else(|| Error::missing("a source of a merge"));
    chains.into_iter().map(|chain| chain.into_iter().map(&mut take).collect()).collect()
}
