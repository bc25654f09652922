//! One statement: plan it, run its producers, send what they make, and watch the client meanwhile.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dray_format::{Batch, Compression, ErrorKind as FormatErrorKind, TableRoom};
use dray_transfer::{Adaptive, Chunker, Failure, Passage, Receiver, Sender, Settings, Times, produce, queue};
use dray_wire::{
    Checksums, ClientEvent, CompressionChoice, Encoded, ErrorKind, Finished, Known, PriceSet, Query, Report,
    ServerError, Started,
};
use futures::{FutureExt, StreamExt};
use tokio::task::JoinSet;
use tracing::info;

use crate::connection::{Closed, Connection, ns_since};
use crate::engine::{self, Plan};
use crate::socket::{Link, Outgoing};
use crate::way::{self, Way};

/// Rows that end a chunk unless the client asks for another number.
const CHUNK_ROWS: usize = 65_536;
/// The queue holds at least this many bytes of chunks, so that small chunks don't starve the socket.
const QUEUE_BYTES_MIN: u64 = 2 << 20;
/// What the queue of a stream that adapts holds, in time on the way and in bytes, least and most: of what is in it λ learns late, and a quick
/// way takes a chunk in less time than threads need to take turns.
const ADAPTIVE_QUEUE_NS: f64 = 50e6;
const ADAPTIVE_QUEUE_BYTES: (u32, u32) = (2 << 20, 16 << 20);
/// A result of more than this is worth another congestion control,
const LONG_RESULT_BYTES: u64 = 256 << 10;
/// and so is one that is known to have so many values: with two bits each it would be as long.
const LONG_RESULT_VALUES: u64 = 1 << 20;
/// The highest level of zstd that a stream which adapts goes to: the ones above take much more memory.
const LEVEL_MAX: i32 = 19;
/// Chunks up to this size wait for what comes right behind them, so that a small result is one write.
const SMALL_CHUNK_BYTES: u64 = 16 << 10;
/// How often a client hears how far its statement is.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);

type Producers = JoinSet<Result<(), ServerError>>;

/// Runs a statement and sends its result, or its error. The connection stays unless it breaks.
pub(crate) async fn run(connection: &mut Connection, query: Query) -> Result<(), Closed> {
    let started = Instant::now();
    let ended = match run_to_end(connection, &query, started).await {
        Ok(()) => Ok(None),
        Err(Stop::Failed(error)) => {
            let mut out = Vec::new();
            connection.session.failed(error.clone(), &mut out).map_err(|_| Closed)?;
            connection.send(out).await.map(|()| Some(error))
        }
        Err(Stop::Closed) => Err(Closed),
    };
    let (rows, chunks) = connection.session.sent();
    let outcome = match &ended {
        Ok(None) => "finished".to_owned(),
        Ok(Some(error)) => format!("failed: {}", error.message),
        Err(Closed) => "abandoned".to_owned(),
    };
    connection.shared.metrics.statement_ended(matches!(ended, Ok(None)), started.elapsed());
    info!(statement = query.statement, rows, chunks, ms = started.elapsed().as_millis(), sql = query.sql, "{outcome}");
    ended.map(|_| ())
}

/// Why a statement stopped before its end.
enum Stop {
    Failed(ServerError),
    Closed,
}

impl From<ServerError> for Stop {
    fn from(error: ServerError) -> Self {
        Self::Failed(error)
    }
}

