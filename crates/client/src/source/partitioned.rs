//! A table over several connections under one snapshot.
//!
//! ```text
//!   worker   the snapshot · range · range · …  ─┐
//!   worker   the snapshot · range · range · …  ─┴▶ batches ──▶ the reader of the result
//! ```
//!
//! How connections come to one snapshot is the database's: [`RangeScan`]. Workers take ranges from
//! one queue, so a slow worker delays nobody. A range whose connection breaks is read again over
//! another one, if another can have the snapshot. The reader counts ranges: a result ends only when
//! all of them have.

mod connections;
mod distance;
mod small_tables;
mod worker;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use arrow::datatypes::SchemaRef;
use dray_format::Profile;
use dray_wire::{Estimate, Finished};

pub(super) use self::connections::Connections;
pub(super) use self::distance::Distance;
pub(super) use self::small_tables::{FailedConnections, SmallTables};
use self::worker::{Shared, WorkerEvent, lock};
use super::frames::DecoderCache;
use super::{Event, ReceiveContext, ReceivedBatch, STOP_TIMEOUT, Start, cancelled};
use crate::error::{Error, ErrorKind, Result};
use crate::watch::{CancelCheck, Verdict};

/// Batches that wait for the reader: for each worker, or for each range if the order is kept.
const BATCHES_WAITING: usize = 2;
/// How long the reader waits before it looks whether the statement was cancelled.
const TICK: Duration = Duration::from_millis(50);

/// A table that workers read in ranges, and how each of them reads one.
pub(super) trait RangeScan: Send + Sync + 'static {
    /// A worker's connection, which sees the snapshot.
    type Connection;
    /// A range that is being read.
    type Scan;

    /// The number of ranges, in the table's order.
    fn ranges(&self) -> usize;

    fn workers(&self) -> usize;

    /// Whether batches arrive in the order of the ranges.
    fn is_ordered(&self) -> bool;

    /// Makes a connection that sees the snapshot, while `keep_waiting` returns true.
    ///
    /// # Errors
    /// When there is none.
    fn connect(&self, keep_waiting: &mut dyn FnMut() -> bool) -> Result<Self::Connection>;

    /// Whether another range can be read over a connection.
    fn is_usable(connection: &Self::Connection) -> bool;

    /// Starts to read a range, whose rows come in the same order each time.
    ///
    /// # Errors
    /// When its statement fails or the connection breaks.
    fn start(
        &self,
        range: usize,
        connection: &mut Self::Connection,
        decoders: &mut DecoderCache,
        cancel: CancelCheck<'_>,
    ) -> Result<Self::Scan>;

    /// The next event of a range, as of [`Source::next`](super::Source::next).
    ///
    /// # Errors
    /// When its statement fails or the connection breaks.
    fn next(
        scan: &mut Self::Scan,
        connection: &mut Self::Connection,
        decoders: &mut DecoderCache,
        context: &mut ReceiveContext<'_>,
        cancel: CancelCheck<'_>,
    ) -> Result<Event>;
}

/// The reader's end of workers that read a table.
pub(super) struct PartitionedScan<R: RangeScan> {
    shared: Arc<Shared<R>>,
    /// One for all ranges, or one for each range in order.
    queues: VecDeque<Receiver<WorkerEvent>>,
    /// Taken when the result starts.
    start: Option<Start>,
    schema: SchemaRef,
    ranges_left: usize,
    finished: Option<Finished>,
    began: Instant,
    /// The process that started the workers.
    process: u32,
}

impl<R: RangeScan> std::fmt::Debug for PartitionedScan<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartitionedScan")
            .field("ranges_left", &self.ranges_left)
            .finish_non_exhaustive()
    }
}

impl<R: RangeScan> PartitionedScan<R> {
    /// Starts the workers and waits for the first of them to begin.
    ///
    /// # Errors
    /// When none can begin.
    pub(super) fn start(table: R, cancel: CancelCheck<'_>) -> Result<Self> {
        let (workers, ranges_left) = (table.workers(), table.ranges());
        let (queues, batches) = match table.is_ordered() {
            true => (ranges_left, BATCHES_WAITING),
            false => (1, BATCHES_WAITING * workers),
        };
        let (senders, queues): (Vec<_>, VecDeque<_>) =
            (0..queues).map(|_| sync_channel(batches)).unzip();
        let shared = Arc::new(Shared::new(table, senders));
        let mut scan = Self {
            shared: shared.clone(),
            queues,
            start: None,
            schema: SchemaRef::new(arrow::datatypes::Schema::empty()),
            ranges_left,
            finished: None,
            began: Instant::now(),
            process: std::process::id(),
        };
        for i in 0..workers {
            let shared = shared.clone();
            let thread = std::thread::Builder::new()
                .name(format!("dray-scan-{i}"))
                .spawn(move || shared.run_worker());
            if let Err(cause) = thread {
                scan.shared.alive.fetch_sub(workers - i, Ordering::SeqCst);
                lock(&scan.shared.failures).push(
                    Error::new(ErrorKind::Resources, "can't start a thread").with_cause(cause),
                );
                break;
            }
        }
        match scan.next_event(cancel)? {
            Some(WorkerEvent::Started(start)) => {
                scan.schema = start.schema.clone();
                scan.start = Some(*start);
                Ok(scan)
            }
            Some(WorkerEvent::Failed(error)) => Err(error),
            _ => Err(scan.lost()),
        }
    }

