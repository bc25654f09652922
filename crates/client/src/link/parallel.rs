//! A table of PostgreSQL in parts, over several connections under one snapshot.
//!
//! ```text
//!   coordinator   BEGIN · LOCK TABLE · export snapshot · … holds the transaction … · COMMIT
//!   worker        import snapshot · part · part · …  ─┐
//!   worker        import snapshot · part · part · …  ─┴▶ batches ──▶ the reader of the result
//! ```
//!
//! Workers take parts from one queue, so that a slow one holds nothing up. A part that fails with
//! its connection is read again from a new one: under the snapshot the rows come in the same order,
//! and those that were delivered are left out. The reader counts parts: a result ends only when all
//! of them have.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use dray_format::arrow::Decoder;
use dray_format::{Profile, Schema};
use dray_postgres::Split;
use dray_wire::{Finished, ServerEvent, Started};

use super::parts::Held;
use super::postgres::PostgresLink;
use super::{Link, Received, STOP_TIMEOUT, Wanted};
use crate::connection::{ConnectOptions, QueryOptions, Wish};
use crate::error::{Error, ErrorKind, Result};
use crate::pool::Arena;

/// Batches that wait for the reader: of each worker, or of each part if their order is kept.
const BATCHES_WAITING: usize = 2;
/// How often a part is read again.
const RETRIES: usize = 2;
/// How long the reader waits before it looks whether the result is still wanted.
const LOOK: Duration = Duration::from_millis(50);

/// What is to be read, and how.
#[derive(Debug)]
pub(super) struct Work {
    /// How workers connect.
    pub(super) uri: String,
    pub(super) connect: ConnectOptions,
    /// How long that and joining the others may take, if less than `connect` says.
    pub(super) join_max: Option<Duration>,
    pub(super) split: Split,
    /// What the coordinator holds.
    pub(super) held: Held,
    /// A statement for each part.
    pub(super) parts: Vec<String>,
    pub(super) options: QueryOptions,
    /// When the server would have ended the statement.
    pub(super) deadline: Option<Instant>,
    pub(super) workers: usize,
    pub(super) ordered: bool,
}

/// What a worker has to say.
enum Event {
    Started(Box<Started>),
    Batch {
        batch: RecordBatch,
        wire_bytes: u64,
        decoded_bytes: u64,
        decode: Duration,
    },
    /// A part is complete.
    Part {
        finished: Option<Finished>,
        profile: Profile,
    },
    Failed(Error),
}

/// What workers share.
struct Shared {
    work: Work,
    next: AtomicUsize,
    stopped: AtomicBool,
    /// Not even the end of what was stopped is waited for.
    left: AtomicBool,
    alive: AtomicUsize,
    /// The blocks that batches share at each worker, as the reader will keep them or not
    /// ([`Arena::set_block_bytes`]).
    block_bytes: AtomicUsize,
    /// Where a part's events go; taken by its worker if the order is kept.
    senders: Mutex<Vec<Option<SyncSender<Event>>>>,
    /// Why workers never began, or had to read a part again.
    failures: Mutex<Vec<Error>>,
}

/// Workers on their parts, and the reader's end.
pub(super) struct Parallel {
    shared: Arc<Shared>,
    /// One for all, or one for each part in their order.
    queues: VecDeque<Receiver<Event>>,
    schema: Option<Arc<Schema>>,
    parts_left: usize,
    finished: Option<Finished>,
    profile: Profile,
    began: Instant,
    /// So many of the failures have been told.
    told: usize,
    process: u32,
}

impl std::fmt::Debug for Parallel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parallel").field("parts_left", &self.parts_left).finish_non_exhaustive()
    }
}

impl Parallel {
    /// Says how the reader's batches are kept: in blocks of this size in all, or each by itself.
    pub(super) fn set_block_bytes(&self, block_bytes: usize) {
        self.shared
            .block_bytes
            .store(block_bytes / self.shared.work.workers.max(1), Ordering::Relaxed);
    }

