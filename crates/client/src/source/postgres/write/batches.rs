//! The data's source, in a thread of its own: it may wait, while the writer looks around and
//! encodes the batch before.

use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;

use crate::error::{Error, ErrorKind, Result};

/// Batches that wait for the writer.
const BATCHES_WAITING: usize = 1;
/// How long the writer waits before it looks around.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// What has come from the source.
pub(super) enum Arrival {
    Batch(RecordBatch),
    NotYet,
    End,
}

/// The batches of a source. If they are dropped, the source ends with its next batch.
pub(super) struct Batches(Receiver<Result<Arrival, ArrowError>>);

impl Batches {
    /// Starts to read.
    ///
    /// # Errors
    /// When there is no thread.
    pub(super) fn read(
        batches: Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>,
    ) -> Result<Self> {
        let (sender, receiver) = sync_channel(BATCHES_WAITING);
        let read = move || {
            let arrivals = batches.map(|batch| batch.map(Arrival::Batch));
            for arrival in arrivals.chain([Ok(Arrival::End)]) {
                let is_last = arrival.is_err();
                // The writer may have given up.
                if sender.send(arrival).is_err() || is_last {
                    return;
                }
            }
        };
        thread::Builder::new().name("dray-write".to_owned()).spawn(read).map_err(|cause| {
            Error::new(ErrorKind::Resources, "no thread to read the data").with_cause(cause)
        })?;
        Ok(Self(receiver))
    }

    /// What comes next.
    ///
    /// # Errors
    /// When the source fails.
    pub(super) fn next(&self) -> Result<Arrival> {
        match self.0.recv_timeout(LOOK_INTERVAL) {
            Ok(Ok(arrival)) => Ok(arrival),
            Ok(Err(error)) => Err(Error::new(
                ErrorKind::Execution,
                format!("the source of the rows failed: {error}"),
            )),
            Err(RecvTimeoutError::Timeout) => Ok(Arrival::NotYet),
            Err(RecvTimeoutError::Disconnected) => {
                Err(Error::new(ErrorKind::Internal, "the source of the rows panicked"))
            }
        }
    }
}
