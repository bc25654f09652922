//! Workers: threads that read ranges of a table, each over a connection of its own.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use dray_format::Profile;
use dray_postgres::TableScan;
use dray_wire::Finished;

use super::super::frames::DecoderCache;
use super::super::{Event, ReceiveContext, ReceivedBatch, Start, out_of_turn};
use super::connection::{Connection, Endpoint};
use super::policy::decide_extension;
use super::serial::SerialScan;
use super::snapshot::{Snapshot, limit_statement};
use crate::error::{Error, ErrorKind, Result};
use crate::memory::Arena;
use crate::options::QueryOptions;
use crate::watch::Verdict;

/// How often a range is read again after its connection broke.
const RETRIES: usize = 2;

/// A table to read over several connections.
#[derive(Debug)]
pub(super) struct ScanJob {
    /// How workers connect.
    pub(super) endpoint: Endpoint,
    pub(super) scan: TableScan,
    pub(super) snapshot: Snapshot,
    /// A statement for each range of the table, in the table's order.
    pub(super) ranges: Vec<String>,
    /// The options of these statements.
    pub(super) options: QueryOptions,
    /// When `statement_timeout` would end the user's statement.
    pub(super) deadline: Option<Instant>,
    pub(super) workers: usize,
    /// Whether batches arrive in the order of the ranges.
    pub(super) ordered: bool,
}

/// What a worker sends to the reader.
pub(super) enum WorkerEvent {
    /// A range has started.
    Started(Box<Start>),
    Batch {
        batch: RecordBatch,
        wire_bytes: u64,
        decoded_bytes: u64,
        decode: Duration,
    },
    /// A range is complete.
    RangeFinished {
        finished: Option<Finished>,
        profile: Profile,
    },
    Failed(Error),
}

/// What the workers and the reader share.
pub(super) struct Shared {
    pub(super) job: ScanJob,
    /// The next range to read.
    next_range: AtomicUsize,
    /// Workers cancel their statements.
    pub(super) stopped: AtomicBool,
    /// Workers don't even wait for the end of their statements.
    pub(super) abandoned: AtomicBool,
    /// The number of workers that run.
    pub(super) alive: AtomicUsize,
    /// The size of the blocks that batches share at each worker ([`Arena::set_block_bytes`]).
    pub(super) block_bytes: AtomicUsize,
    /// One for all ranges, or, if the order is kept, one for each range, taken by its worker.
    senders: Mutex<Vec<Option<SyncSender<WorkerEvent>>>>,
    /// Why workers never began, or had to read a range again.
    pub(super) failures: Mutex<Vec<Error>>,
}

impl Shared {
    pub(super) fn new(job: ScanJob, senders: Vec<SyncSender<WorkerEvent>>) -> Self {
        debug_assert_eq!(senders.len(), if job.ordered { job.ranges.len() } else { 1 });
        Self {
            next_range: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            alive: AtomicUsize::new(job.workers),
            block_bytes: AtomicUsize::new(0),
            senders: Mutex::new(senders.into_iter().map(Some).collect()),
            failures: Mutex::default(),
            job,
        }
    }

    /// Runs a worker: takes ranges until there are none left.
    pub(super) fn run_worker(&self) {
        let _alive = Alive(self);
        let mut worker = match self.connect() {
            Ok(connection) => Worker {
                shared: self,
                connection: Some(connection),
                decoders: DecoderCache::default(),
            },
            // The other workers read the ranges.
            Err(error) => {
                lock(&self.failures).push(error);
                return;
            }
        };
        while !self.stopped.load(Ordering::SeqCst) {
            let range = self.next_range.fetch_add(1, Ordering::SeqCst);
            if range >= self.job.ranges.len() {
                break;
            }
            let Some(sender) = self.sender(range) else { break };
            if let Err(error) = worker.read_range(range, &sender) {
                // The reader may be gone.
                let _ = sender.send(WorkerEvent::Failed(error));
                break;
            }
        }
    }

    fn sender(&self, range: usize) -> Option<SyncSender<WorkerEvent>> {
        let mut senders = lock(&self.senders);
        match self.job.ordered {
            true => senders.get_mut(range)?.take(),
            false => senders.first()?.clone(),
        }
    }

    /// Closes the channels of ranges that no worker has taken.
    pub(super) fn close_senders(&self) {
        lock(&self.senders).clear();
    }

