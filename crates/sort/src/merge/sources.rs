//! The sorted runs that are merged, and the chains of those that follow each other.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cursor::{Chain, Cursor, DiskRunCursor, MemoryRunCursor};
use super::payload::Payload;
use crate::context::SortContext;
use crate::error::{Error, Result};
use crate::key::KeyRange;
use crate::run::{DiskRun, EndRow, MemoryRun};

/// The sorted runs of a merge.
#[derive(Debug)]
pub(crate) struct Sources {
    memory_runs: Vec<Arc<MemoryRun>>,
    /// For each run in memory, the number of blocks of those before it.
    first_blocks: Vec<u32>,
    disk_runs: Vec<Arc<DiskRun>>,
    payload: Payload,
}

impl Sources {
    /// Runs whose payloads have the same layout, which is pages for runs on disk.
    pub fn new(memory_runs: Vec<Arc<MemoryRun>>, disk_runs: Vec<Arc<DiskRun>>) -> Self {
        let mut blocks = 0;
        let first_block = |run: &Arc<MemoryRun>| {
            let first = blocks;
            // Blocks have keys, so memory is exhausted before these numbers are.
            blocks += run.blocks().len() as u32;
            first
        };
        let first_blocks = memory_runs.iter().map(first_block).collect();
        let payload = Payload::of(&memory_runs);
        debug_assert!(
            matches!(payload, Payload::Pages) || disk_runs.is_empty(),
            "no batch is kept in memory after runs were spilled"
        );
        Self { memory_runs, first_blocks, disk_runs, payload }
    }

    pub fn payload(&self) -> &Payload {
        &self.payload
    }

    pub fn memory_runs(&self) -> &[Arc<MemoryRun>] {
        &self.memory_runs
    }

    pub fn disk_runs(&self) -> &[Arc<DiskRun>] {
        &self.disk_runs
    }

    pub fn rows(&self) -> u64 {
        self.memory_runs.iter().map(|run| run.rows() as u64).sum::<u64>()
            + self.disk_runs.iter().map(|run| run.rows()).sum::<u64>()
    }

    /// Cursors of the rows within `range`, in as few chains as possible. Rows that came in order
    /// make one chain, and a merge of it compares nothing.
    pub fn chains(&self, context: &SortContext, range: &KeyRange) -> Result<Vec<Chain>> {
        let in_memory = |(run, first_block): (&Arc<MemoryRun>, &u32)| {
            MemoryRunCursor::new(run.clone(), *first_block, range).map(Cursor::Memory)
        };
        let on_disk = |run: &Arc<DiskRun>| {
            Ok(Cursor::Disk(Box::new(DiskRunCursor::new(run.clone(), context, range.clone()))))
        };
        let memory_runs = self.memory_runs.iter().zip(&self.first_blocks);
        let disk_runs = self.disk_runs.iter();
        chained(memory_runs.map(in_memory).chain(disk_runs.map(on_disk)).collect::<Result<_>>()?)
    }
}

/// Chains cursors greedily: in the order of their first rows, each is appended to the chain that
/// ends first, if that ends before it begins.
fn chained(cursors: Vec<Cursor>) -> Result<Vec<Chain>> {
    let mut spans: Vec<([EndRow<'_>; 2], usize)> = Vec::with_capacity(cursors.len());
    for (number, cursor) in cursors.iter().enumerate() {
        // Cursors without rows are left out.
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