    /// Starts the workers and waits for the first to begin.
    ///
    /// # Errors
    /// When none can begin.
    pub(super) fn start(work: Work, wanted: Wanted<'_>) -> Result<(Self, Started)> {
        let queues = if work.ordered { work.parts.len() } else { 1 };
        let (senders, receivers): (Vec<_>, VecDeque<_>) = (0..queues)
            .map(|_| sync_channel(BATCHES_WAITING * if work.ordered { 1 } else { work.workers }))
            .unzip();
        let (workers, parts_left) = (work.workers, work.parts.len());
        let shared = Arc::new(Shared {
            work,
            next: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            left: AtomicBool::new(false),
            alive: AtomicUsize::new(workers),
            block_bytes: AtomicUsize::new(0),
            senders: Mutex::new(senders.into_iter().map(Some).collect()),
            failures: Mutex::default(),
        });
        let mut parallel = Self {
            shared: shared.clone(),
            queues: receivers,
            schema: None,
            parts_left,
            finished: None,
            profile: Profile::default(),
            began: Instant::now(),
            told: 0,
            process: std::process::id(),
        };
        for i in 0..workers {
            let shared = shared.clone();
            let thread = std::thread::Builder::new()
                .name(format!("dray-part-{i}"))
                .spawn(move || shared.run());
            if let Err(cause) = thread {
                parallel.shared.alive.fetch_sub(workers - i, Ordering::SeqCst);
                lock(&parallel.shared.failures)
                    .push(Error::new(ErrorKind::Resources, "can't start a thread").cause(cause));
                break;
            }
        }
        match parallel.next_event(wanted)? {
            Some(Event::Started(started)) => {
                parallel.schema = Some(started.schema.clone());
                Ok((parallel, *started))
            }
            Some(Event::Failed(error)) => Err(error),
            _ => Err(parallel.lost()),
        }
    }

