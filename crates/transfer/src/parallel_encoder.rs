//! Encoding several chunks of one stream in parallel. They leave in order.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::{JoinHandle, block_in_place, spawn_blocking};

use crate::chunker::{Chunker, UnencodedChunk};
use crate::payload::{EncodeError, Encoder, Payload};
use crate::queue::EncodePermit;

/// Encoded rows, or why they can't be encoded.
pub(crate) struct Encoded {
    pub(crate) payload: Result<Payload, EncodeError>,
    pub(crate) took: Duration,
    /// Held until they have been queued.
    pub(crate) _permit: EncodePermit,
}

/// Encodes the chunks of a stream: in the task itself, or, where they take long and threads are
/// free, several at a time on threads for blocking work.
pub(crate) struct ParallelEncoder {
    idle: Vec<Encoder>,
    /// Chunks that are being encoded, in their order.
    running: VecDeque<JoinHandle<(Encoder, Encoded)>>,
    /// The number of encoders.
    count: usize,
}

impl ParallelEncoder {
    /// An encoder of up to `count` chunks at a time, and of one if `count` is 0.
    pub(crate) fn new(chunker: &Chunker, count: usize) -> Self {
        let count = count.max(1);
        let idle = (0..count).map(|_| chunker.encoder()).collect();
        Self { idle, running: VecDeque::with_capacity(count), count }
    }

    /// Whether no chunk is being encoded.
    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Whether a chunk must be taken with [`Self::next`] before another one is begun.
    pub(crate) fn is_full(&self) -> bool {
        self.running.len() == self.count
    }

    /// Encodes a chunk. Returns it if it was encoded at once; otherwise [`Self::next`] returns it
    /// in its turn. The encoder must not be full.
    pub(crate) fn begin(
        &mut self,
        unencoded: UnencodedChunk,
        permit: EncodePermit,
    ) -> Option<Encoded> {
        debug_assert!(!self.is_full() && self.idle.len() <= self.count);
        let mut encoder = self.idle.pop()?;
        let takes_long = encoder.takes_long(&unencoded);
        if self.count > 1 && (takes_long || !self.running.is_empty()) {
            self.running.push_back(spawn_blocking(move || {
                let encoded = encode(&mut encoder, &unencoded, permit);
                (encoder, encoded)
            }));
            return None;
        }
        let encoded = match Handle::current().runtime_flavor() {
            // Other tasks of this thread, above all the writer, need not wait.
            RuntimeFlavor::MultiThread if takes_long => {
                block_in_place(|| encode(&mut encoder, &unencoded, permit))
            }
            _ => encode(&mut encoder, &unencoded, permit),
        };
        self.idle.push(encoder);
        Some(encoded)
    }

    /// Waits for the first chunk that is being encoded; `None` if there is none. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<Encoded> {
        let ended = self.running.front_mut()?.await;
        self.running.pop_front();
        let (encoder, encoded) = match ended {
            Ok(done) => done,
            Err(failed) => match failed.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The runtime is shutting down.
                Err(_) => return None,
            },
        };
        self.idle.push(encoder);
        Some(encoded)
    }
}

fn encode(encoder: &mut Encoder, unencoded: &UnencodedChunk, permit: EncodePermit) -> Encoded {
    let started = Instant::now();
    let payload = encoder.encode(unencoded);
    Encoded { payload, took: started.elapsed(), _permit: permit }
}
