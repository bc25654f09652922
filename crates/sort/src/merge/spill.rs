//! Spills: merges all runs in memory into one on disk, and runs on disk into longer ones.

use std::sync::Arc;

use super::merge_path::partitions;
use super::merger::Merger;
use super::sources::Sources;
use crate::context::{RowSelection, SortContext};
use crate::error::{Error, Result};
use crate::key::KeyRange;
use crate::memory::{PayloadLayout, Reservation};
use crate::run::{CutoffKey, DiskRun, DiskRunWriter, MemoryRun, SpillFiles};
use crate::threads::in_threads;

/// The runs on disk, and the files of the next ones.
#[derive(Debug)]
pub(crate) struct DiskRuns {
    runs: Vec<Arc<DiskRun>>,
    files: Option<SpillFiles>,
}

impl DiskRuns {
    /// No runs yet. Without files, there will be none.
    pub fn new(files: Option<SpillFiles>) -> Self {
        Self { runs: Vec::new(), files }
    }

    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub fn may_spill(&self) -> bool {
        self.files.is_some()
    }

    /// Merges runs in memory into one on disk, with up to `threads` threads, and frees their
    /// memory. If their payloads have different layouts, they become one run for each layout.
    pub fn spill(
        &mut self,
        context: &SortContext,
        runs: Vec<Arc<MemoryRun>>,
        threads: usize,
    ) -> Result<()> {
        let (batches, pages): (Vec<_>, Vec<_>) =
            runs.into_iter().partition(|run| run.layout() == PayloadLayout::Batches);
        for runs in [batches, pages].into_iter().filter(|runs| !runs.is_empty()) {
            self.write(context, &Sources::new(runs, Vec::new()), threads)?;
        }
        Ok(())
    }

    /// Writes a merge of all sources as a run. Each thread writes a partition of it.
    fn write(&mut self, context: &SortContext, sources: &Sources, threads: usize) -> Result<()> {
        let files = self
            .files
            .as_mut()
            .ok_or_else(|| Error::missing("the folder that rows are spilled to"))?;
        let rows = usize::try_from(sources.rows()).unwrap_or(usize::MAX);
        let partitions = if threads > 1 {
            partitions(sources, rows.div_ceil(threads).max(1))?
        } else {
            vec![KeyRange::default()]
        };
        let file = files.next_file()?;
        let write = |range: KeyRange| {
            let run = DiskRunWriter::new(files.store().clone(), file.clone(), context)?;
            write_partition(context, sources, &range, run)
        };
        let written = in_threads("dray-spill", "to write a run", partitions, write)?;
        let run = written.into_iter().reduce(DiskRun::followed_by);
        let written = run.as_ref().map_or(0, DiskRun::rows);
        if context.selection.keeps_all() && written != sources.rows() {
            return Err(Error::Internal(format!("a run has {written} of {} rows", sources.rows())));
        }
        self.runs.extend(run.filter(|run| run.rows() > 0).map(Arc::new));
        Ok(())
    }

    /// Merges runs with up to `threads` threads until so few are left that all can be read at once.
    /// Returns these, and the memory reserved for reading them.
    ///
    /// `None` if there is not enough memory for that. With `has_memory_runs`, the caller can free
    /// memory, so runs are merged only if their number would require it anyway.
    pub fn open(
        &mut self,
        context: &SortContext,
        has_memory_runs: bool,
        threads: usize,
    ) -> Result<Option<(Vec<Arc<DiskRun>>, Reservation)>> {
        if let Some(files) = &mut self.files {
            files.close_file();
        }
        loop {
            // The shortest runs first, since they cost the least to merge once more.
            self.runs.sort_by_key(|run| run.rows());
            let mut reservation = Reservation::none(&context.memory);
            let mut transient_bytes = 0;
            let fits = |run: &&Arc<DiskRun>| {
                let more = run.transient_bytes_max().saturating_sub(transient_bytes);
                transient_bytes += more;
                reservation.try_grow(run.block_bytes_max() + more)
            };
            let opened = self.runs.iter().take(context.fan_in_max).take_while(fits).count();
            if opened == self.runs.len() {
                return Ok(Some((std::mem::take(&mut self.runs), reservation)));
            }
            if opened < 2 || has_memory_runs && opened < context.fan_in_max {
                return Ok(None);
            }
            // Merge only as many runs as needed, so that the next merge can open all that are left.
            let surplus = self.runs.len() - opened + 1;
            let runs = self.runs.drain(..surplus.clamp(2, opened)).collect();
            // The reservation suffices for one thread: it is for at least these runs.
            let each = reservation.bytes();
            let threads = 1 + (1..threads).take_while(|_| reservation.try_grow(each)).count();
            self.write(context, &Sources::new(Vec::new(), runs), threads)?;
        }
    }

    /// The key beyond which no row is needed, as the runs on disk show; `None` if it is not known
    /// yet.
    pub fn cutoff(&self, selection: RowSelection) -> Option<CutoffKey> {
        let limit = selection.limit;
        if limit == u64::MAX {
            return None;
        }
        if selection.distinct {
            // Equal rows may be in several runs, so each run counts for itself.
            let of_each = self
                .runs
                .iter()
                .filter_map(|run| CutoffKey::from_samples(run.cutoff_samples(), limit));
            return of_each.reduce(|one, other| one.min(Some(other)));
        }
        CutoffKey::from_samples(self.runs.iter().flat_map(|run| run.cutoff_samples()), limit)
    }

    /// The memory for reading the two largest runs, in bytes.
    pub fn least_bytes(&self) -> usize {
        let mut bytes: Vec<usize> = self.runs.iter().map(|run| run.block_bytes_max()).collect();
        bytes.sort_unstable();
        let transient_bytes =
            self.runs.iter().map(|run| run.transient_bytes_max()).max().unwrap_or(0);
        bytes.iter().rev().take(2).sum::<usize>() + transient_bytes
    }

    /// The error for a budget that does not suffice.
    pub fn out_of_memory(&self, context: &SortContext, needed: usize) -> Error {
        Error::Memory { needed, bytes_max: context.memory.bytes_max(), may_spill: self.may_spill() }
    }
}

fn write_partition(
    context: &SortContext,
    sources: &Sources,
    range: &KeyRange,
    mut run: DiskRunWriter,
) -> Result<DiskRun> {
    let mut merger = Merger::new(sources.chains(context, range)?, context.selection)?;
    let payload = sources.payload();
    let rows_max = payload.spilled_rows(context);
    let mut merged = Vec::with_capacity(rows_max);
    let mut ended = false;
    while !ended {
        context.cancel.check()?;
        ended = merger.fill(&mut merged, rows_max)?;
        payload.write(&merger, &merged, context, &mut run)?;
    }
    run.finish()
}
