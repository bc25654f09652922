//! A queue of chunks and pages, bounded by their encoded bytes and their memory.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::payload::Payload;

/// A queue of at most `bytes_max` bytes of chunks: those that wait, and those that were received
/// and not dropped yet.
///
/// It has space for `chunks_min` chunks of any size. With 1, a chunk larger than the queue fills it
/// alone. With 2, the next chunk can wait in the queue while such a chunk is written. At most
/// `encoding_max` chunks are being encoded, or wait for space, at a time, whatever the number of
/// producers.
pub fn queue(bytes_max: u32, chunks_min: u32, encoding_max: usize) -> (Sender, Receiver) {
    let (chunks, receiver) = mpsc::unbounded_channel();
    // At least a byte for each chunk: without one, a chunk would take no space at all.
    let chunks_min = chunks_min.max(1);
    let bytes_max = bytes_max.max(chunks_min);
    let free_bytes = Arc::new(Semaphore::new(bytes_max as usize));
    let encode_permits = Arc::new(Semaphore::new(encoding_max.max(1)));
    (
        Sender {
            chunks,
            free_bytes: free_bytes.clone(),
            encode_permits: encode_permits.clone(),
            chunk_bytes_max: bytes_max / chunks_min,
        },
        Receiver { chunks: receiver, free_bytes, encode_permits },
    )
}

/// The producers' end.
#[derive(Debug, Clone)]
pub struct Sender {
    chunks: mpsc::UnboundedSender<Queued>,
    free_bytes: Arc<Semaphore>,
    encode_permits: Arc<Semaphore>,
    /// The most bytes that one chunk counts as.
    chunk_bytes_max: u32,
}

/// The right to encode a chunk, until the chunk is queued.
pub(crate) type EncodePermit = OwnedSemaphorePermit;

/// A chunk or pages, and the space that they take in the queue until they are dropped.
#[derive(Debug)]
pub struct Queued {
    /// What was encoded.
    pub payload: Payload,
    _bytes: OwnedSemaphorePermit,
}

impl Sender {
    /// Waits until another chunk may be encoded. `None` if the receiver is gone.
    pub(crate) async fn permit(&self) -> Option<EncodePermit> {
        self.encode_permits.clone().acquire_owned().await.ok()
    }

    /// Waits for space, then appends a chunk or pages. Returns false if the receiver is gone.
    pub async fn send(&self, payload: Payload) -> bool {
        let bytes = u32::try_from(payload.memory_bytes()).unwrap_or(u32::MAX);
        let bytes = bytes.min(self.chunk_bytes_max);
        match self.free_bytes.clone().acquire_many_owned(bytes).await {
            Ok(bytes) => self.chunks.send(Queued { payload, _bytes: bytes }).is_ok(),
            Err(_) => false,
        }
    }
}

/// The writer's end.
#[derive(Debug)]
pub struct Receiver {
    chunks: mpsc::UnboundedReceiver<Queued>,
    free_bytes: Arc<Semaphore>,
    encode_permits: Arc<Semaphore>,
}

impl Receiver {
    /// The next chunk; `None` if the queue is empty and all senders are gone. Cancel safe.
    pub async fn receive(&mut self) -> Option<Queued> {
        self.chunks.recv().await
    }
}

impl Drop for Receiver {
    /// Wakes the senders that wait. Otherwise chunks that the writer still has would keep them
    /// waiting.
    fn drop(&mut self) {
        self.free_bytes.close();
        self.encode_permits.close();
    }
}
