//! Reads a result, for the methods of the result and for consumers of its C stream.

use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatchReader;
use dray_client::{Error, Lease, Objects, Progress, Results, Stats};
use dray_page::VerifiedPage;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::capsule::raise_interrupt_again;
use crate::error::{cancelled, detached, exception, usage};
use crate::monitor::Monitor;
use crate::rows::rows;

/// The number of values that become Python objects in one go, so that the columns stay in the
/// processor's cache.
const BLOCK_VALUES: usize = 1 << 16;
const BLOCK_ROWS_MAX: usize = 4096;
/// The hint for a result that can't be read any further.
const RERUN_HINT: Option<&str> = Some("run the query again");

/// What a reader reads: rows as batches, or as objects.
pub(crate) trait Source: Send {
    fn progress(&self) -> Progress;
    fn stats(&self) -> &Stats;
    /// Of a part of a plan that was read to its end.
    fn receipt(&self) -> Option<Vec<u8>>;
    fn cancel(&mut self);
}

impl Source for Results<Lease> {
    fn progress(&self) -> Progress {
        self.progress()
    }

    fn stats(&self) -> &Stats {
        self.stats()
    }

    fn receipt(&self) -> Option<Vec<u8>> {
        self.receipt()
    }

    fn cancel(&mut self) {
        self.cancel();
    }
}

impl Source for Objects<Lease> {
    fn progress(&self) -> Progress {
        self.progress()
    }

    fn stats(&self) -> &Stats {
        self.stats()
    }

    fn receipt(&self) -> Option<Vec<u8>> {
        None
    }

    fn cancel(&mut self) {
        self.cancel();
    }
}

/// A result that one thread reads at a time. Clones share it.
pub(crate) struct Reader<S: Source = Results<Lease>> {
    state: Arc<Mutex<State<S>>>,
    pub(crate) monitor: Arc<Monitor>,
}

impl<S: Source> Clone for Reader<S> {
    fn clone(&self) -> Self {
        Self { state: self.state.clone(), monitor: self.monitor.clone() }
    }
}

/// A result, and what remains of it after its end.
struct State<S> {
    phase: Phase<S>,
    /// Valid once the phase is not `Reading`.
    stats: Stats,
    /// Of a part that was read to its end.
    receipt: Option<Vec<u8>>,
    /// The batch that is being returned as rows.
    rows: Option<RowCursor>,
}

/// A position between two rows of a batch.
struct RowCursor {
    batch: RecordBatch,
    next_row: usize,
}

/// Reading on after `Whole` returns no more batches. After any other end it is an error.
enum Phase<S> {
    Reading(Box<S>),
    Whole,
    Failed,
    Cancelled,
    Closed,
}

impl<S: Source> State<S> {
    /// The next batch or page, by `next`.
    fn next<T>(
        &mut self,
        monitor: &Monitor,
        next: impl FnOnce(&mut S) -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let Phase::Reading(results) = &mut self.phase else { return Ok(None) };
        let next = next(results);
        monitor.set_progress(results.progress());
        match next {
            Ok(Some(_)) => {}
            Ok(None) => self.end(Phase::Whole),
            Err(_) => self.end(Phase::Failed),
        }
        next
    }

    /// Ends the result: cancels the statement if it still runs, and returns the connection.
    fn end(&mut self, phase: Phase<S>) {
        if let Phase::Reading(mut results) = std::mem::replace(&mut self.phase, phase) {
            self.receipt = match self.phase {
                Phase::Whole => results.receipt(),
                _ => None,
            };
            results.cancel();
            self.stats = results.stats().clone();
        }
    }
}

impl State<Results<Lease>> {
    fn read_all(&mut self, monitor: &Monitor) -> Result<Vec<RecordBatch>, Error> {
        let Phase::Reading(results) = &mut self.phase else { return Ok(Vec::new()) };
        let all = results.read_all();
        monitor.set_progress(results.progress());
        self.end(if all.is_ok() { Phase::Whole } else { Phase::Failed });
        all
    }
}

impl Reader<Objects<Lease>> {
    /// The next page of objects, or None after the last one.
    pub(crate) fn next_page(&self, py: Python<'_>) -> PyResult<Option<VerifiedPage>> {
        let next =
            self.read(py, |state, monitor| state.next(monitor, |objects| objects.next_page()))?;
        if next.is_none() {
            self.monitor.report(py)?;
        }
        Ok(next)
    }
}

impl<S: Source> Reader<S> {
    pub(crate) fn new(results: S, monitor: Arc<Monitor>) -> Self {
        let state = State {
            phase: Phase::Reading(Box::new(results)),
            stats: Stats::default(),
            receipt: None,
            rows: None,
        };
        Self { state: Arc::new(Mutex::new(state)), monitor }
    }

    /// Whether this is the only clone of the reader.
    pub(crate) fn is_unique(&self) -> bool {
        Arc::strong_count(&self.state) == 1
    }

