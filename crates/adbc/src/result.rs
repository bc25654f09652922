//! The result of a statement: its batches as they come, over all rows of parameters.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use adbc_core::error::{Error, Result, Status};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use dray_client::{Lease, QueryOptions, Results};

use crate::cancel::Running;
use crate::error::{failed, guarded, invalid_state, of_client};
use crate::parameters::ParameterRows;
use crate::session::Session;

/// A result that is being read. Dropping it cancels the statement if it still runs.
pub(crate) struct ResultReader {
    schema: SchemaRef,
    state: Arc<Mutex<State>>,
}

/// A result, for the statement that has it. It does not keep the result alive.
#[derive(Default)]
pub(crate) struct ResultHandle(Weak<Mutex<State>>);

impl ResultHandle {
    /// Ends the result, if it is still there: cancels its statement if it runs, and returns the
    /// connection.
    pub(crate) fn invalidate(&self) {
        let Some(state) = self.0.upgrade() else { return };
        let mut state = lock(&state);
        if let State::Reading(_) = &*state {
            *state = State::Failed(invalid_state(
                "the result is no longer valid: its statement was executed again",
            ));
        }
    }
}

/// What remains of a result.
enum State {
    Reading(Box<Reading>),
    /// Everything was read.
    Complete {
        rows_changed: Option<u64>,
    },
    /// Reading on gives this error.
    Failed(Error),
}

struct Reading {
    session: Arc<Session>,
    running: Running,
    schema: SchemaRef,
    /// The run of the current row of parameters; None once it is complete, when the connection is
    /// free again.
    results: Option<Results<Lease>>,
    /// A batch that was read ahead.
    ready: Option<RecordBatch>,
    /// Runs to come.
    next_runs: Option<NextRuns>,
    /// Rows changed by complete runs; None if they did something else.
    rows_changed: Option<u64>,
}

/// The runs of the rows of parameters that are left.
pub(crate) struct NextRuns {
    pub(crate) sql: String,
    pub(crate) options: QueryOptions,
    pub(crate) rows: ParameterRows,
}

impl ResultReader {
    /// The result of a statement that has started. Its first batch is read at once: most failures
    /// of a statement show up there, where they have a status and an SQLSTATE, and a small result
    /// leaves the connection free.
    ///
    /// # Errors
    /// When reading fails.
    pub(crate) fn start(
        session: Arc<Session>,
        running: Running,
        results: Results<Lease>,
        next_runs: Option<NextRuns>,
    ) -> Result<Self> {
        let schema = results.schema();
        let mut reading = Reading {
            session,
            running,
            schema: schema.clone(),
            results: Some(results),
            ready: None,
            next_runs,
            rows_changed: None,
        };
        let state = match reading.next()? {
            None => State::Complete { rows_changed: reading.rows_changed },
            ready => {
                reading.ready = ready;
                State::Reading(Box::new(reading))
            }
        };
        Ok(Self { schema, state: Arc::new(Mutex::new(state)) })
    }

    /// A result without rows.
    pub(crate) fn empty(schema: SchemaRef) -> Self {
        let state = State::Complete { rows_changed: None };
        Self { schema, state: Arc::new(Mutex::new(state)) }
    }

    /// The columns.
    pub(crate) fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The rows that the statement changed, if it has ended and has changed rows.
    pub(crate) fn rows_changed(&self) -> Option<u64> {
        match &*lock(&self.state) {
            State::Complete { rows_changed } => *rows_changed,
            _ => None,
        }
    }

    /// The next batch; None after the last. Fails again at each call after a failure.
    ///
    /// # Errors
    /// When the statement fails, was cancelled, or its connection breaks.
    pub(crate) fn next_batch(&self) -> Result<Option<RecordBatch>> {
        let mut state = lock(&self.state);
        let reading = match &mut *state {
            State::Reading(reading) => reading,
            State::Complete { .. } => return Ok(None),
            State::Failed(error) => return Err(error.clone()),
        };
        let next = guarded(|| reading.next());
        match &next {
            Ok(Some(_)) => {}
            Ok(None) => *state = State::Complete { rows_changed: reading.rows_changed },
            Err(error) => *state = State::Failed(error.clone()),
        }
        next
    }

    /// The result, for the statement that has it.
    pub(crate) fn handle(&self) -> ResultHandle {
        ResultHandle(Arc::downgrade(&self.state))
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Reading {
    fn next(&mut self) -> Result<Option<RecordBatch>> {
        if self.running.cancel().is_requested() {
            return Err(failed(Status::Cancelled, "the statement was cancelled"));
        }
        if let Some(ready) = self.ready.take() {
            return Ok(Some(ready));
        }
        loop {
            if let Some(results) = &mut self.results {
                let next = results.next_batch().map_err(|error| of_client(&error))?;
                if results.is_complete() {
                    if let Some(changed) = results.rows_changed() {
                        *self.rows_changed.get_or_insert_default() += changed;
                    }
                    self.results = None;
                }
                if next.is_some() {
                    return Ok(next);
                }
                self.results = None;
            }
            match self.start_next_run()? {
                Some(results) => self.results = Some(results),
                None => return Ok(None),
            }
        }
    }

    /// Runs the statement with the next row of parameters; None after the last.
    fn start_next_run(&mut self) -> Result<Option<Results<Lease>>> {
        let Some(NextRuns { sql, options, rows }) = &mut self.next_runs else { return Ok(None) };
        let Some(row) = rows.next()? else { return Ok(None) };
        options.parameters = Some(row);
        let results = self.session.query(sql, options, &self.running)?;
        match results.schema() == self.schema {
            true => Ok(Some(results)),
            false => Err(failed(
                Status::InvalidData,
                "a later row of parameters gives columns of other types than the first (cast the \
                 parameter in the statement: $1::int8, or CAST(? AS SIGNED))",
            )),
        }
    }
}
