//! A producer: it cuts, encodes and queues one stream of batches.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dray_format::Batch;
use futures_core::Stream;

use crate::chunker::Chunker;
use crate::parallel_encoder::{Encoded, ParallelEncoder};
use crate::payload::EncodeError;
use crate::queue::{EncodePermit, Sender};

/// Where the time of a transfer goes, summed over its producers.
#[derive(Debug, Default)]
pub struct Times {
    execute_ns: AtomicU64,
    encode_ns: AtomicU64,
    queue_ns: AtomicU64,
}

impl Times {
    /// The waits for the next batch of the source.
    pub fn execute(&self) -> Duration {
        Duration::from_nanos(self.execute_ns.load(Ordering::Relaxed))
    }

    /// The time spent encoding chunks, in all threads.
    pub fn encode(&self) -> Duration {
        Duration::from_nanos(self.encode_ns.load(Ordering::Relaxed))
    }

    /// The waits for space in the queue.
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
    /// Encoding rows failed.
    Encode(EncodeError),
    /// The queue's receiver is gone.
    Abandoned,
}

/// Drives a stream of batches to its end: cuts it into chunks, encodes up to `parallelism` of them
/// at a time, and queues them in order.
///
/// # Errors
/// The source fails, a chunk can't be encoded, or the queue's receiver is gone.
pub async fn produce<E>(
    batches: impl Stream<Item = Result<Batch, E>>,
    mut chunker: Chunker,
    parallelism: usize,
    queue: Sender,
    times: &Times,
) -> Result<(), Failure<E>> {
    let mut encoder = ParallelEncoder::new(&chunker, parallelism);
    let mut batches = pin!(batches);
    loop {
        let started = Instant::now();
        let batch = loop {
            tokio::select! {
                biased;
                // Encoded chunks leave while the source is busy.
                encoded = encoder.next(), if !encoder.is_empty() => {
                    send(encoded, &queue, times).await?;
                }
                batch = poll_fn(|context| batches.as_mut().poll_next(context)) => break batch,
            }
        };
        add(&times.execute_ns, started.elapsed());
        let is_last = batch.is_none();
        if let Some(batch) = batch {
            chunker.push(batch.map_err(Failure::Source)?);
        }
        while let Some(unencoded) = if is_last { chunker.take_rest() } else { chunker.take_full() }
        {
            if encoder.is_full() {
                send(encoder.next().await, &queue, times).await?;
            }
            let Some(permit) = permit(&queue, times).await else {
                return Err(Failure::Abandoned);
            };
            send(encoder.begin(unencoded, permit), &queue, times).await?;
        }
        if is_last {
            while let Some(encoded) = encoder.next().await {
                send(Some(encoded), &queue, times).await?;
            }
            return Ok(());
        }
    }
}

/// Waits until another chunk may be encoded.
async fn permit(queue: &Sender, times: &Times) -> Option<EncodePermit> {
    let started = Instant::now();
    let permit = queue.permit().await;
    add(&times.queue_ns, started.elapsed());
    permit
}

async fn send<E>(
    encoded: Option<Encoded>,
    queue: &Sender,
    times: &Times,
) -> Result<(), Failure<E>> {
    let Some(Encoded { payload, took, _permit }) = encoded else { return Ok(()) };
    add(&times.encode_ns, took);
    let started = Instant::now();
    if !queue.send(payload.map_err(Failure::Encode)?).await {
        return Err(Failure::Abandoned);
    }
    add(&times.queue_ns, started.elapsed());
    Ok(())
}
