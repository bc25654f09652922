//! Threads that merge parts of a result ahead of who reads it.
//!
//! ```text
//!   part 0 ──▶ thread 0 ──▶ ▯▯ ──┐
//!   part 1 ──▶ thread 1 ──▶ ▯▯ ──┼─▶ batches of part 0, then of part 1, …
//!   part 2 ──▶ thread 0 ──▶ ▯▯ ──┘
//! ```
//!
//! A thread takes the next part, and has a queue of two batches for it. It begins a part only if
//! there are not many before it that have not been read.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use dray_format::Batch;

use super::merge_path::parts;
use super::output::{BatchSize, PartitionOutput};
use super::sources::Sources;
use crate::context::SortContext;
use crate::error::{Error, Result};
use crate::key::KeyRange;

/// A part has about so many batches, and its queue as many.
pub(crate) const BATCHES_A_PART: usize = 2;
/// So many batches a thread may have made that nobody has read: those of two parts, and one that it
/// makes.
pub(crate) const BATCHES_A_THREAD: usize = 2 * BATCHES_A_PART + 1;

/// A batch, or nothing at the end of a part: a thread that ended in any other way is an error,
/// never a short result.
type Message = Result<Option<Batch>>;

/// Threads that merge, and what they have made.
#[derive(Debug)]
pub(crate) struct ParallelMerge {
    shared: Arc<SortState>,
    threads: Vec<JoinHandle<()>>,
    /// What comes of each part.
    results: std::vec::IntoIter<Receiver<Message>>,
    result: Option<Receiver<Message>>,
}

#[derive(Debug)]
struct SortState {
    context: Arc<SortContext>,
    sources: Sources,
    size: BatchSize,
    parts: Vec<KeyRange>,
    /// Where the batches of each part go; taken by the thread that makes them.
    queues: Vec<Mutex<Option<SyncSender<Message>>>>,
    next: AtomicUsize,
    /// How many parts may be begun.
    begun_max: Mutex<usize>,
    more: Condvar,
    stopped: AtomicBool,
}

impl ParallelMerge {
    /// Starts threads that merge parts of about so many rows.
    pub fn start(
        context: Arc<SortContext>,
        sources: Sources,
        threads: usize,
        part_rows: usize,
        size: BatchSize,
    ) -> Result<Self> {
        let parts = parts(&sources, part_rows)?;
        let (queues, results): (Vec<_>, Vec<_>) =
            parts.iter().map(|_| sync_channel(BATCHES_A_PART)).unzip();
        let queues = queues.into_iter().map(|queue| Mutex::new(Some(queue))).collect();
        let shared = Arc::new(SortState {
            context,
            sources,
            size,
            parts,
            queues,
            next: AtomicUsize::new(0),
            begun_max: Mutex::new(2 * threads),
            more: Condvar::new(),
            stopped: AtomicBool::new(false),
        });
        let (results, result) = (results.into_iter(), None);
        let mut merge = Self { shared, threads: Vec::with_capacity(threads), results, result };
        for number in 0..threads {
            let shared = merge.shared.clone();
            let named = std::thread::Builder::new().name(format!("dray-merge-{number}"));
            let refused = |error| Error::Thread(format!("can't start a thread to merge: {error}"));
            merge.threads.push(named.spawn(move || shared.work()).map_err(refused)?);
        }
        Ok(merge)
    }

    /// The next batch, when it is there; none if there are no more rows.
    pub fn next_batch(&mut self) -> Result<Option<Batch>> {
        loop {
            self.shared.context.cancel.check()?;
            if let Some(result) = &self.result {
                let lost =
                    |_| Err(Error::Thread("a thread that merged has ended too early".into()));
                if let Some(batch) = result.recv().unwrap_or_else(lost)? {
                    return Ok(Some(batch));
                }
                // The part has ended, and one more may begin.
                *lock(&self.shared.begun_max) += 1;
                self.shared.more.notify_all();
            }
            self.result = self.results.next();
            if self.result.is_none() {
                return Ok(None);
            }
        }
    }
}

impl Drop for ParallelMerge {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        // Nobody reads any more, so sending fails; and who waits for a part to begin looks again.
        self.result = None;
        self.results = Vec::new().into_iter();
        *lock(&self.shared.begun_max) = usize::MAX;
        self.shared.more.notify_all();
        for thread in self.threads.drain(..) {
            // One that panicked has nothing more to say.
            let _ = thread.join();
        }
    }
}

impl SortState {
    fn work(&self) {
        let mut last = None;
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(bounds) = self.parts.get(number) else { return };
            let mut begun_max = lock(&self.begun_max);
            while number >= *begun_max {
                begun_max = self.more.wait(begun_max).unwrap_or_else(PoisonError::into_inner);
            }
            drop(begun_max);
            let queue = self.queues.get(number).and_then(|queue| lock(queue).take());
            let Some(queue) = queue.filter(|_| !self.stopped.load(Ordering::Relaxed)) else {
                return;
            };
            match self.merge(last, bounds, &queue) {
                Ok(part) => last = Some(part),
                Err(error) => {
                    // If this fails, nobody reads any more, and nobody asks why.
                    let _ = queue.send(Err(error));
                    return;
                }
            }
        }
    }

    /// Merges a part, and returns it: the next one's batches have as much room from the beginning.
    fn merge(
        &self,
        last: Option<PartitionOutput>,
        bounds: &KeyRange,
        queue: &SyncSender<Message>,
    ) -> Result<PartitionOutput> {
        let mut part = match last {
            Some(last) => last.then(&self.sources, bounds)?,
            None => PartitionOutput::new(self.context.clone(), &self.sources, bounds, self.size)?,
        };
        while let Some(batch) = part.next_batch()? {
            if queue.send(Ok(Some(batch))).is_err() {
                return Ok(part);
            }
        }
        // Nobody may read any more.
        let _ = queue.send(Ok(None));
        Ok(part)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
