//! One producer: a stream of batches, cut, encoded and queued.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dray_format::{Batch, Error};
use futures_core::Stream;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

use crate::chunker::Chunker;
use crate::queue::Sender;

/// Where the time of a transfer went, summed over its producers.
#[derive(Debug, Default)]
pub struct Times {
    execute_ns: AtomicU64,
    encode_ns: AtomicU64,
    queue_ns: AtomicU64,
}

impl Times {
    /// Waiting for the source's next batch.
    pub fn execute(&self) -> Duration {
        Duration::from_nanos(self.execute_ns.load(Ordering::Relaxed))
    }

    /// Making chunks.
    pub fn encode(&self) -> Duration {
        Duration::from_nanos(self.encode_ns.load(Ordering::Relaxed))
    }

    /// Waiting for room in the queue.
    pub fn queue(&self) -> Duration {
        Duration::from_nanos(self.queue_ns.load(Ordering::Relaxed))
    }
}

fn add(counter: &AtomicU64, since: Instant) {
    let ns = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
    counter.fetch_add(ns, Ordering::Relaxed);
}

/// Why a producer stopped early.
#[derive(Debug)]
pub enum Failure<E> {
    /// The source failed.
    Source(E),
    /// A batch could not be made a chunk.
    Chunk(Error),
    /// Nobody takes the chunks any more.
    Abandoned,
}

/// Drives a stream of batches to its end: each batch is cut and encoded here, and its chunks are queued.
///
/// # Errors
/// When the source fails, a chunk can't be made, or the queue's receiver is gone.
pub async fn produce<E>(
    batches: impl Stream<Item = Result<Batch, E>>,
    mut chunker: Chunker,
    queue: Sender,
    times: &Times,
) -> Result<(), Failure<E>> {
    let mut batches = pin!(batches);
    loop {
        let started = Instant::now();
        let batch = poll_fn(|context| batches.as_mut().poll_next(context)).await;
        add(&times.execute_ns, started);
        let last = batch.is_none();
        if let Some(batch) = batch {
            chunker.push(batch.map_err(Failure::Source)?);
        }
        loop {
            let started = Instant::now();
            let takes_long = chunker.takes_long();
            let mut next = || if last { chunker.last_chunk() } else { chunker.full_chunk() };
            let chunk = if takes_long { aside(next) } else { next() }.map_err(Failure::Chunk)?;
            add(&times.encode_ns, started);
            let Some(chunk) = chunk else { break };
            let started = Instant::now();
            if !queue.send(chunk).await {
                return Err(Failure::Abandoned);
            }
            add(&times.queue_ns, started);
        }
        if last {
            return Ok(());
        }
    }
}

/// Does what keeps the thread busy where other tasks, above all the writer, need not wait for it.
fn aside<T>(work: impl FnOnce() -> T) -> T {
    match Handle::current().runtime_flavor() {
        RuntimeFlavor::MultiThread => block_in_place(work),
        _ => work(),
    }
}