    /// Says what is expected of all ranges together.
    pub(super) fn set_estimate(&mut self, estimate: Estimate) {
        if let Some(start) = &mut self.start {
            start.estimate = estimate;
        }
    }

    /// What the workers read.
    pub(super) fn table(&self) -> &R {
        &self.shared.table
    }

    /// Why connections could not be made or broke, so far.
    pub(super) fn failures(&self) -> Vec<String> {
        lock(&self.shared.failures).iter().map(Error::to_string).collect()
    }

    /// Ends the workers. Their statements are cancelled at once; `cancel` says whether to wait for
    /// them.
    pub(super) fn stop(&mut self, cancel: CancelCheck<'_>) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // A forked child has no workers.
        if std::process::id() != self.process {
            return;
        }
        self.queues.clear();
        self.shared.close_senders();
        let deadline = Instant::now() + STOP_TIMEOUT;
        while self.shared.alive.load(Ordering::SeqCst) > 0 && Instant::now() < deadline {
            if cancel() == Verdict::Abandon {
                self.shared.abandoned.store(true, Ordering::SeqCst);
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The next event of the result.
    ///
    /// # Errors
    /// When a range fails, is lost with its worker, or the statement is cancelled.
    pub(super) fn next(
        &mut self,
        context: &mut ReceiveContext<'_>,
        cancel: CancelCheck<'_>,
    ) -> Result<Event> {
        let block_bytes = context.memory.block_bytes() / self.shared.table.workers().max(1);
        self.shared.block_bytes.store(block_bytes, Ordering::Relaxed);
        if let Some(start) = self.start.take() {
            return Ok(Event::Started(start));
        }
        let began = Instant::now();
        loop {
            match self.next_event(cancel)? {
                Some(WorkerEvent::Started(start)) if start.schema == self.schema => {}
                Some(WorkerEvent::Started(_)) => {
                    return Err(Error::new(
                        ErrorKind::Execution,
                        "the table's columns differ between connections",
                    ));
                }
                Some(WorkerEvent::Batch { batch, wire_bytes, decoded_bytes, decode }) => {
                    return Ok(Event::Batch(ReceivedBatch {
                        batch,
                        wire_bytes,
                        decoded_bytes,
                        arrived: Instant::now(),
                        receive: began.elapsed(),
                        parse: Duration::ZERO,
                        decode,
                    }));
                }
                Some(WorkerEvent::RangeFinished { finished, profile }) => {
                    debug_assert!(self.ranges_left > 0, "each range ends once");
                    self.ranges_left -= 1;
                    self.finished = match self.finished.take() {
                        Some(sum) => finished.map(|range| add(sum, &range)),
                        None => finished,
                    };
                    merge(context.profile, profile);
                }
                Some(WorkerEvent::Failed(error)) => return Err(error),
                None if self.ranges_left > 0 => return Err(self.lost()),
                None => {
                    let total_ns =
                        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                    let server =
                        self.finished.take().map(|finished| Finished { total_ns, ..finished });
                    return Ok(Event::Finished { server });
                }
            }
        }
    }

    /// The next event of a worker, in the order of ranges if the order is kept; None at the end.
    fn next_event(&mut self, cancel: CancelCheck<'_>) -> Result<Option<WorkerEvent>> {
        loop {
            let Some(queue) = self.queues.front() else { return Ok(None) };
            match queue.recv_timeout(TICK) {
                Ok(event) => return Ok(Some(event)),
                Err(RecvTimeoutError::Timeout) => {
                    if cancel() > Verdict::Continue {
                        return Err(cancelled());
                    }
                    // Without a worker, a range that none has taken never comes.
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
}

/// Workers that have begun end before the coordinator's transaction does.
impl<R: RangeScan> Drop for PartitionedScan<R> {
    fn drop(&mut self) {
        self.stop(&mut || Verdict::Cancel);
    }
}

/// Adds the times of two ranges, each of its own server process.
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

/// Adds the profile of a range to that of the result.
fn merge(into: &mut Profile, range: Profile) {
    into.columns.resize_with(into.columns.len().max(range.columns.len()), Default::default);
    for (column, range) in into.columns.iter_mut().zip(range.columns) {
        column.body_bytes += range.body_bytes;
        column.decoded_bytes += range.decoded_bytes;
        column.decode_ns += range.decode_ns;
        for name in range.encodings {
            if !column.encodings.contains(&name) {
                column.encodings.push(name);
            }
        }
    }
}