    fn connect(&self) -> Result<Connection> {
        let ScanJob { endpoint, snapshot, scan, .. } = &self.job;
        let deadline = endpoint.pooled_timeout.map(|max| (Instant::now() + max, max));
        let is_over = || deadline.is_some_and(|(deadline, _)| Instant::now() >= deadline);
        let mut keep_waiting = || !self.stopped.load(Ordering::SeqCst) && !is_over();
        let joined = Connection::connect(&endpoint.uri, &endpoint.options, &mut keep_waiting)
            .and_then(|mut connection| {
                connection.run_setup(&mut keep_waiting, |session, check| {
                    snapshot.join(session, scan, check)
                })?;
                Ok(connection)
            });
        joined.map_err(|error| match deadline {
            Some((_, max)) if error.kind() == ErrorKind::Connection && is_over() => Error::new(
                ErrorKind::Connection,
                format!("the pooler gave no other connection within {max:?}"),
            ),
            _ => error,
        })
    }
}

/// Counts a worker as alive until its thread ends, in whatever way.
struct Alive<'a>(&'a Shared);

impl Drop for Alive<'_> {
    fn drop(&mut self) {
        if self.0.alive.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.close_senders();
        }
    }
}

struct Worker<'a> {
    shared: &'a Shared,
    /// None once it broke.
    connection: Option<Connection>,
    decoders: DecoderCache,
}

impl Worker<'_> {
    /// Reads a range, on a new connection if the last one broke.
    ///
    /// Under one snapshot a range has the same rows in the same order each time, so those that were
    /// delivered before the connection broke are skipped.
    fn read_range(&mut self, range: usize, sender: &SyncSender<WorkerEvent>) -> Result<()> {
        let mut delivered = 0;
        let mut retries = 0;
        loop {
            let connection = match self.connection.take() {
                Some(connection) => Ok(connection),
                None => self.shared.connect(),
            };
            let read = connection.and_then(|mut connection| {
                let read = self.read_once(range, &mut connection, &mut delivered, sender);
                self.connection = connection.is_usable().then_some(connection);
                read
            });
            match read {
                Err(error)
                    if error.kind() == ErrorKind::Connection
                        && !error.is_read_timeout()
                        && retries < RETRIES
                        && !self.shared.stopped.load(Ordering::SeqCst) =>
                {
                    retries += 1;
                    lock(&self.shared.failures).push(error);
                }
                read => return read,
            }
        }
    }

    /// Reads a range once. Skips the first `delivered` rows, and adds the rows that follow to them.
    fn read_once(
        &mut self,
        range: usize,
        connection: &mut Connection,
        delivered: &mut usize,
        sender: &SyncSender<WorkerEvent>,
    ) -> Result<()> {
        let Self { shared, decoders, .. } = self;
        let job = &shared.job;
        let mut cancel = || match (
            shared.stopped.load(Ordering::SeqCst),
            shared.abandoned.load(Ordering::SeqCst),
        ) {
            (_, true) => Verdict::Abandon,
            (true, false) => Verdict::Cancel,
            (false, false) => Verdict::Continue,
        };
        let unread = |_| Error::new(ErrorKind::Cancelled, "nobody reads the result");
        if let Some(deadline) = job.deadline {
            let mut keep_waiting = || cancel() == Verdict::Continue;
            connection.run_setup(&mut keep_waiting, |session, check| {
                limit_statement(session, deadline, check)
            })?;
        }
        let sql = &job.ranges[range];
        let extension =
            decide_extension(&connection.extension, sql, job.options.postgres.extension);
        let (mut scan, _) = connection.run(&mut cancel, |connection, check| {
            SerialScan::start(connection, extension, sql, &job.options, decoders, check)
        })?;
        let mut memory = Arena::default();
        let mut profile = Profile::default();
        let mut to_skip = *delivered;
        loop {
            memory.set_block_bytes(shared.block_bytes.load(Ordering::Relaxed));
            let mut context =
                ReceiveContext { memory: &mut memory, profile: &mut profile, layout: None };
            let event = connection.run(&mut cancel, |connection, check| {
                scan.next(connection, decoders, &mut context, check)
            })?;
            let event = match event {
                Event::Started(start) if *delivered == 0 => WorkerEvent::Started(Box::new(start)),
                Event::Batch(batch) => {
                    let ReceivedBatch { batch, wire_bytes, decoded_bytes, decode, .. } = batch;
                    let skipped = to_skip.min(batch.num_rows());
                    to_skip -= skipped;
                    let batch = batch.slice(skipped, batch.num_rows() - skipped);
                    if batch.num_rows() == 0 {
                        continue;
                    }
                    let rows = batch.num_rows();
                    let event = WorkerEvent::Batch { batch, wire_bytes, decoded_bytes, decode };
                    sender.send(event).map_err(unread)?;
                    *delivered += rows;
                    continue;
                }
                Event::Finished { server: finished } => {
                    let event = WorkerEvent::RangeFinished { finished, profile };
                    return sender.send(event).map_err(unread);
                }
                Event::Started(_) | Event::Progress { .. } | Event::Report(_) => continue,
                Event::Page(_) => return Err(out_of_turn()),
            };
            sender.send(event).map_err(unread)?;
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
