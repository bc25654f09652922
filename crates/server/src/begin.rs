//! What runs on a statement's own threads: its planning, and its producers, the first of which may
//! end right there.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use dray_chooser::{Chooser, thread_cpu_time};
use dray_format::{Batch, Compression, ErrorKind as FormatErrorKind, Limits, TableRoom};
use dray_transfer::{Chunker, Failure, Receiver, Sender, Settings, Times, produce, queue};
use dray_wire::{Checksums, CompressionChoice, ErrorKind, Query, ServerError};
use futures::{FutureExt, StreamExt};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::admission::{Admission, Admitted, Need};
use crate::connection::ns_since;
use crate::engine::{self, Engine, Plan};
use crate::planning::Planning;
use crate::socket::Link;

/// Rows that end a chunk unless the client asks for another number.
const CHUNK_ROWS: usize = 65_536;
/// The queue holds at least this many bytes of chunks, so that small chunks don't starve the
/// socket.
const QUEUE_BYTES_MIN: u64 = 2 << 20;
/// What the queue of a stream that adapts holds, in time on the way and in bytes, least and most:
/// of what is in it λ learns late, and a quick way takes a chunk in less time than threads need to
/// take turns.
const ADAPTIVE_QUEUE_NS: f64 = 50e6;
const ADAPTIVE_QUEUE_BYTES: (u32, u32) = (2 << 20, 16 << 20);
/// The highest level of zstd that a stream which adapts goes to: the ones above take much more
/// memory.
const LEVEL_MAX: i32 = 19;
/// The most that a chunk, and the tables that outlive chunks, become at the client, whatever it
/// accepts.
const DECODED_BYTES_CEILING: u64 = 64 << 20;

pub(crate) type Producers = JoinSet<Result<(), ServerError>>;

/// What a statement's connection knows of the way to its client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    pub(crate) link: Link,
    pub(crate) round_trip: Duration,
    /// λ at the end of the last statement that adapted.
    pub(crate) price_ns: Option<f64>,
}

/// A statement that is planned, and runs if it is to.
pub(crate) struct Begun {
    pub(crate) plan: Plan,
    pub(crate) plan_ns: u64,
    pub(crate) compression: CompressionChoice,
    pub(crate) checksums: bool,
    pub(crate) running: Option<Running>,
}

/// What makes a statement's chunks.
pub(crate) struct Running {
    pub(crate) producers: Producers,
    pub(crate) chunks: Receiver,
    pub(crate) adaptive: Option<Arc<Chooser>>,
    pub(crate) times: Arc<Times>,
    /// The memory that it was given, until it ends.
    pub(crate) admitted: Admitted,
}

/// What all statements are planned and run with.
pub(crate) struct Begin<'a> {
    pub(crate) workers: &'a Handle,
    pub(crate) engine: &'a Engine,
    pub(crate) admission: &'a Admission,
    pub(crate) planning: &'a Arc<Planning>,
}

