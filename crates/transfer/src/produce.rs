//! One producer: a stream of batches, cut, encoded and queued.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dray_format::{Batch, Error};
use futures_core::Stream;

use crate::chunker::Chunker;
use crate::lanes::{Lanes, Made};
use crate::queue::{Sender, Turn};

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

fn add(counter: &AtomicU64, elapsed: Duration) {
    let ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
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

/// Drives a stream of batches to its end: each batch is cut and encoded here, up to `lanes` chunks
/// at a time, and the chunks are queued in order.
///
/// # Errors
/// When the source fails, a chunk can't be made, or the queue's receiver is gone.
pub async fn produce<E>(
    batches: impl Stream<Item = Result<Batch, E>>,
    mut chunker: Chunker,
    lanes: usize,
    queue: Sender,
    times: &Times,
) -> Result<(), Failure<E>> {
    let mut lanes = Lanes::new(&chunker, lanes);
    let mut batches = pin!(batches);
    loop {
        let started = Instant::now();
        let batch = loop {
            tokio::select! {
                biased;
                // What is made leaves while the source is busy.
                made = lanes.next(), if !lanes.is_empty() => send(made, &queue, times).await?,
                batch = poll_fn(|context| batches.as_mut().poll_next(context)) => break batch,
            }
        };
        add(&times.execute_ns, started.elapsed());
        let last = batch.is_none();
        if let Some(batch) = batch {
            chunker.push(batch.map_err(Failure::Source)?);
        }
        while let Some(cut) = if last { chunker.last() } else { chunker.full() } {
            if lanes.is_full() {
                send(lanes.next().await, &queue, times).await?;
            }
            let Some(turn) = turn(&queue, times).await else { return Err(Failure::Abandoned) };
            send(lanes.begin(cut, turn), &queue, times).await?;
        }
        if last {
            while let Some(made) = lanes.next().await {
                send(Some(made), &queue, times).await?;
            }
            return Ok(());
        }
    }
}

/// Waits until there is reason to make another chunk.
async fn turn(queue: &Sender, times: &Times) -> Option<Turn> {
    let started = Instant::now();
    let turn = queue.turn().await;
    add(&times.queue_ns, started.elapsed());
    turn
}

async fn send<E>(made: Option<Made>, queue: &Sender, times: &Times) -> Result<(), Failure<E>> {
    let Some(Made { chunk, took, _turn }) = made else { return Ok(()) };
    add(&times.encode_ns, took);
    let started = Instant::now();
    if !queue.send(chunk.map_err(Failure::Chunk)?).await {
        return Err(Failure::Abandoned);
    }
    add(&times.queue_ns, started.elapsed());
    Ok(())
}