impl From<Closed> for Stop {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

async fn run_to_end(connection: &mut Connection, query: &Query, arrived: Instant) -> Result<(), Stop> {
    let shared = connection.shared.clone();
    let _turn = watched(connection, shared.statements.acquire()).await?;
    let planning = Instant::now();
    let planned = AssertUnwindSafe(engine::plan(&shared.engine, query)).catch_unwind();
    let plan = watched(connection, planned).await?.unwrap_or_else(|panic| Err(panicked(panic)))?;
    let settings = settings(query, connection.link);
    let compression = resolved(query.compression, connection.link);
    let round_trip = connection.way.as_ref().and_then(Way::round_trip).unwrap_or_default();
    let price_ns = connection.price_ns.unwrap_or_else(|| Adaptive::price_guess_ns(round_trip));
    let adaptive = (compression == CompressionChoice::Auto)
        .then(|| Arc::new(Adaptive::new(&plan.schema, price_ns, round_trip, LEVEL_MAX)));
    let mut out = Vec::new();
    let started = Started {
        statement: query.statement,
        schema: plan.schema.clone(),
        estimate: plan.estimate,
        compression,
        checksums: settings.checksum,
        plan_ns: ns_since(planning),
    };
    if let Err(cause) = connection.session.started(&started, &mut out) {
        return Err(engine::error(ErrorKind::Query, "54011", cause.to_string(), "select fewer columns").into());
    }
    let mut finished = Finished::default();
    if !query.plan_only {
        let (bytes_max, chunks_min) = match adaptive {
            // Floats become whole numbers by saturation.
            Some(_) => {
                (((ADAPTIVE_QUEUE_NS / price_ns) as u32).clamp(ADAPTIVE_QUEUE_BYTES.0, ADAPTIVE_QUEUE_BYTES.1), 2)
            }
            None => (u32::try_from((2 * query.limits.chunk_bytes_max).max(QUEUE_BYTES_MIN)).unwrap_or(u32::MAX), 1),
        };
        let (sender, receiver) = queue(bytes_max, chunks_min, plan.threads() + 1);
        let times = Arc::new(Times::default());
        let producers = start_producers(&plan, settings, adaptive.as_ref(), sender, &times).await?;
        if let Some(way) = &mut connection.way {
            // What passed before is no part of this.
            let _ = way.passage();
            if let Known::Exact(rows) = plan.estimate.rows
                && rows.saturating_mul(plan.schema.fields.len() as u64) >= LONG_RESULT_VALUES
            {
                way.expect_much();
            }
        }
        let encoded = vec![Encoded::default(); plan.schema.fields.len()];
        let mut transfer =
            Transfer { connection, plan: &plan, producers, adaptive, encoded, out, sent_bytes: 0, socket_ns: 0 };
        transfer.run(receiver).await?;
        transfer.report();
        let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        finished.execute_ns = ns(times.execute());
        finished.encode_ns = ns(times.encode());
        finished.queue_ns = ns(times.queue());
        finished.socket_ns = transfer.socket_ns;
        out = transfer.out;
    }
    finished.total_ns = ns_since(arrived);
    connection.shared.metrics.rows_sent(connection.session.sent().0);
    connection.session.finished(finished, &mut out).map_err(|_| Closed)?;
    Ok(connection.send(out).await?)
}

/// Starts a producer for each partition of the plan. The one of a small plan is given a first go right here: its result is
/// then ready without waking another thread. Others must not: they could keep this task from hearing a cancel.
async fn start_producers(
    plan: &Plan,
    settings: Settings,
    adaptive: Option<&Arc<Adaptive>>,
    queue: Sender,
    times: &Arc<Times>,
) -> Result<Producers, Stop> {
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
        let producer = async move { produce(batches, chunker, lanes, queue, &times).await.or_else(failure) };
        let mut producer = AssertUnwindSafe(producer)
            .catch_unwind()
            .map(|ended| ended.unwrap_or_else(|panic| Err(panicked(panic))))
            .boxed();
        if at_once && let Poll::Ready(ended) = futures::poll!(&mut producer) {
            ended?;
        } else {
            producers.spawn(producer);
        }
    }
    Ok(producers)
}

/// A statement whose producers run.
struct Transfer<'a> {
    connection: &'a mut Connection,
    plan: &'a Plan,
    producers: Producers,
    adaptive: Option<Arc<Adaptive>>,
    /// What encoding each column took so far.
    encoded: Vec<Encoded>,
    /// Small frames that wait for the next write.
    out: Vec<u8>,
    sent_bytes: u64,
    socket_ns: u64,
}

