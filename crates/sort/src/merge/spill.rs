//! From memory to disk: everything in memory becomes one run, and runs become longer ones.

use std::sync::Arc;

use super::gather::BatchGatherer;
use super::merge_path;
use super::merger::Merger;
use super::sources::Sources;
use crate::context::{RowSelection, SortContext};
use crate::error::{Error, Result};
use crate::key::KeyRange;
use crate::memory::{Reservation, RowLocation};
use crate::run::{CutoffKey, DiskRun, DiskRunWriter, MemoryRun, RowObject, SpillFiles};

/// So many rows are merged before they are copied.
const PENDING_MAX: usize = 1024;
/// So many are copied at a time: they are fetched into the cache before.
const COPIED: usize = 64;

/// As many are merged before they are gathered as there is room for, if they are not shorter than
/// this, and at most so many.
const GATHERED_ROW_BYTES: usize = 128;
const GATHERED_MAX: usize = 256 << 10;

/// The runs on disk, and where the next ones go.
#[derive(Debug)]
pub(crate) struct DiskRuns {
    pub runs: Vec<Arc<DiskRun>>,
    spill: Option<SpillFiles>,
}

impl DiskRuns {
    pub fn new(spill: Option<SpillFiles>) -> Self {
        Self { runs: Vec::new(), spill }
    }

    pub fn may_spill(&self) -> bool {
        self.spill.is_some()
    }

    /// Merges pieces into a run, in so many threads at most, and frees their memory.
    pub fn spill(
        &mut self,
        context: &SortContext,
        pieces: Vec<Arc<MemoryRun>>,
        threads: usize,
    ) -> Result<()> {
        // There are both when batches are kept no longer since just now.
        let (kept, in_pages): (Vec<_>, Vec<_>) =
            pieces.into_iter().partition(|piece| piece.is_kept());
        for pieces in [kept, in_pages].into_iter().filter(|pieces| !pieces.is_empty()) {
            self.write(context, &Sources::new(pieces, Vec::new()), threads)?;
        }
        Ok(())
    }

    /// Each thread writes a part of the run.
    fn write(&mut self, context: &SortContext, sources: &Sources, threads: usize) -> Result<()> {
        let spill = self
            .spill
            .as_mut()
            .ok_or_else(|| Error::missing("the folder that rows are spilled to"))?;
        let rows = usize::try_from(sources.rows()).unwrap_or(usize::MAX);
        let parts = if threads > 1 {
            merge_path::parts(sources, rows.div_ceil(threads).max(1))?
        } else {
            vec![KeyRange::default()]
        };
        let file = spill.begin()?;
        let write = |bounds: &KeyRange| {
            let run = DiskRunWriter::new(spill.disk().clone(), file.clone(), context)?;
            write_part(context, sources, bounds, run)
        };
        let written: Result<Vec<DiskRun>> = match &parts[..] {
            [all] => Ok(vec![write(all)?]),
            parts => std::thread::scope(|scope| {
                let write = &write;
                let refused =
                    |error| Error::Thread(format!("can't start a thread to write a run: {error}"));
                let begin = |bounds| {
                    let named = std::thread::Builder::new().name("dray-spill".into());
                    named.spawn_scoped(scope, move || write(bounds)).map_err(refused)
                };
                let threads = parts.iter().map(begin).collect::<Result<Vec<_>>>()?;
                let lost =
                    |_| Err(Error::Thread("a thread that wrote a run has ended too early".into()));
                threads.into_iter().map(|thread| thread.join().unwrap_or_else(lost)).collect()
            }),
        };
        let run = written?.into_iter().reduce(DiskRun::followed_by);
        let written = run.as_ref().map_or(0, DiskRun::rows);
        if context.kept.keeps_all() && written != sources.rows() {
            return Err(Error::Internal(format!("a run has {written} of {} rows", sources.rows())));
        }
        self.runs.extend(run.filter(|run| run.rows() > 0).map(Arc::new));
        Ok(())
    }

