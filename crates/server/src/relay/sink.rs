//! From the thread of a session to the statement's producer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use dray_driver::{Sink, Stopped};
use dray_wire::{ErrorKind, Estimate, ServerError};
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::engine;

/// Batches that wait between database and producer.
const BATCHES_WAITING: usize = 1;

/// What comes after the columns.
#[derive(Debug)]
enum Step {
    Batch(RecordBatch),
    Failed(ServerError),
    /// All rows have come. A channel that ends without it has lost its session.
    End,
}

/// What is known of a result before its rows.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) schema: SchemaRef,
    pub(crate) estimate: Estimate,
    /// How the rows are read, if the driver says so.
    pub(crate) path: Option<String>,
}

/// Where a session puts its result.
#[derive(Debug)]
pub(crate) struct ResultSink {
    /// Some until the columns are known.
    begun: Option<oneshot::Sender<Result<Begun, ServerError>>>,
    path: Option<String>,
    schema: Option<SchemaRef>,
    steps: mpsc::Sender<Step>,
    rows: Arc<AtomicU64>,
    /// The free connections of the source, and those of them that this statement has.
    free: Arc<Semaphore>,
    reserved: Option<OwnedSemaphorePermit>,
}

/// A result's rows on their way from its session.
#[derive(Debug)]
pub(crate) struct Rows {
    steps: mpsc::Receiver<Step>,
    rows: Arc<AtomicU64>,
}

/// The two ends of a result, and where its columns come first. `free` are the source's connections
/// that are free.
pub(super) fn channel(
    free: Arc<Semaphore>,
) -> (ResultSink, oneshot::Receiver<Result<Begun, ServerError>>, Rows) {
    let (begun, begins) = oneshot::channel();
    let (steps, receiver) = mpsc::channel(BATCHES_WAITING);
    let rows = Arc::<AtomicU64>::default();
    let sink = ResultSink {
        begun: Some(begun),
        path: None,
        schema: None,
        steps,
        rows: rows.clone(),
        free,
        reserved: None,
    };
    (sink, begins, Rows { steps: receiver, rows })
}

impl Sink for ResultSink {
    fn tell_path(&mut self, path: &str) {
        self.path = Some(path.to_owned());
    }

    fn begin(&mut self, schema: SchemaRef, estimate: Estimate) -> Result<(), Stopped> {
        let begun = self.begun.take().ok_or(Stopped)?;
        self.schema = Some(schema.clone());
        let path = self.path.take();
        begun.send(Ok(Begun { schema, estimate, path })).map_err(|_| Stopped)
    }

    fn batch(&mut self, batch: RecordBatch) -> Result<(), Stopped> {
        if self.schema.as_ref() != Some(batch.schema_ref()) {
            let what = "the source sent rows with other columns than it had announced";
            self.fail(engine::error(
                ErrorKind::Execution,
                "XX000",
                what,
                "run the statement again",
            ));
            return Err(Stopped);
        }
        self.rows.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
        self.steps.blocking_send(Step::Batch(batch)).map_err(|_| Stopped)
    }

    /// Half of the free connections are left to others.
    fn reserve(&mut self, connections: usize) -> usize {
        let reserved = self.reserved.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = connections.saturating_sub(reserved).min(self.free.available_permits() / 2);
        let more = u32::try_from(more).ok().filter(|more| *more > 0);
        let more = more.and_then(|more| self.free.clone().try_acquire_many_owned(more).ok());
        match (&mut self.reserved, more) {
            (Some(permits), Some(more)) => permits.merge(more),
            (Some(permits), None) => drop(permits.split(reserved.saturating_sub(connections))),
            (none, more) => *none = more,
        }
        self.reserved.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }

    fn is_stopped(&self) -> bool {
        self.steps.is_closed()
    }

    fn watch(&self) -> Box<dyn Fn() -> bool + Send> {
        let steps = self.steps.clone();
        Box::new(move || steps.is_closed())
    }
}

impl ResultSink {
    /// Ends the result.
    pub(super) fn end(mut self, ended: Result<(), ServerError>) {
        // The client may still be slow.
        self.reserved = None;
        match ended {
            Ok(()) if self.begun.is_some() => {
                let what = "the source ended a statement without announcing its columns";
                self.fail(engine::error(ErrorKind::Internal, "XX000", what, ""));
            }
            Ok(()) => drop(self.steps.blocking_send(Step::End)),
            Err(error) => self.fail(error),
        }
    }

    fn fail(&mut self, error: ServerError) {
        // Either fails if nobody waits any longer.
        match self.begun.take() {
            Some(begun) => drop(begun.send(Err(error))),
            None => drop(self.steps.blocking_send(Step::Failed(error))),
        }
    }
}

