//! Writers: each thread puts rows into a sort through a writer of its own.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use dray_format::Batch;

use crate::error::{Error, Result};
use crate::memory::PayloadLayout;
use crate::run::{BATCH_ROWS_BITS, InputBatch, RunBuilder};
use crate::state::{OpenRun, RUN_ROWS_MAX, SortState, lock};

/// A run in memory takes at most `1 / RUN_DIVISOR` of the budget, divided by the number of writers.
/// When memory is short, open runs are sorted before they are spilled, so this is little.
const RUN_DIVISOR: usize = 8;

/// Puts the rows of one thread into a sort.
#[derive(Debug)]
pub struct Writer {
    state: Arc<SortState>,
    open: OpenRun,
    sequence_next: u64,
}

impl Writer {
    pub(crate) fn new(state: Arc<SortState>) -> Self {
        let open = Arc::default();
        lock(&state.open).push(Arc::clone(&open));
        let writers = state.writers.fetch_add(1, Ordering::Relaxed) + 1;
        state.reserve_for_writers(writers);
        Self { state, open, sequence_next: 0 }
    }

    /// Takes the rows of batch number `sequence`, which is below 2³³ and larger than the numbers
    /// before it in this writer. Rows with equal keys are sorted by these numbers, whichever writer
    /// took them.
    ///
    /// The sort may retain the batch's buffers, so these should have little else than its rows.
    /// Otherwise use [`append_retaining`](Self::append_retaining).
    ///
    /// # Errors
    /// If `sequence` is out of order, the batch does not fit the schema, memory does not suffice,
    /// spilling fails, or the sort was cancelled or finished. All but the first two may lose rows:
    /// then all writers and [`Sorter::finish`](crate::Sorter::finish) fail with the same error.
    pub fn append(&mut self, sequence: u64, batch: &Batch) -> Result<()> {
        self.append_retaining(sequence, batch, batch.plain_bytes(0, batch.rows) as usize)
    }

    /// As [`append`](Self::append), for a batch whose buffers keep `retained_bytes` of memory
    /// alive. Memory that an earlier batch shares is counted only there.
    ///
    /// # Errors
    /// Those of [`append`](Self::append).
    pub fn append_retaining(
        &mut self,
        sequence: u64,
        batch: &Batch,
        retained_bytes: usize,
    ) -> Result<()> {
        let state = &*self.state;
        state.check_failed()?;
        if sequence < self.sequence_next || sequence >> (u64::BITS - BATCH_ROWS_BITS) > 0 {
            return Err(Error::Sequence { sequence, expected: self.sequence_next });
        }
        let measured = state.measure.measure(batch)?;
        self.sequence_next = sequence + 1;
        debug_assert!(batch.rows >> BATCH_ROWS_BITS == 0, "the ordinals of batches don't overlap");
        let ordinal = sequence << BATCH_ROWS_BITS;
        let input = InputBatch { batch, measured: &measured, retained_bytes, ordinal };
        state.record_failure(self.take(&input))
    }

    fn take(&self, input: &InputBatch<'_>) -> Result<()> {
        let state = &*self.state;
        state.reserve_for_spill(input.measured.sizes().iter().max().copied().unwrap_or(0))?;
        let mut from = 0;
        while from < input.batch.rows {
            state.context.cancel.check()?;
            let layout = state.layout();
            let slice = state.slice(input.measured, from, layout);
            let end = slice.end;
            match self.append_slice(input, slice, layout)? {
                // This may change the layout.
                Some(needed) => state.free_memory(needed)?,
                None => from = end,
            }
        }
        Ok(())
    }

    /// Appends rows to the open run. Returns the memory that is missing if they were not appended.
    fn append_slice(
        &self,
        input: &InputBatch<'_>,
        rows: Range<usize>,
        layout: PayloadLayout,
    ) -> Result<Option<usize>> {
        let state = &*self.state;
        let mut open = self.open()?;
        if state.layout() != layout {
            // It changed just now, and the open run is about to be spilled.
            return Ok(Some(0));
        }
        if open.as_ref().is_some_and(|builder| builder.layout() != layout) {
            state.close(&mut open)?;
        }
        let builder = match &mut *open {
            Some(builder) => builder,
            none => none.insert(RunBuilder::new(&state.context, layout)?),
        };
        let cutoff = lock(&state.cutoff).clone();
        let needed = builder.append(input, rows.clone(), cutoff.as_ref())?;
        if needed.is_none() {
            // Counted under the lock: when the sort is finished, as many rows come out.
            state.rows.fetch_add(rows.len() as u64, Ordering::Relaxed);
            self.close_if_large(&mut open)?;
        }
        Ok(needed)
    }

    /// Locks the open run.
    ///
    /// # Errors
    /// [`Error::Finished`] if the sort takes no more rows.
    fn open(&self) -> Result<MutexGuard<'_, Option<RunBuilder>>> {
        let open = lock(&self.open);
        if self.state.finished.load(Ordering::Relaxed) { Err(Error::Finished) } else { Ok(open) }
    }

    fn close_if_large(&self, open: &mut Option<RunBuilder>) -> Result<()> {
        let writers = self.state.writers.load(Ordering::Relaxed).max(1);
        let bytes_max = self.state.context.memory.bytes_max() / (RUN_DIVISOR * writers);
        let is_large = |run: &RunBuilder| run.rows() >= RUN_ROWS_MAX || run.bytes() > bytes_max;
        if open.as_ref().is_some_and(is_large) { self.state.close(open) } else { Ok(()) }
    }

    /// Ends the writer. Its rows are sorted in this thread, unless all rows are sorted together.
    ///
    /// # Errors
    /// If the keys of a page are larger than 4 GiB.
    pub fn finish(self) -> Result<()> {
        self.state.record_failure(self.state.close(&mut lock(&self.open)))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.state.writers.fetch_sub(1, Ordering::Relaxed);
    }
}
