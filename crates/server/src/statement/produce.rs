//! Producers: one task for each partition of the plan, which turns batches into chunks.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;

use dray_chooser::Chooser;
use dray_format::{Batch, DictionaryBudget, ErrorKind as FormatErrorKind};
use dray_page::ErrorKind as PageErrorKind;
use dray_transfer::{Chunker, EncodeError, Failure, Pages, Sender, Settings, Times, produce};
use dray_wire::{ErrorKind, ServerError};
use futures::{FutureExt, StreamExt};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::stop::panic_error;
use super::work::Work;
use crate::engine;

pub(super) type Producers = JoinSet<Result<(), ServerError>>;

/// How chunks are made, and where they go.
pub(super) struct Output {
    pub(super) settings: Settings,
    pub(super) chooser: Option<Arc<Chooser>>,
    pub(super) pages: Option<Pages>,
    pub(super) queue: Sender,
    pub(super) times: Arc<Times>,
}

/// Starts a producer for each partition. The producer of small work first runs right here for as
/// long as it does not wait: its result is then complete without a switch to another thread.
pub(super) async fn start_producers(
    workers: &Handle,
    work: &Work,
    output: Output,
) -> Result<Producers, ServerError> {
    let Output { settings, chooser, pages, queue, times } = output;
    let mut producers = Producers::new();
    let streams = work.execute()?;
    let runs_inline = streams.len() == 1 && work.is_small();
    // With fewer streams than threads, each stream encodes several chunks in parallel.
    let chunks_in_parallel = (work.threads() / streams.len().max(1)).max(1);
    let dictionary_budget = Arc::new(DictionaryBudget::new(&settings.limits));
    for stream in streams {
        let mut chunker = Chunker::new(work.schema().clone(), settings)
            .with_dictionaries(dictionary_budget.clone());
        if let Some(chooser) = &chooser {
            chunker = chunker.with_chooser(chooser.clone());
        }
        if let Some(pages) = &pages {
            chunker = chunker.with_pages(pages.clone());
        }
        let (queue, times) = (queue.clone(), times.clone());
        let batches = stream.flat_map(|batch| futures::stream::iter(to_batches(batch)));
        let producer = async move {
            produce(batches, chunker, chunks_in_parallel, queue, &times).await.or_else(error_of)
        };
        let mut producer = AssertUnwindSafe(producer)
            .catch_unwind()
            .map(|ended| ended.unwrap_or_else(|panic| Err(panic_error(panic))))
            .boxed();
        if runs_inline && let Poll::Ready(ended) = futures::poll!(&mut producer) {
            ended?;
        } else {
            producers.spawn_on(producer, workers);
        }
    }
    Ok(producers)
}

/// The error of a producer that failed.
fn error_of(failure: Failure<SourceError>) -> Result<(), ServerError> {
    match failure {
        Failure::Source(SourceError::Failed(error)) => Err(*error),
        Failure::Encode(EncodeError::TooLarge { bytes, bytes_max }) => {
            let what = format!("rows take {bytes} bytes as pages, {bytes_max} are allowed");
            let hint = "ask for layout auto or columns, or raise row_bytes_max";
            Err(engine::error(ErrorKind::Limit, "54000", what, hint))
        }
        Failure::Encode(EncodeError::Page(cause)) => {
            let (kind, sqlstate) = match cause.kind() {
                PageErrorKind::Limit => (ErrorKind::Limit, "54000"),
                _ => (ErrorKind::Execution, "XX000"),
            };
            Err(engine::error(kind, sqlstate, cause.to_string(), ""))
        }
        Failure::Source(SourceError::Columns(cause))
        | Failure::Encode(EncodeError::Chunk(cause)) => {
            let (kind, sqlstate) = match cause.kind() {
                FormatErrorKind::Limit => (ErrorKind::Limit, "54000"),
                _ => (ErrorKind::Execution, "XX000"),
            };
            Err(engine::error(kind, sqlstate, cause.to_string(), ""))
        }
        // The statement has ended already, for a reason of its own.
        Failure::Abandoned => Ok(()),
    }
}

/// Why a stream of batches failed.
enum SourceError {
    Failed(Box<ServerError>),
    /// A column can't be sent.
    Columns(dray_format::Error),
}

/// The batches of a record batch: more than one if a column's strings are too long for one.
fn to_batches(
    batch: Result<arrow::array::RecordBatch, ServerError>,
) -> Vec<Result<Batch, SourceError>> {
    match batch {
        Err(error) => vec![Err(SourceError::Failed(Box::new(error)))],
        Ok(batch) => match engine::batches(batch) {
            Ok(batches) => batches.into_iter().map(|(_, batch)| Ok(batch)).collect(),
            Err(cause) => vec![Err(SourceError::Columns(cause))],
        },
    }
}
