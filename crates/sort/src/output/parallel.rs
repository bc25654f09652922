//! Makes the partitions of the result in parallel, ahead of their reader.
//!
//! ```text
//!   partition 0 ──▶ thread 0 ──▶ ▯▯ ──┐
//!   partition 1 ──▶ thread 1 ──▶ ▯▯ ──┼─▶ batches of partition 0, then of partition 1, …
//!   partition 2 ──▶ thread 0 ──▶ ▯▯ ──┘
//! ```
//!
//! Each thread takes the next partition, and puts its batches into a queue of two. It begins a
//! partition only if few before it are still unread.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use dray_format::Batch;

use super::partitions::{PartitionReader, Partitions};
use crate::cancel::Cancel;
use crate::context::PARTITION_BATCHES;
use crate::error::{Error, Result};

/// The most batches in memory for each thread: the queues of two partitions, and one that is made.
pub(crate) const THREAD_BATCHES: usize = 2 * PARTITION_BATCHES + 1;

/// A batch, or `None` at the end of a partition. A thread that ends without it is an error, never a
/// short result.
type Message = Result<Option<Batch>>;

/// Threads that make partitions, and the queues of their batches.
#[derive(Debug)]
pub(crate) struct ParallelOutput {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// The queues of the partitions that are not read yet.
    queues: std::vec::IntoIter<Receiver<Message>>,
    /// The queue of the partition that is read.
    queue: Option<Receiver<Message>>,
}

/// What the threads share.
#[derive(Debug)]
struct Shared {
    cancel: Cancel,
    partitions: Partitions,
    /// The queue of each partition, until a thread takes it.
    queues: Vec<Mutex<Option<SyncSender<Message>>>>,
    /// The next partition to take.
    next: AtomicUsize,
    /// The number of partitions that may be begun.
    begun_max: Mutex<usize>,
    begun_max_grew: Condvar,
    stopped: AtomicBool,
}

impl ParallelOutput {
    /// Starts threads that make partitions.
    pub fn start(partitions: Partitions, threads: usize, cancel: Cancel) -> Result<Self> {
        let (senders, queues): (Vec<_>, Vec<_>) =
            (0..partitions.len()).map(|_| sync_channel(PARTITION_BATCHES)).unzip();
        let shared = Arc::new(Shared {
            cancel,
            partitions,
            queues: senders.into_iter().map(|sender| Mutex::new(Some(sender))).collect(),
            next: AtomicUsize::new(0),
            begun_max: Mutex::new(2 * threads),
            begun_max_grew: Condvar::new(),
            stopped: AtomicBool::new(false),
        });
        let (queues, queue) = (queues.into_iter(), None);
        let mut output = Self { shared, threads: Vec::with_capacity(threads), queues, queue };
        for number in 0..threads {
            let shared = output.shared.clone();
            let named = std::thread::Builder::new().name(format!("dray-sort-{number}"));
            let refused = |error| Error::Thread(format!("can't start a thread to sort: {error}"));
            output.threads.push(named.spawn(move || shared.work()).map_err(refused)?);
        }
        Ok(output)
    }

    /// Waits for the next batch; `None` if there are no more rows.
    pub fn next_batch(&mut self) -> Result<Option<Batch>> {
        loop {
            self.shared.cancel.check()?;
            if let Some(queue) = &self.queue {
                let lost =
                    |_| Err(Error::Thread("a thread that sorted has ended too early".into()));
                if let Some(batch) = queue.recv().unwrap_or_else(lost)? {
                    return Ok(Some(batch));
                }
                // The partition is read, and one more may be begun.
                *lock(&self.shared.begun_max) += 1;
                self.shared.begun_max_grew.notify_all();
            }
            self.queue = self.queues.next();
            if self.queue.is_none() {
                return Ok(None);
            }
        }
    }
}

impl Drop for ParallelOutput {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        // Without receivers sending fails. Threads that wait to begin a partition see `stopped`.
        self.queue = None;
        self.queues = Vec::new().into_iter();
        *lock(&self.shared.begun_max) = usize::MAX;
        self.shared.begun_max_grew.notify_all();
        for thread in self.threads.drain(..) {
            // A panic was reported as an error already, or nobody read its batches.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn work(&self) {
        let mut last = None;
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.partitions.len() {
                return;
            }
            let mut begun_max = lock(&self.begun_max);
            while number >= *begun_max {
                begun_max =
                    self.begun_max_grew.wait(begun_max).unwrap_or_else(PoisonError::into_inner);
            }
            drop(begun_max);
            let queue = self.queues.get(number).and_then(|queue| lock(queue).take());
            let Some(queue) = queue.filter(|_| !self.stopped.load(Ordering::Relaxed)) else {
                return;
            };
            match self.make(number, last, &queue) {
                Ok(output) => last = Some(output),
                Err(error) => {
                    // Sending fails only if nobody reads any more.
                    let _ = queue.send(Err(error));
                    return;
                }
            }
        }
    }

    /// Makes a partition, and returns its reader, whose buffers the next partition uses again.
    fn make(
        &self,
        number: usize,
        last: Option<PartitionReader>,
        queue: &SyncSender<Message>,
    ) -> Result<PartitionReader> {
        let mut reader = self.partitions.begin(number, last)?;
        while let Some(batch) = self.partitions.next_batch(&mut reader)? {
            if queue.send(Ok(Some(batch))).is_err() {
                return Ok(reader);
            }
        }
        // Sending fails only if nobody reads any more.
        let _ = queue.send(Ok(None));
        Ok(reader)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