impl Begin<'_> {
    /// Plans a statement, and starts it.
    pub(crate) fn statement(&self, query: &Query, line: Line) -> Result<Begun, ServerError> {
        self.workers.block_on(async {
            let started = Instant::now();
            let plan = engine::plan(self.engine, query, self.planning).await?;
            self.planning.ended();
            let plan_ns = ns_since(started);
            let settings = settings(query, line.link, self.admission, plan.threads());
            let compression = resolved(query.compression, line.link);
            let running = match query.plan_only {
                true => None,
                false => Some(self.run(&plan, line, settings, compression).await?),
            };
            Ok(Begun { plan, plan_ns, compression, checksums: settings.checksum, running })
        })
    }

    async fn run(
        &self,
        plan: &Plan,
        line: Line,
        settings: Settings,
        compression: CompressionChoice,
    ) -> Result<Running, ServerError> {
        let price_ns = line.price_ns.unwrap_or_else(|| Chooser::price_guess_ns(line.round_trip));
        let adaptive = (compression == CompressionChoice::Auto)
            .then(|| Arc::new(Chooser::new(&plan.schema, price_ns, line.round_trip, LEVEL_MAX)));
        let chunk_bytes_max = settings.limits.chunk_bytes_max;
        let (bytes_max, chunks_min) = match adaptive {
            // Floats become whole numbers by saturation.
            Some(_) => (
                ((ADAPTIVE_QUEUE_NS / price_ns) as u32)
                    .clamp(ADAPTIVE_QUEUE_BYTES.0, ADAPTIVE_QUEUE_BYTES.1),
                2,
            ),
            None => {
                (u32::try_from((2 * chunk_bytes_max).max(QUEUE_BYTES_MIN)).unwrap_or(u32::MAX), 1)
            }
        };
        let need = Need {
            keeps_rows: plan.keeps_rows(),
            scan_bytes: plan.scan_bytes(),
            result_bytes: plan.result_bytes_max(
                u64::from(bytes_max) + chunks_made(plan.threads()) * chunk_bytes_max,
            ),
        };
        let admitted = tokio::select! {
            biased;
            admitted = self.admission.admit(need) => admitted?,
            stopped = self.planning.stopped() => return Err(stopped),
        };
        let (sender, chunks) = queue(bytes_max, chunks_min, plan.threads() + 1);
        let times = Arc::new(Times::default());
        let producers =
            start_producers(self.workers, plan, settings, adaptive.as_ref(), sender, &times)
                .await?;
        Ok(Running { producers, chunks, adaptive, times, admitted })
    }
}

/// Starts a producer for each partition of the plan. The one of a small plan is given a first go
/// right here: its result is then ready without waking another thread.
async fn start_producers(
    workers: &Handle,
    plan: &Plan,
    settings: Settings,
    adaptive: Option<&Arc<Chooser>>,
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
            chunker = chunker.with_chooser(adaptive.clone());
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

pub(crate) fn panicked(panic: Box<dyn Any + Send>) -> ServerError {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    let message =
        format!("the engine failed on this statement: {}", text.unwrap_or("no reason given"));
    engine::error(
        ErrorKind::Internal,
        "XX000",
        message,
        "this is a defect; please report the query",
    )
}

/// What `auto` stands for on one host: none. Elsewhere the transfer adapts (encodings.md section
/// 6).
fn resolved(choice: CompressionChoice, link: Link) -> CompressionChoice {
    match choice {
        CompressionChoice::Auto if link.is_same_host() => CompressionChoice::None,
        other => other,
    }
}

/// How many chunks there are of a statement at a time beside those in its queue: those that are
/// made, and what is cut next.
fn chunks_made(threads: usize) -> u64 {
    threads as u64 + 2
}

fn settings(query: &Query, link: Link, admission: &Admission, threads: usize) -> Settings {
    let chunks = chunks_made(threads) + 2;
    let limits = Limits {
        chunk_bytes_max: admission.chunk_bytes_max(query.limits.chunk_bytes_max, chunks),
        decoded_bytes_max: query.limits.decoded_bytes_max.min(DECODED_BYTES_CEILING),
        ..query.limits
    };
    Settings {
        limits,
        chunk_rows: match query.chunk_rows as usize {
            0 => CHUNK_ROWS,
            rows => rows,
        },
        compression: match resolved(query.compression, link) {
            CompressionChoice::Auto | CompressionChoice::None => Compression::None,
            CompressionChoice::Light => Compression::Light,
            CompressionChoice::Lz4 => Compression::Lz4,
            CompressionChoice::Zstd(level) => Compression::Zstd(level.into()),
        },
        checksum: match query.checksums {
            Checksums::Auto => link.needs_checksums(),
            Checksums::On => true,
            Checksums::Off => false,
        },
        clock: Some(thread_cpu_time),
    }
}