    /// Merges runs until there are so few that all can be read at once, and returns them and the
    /// memory for that. None if memory does not suffice, although runs can't be fewer, or
    /// `has_pieces` says that there is memory to be freed first. In as many threads as can write a
    /// run, if there is memory for what these read.
    pub fn open(
        &mut self,
        context: &SortContext,
        has_pieces: bool,
        threads: usize,
    ) -> Result<Option<(Vec<Arc<DiskRun>>, Reservation)>> {
        if let Some(spill) = &mut self.spill {
            spill.close_file();
        }
        loop {
            // The shortest ones come first, since they cost the least to merge once more.
            self.runs.sort_by_key(|run| run.rows());
            let mut reservation = Reservation::none(&context.memory);
            let mut passing = 0;
            let fits = |run: &&Arc<DiskRun>| {
                let more = run.transient_bytes_max().saturating_sub(passing);
                passing += more;
                reservation.try_grow(run.block_bytes_max() + more)
            };
            let opened = self.runs.iter().take(context.fan_in_max).take_while(fits).count();
            if opened == self.runs.len() {
                return Ok(Some((std::mem::take(&mut self.runs), reservation)));
            }
            if opened < 2 || has_pieces && opened < context.fan_in_max {
                return Ok(None);
            }
            // No more than what makes the next merge a full one.
            let surplus = self.runs.len() - opened + 1;
            let runs = self.runs.drain(..surplus.clamp(2, opened)).collect();
            // There is memory for one thread, which is more than these runs take.
            let each = reservation.bytes();
            let threads = 1 + (1..threads).take_while(|_| reservation.try_grow(each)).count();
            self.write(context, &Sources::new(Vec::new(), runs), threads)?;
        }
    }

    /// What rows need not be kept because of those in runs.
    pub fn cutoff(&self, kept: RowSelection) -> Option<CutoffKey> {
        if kept.limit == u64::MAX {
            return None;
        }
        if kept.distinct {
            // The same row may be in several runs.
            let of_each =
                self.runs.iter().filter_map(|run| CutoffKey::of(run.samples(), kept.limit));
            return of_each.reduce(|one, other| one.or(Some(other)));
        }
        CutoffKey::of(self.runs.iter().flat_map(|run| run.samples()), kept.limit)
    }

    /// What reading the two largest runs takes.
    pub fn least_bytes(&self) -> usize {
        let mut bytes: Vec<usize> = self.runs.iter().map(|run| run.block_bytes_max()).collect();
        bytes.sort_unstable();
        let passing = self.runs.iter().map(|run| run.transient_bytes_max()).max().unwrap_or(0);
        bytes.iter().rev().take(2).sum::<usize>() + passing
    }

    pub fn refused(&self, context: &SortContext, needed: usize) -> Error {
        Error::Memory { needed, bytes_max: context.memory.bytes_max(), may_spill: self.may_spill() }
    }
}

fn write_part(
    context: &SortContext,
    sources: &Sources,
    bounds: &KeyRange,
    mut run: DiskRunWriter,
) -> Result<DiskRun> {
    let mut merge =
        Merger::new(sources.chains(context, bounds)?, context.kept.distinct, context.kept.limit)?;
    let pending_max = match sources.batches() {
        Some(_) => (context.gather_bytes_max / GATHERED_ROW_BYTES).clamp(PENDING_MAX, GATHERED_MAX),
        None => PENDING_MAX,
    };
    let mut pending = Vec::with_capacity(pending_max);
    let mut ended = false;
    while !ended {
        context.cancel.check()?;
        ended = merge.fill(&mut pending, pending_max)?;
        match sources.batches() {
            Some(batches) => write_gathered(context, batches, &merge, &pending, &mut run)?,
            None => write_objects(&merge, &pending, &mut run)?,
        }
    }
    run.finish()
}

fn write_objects(
    merge: &Merger,
    pending: &[(usize, RowLocation)],
    run: &mut DiskRunWriter,
) -> Result<()> {
    for some in pending.chunks(COPIED) {
        merge.fetch(some);
        for (source, place) in some {
            let (key, ordinal) = keyed(merge, *source, *place)?;
            match merge.object(*source, *place)? {
                RowObject::InMemory(object) => run.push(object, key, ordinal)?,
                RowObject::OnDisk(page) => run.push_on_disk(page, key, ordinal)?,
            }
        }
    }
    Ok(())
}

/// The key and the ordinal of a merged row.
fn keyed(merge: &Merger, source: usize, place: RowLocation) -> Result<(&[u8], u64)> {
    let found = merge
        .cursor(source)
        .and_then(|cursor| Some((cursor.key_at(place)?, cursor.ordinal_at(place)?)));
    found.ok_or_else(|| Error::missing("the key of a row that is spilled"))
}

/// Rows become a batch before they become objects.
fn write_gathered(
    context: &SortContext,
    batches: &BatchGatherer,
    merge: &Merger,
    pending: &[(usize, RowLocation)],
    run: &mut DiskRunWriter,
) -> Result<()> {
    let mut rest = pending;
    while !rest.is_empty() {
        let (mut bytes, mut count) = (0, 0);
        for (_, place) in rest {
            bytes += batches.size(*place)?;
            if bytes > context.gather_bytes_max {
                break;
            }
            count += 1;
        }
        let (some, others) = rest.split_at(count.max(1));
        let places: Vec<RowLocation> = some.iter().map(|(_, place)| *place).collect();
        let key = |row: usize| keyed(merge, some[row].0, some[row].1);
        run.append(&batches.gather(&places)?, key)?;
        rest = others;
    }
    Ok(())
}
