//! Workers: threads that read ranges of a table, each over a connection of its own.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arrow::array::RecordBatch;
use dray_format::Profile;
use dray_wire::Finished;

use super::super::frames::DecoderCache;
use super::super::{Event, ReceiveContext, ReceivedBatch, Start, out_of_turn};
use super::RangeScan;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::Arena;
use crate::watch::Verdict;

/// How often a range is read again after its connection broke.
const RETRIES: usize = 2;

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
pub(super) struct Shared<R> {
    pub(super) table: R,
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

impl<R: RangeScan> Shared<R> {
    pub(super) fn new(table: R, senders: Vec<SyncSender<WorkerEvent>>) -> Self {
        debug_assert_eq!(senders.len(), if table.is_ordered() { table.ranges() } else { 1 });
        Self {
            next_range: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            alive: AtomicUsize::new(table.workers()),
            block_bytes: AtomicUsize::new(0),
            senders: Mutex::new(senders.into_iter().map(Some).collect()),
            failures: Mutex::default(),
            table,
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
            if range >= self.table.ranges() {
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
        match self.table.is_ordered() {
            true => senders.get_mut(range)?.take(),
            false => senders.first()?.clone(),
        }
    }

    fn connect(&self) -> Result<R::Connection> {
        self.table.connect(&mut || !self.stopped.load(Ordering::SeqCst))
    }

    /// Closes the channels of ranges that no worker has taken.
    pub(super) fn close_senders(&self) {
        lock(&self.senders).clear();
    }
}

/// Counts a worker as alive until its thread ends, in whatever way.
struct Alive<'a, R: RangeScan>(&'a Shared<R>);

impl<R: RangeScan> Drop for Alive<'_, R> {
    fn drop(&mut self) {
        if self.0.alive.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.close_senders();
        }
    }
}

struct Worker<'a, R: RangeScan> {
    shared: &'a Shared<R>,
    /// None once it broke.
    connection: Option<R::Connection>,
    decoders: DecoderCache,
}

impl<R: RangeScan> Worker<'_, R> {
    /// Reads a range, on another connection if the last one broke.
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
                self.connection = R::is_usable(&connection).then_some(connection);
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
        connection: &mut R::Connection,
        delivered: &mut usize,
        sender: &SyncSender<WorkerEvent>,
    ) -> Result<()> {
        let Self { shared, decoders, .. } = self;
        let mut cancel = || match (
            shared.stopped.load(Ordering::SeqCst),
            shared.abandoned.load(Ordering::SeqCst),
        ) {
            (_, true) => Verdict::Abandon,
            (true, false) => Verdict::Cancel,
            (false, false) => Verdict::Continue,
        };
        let unread = |_| Error::new(ErrorKind::Cancelled, "nobody reads the result");
        let mut scan = shared.table.start(range, connection, decoders, &mut cancel)?;
        let mut memory = Arena::default();
        let mut profile = Profile::default();
        let mut to_skip = *delivered;
        loop {
            memory.set_block_bytes(shared.block_bytes.load(Ordering::Relaxed));
            let mut context =
                ReceiveContext { memory: &mut memory, profile: &mut profile, layout: None };
            let event = R::next(&mut scan, connection, decoders, &mut context, &mut cancel)?;
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