impl Rows {
    /// Counts the rows that have come so far.
    pub(crate) fn counter(&self) -> Arc<AtomicU64> {
        self.rows.clone()
    }

    /// The batches. The stream ends without an error only if all have come.
    pub(crate) fn batches(self) -> BoxStream<'static, Result<RecordBatch, ServerError>> {
        stream::unfold(Some(self.steps), |steps| async {
            let mut steps = steps?;
            match steps.recv().await {
                Some(Step::Batch(batch)) => Some((Ok(batch), Some(steps))),
                Some(Step::End) => None,
                Some(Step::Failed(error)) => Some((Err(error), None)),
                None => Some((Err(lost()), None)),
            }
        })
        .boxed()
    }
}

/// The error of a result whose session's thread has ended.
pub(crate) fn lost() -> ServerError {
    engine::error(ErrorKind::Internal, "XX000", "the source's session was lost", "try again")
}

#[cfg(test)]
mod tests {
    use arrow::array::Int32Array;
    use arrow::datatypes::{DataType, Field, Schema};
    use futures::TryStreamExt;

    use super::*;

    fn batch(name: &str) -> RecordBatch {
        let schema = Schema::new(vec![Field::new(name, DataType::Int32, false)]);
        RecordBatch::try_new(schema.into(), vec![Arc::new(Int32Array::from(vec![7]))]).unwrap()
    }

    /// What comes of a result that a session makes in this way.
    fn result(
        make: impl FnOnce(&mut ResultSink) -> Option<Result<(), ServerError>> + Send + 'static,
    ) -> Result<usize, ServerError> {
        let (mut sink, begins, rows) = channel(Arc::new(Semaphore::new(0)));
        std::thread::spawn(move || {
            if let Some(ended) = make(&mut sink) {
                sink.end(ended);
            }
        });
        futures::executor::block_on(async {
            begins.await.map_err(|_| lost())??;
            Ok(rows.batches().try_collect::<Vec<_>>().await?.len())
        })
    }

    #[test]
    fn only_a_result_that_was_ended_is_whole() {
        let two = |sink: &mut ResultSink| {
            sink.begin(batch("x").schema(), Estimate::default()).unwrap();
            sink.batch(batch("x")).unwrap();
            sink.batch(batch("x")).unwrap();
        };
        let ended = result(move |sink| {
            two(sink);
            Some(Ok(()))
        });
        assert_eq!(ended, Ok(2));
        let lost_it = result(move |sink| {
            two(sink);
            None
        });
        assert_eq!(lost_it, Err(lost()));
        let failed = result(move |sink| {
            two(sink);
            Some(Err(engine::error(ErrorKind::Execution, "22012", "division by zero", "")))
        });
        assert_eq!(failed.unwrap_err().sqlstate, "22012");
    }

    #[test]
    fn other_columns_than_announced_are_an_error() {
        let changed = result(|sink| {
            sink.begin(batch("x").schema(), Estimate::default()).unwrap();
            sink.batch(batch("x")).unwrap();
            assert_eq!(sink.batch(batch("y")), Err(Stopped));
            Some(Ok(()))
        });
        assert!(changed.unwrap_err().message.contains("other columns"));
        let none = result(|_| Some(Ok(())));
        assert!(none.unwrap_err().message.contains("without announcing"));
    }

    #[test]
    fn half_of_the_free_connections_are_left() {
        let free = Arc::new(Semaphore::new(9));
        let (mut sink, ..) = channel(free.clone());
        assert_eq!((sink.reserve(2), free.available_permits()), (2, 7));
        assert_eq!((sink.reserve(100), free.available_permits()), (5, 4));
        let (mut other, ..) = channel(free.clone());
        assert_eq!((other.reserve(100), free.available_permits()), (2, 2));
        assert_eq!((sink.reserve(3), free.available_permits()), (3, 4));
        assert_eq!((sink.reserve(0), free.available_permits()), (0, 7));
        drop(other);
        assert_eq!(free.available_permits(), 9);
        let (mut none, ..) = channel(Arc::new(Semaphore::new(1)));
        assert_eq!(none.reserve(1), 0);
    }

    #[test]
    fn a_session_learns_that_nobody_waits() {
        let (mut sink, begins, rows) = channel(Arc::new(Semaphore::new(0)));
        let watch = sink.watch();
        assert!(!sink.is_stopped() && !watch());
        drop((begins, rows));
        assert!(sink.is_stopped() && watch());
        assert_eq!(sink.begin(batch("x").schema(), Estimate::default()), Err(Stopped));
    }
}