    /// Ends the workers, and waits for them as long as that is wanted. Statements are cancelled at
    /// once.
    pub(super) fn stop(&mut self, wanted: Wanted<'_>) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Their threads are their process's own.
        if std::process::id() != self.process {
            return;
        }
        self.queues.clear();
        lock(&self.shared.senders).clear();
        let deadline = Instant::now() + STOP_TIMEOUT;
        while self.shared.alive.load(Ordering::SeqCst) > 0 && Instant::now() < deadline {
            if wanted() == Wish::Leave {
                self.shared.left.store(true, Ordering::SeqCst);
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// What the reader gets next.
    pub(super) fn receive(&mut self, wanted: Wanted<'_>) -> Result<Received> {
        loop {
            match self.next_event(wanted)? {
                Some(Event::Started(started)) if self.schema.as_ref() == Some(&started.schema) => {}
                Some(Event::Started(_)) => {
                    return Err(Error::new(
                        ErrorKind::Execution,
                        "the table's columns differ between connections",
                    ));
                }
                Some(Event::Batch { batch, wire_bytes, decoded_bytes, decode }) => {
                    return Ok(Received::Batch { batch, wire_bytes, decoded_bytes, decode });
                }
                Some(Event::Part { finished, profile }) => {
                    self.parts_left -= 1;
                    self.finished = self
                        .finished
                        .take()
                        .map_or(finished, |sum| finished.map(|part| add(sum, &part)));
                    merge(&mut self.profile, profile);
                }
                Some(Event::Failed(error)) => return Err(error),
                None if self.parts_left > 0 => return Err(self.lost()),
                None => {
                    let finished = self.finished.take();
                    let total_ns =
                        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                    let finished = finished.map(|finished| Finished { total_ns, ..finished });
                    return Ok(Received::Done {
                        finished,
                        profile: std::mem::take(&mut self.profile),
                    });
                }
            }
        }
    }

    /// The next event, of the next part if the order is kept; none at the end.
    fn next_event(&mut self, wanted: Wanted<'_>) -> Result<Option<Event>> {
        loop {
            let Some(queue) = self.queues.front() else { return Ok(None) };
            match queue.recv_timeout(LOOK) {
                Ok(event) => return Ok(Some(event)),
                Err(RecvTimeoutError::Timeout) => {
                    if wanted() > Wish::Continue {
                        return Err(Error::new(
                            ErrorKind::Cancelled,
                            "the statement was cancelled",
                        ));
                    }
                    // Parts that nobody reads any more are waited for in vain.
                    if self.shared.alive.load(Ordering::SeqCst) == 0 {
                        match queue.try_recv() {
                            Ok(event) => return Ok(Some(event)),
                            Err(TryRecvError::Disconnected) => {
                                self.queues.pop_front();
                            }
                            Err(TryRecvError::Empty) => return Err(self.lost()),
                        }
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.queues.pop_front();
                }
            }
        }
    }

    /// Why no worker is left before the end.
    fn lost(&self) -> Error {
        lock(&self.shared.failures)
            .pop()
            .unwrap_or_else(|| Error::new(ErrorKind::Internal, "parts of the result are missing"))
    }

    /// Why connections could not be had or broke, as far as it has not been told before.
    pub(super) fn failures(&mut self) -> Vec<String> {
        let failures = lock(&self.shared.failures);
        let untold =
            failures.get(self.told..).unwrap_or_default().iter().map(Error::to_string).collect();
        self.told = failures.len();
        untold
    }
}

/// Workers end before the coordinator's transaction does, if they have begun.
impl Drop for Parallel {
    fn drop(&mut self) {
        self.stop(&mut || Wish::Cancel);
    }
}

impl Shared {
    /// A worker: takes parts until there are none.
    fn run(&self) {
        let _alive = Alive(self);
        let mut link = match self.connect() {
            Ok(link) => Some(link),
            Err(error) => {
                lock(&self.failures).push(error);
                None
            }
        };
        // A worker that never began leaves the parts to the others.
        while link.is_some() && !self.stopped.load(Ordering::SeqCst) {
            let part = self.next.fetch_add(1, Ordering::SeqCst);
            if part >= self.work.parts.len() {
                break;
            }
            let Some(sender) = self.sender(part) else { break };
            if let Err(error) = self.read(part, &mut link, &sender) {
                // The reader may be gone.
                let _ = sender.send(Event::Failed(error));
                break;
            }
        }
    }

    fn sender(&self, part: usize) -> Option<SyncSender<Event>> {
        let mut senders = lock(&self.senders);
        match self.work.ordered {
            true => senders.get_mut(part)?.take(),
            false => senders.first()?.clone(),
        }
    }

    fn connect(&self) -> Result<PostgresLink> {
        let deadline = self.work.join_max.map(|max| (Instant::now() + max, max));
        let is_over = || deadline.is_some_and(|(deadline, _)| Instant::now() >= deadline);
        let mut wanted = || !self.stopped.load(Ordering::SeqCst) && !is_over();
        let joined = PostgresLink::connect(&self.work.uri, &self.work.connect, &mut wanted)
            .and_then(|mut link| {
                link.join(&self.work.held, &self.work.split, &mut wanted)?;
                Ok(link)
            });
        joined.map_err(|error| match deadline {
            Some((_, max)) if error.kind() == ErrorKind::Connection && is_over() => Error::new(
                ErrorKind::Connection,
                format!("the pooler gave no other connection within {max:?}"),
            ),
            _ => error,
        })
    }

    /// Reads a part, on a new connection if the last one broke.
    fn read(
        &self,
        part: usize,
        link: &mut Option<PostgresLink>,
        sender: &SyncSender<Event>,
    ) -> Result<()> {
        let mut delivered = 0;
        let mut retries = 0;
        loop {
            let connection = match link.take() {
                Some(connection) => Ok(connection),
                None => self.connect(),
            };
            let read = connection.and_then(|mut connection| {
                let read = self.read_once(part, &mut connection, &mut delivered, sender);
                *link = connection.is_usable().then_some(connection);
                read
            });
            match read {
                Err(error)
                    if error.kind() == ErrorKind::Connection
                        && !error.is_silence()
                        && retries < RETRIES
                        && !self.stopped.load(Ordering::SeqCst) =>
                {
                    retries += 1;
                    lock(&self.failures).push(error);
                }
                read => return read,
            }
        }
    }

    /// Reads a part once. The first `delivered` rows are left out, and those that follow counted
    /// there.
    fn read_once(
        &self,
        part: usize,
        link: &mut PostgresLink,
        delivered: &mut usize,
        sender: &SyncSender<Event>,
    ) -> Result<()> {
        let mut wanted =
            || match (self.stopped.load(Ordering::SeqCst), self.left.load(Ordering::SeqCst)) {
                (_, true) => Wish::Leave,
                (true, false) => Wish::Cancel,
                (false, false) => Wish::Continue,
            };
        let gone = |_| Error::new(ErrorKind::Cancelled, "nobody reads the result");
        if let Some(deadline) = self.work.deadline {
            link.limit(deadline, &mut || wanted() == Wish::Continue)?;
        }
        link.send_query(&self.work.parts[part], &self.work.options, &mut wanted)?;
        let mut arena = Arena::default();
        let mut decoder = None;
        let mut profile = Profile::default();
        let mut leave_out = *delivered;
        // Those of state frames count with the chunk that is next.
        let mut state_bytes = 0;
        loop {
            arena.set_block_bytes(self.block_bytes.load(Ordering::Relaxed));
            let received = link.receive(&mut arena, &mut wanted)?;
            let started = Instant::now();
            let (batch, wire_bytes, decoded_bytes) = match received {
                Received::Event(ServerEvent::Started(started)) => {
                    decoder = Some(Decoder::new(started.schema.clone(), self.work.options.strings));
                    if *delivered == 0 {
                        sender.send(Event::Started(Box::new(started))).map_err(gone)?;
                    }
                    continue;
                }
                Received::Event(ServerEvent::Finished(finished)) => {
                    return sender
                        .send(Event::Part { finished: Some(finished), profile })
                        .map_err(gone);
                }
                Received::Done { finished, profile } => {
                    return sender.send(Event::Part { finished, profile }).map_err(gone);
                }
                Received::Event(ServerEvent::Error(error)) => return Err(error.into()),
                Received::Event(ServerEvent::State(state)) => {
                    state_bytes += state.frame_bytes();
                    continue;
                }
                Received::Chunk { header, descriptors, body, tables } => {
                    let decoder = decoder.as_ref().ok_or_else(out_of_turn)?;
                    header.verify(&[&descriptors, &body])?;
                    let columns = &mut arena.columns(&header);
                    let profile = Some(&mut profile);
                    let batch = decoder.decode(
                        &header,
                        &descriptors,
                        &body,
                        &tables,
                        Some(columns),
                        profile,
                    )?;
                    (
                        batch,
                        std::mem::take(&mut state_bytes) + header.chunk_bytes(),
                        header.decoded_bytes,
                    )
                }
                Received::Built { built, bytes, .. } => {
                    let decoded_bytes = built.batch().plain_bytes(0, built.batch().rows);
                    (
                        decoder
                            .as_ref()
                            .ok_or_else(out_of_turn)?
                            .built(*built)
                            .map_err(Error::of_rows)?,
                        bytes,
                        decoded_bytes,
                    )
                }
                _ => continue,
            };
            let skipped = leave_out.min(batch.num_rows());
            leave_out -= skipped;
            let batch = batch.slice(skipped, batch.num_rows() - skipped);
            if batch.num_rows() == 0 {
                continue;
            }
            let rows = batch.num_rows();
            let decode = started.elapsed();
            sender.send(Event::Batch { batch, wire_bytes, decoded_bytes, decode }).map_err(gone)?;
            *delivered += rows;
        }
    }
}

/// A worker, as long as it runs, however it ends.
struct Alive<'a>(&'a Shared);

impl Drop for Alive<'_> {
    fn drop(&mut self) {
        if self.0.alive.fetch_sub(1, Ordering::SeqCst) == 1 {
            lock(&self.0.senders).clear();
        }
    }
}

fn out_of_turn() -> Error {
    Error::new(ErrorKind::Protocol, "the server's answer is out of turn")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The times of two parts, each at its own server process.
fn add(a: Finished, b: &Finished) -> Finished {
    Finished {
        rows: a.rows + b.rows,
        chunks: a.chunks + b.chunks,
        execute_ns: a.execute_ns.saturating_add(b.execute_ns),
        encode_ns: a.encode_ns.saturating_add(b.encode_ns),
        queue_ns: a.queue_ns.saturating_add(b.queue_ns),
        socket_ns: a.socket_ns.saturating_add(b.socket_ns),
        ..a
    }
}

fn merge(into: &mut Profile, part: Profile) {
    into.columns.resize_with(into.columns.len().max(part.columns.len()), Default::default);
    for (column, part) in into.columns.iter_mut().zip(part.columns) {
        column.body_bytes += part.body_bytes;
        column.decoded_bytes += part.decoded_bytes;
        column.decode_ns += part.decode_ns;
        for name in part.encodings {
            if !column.encodings.contains(&name) {
                column.encodings.push(name);
            }
        }
    }
}
