//! A queue of chunks, bounded by their encoded bytes.

use std::sync::Arc;

use dray_format::Chunk;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// A queue that holds at most `bytes_max` of chunks: those waiting, and those taken out and not yet
/// dropped. It holds `chunks_min` of them however large they are: with one, a chunk that is larger
/// has the queue to itself; with two, the next one waits already while it is written. At most
/// `makers_max` chunks are being made, or wait for room, at a time, however many producers there
/// are.
pub fn queue(bytes_max: u32, chunks_min: u32, makers_max: usize) -> (Sender, Receiver) {
    let (chunks, receiver) = mpsc::unbounded_channel();
    // Every chunk takes some room, or there would be no bound.
    let chunks_min = chunks_min.max(1);
    let bytes_max = bytes_max.max(chunks_min);
    let room = Arc::new(Semaphore::new(bytes_max as usize));
    let turns = Arc::new(Semaphore::new(makers_max.max(1)));
    (
        Sender {
            chunks,
            room: room.clone(),
            turns: turns.clone(),
            chunk_bytes_max: bytes_max / chunks_min,
        },
        Receiver { chunks: receiver, room, turns },
    )
}

/// The producers' end.
#[derive(Debug, Clone)]
pub struct Sender {
    chunks: mpsc::UnboundedSender<Queued>,
    room: Arc<Semaphore>,
    turns: Arc<Semaphore>,
    /// No chunk takes more room than this.
    chunk_bytes_max: u32,
}

/// The right to make a chunk, until it has been appended.
pub(crate) type Turn = OwnedSemaphorePermit;

/// A chunk, and the room that it takes in the queue until it is dropped.
#[derive(Debug)]
pub struct Queued {
    /// The chunk.
    pub chunk: Chunk,
    _room: OwnedSemaphorePermit,
}

impl Sender {
    /// Waits until another chunk may be made. None when the receiver is gone.
    pub(crate) async fn turn(&self) -> Option<Turn> {
        self.turns.clone().acquire_owned().await.ok()
    }

    /// Waits for room, then appends a chunk. False when the receiver is gone.
    pub async fn send(&self, chunk: Chunk) -> bool {
        let bytes = u32::try_from(chunk.chunk_bytes() + chunk.state_bytes())
            .unwrap_or(u32::MAX)
            .min(self.chunk_bytes_max);
        match self.room.clone().acquire_many_owned(bytes).await {
            Ok(room) => self.chunks.send(Queued { chunk, _room: room }).is_ok(),
            Err(_) => false,
        }
    }
}

/// The writer's end.
#[derive(Debug)]
pub struct Receiver {
    chunks: mpsc::UnboundedReceiver<Queued>,
    room: Arc<Semaphore>,
    turns: Arc<Semaphore>,
}

impl Receiver {
    /// The next chunk; none when all senders are gone and the queue is empty.
    pub async fn receive(&mut self) -> Option<Queued> {
        self.chunks.recv().await
    }
}

impl Drop for Receiver {
    /// Wakes the senders that wait for room: chunks that the writer still holds would keep them
    /// waiting.
    fn drop(&mut self) {
        self.room.close();
        self.turns.close();
    }
}