impl Transfer<'_> {
    async fn run(&mut self, mut chunks: Receiver) -> Result<(), Stop> {
        let mut progress = tokio::time::interval_at(tokio::time::Instant::now() + PROGRESS_EVERY, PROGRESS_EVERY);
        progress.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut waiting = Instant::now();
        loop {
            tokio::select! {
                biased;
                chunk = chunks.receive() => match chunk {
                    Some(queued) => {
                        if let Some(adaptive) = &self.adaptive {
                            adaptive.starved(waiting.elapsed());
                        }
                        let (chunk_bytes, state_bytes) = (queued.chunk.chunk_bytes(), queued.chunk.state_bytes());
                        for (sum, written) in self.encoded.iter_mut().zip(queued.chunk.columns()) {
                            sum.decoded_bytes += written.decoded_bytes;
                            sum.encode_ns += written.encode_ns;
                        }
                        let parts = self.connection.session.chunk(queued.chunk.clone(), &mut self.out);
                        let parts = parts.map_err(|cause| engine::error(ErrorKind::Internal, "XX000", cause.to_string(), ""))?;
                        self.connection.shared.metrics.chunk_sent(chunk_bytes + state_bytes);
                        if chunk_bytes <= SMALL_CHUNK_BYTES && self.out.len() <= SMALL_CHUNK_BYTES as usize {
                            parts.iter().for_each(|part| self.out.extend_from_slice(part));
                        } else {
                            self.write(parts).await?;
                        }
                        waiting = Instant::now();
                    }
                    None => break,
                },
                event = self.connection.event() => stop_on(event?)?,
                _ = progress.tick() => {
                    self.connection.session.progress(self.plan.rows_read(), &mut self.out).map_err(|_| Stop::Closed)?;
                }
                // Nothing else to do: what waits goes out.
                () = std::future::ready(()), if !self.out.is_empty() => self.write(Vec::new()).await?,
            }
            self.check_producers()?;
        }
        while let Some(ended) = self.producers.join_next().await {
            producer_ended(ended)?;
        }
        Ok(())
    }

    /// Says how the transfer went, unless it was a small one.
    fn report(&mut self) {
        let (_, chunks) = self.connection.session.sent();
        if let Some(adaptive) = &self.adaptive {
            self.connection.price_ns = Some(adaptive.price_ns());
            if let Some(host) = self.connection.way.as_ref().and_then(|way| way.host) {
                self.connection.shared.prices.set(host, adaptive.price_ns());
            }
            self.connection.shared.metrics.price_set(adaptive.price_ns());
        }
        self.connection.shared.metrics.encoded(&self.encoded);
        if chunks < 2 {
            return;
        }
        let prices = self.adaptive.iter().flat_map(|adaptive| adaptive.history());
        // Floats become whole numbers by saturation.
        let price = |(at, ns): (Duration, f64)| PriceSet {
            at_ms: u32::try_from(at.as_millis()).unwrap_or(u32::MAX),
            price_ps: (ns * 1e3) as u32,
        };
        let report = Report {
            columns: std::mem::take(&mut self.encoded),
            prices: prices.map(price).collect(),
            ..Report::default()
        };
        let sent = self.out.len();
        if self.connection.session.report(report, &mut self.out).is_err() {
            // Too many columns for one message.
            self.out.truncate(sent);
        }
    }

    /// Stops as soon as a producer has failed.
    fn check_producers(&mut self) -> Result<(), Stop> {
        while let Some(ended) = self.producers.try_join_next() {
            producer_ended(ended)?;
        }
        Ok(())
    }

    /// Sends the waiting messages and the parts behind them. A cancel that comes meanwhile stops the producers at once, but
    /// the frame that has begun is finished.
    async fn write(&mut self, parts: Vec<Bytes>) -> Result<(), Stop> {
        let started = Instant::now();
        self.sent_bytes += parts.iter().map(|part| part.len() as u64).sum::<u64>();
        if let Some(way) = self.connection.way.as_mut().filter(|_| self.sent_bytes > LONG_RESULT_BYTES) {
            way.expect_much();
        }
        let mut outgoing = Outgoing::default();
        outgoing.push(Bytes::from(std::mem::take(&mut self.out)));
        parts.into_iter().for_each(|part| outgoing.push(part));
        let mut waiting_bytes = outgoing.bytes();
        let bytes = waiting_bytes as u64;
        let mut stall = tokio::time::interval_at(
            (started + self.connection.shared.stall_timeout).into(),
            self.connection.shared.stall_timeout,
        );
        let mut stopped = Ok(());
        loop {
            let Connection { session, reader, socket, .. } = &mut *self.connection;
            tokio::select! {
                biased;
                written = outgoing.write(socket) => {
                    let busy = started.elapsed();
                    self.socket_ns += u64::try_from(busy.as_nanos()).unwrap_or(u64::MAX);
                    if let Some(adaptive) = &self.adaptive {
                        let passage = self.connection.way.as_mut().and_then(Way::passage);
                        adaptive.sent(busy, passage.unwrap_or(Passage { bytes, busy, ..Passage::default() }));
                    }
                    return written.map_err(|_| Stop::Closed).and(stopped);
                }
                read = reader.next(|header| session.frame(header)) => match read {
                    Ok((frame, payload)) => {
                        let event = session.message(frame, &payload).map_err(|_| Stop::Closed)?;
                        if let Err(stop) = stop_on(event) {
                            self.producers.abort_all();
                            stopped = Err(stop);
                        }
                    }
                    Err(_) => return Err(Stop::Closed),
                },
                _ = stall.tick() => {
                    if outgoing.bytes() == waiting_bytes {
                        info!("closed: the client read nothing for {:?}", self.connection.shared.stall_timeout);
                        return Err(Stop::Closed);
                    }
                    waiting_bytes = outgoing.bytes();
                }
            }
        }
    }
}