    fn read<T: Send>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&mut State<S>, &Monitor) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let mut state = self.lock(py)?;
        match state.phase {
            Phase::Reading(_) | Phase::Whole => {}
            Phase::Failed => {
                return Err(usage(py, "reading the result has failed before", RERUN_HINT));
            }
            Phase::Cancelled => return Err(cancelled(py)),
            Phase::Closed => return Err(usage(py, "the result is closed", RERUN_HINT)),
        }
        let state = &mut *state;
        let read = match detached(py, || read(&mut *state, &self.monitor)) {
            Ok(read) => read,
            Err(defect) => {
                detached(py, || state.end(Phase::Failed))?;
                return Err(defect);
            }
        };
        read.map_err(|error| self.monitor.take_raised().unwrap_or_else(|| exception(py, &error)))
    }

    /// The statistics so far.
    pub(crate) fn stats(&self, py: Python<'_>) -> PyResult<Stats> {
        let state = self.lock(py)?;
        Ok(match &state.phase {
            Phase::Reading(results) => results.stats().clone(),
            _ => state.stats.clone(),
        })
    }

    /// The receipt of a part of a plan, once its reader has seen the end. The last batch is not
    /// enough: its rows may still wait to be handed out.
    pub(crate) fn receipt(&self, py: Python<'_>) -> PyResult<Option<Vec<u8>>> {
        let state = self.lock(py)?;
        Ok(state.receipt.clone().filter(|_| state.rows.is_none()))
    }

    /// Cancels the statement, or asks the thread that is reading to do so.
    pub(crate) fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        match self.stop(py, Phase::Cancelled) {
            Some(_) => self.raise(),
            None => Ok(()),
        }
    }

    /// Cancels where no caller can receive an exception, as in a destructor. A `KeyboardInterrupt`
    /// is raised again later; others go to `sys.unraisablehook`.
    pub(crate) fn cancel_on_drop(&self, py: Python<'_>) {
        if let Err(raised) = self.cancel(py) {
            match raised.is_instance_of::<PyKeyboardInterrupt>(py) {
                true => raise_interrupt_again(),
                false => raised.write_unraisable(py, None),
            }
        }
    }

    /// Cancels the statement and refuses further reading.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(mut state) = self.stop(py, Phase::Closed) else { return Ok(()) };
        state.phase = Phase::Closed;
        if state.rows.take().is_some() {
            state.receipt = None;
        }
        self.raise()
    }

    /// Raises what a signal handler raised while the client waited for the server.
    fn raise(&self) -> PyResult<()> {
        self.monitor.take_raised().map_or(Ok(()), Err)
    }

    /// Ends the result with this phase. None if another thread is reading; that thread stops at its
    /// next check.
    fn stop(&self, py: Python<'_>, phase: Phase<S>) -> Option<MutexGuard<'_, State<S>>> {
        self.monitor.cancel();
        let mut state = self.lock(py).ok()?;
        if let Phase::Reading(_) = state.phase {
            let state = &mut *state;
            py.detach(|| state.end(phase));
        }
        Some(state)
    }

    /// Does not wait: the reading thread may be this one, inside the user's progress function, and
    /// would deadlock.
    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, State<S>>> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if self.monitor.is_cancelled() => Err(cancelled(py)),
            Err(TryLockError::WouldBlock) => Err(usage(
                py,
                "the result is being read",
                Some("one thread reads a result at a time; progress and cancel() work from any"),
            )),
        }
    }
}

impl Reader {
    /// The next batch, or None after the last one.
    pub(crate) fn next_batch(&self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        let next =
            self.read(py, |state, monitor| state.next(monitor, |results| results.next_batch()))?;
        if next.is_none() {
            self.monitor.report(py)?;
        }
        Ok(next)
    }

    /// All remaining batches.
    pub(crate) fn read_all(&self, py: Python<'_>) -> PyResult<Vec<RecordBatch>> {
        let all = self.read(py, State::read_all)?;
        self.monitor.report(py)?;
        Ok(all)
    }

    /// The next rows as tuples, at most `BLOCK_ROWS_MAX`, or None after the last one.
    pub(crate) fn next_rows<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let cached = self.lock(py)?.rows.take();
        let next = match cached {
            Some(cached) => Some(cached),
            None => self.next_batch(py)?.map(|batch| RowCursor { batch, next_row: 0 }),
        };
        let Some(RowCursor { batch, next_row }) = next else { return Ok(None) };
        debug_assert!(next_row == 0 || next_row < batch.num_rows());
        let block_rows = (BLOCK_VALUES / batch.num_columns().max(1)).clamp(1, BLOCK_ROWS_MAX);
        let count = (batch.num_rows() - next_row).min(block_rows);
        let rows = rows(py, &batch.slice(next_row, count))?;
        let next_row = next_row + count;
        if next_row < batch.num_rows() {
            self.lock(py)?.rows = Some(RowCursor { batch, next_row });
        }
        Ok(Some(rows))
    }
}

/// The batches of a reader for consumers of Arrow's C stream. They call without Python's lock, and
/// the interface passes on only the text of an exception.
pub(crate) struct Stream {
    pub(crate) reader: Reader,
    pub(crate) schema: SchemaRef,
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = Python::try_attach(|py| {
            self.reader.next_batch(py).map_err(|error| {
                // C strings end at a NUL.
                let message = error.to_string().replace('\0', " ");
                if error.is_instance_of::<PyKeyboardInterrupt>(py) {
                    // After `to_string`, which runs Python code that would raise the interrupt.
                    raise_interrupt_again();
                }
                ArrowError::ExternalError(message.into())
            })
        });
        next.unwrap_or_else(|| Err(ArrowError::ExternalError("Python is shutting down".into())))
            .transpose()
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        Python::try_attach(|py| self.reader.cancel_on_drop(py));
    }
}
