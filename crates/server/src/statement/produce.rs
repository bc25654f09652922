//! Producers: a task for each partition of a plan, which makes chunks of its batches.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;

use dray_format::{Batch, ErrorKind as FormatErrorKind, TableRoom};
use dray_transfer::{Adaptive, Chunker, Failure, Sender, Settings, Times, produce};
use dray_wire::{ErrorKind, ServerError};
use futures::{FutureExt, StreamExt};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::stop::panicked;
use crate::engine::{self, Plan};

pub(super) type Producers = JoinSet<Result<(), ServerError>>;

/// Starts a producer for each partition of the plan. The one of a small plan is given a first go
/// right here: its result is then ready without waking another thread.
pub(super) async fn start_producers(
    workers: &Handle,
    plan: &Plan,
    settings: Settings,
    adaptive: Option<&Arc<Adaptive>>,
    queue: Sender,
    times: &Arc<Times>,
) -> Result<Producers, ServerError> {
    let mut producers = Producers::new();
    let streams = plan.execute()?;
    let at_once = streams.len() == 1 && plan.is_small();
    // Streams that are fewer than threads have their chunks made side by side.
    let lanes = (plan.threads() / streams.len().max(1)).max(1);
    let room = Arc::new(TableRoom::new(&settings.limits));
    for stream in streams {
        let mut chunker = Chunker::new(plan.schema.clone(), settings).keeping_tables(room.clone());
        if let Some(adaptive) = adaptive {
            chunker = chunker.adapting(adaptive.clone());
        }
        let (queue, times) = (queue.clone(), times.clone());
        let batches = stream.flat_map(|batch| futures::stream::iter(columns(batch)));
        let producer =
            async move { produce(batches, chunker, lanes, queue, &times).await.or_else(failure) };
        let mut producer = AssertUnwindSafe(producer)
            .catch_unwind()
            .map(|ended| ended.unwrap_or_else(|panic| Err(panicked(panic))))
            .boxed();
        if at_once && let Poll::Ready(ended) = futures::poll!(&mut producer) {
            ended?;
        } else {
            producers.spawn_on(producer, workers);
        }
    }
    Ok(producers)
}

/// What a producer's end means for its statement.
fn failure(failure: Failure<Source>) -> Result<(), ServerError> {
    match failure {
        Failure::Source(Source::Engine(cause)) => Err(engine::execution_error(*cause)),
        Failure::Source(Source::Columns(cause)) | Failure::Chunk(cause) => {
            Err(match cause.kind() {
                FormatErrorKind::Limit => {
                    engine::error(ErrorKind::Limit, "54000", cause.to_string(), "")
                }
                _ => engine::error(ErrorKind::Execution, "XX000", cause.to_string(), ""),
            })
        }
        // The statement has stopped already, for a reason of its own.
        Failure::Abandoned => Ok(()),
    }
}

/// What can go wrong in a source.
enum Source {
    Engine(Box<datafusion::common::DataFusionError>),
    Columns(dray_format::Error),
}

fn columns(
    batch: datafusion::common::Result<arrow::array::RecordBatch>,
) -> Vec<Result<Batch, Source>> {
    match batch {
        Err(cause) => vec![Err(Source::Engine(Box::new(cause)))],
        Ok(batch) => match engine::columns(batch) {
            Ok(batches) => batches.into_iter().map(|(_, batch)| Ok(batch)).collect(),
            Err(cause) => vec![Err(Source::Columns(cause))],
        },
    }
}
