//! Reading a result, whoever asks: methods of the result, or a consumer of its C stream.

use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatchReader;
use dray_client::{Error, Results, Stats};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::capsule::interrupt_again;
use crate::error::{cancelled, detached, exception, usage};
use crate::home::Loan;
use crate::rows::rows;
use crate::watch::Watched;

/// Rows become Python's objects so many values at a time, while the columns are in the processor's
/// cache.
const VALUES: usize = 1 << 16;
const ROWS_MAX: usize = 4096;
/// What to do about a result that can't be read on.
const AGAIN: Option<&str> = Some("run the query again");

/// A result that is read by one thread at a time. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Reader {
    state: Arc<Mutex<State>>,
    pub(crate) watched: Arc<Watched>,
}

/// A result, and what is left of it after its end.
struct State {
    phase: Phase,
    stats: Stats,
    /// A batch that is handed out as rows, and how many of them were.
    rows: Option<(RecordBatch, usize)>,
}

/// Only a result that was read to its end has no more batches: after any other end, reading on is
/// an error.
enum Phase {
    Reading(Box<Results<Loan>>),
    Whole,
    Failed,
    Cancelled,
    Closed,
}

impl State {
    fn next_batch(&mut self, watched: &Watched) -> Result<Option<RecordBatch>, Error> {
        let Phase::Reading(results) = &mut self.phase else { return Ok(None) };
        let next = results.next_batch();
        watched.set_progress(results.progress());
        match next {
            Ok(Some(_)) => {}
            Ok(None) => self.end(Phase::Whole),
            Err(_) => self.end(Phase::Failed),
        }
        next
    }

    fn read_all(&mut self, watched: &Watched) -> Result<Vec<RecordBatch>, Error> {
        let Phase::Reading(results) = &mut self.phase else { return Ok(Vec::new()) };
        let all = results.read_all();
        watched.set_progress(results.progress());
        self.end(if all.is_ok() { Phase::Whole } else { Phase::Failed });
        all
    }

    /// Gives the connection back; a statement that still runs is cancelled.
    fn end(&mut self, phase: Phase) {
        if let Phase::Reading(mut results) = std::mem::replace(&mut self.phase, phase) {
            results.cancel();
            self.stats = results.stats().clone();
        }
    }
}

impl Reader {
    pub(crate) fn new(results: Results<Loan>, watched: Arc<Watched>) -> Self {
        let state =
            State { phase: Phase::Reading(Box::new(results)), stats: Stats::default(), rows: None };
        Self { state: Arc::new(Mutex::new(state)), watched }
    }

    /// Whether nobody else has this reader.
    pub(crate) fn is_last(&self) -> bool {
        Arc::strong_count(&self.state) == 1
    }

    /// The next batch; none after the last.
    pub(crate) fn next_batch(&self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        let next = self.read(py, State::next_batch)?;
        if next.is_none() {
            self.watched.report(py)?;
        }
        Ok(next)
    }

    /// All batches that are left.
    pub(crate) fn read_all(&self, py: Python<'_>) -> PyResult<Vec<RecordBatch>> {
        let all = self.read(py, State::read_all)?;
        self.watched.report(py)?;
        Ok(all)
    }

    /// The next rows of the cached batch, as tuples; none after the last.
    pub(crate) fn next_rows<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let cached = self.lock(py)?.rows.take();
        let next = match cached {
            Some(cached) => Some(cached),
            None => self.next_batch(py)?.map(|batch| (batch, 0)),
        };
        let Some((batch, from)) = next else { return Ok(None) };
        let count =
            (batch.num_rows() - from).min((VALUES / batch.num_columns().max(1)).clamp(1, ROWS_MAX));
        let rows = rows(py, &batch.slice(from, count))?;
        if from + count < batch.num_rows() {
            self.lock(py)?.rows = Some((batch, from + count));
        }
        Ok(Some(rows))
    }

    fn read<T: Send>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&mut State, &Watched) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let mut state = self.lock(py)?;
        match state.phase {
            Phase::Reading(_) | Phase::Whole => {}
            Phase::Failed => return Err(usage(py, "reading the result has failed before", AGAIN)),
            Phase::Cancelled => return Err(cancelled(py)),
            Phase::Closed => return Err(usage(py, "the result is closed", AGAIN)),
        }
        let state = &mut *state;
        let read = match detached(py, || read(&mut *state, &self.watched)) {
            Ok(read) => read,
            Err(defect) => {
                detached(py, || state.end(Phase::Failed))?;
                return Err(defect);
            }
        };
        read.map_err(|error| self.watched.take_raised().unwrap_or_else(|| exception(py, &error)))
    }

    /// Where time and bytes went, so far.
    pub(crate) fn stats(&self, py: Python<'_>) -> PyResult<Stats> {
        let state = self.lock(py)?;
        Ok(match &state.phase {
            Phase::Reading(results) => results.stats().clone(),
            _ => state.stats.clone(),
        })
    }

    /// Stops the statement, here or in the thread that is reading.
    pub(crate) fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        match self.stop(py, Phase::Cancelled) {
            Some(_) => self.raise(),
            None => Ok(()),
        }
    }

    /// As [`Self::cancel`], where nobody is asked who could be told of an interrupt: it is met
    /// again later.
    pub(crate) fn cancel_unasked(&self, py: Python<'_>) {
        if let Err(raised) = self.cancel(py) {
            match raised.is_instance_of::<PyKeyboardInterrupt>(py) {
                true => interrupt_again(),
                false => raised.write_unraisable(py, None),
            }
        }
    }

    /// Cancels, and refuses further reading.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(mut state) = self.stop(py, Phase::Closed) else { return Ok(()) };
        state.phase = Phase::Closed;
        state.rows = None;
        self.raise()
    }

    /// What a signal's handler raised while the server was waited for.
    fn raise(&self) -> PyResult<()> {
        self.watched.take_raised().map_or(Ok(()), Err)
    }

    /// None if another thread is reading: it stops at its next look.
    fn stop(&self, py: Python<'_>, phase: Phase) -> Option<MutexGuard<'_, State>> {
        self.watched.cancel();
        let mut state = self.lock(py).ok()?;
        if let Phase::Reading(_) = state.phase {
            let state = &mut *state;
            py.detach(|| state.end(phase));
        }
        Some(state)
    }

    /// Waiting here could wait for ever: the reading thread may be this one, within the user's
    /// progress function.
    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if self.watched.is_cancelled() => Err(cancelled(py)),
            Err(TryLockError::WouldBlock) => Err(usage(
                py,
                "the result is being read",
                Some("one thread reads a result at a time; progress and cancel() work from any"),
            )),
        }
    }
}

/// The batches of a reader for consumers of Arrow's C stream, who call without Python's lock and
/// know only messages.
pub(crate) struct Stream {
    pub(crate) reader: Reader,
    pub(crate) schema: SchemaRef,
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = Python::try_attach(|py| {
            self.reader.next_batch(py).map_err(|error| {
                // A message with a NUL can't leave through the C stream.
                let message = error.to_string().replace('\0', " ");
                if error.is_instance_of::<PyKeyboardInterrupt>(py) {
                    // After the message, whose making would meet the interrupt.
                    interrupt_again();
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
        Python::try_attach(|py| self.reader.cancel_unasked(py));
    }
}
