//! The data's source, in a thread of its own: it may wait, while the writers look around and encode
//! the batch before.

use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Mutex, TryLockError};
use std::thread;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;

use crate::error::{Error, ErrorKind, Result};

/// Batches that wait for each writer.
const BATCHES_WAITING: usize = 1;
/// How long a writer waits before it looks around.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// How long a writer waits while another one waits for the source.
const TURN_INTERVAL: Duration = Duration::from_millis(1);
/// The most rows of a batch that several writers share: a table may come as one batch.
const SHARED_ROWS: usize = 16 << 10;

/// What has come from the source.
pub(crate) enum Arrival {
    /// A batch, and the rows of the data before it.
    Batch(RecordBatch, u64),
    NotYet,
    End,
}

/// A source of batches.
pub(crate) type Source = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// The batches of a source, for one writer or several. The source starts when the first writer
/// asks. If they are dropped, it ends with its next batch.
pub(crate) struct Batches(Mutex<State>);

enum State {
    NotStarted {
        source: Source,
        writers: usize,
    },
    Reading(Receiver<Result<Arrival, ArrowError>>),
    /// The source has ended or failed. One writer knows why, which is enough.
    Over,
}

impl Batches {
    /// The batches of a source, for this number of writers.
    pub(crate) fn new(source: Source, writers: usize) -> Self {
        Self(Mutex::new(State::NotStarted { source, writers }))
    }

    /// What comes next.
    ///
    /// # Errors
    /// When there is no thread, or the source fails.
    pub(crate) fn next(&self) -> Result<Arrival> {
        let mut state = match self.0.try_lock() {
            Ok(state) => state,
            // Another writer waits for the source. This one still has to look around.
            Err(TryLockError::WouldBlock) => {
                thread::sleep(TURN_INTERVAL);
                return Ok(Arrival::NotYet);
            }
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        };
        let receiver = match std::mem::replace(&mut *state, State::Over) {
            State::NotStarted { source, writers } => read(source, writers)?,
            State::Reading(receiver) => receiver,
            State::Over => return Ok(Arrival::End),
        };
        let arrival = match receiver.recv_timeout(LOOK_INTERVAL) {
            Ok(Ok(Arrival::End)) => return Ok(Arrival::End),
            Ok(Ok(arrival)) => arrival,
            Err(RecvTimeoutError::Timeout) => Arrival::NotYet,
            Ok(Err(error)) => return Err(failure(error)),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::new(ErrorKind::Internal, "the source of the rows panicked"));
            }
        };
        *state = State::Reading(receiver);
        Ok(arrival)
    }
}

/// Starts the source's thread.
fn read(source: Source, writers: usize) -> Result<Receiver<Result<Arrival, ArrowError>>> {
    let (sender, receiver) = sync_channel(BATCHES_WAITING * writers);
    let read = move || {
        let mut rows = 0;
        for batch in source {
            for arrival in arrivals(batch, writers, &mut rows) {
                let is_last = arrival.is_err();
                // The writers may have given up.
                if sender.send(arrival).is_err() || is_last {
                    return;
                }
            }
        }
        let _ = sender.send(Ok(Arrival::End));
    };
    thread::Builder::new().name("dray-write".to_owned()).spawn(read).map_err(|cause| {
        Error::new(ErrorKind::Resources, "no thread to read the data").with_cause(cause)
    })?;
    Ok(receiver)
}

/// The failure of the source.
fn failure(error: ArrowError) -> Error {
    let what = "the source of the rows failed";
    match error {
        ArrowError::ExternalError(cause) if cause.is::<Error>() => {
            Error::new(ErrorKind::Execution, what).with_cause(cause)
        }
        error => Error::new(ErrorKind::Execution, format!("{what}: {error}")),
    }
}

/// A batch as the writers take it: whole, or in parts if they share it.
fn arrivals(
    batch: Result<RecordBatch, ArrowError>,
    writers: usize,
    rows_before: &mut u64,
) -> Vec<Result<Arrival, ArrowError>> {
    let batch = match batch {
        Ok(batch) => batch,
        Err(error) => return vec![Err(error)],
    };
    let rows = batch.num_rows();
    let part_rows = if writers == 1 { rows.max(1) } else { SHARED_ROWS };
    let first = *rows_before;
    *rows_before += rows as u64;
    let part = |start: usize| {
        let part = batch.slice(start, part_rows.min(rows - start));
        Ok(Arrival::Batch(part, first + start as u64))
    };
    (0..rows).step_by(part_rows).map(part).collect()
}
