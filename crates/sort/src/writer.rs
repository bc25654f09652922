//! Where threads put rows in.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use dray_format::Batch;
use dray_page::Measured;

use crate::error::{Error, Result};
use crate::run::{ROW_BITS, RunBuilder};
use crate::state::{SortState, lock};

/// A piece takes at most this part of the memory, divided by the writers: what others have not
/// sorted yet is sorted by the one who spills.
const RUN_SHARE: usize = 8;
/// A piece has at most so many rows.
const RUN_ROWS_MAX: usize = 1 << 20;
/// So many rows are appended at a time, if they are not large.
const SLICE_ROWS: usize = 1024;

/// Where one thread puts rows in.
#[derive(Debug)]
pub struct Writer {
    shared: Arc<SortState>,
    open: Arc<Mutex<Option<RunBuilder>>>,
    sequence_next: u64,
}

impl Writer {
    pub(crate) fn new(shared: Arc<SortState>) -> Self {
        let open = Arc::default();
        lock(&shared.open).push(Arc::clone(&open));
        let writers = shared.writers.fetch_add(1, Ordering::Relaxed) + 1;
        shared.reserve_for_writers(writers);
        Self { shared, open, sequence_next: 0 }
    }

    /// Takes the rows of batch number `sequence`, which is larger than those that this writer took
    /// before and below 2³³. Rows that are equal come in the order of these numbers, whichever
    /// writer took them. The batch's buffers may be kept, so they should have little else than its
    /// rows; otherwise see [`append_retaining`](Self::append_retaining).
    ///
    /// # Errors
    /// When the batch does not fit the schema, memory does not suffice, spilling fails, or the sort
    /// was cancelled or finished. Rows may be lost by all but the first: then all writers and
    /// [`Sorter::finish`] fail with the same error from now on.
    pub fn append(&mut self, sequence: u64, batch: &Batch) -> Result<()> {
        self.append_retaining(sequence, batch, batch.plain_bytes(0, batch.rows) as usize)
    }

    /// The same for a batch that holds so many bytes of memory, those not counted that batches
    /// before it hold as well.
    ///
    /// # Errors
    /// As [`append`](Self::append) has them.
    pub fn append_retaining(
        &mut self,
        sequence: u64,
        batch: &Batch,
        held_bytes: usize,
    ) -> Result<()> {
        let shared = &*self.shared;
        shared.check_failed()?;
        if sequence < self.sequence_next || sequence >> (u64::BITS - ROW_BITS) > 0 {
            return Err(Error::Sequence { sequence, expected: self.sequence_next });
        }
        let measured = shared.measure.measure(batch)?;
        self.sequence_next = sequence + 1;
        shared.failing(self.take((batch, held_bytes), &measured, sequence << ROW_BITS))
    }

    fn take(
        &self,
        (batch, held_bytes): (&Batch, usize),
        measured: &Measured<'_>,
        ordinal: u64,
    ) -> Result<()> {
        let shared = &*self.shared;
        shared.reserve_for(measured.sizes().iter().max().copied().unwrap_or(0))?;
        let mut from = 0;
        while from < batch.rows {
            shared.context.cancel.check()?;
            let keeps = shared.keeps.load(Ordering::Relaxed);
            let strip = shared.strip(measured, from, if keeps { RUN_ROWS_MAX } else { SLICE_ROWS });
            let end = strip.end;
            let needed = if keeps {
                self.keep_strip((batch, held_bytes), measured, strip, ordinal)?
            } else {
                self.append_strip(batch, measured, strip, ordinal)?
            };
            match needed {
                // How rows are taken may have changed with it.
                Some(needed) => shared.free_memory(needed)?,
                None => from = end,
            }
        }
        Ok(())
    }

    /// Counts rows that were taken, as long as nobody else has the open piece: as many come out
    /// again.
    fn count(&self, rows: usize) {
        self.shared.rows.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// Says what memory is missing if the rows were not kept.
    fn keep_strip(
        &self,
        (batch, held_bytes): (&Batch, usize),
        measured: &Measured<'_>,
        rows: Range<usize>,
        ordinal: u64,
    ) -> Result<Option<usize>> {
        let mut open = self.open()?;
        if !self.shared.keeps.load(Ordering::Relaxed) {
            // Since just now, and what is in memory is on its way to disk.
            return Ok(Some(0));
        }
        let strip = batch.slice(rows.start, rows.len());
        let held_bytes = held_bytes / batch.rows * rows.len() + held_bytes % batch.rows;
        let sizes = &measured.sizes()[rows.clone()];
        let piece = self.piece(&mut open)?;
        let needed = piece.keep(
            &self.shared.context.encoder,
            (&strip, held_bytes),
            sizes,
            ordinal + rows.start as u64,
        )?;
        if needed.is_none() {
            self.count(rows.len());
            self.close_if_large(&mut open)?;
        }
        Ok(needed)
    }

    /// Says what memory is missing if the rows were not appended.
    fn append_strip(
        &self,
        batch: &Batch,
        measured: &Measured<'_>,
        rows: Range<usize>,
        ordinal: u64,
    ) -> Result<Option<usize>> {
        let context = &self.shared.context;
        let mut open = self.open()?;
        if open.as_ref().is_some_and(RunBuilder::is_kept) {
            self.shared.close(&mut open)?;
        }
        let piece = self.piece(&mut open)?;
        let cutoff = lock(&self.shared.cutoff).clone();
        if !piece.append(
            &context.encoder,
            (batch, measured),
            rows.clone(),
            ordinal,
            cutoff.as_ref(),
        )? {
            return Ok(Some(piece.needed(&context.encoder, measured, rows)));
        }
        self.count(rows.len());
        self.close_if_large(&mut open)?;
        Ok(None)
    }

    /// The place of the open piece, as long as rows are taken.
    fn open(&self) -> Result<MutexGuard<'_, Option<RunBuilder>>> {
        let open = lock(&self.open);
        if self.shared.finished.load(Ordering::Relaxed) { Err(Error::Finished) } else { Ok(open) }
    }

    fn piece<'o>(&self, open: &'o mut Option<RunBuilder>) -> Result<&'o mut RunBuilder> {
        let context = &self.shared.context;
        Ok(match open {
            Some(piece) => piece,
            none => none.insert(RunBuilder::new(
                &context.layout,
                &context.page_cache,
                context.encoder.width(),
                &context.memory,
            )?),
        })
    }

    fn close_if_large(&self, open: &mut Option<RunBuilder>) -> Result<()> {
        let writers = self.shared.writers.load(Ordering::Relaxed).max(1);
        let bytes_max = self.shared.context.memory.bytes_max() / (RUN_SHARE * writers);
        let is_large =
            |piece: &RunBuilder| piece.rows() >= RUN_ROWS_MAX || piece.bytes() > bytes_max;
        if open.as_ref().is_some_and(is_large) { self.shared.close(open) } else { Ok(()) }
    }

    /// Sorts what this writer has, in this thread; nothing more comes.
    ///
    /// # Errors
    /// When the keys of a page are larger than 4 GiB.
    pub fn finish(self) -> Result<()> {
        self.shared.failing(self.shared.close(&mut lock(&self.open)))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.writers.fetch_sub(1, Ordering::Relaxed);
    }
}