/// Waits for something that sends nothing, and stops when the client cancels or leaves.
async fn watched<T>(connection: &mut Connection, work: impl Future<Output = T>) -> Result<T, Stop> {
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return Ok(done),
            event = connection.event() => stop_on(event?)?,
        }
    }
}

fn stop_on(event: ClientEvent) -> Result<(), Stop> {
    match event {
        ClientEvent::Cancel => {
            Err(engine::error(ErrorKind::Cancelled, "57014", "the statement was cancelled at the client's request", "")
                .into())
        }
        ClientEvent::Goodbye => Err(Stop::Closed),
        _ => Ok(()),
    }
}

fn producer_ended(ended: Result<Result<(), ServerError>, tokio::task::JoinError>) -> Result<(), Stop> {
    match ended {
        Ok(result) => result.map_err(Stop::from),
        Err(join) => Err(match join.try_into_panic() {
            Ok(panic) => panicked(panic),
            Err(_) => engine::error(ErrorKind::Cancelled, "57014", "the statement was stopped", ""),
        }
        .into()),
    }
}

/// What a producer's end means for its statement.
fn failure(failure: Failure<Source>) -> Result<(), ServerError> {
    match failure {
        Failure::Source(Source::Engine(cause)) => Err(engine::execution_error(*cause)),
        Failure::Source(Source::Columns(cause)) | Failure::Chunk(cause) => Err(match cause.kind() {
            FormatErrorKind::Limit => engine::error(ErrorKind::Limit, "54000", cause.to_string(), ""),
            _ => engine::error(ErrorKind::Execution, "XX000", cause.to_string(), ""),
        }),
        // The statement has stopped already, for a reason of its own.
        Failure::Abandoned => Ok(()),
    }
}

/// What can go wrong in a source.
enum Source {
    Engine(Box<datafusion::common::DataFusionError>),
    Columns(dray_format::Error),
}

fn columns(batch: datafusion::common::Result<arrow::array::RecordBatch>) -> Vec<Result<Batch, Source>> {
    match batch {
        Err(cause) => vec![Err(Source::Engine(Box::new(cause)))],
        Ok(batch) => match engine::columns(batch) {
            Ok(batches) => batches.into_iter().map(|(_, batch)| Ok(batch)).collect(),
            Err(cause) => vec![Err(Source::Columns(cause))],
        },
    }
}

fn panicked(panic: Box<dyn Any + Send>) -> ServerError {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    let message = format!("the engine failed on this statement: {}", text.unwrap_or("no reason given"));
    engine::error(ErrorKind::Internal, "XX000", message, "this is a defect; please report the query")
}

/// What `auto` stands for on one host: none. Elsewhere the transfer adapts (encodings.md section 6).
fn resolved(choice: CompressionChoice, link: Link) -> CompressionChoice {
    match choice {
        CompressionChoice::Auto if link.is_same_host() => CompressionChoice::None,
        other => other,
    }
}

fn settings(query: &Query, link: Link) -> Settings {
    Settings {
        limits: query.limits,
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
        clock: Some(way::processor_time),
    }
}
