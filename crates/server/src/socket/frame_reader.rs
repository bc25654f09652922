//! Reads a client's frames.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use dray_wire::{FRAME_HEADER_BYTES, Frame, ProtocolError};
use tokio::io::AsyncReadExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::ReadHalf;
use crate::admission::request_permits;

/// Why there is no next frame.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The client closed the connection, or it broke.
    Closed,
    /// The client broke the protocol.
    Protocol(ProtocolError),
}

/// The least buffer space for a read.
const READ_BYTES: usize = 4096;

/// Frames up to this size need no reservation of memory.
const UNRESERVED_BYTES_MAX: usize = 64 << 10;
/// How long a larger frame may take to arrive, since other connections wait for its memory: a
/// constant, and a time for each MiB.
const FRAME_TIMEOUT: Duration = Duration::from_secs(30);
const FRAME_TIMEOUT_PER_MIB: Duration = Duration::from_secs(10);

/// Reads frames. Cancelling a read loses no bytes.
pub(crate) struct FrameReader {
    socket: ReadHalf,
    buffer: BytesMut,
    /// The memory for large frames of all connections.
    memory: Arc<Semaphore>,
    /// This connection's reservation of it, until [`Self::release`].
    reserved: Option<OwnedSemaphorePermit>,
    /// When the current large frame must be complete.
    deadline: Option<Instant>,
}

impl FrameReader {
    pub(crate) fn new(socket: ReadHalf, received: BytesMut, memory: Arc<Semaphore>) -> Self {
        Self { socket, buffer: received, memory, reserved: None, deadline: None }
    }

    /// Returns the memory of the last large frame, once its payload is no longer in use.
    pub(crate) fn release(&mut self) {
        self.reserved = None;
    }

    /// Reserves memory for a large frame. While this waits, the client is not read from, which
    /// holds it back.
    async fn reserve(&mut self, payload_bytes: usize) {
        let permits = request_permits(payload_bytes as u64);
        if payload_bytes <= UNRESERVED_BYTES_MAX
            || self.reserved.as_ref().is_some_and(|held| held.num_permits() >= permits as usize)
        {
            return;
        }
        // Release first: waiting for more while holding some could deadlock with others.
        self.reserved = None;
        self.reserved = self.memory.clone().acquire_many_owned(permits).await.ok();
        let mebibytes = (payload_bytes >> 20) as u32;
        self.deadline = Some(Instant::now() + FRAME_TIMEOUT + FRAME_TIMEOUT_PER_MIB * mebibytes);
    }

    /// The next frame and its payload. `check` validates the header before any memory is allocated
    /// for the payload.
    pub(crate) async fn next(
        &mut self,
        check: impl Fn(&[u8; FRAME_HEADER_BYTES]) -> Result<Frame, ProtocolError>,
    ) -> Result<(Frame, Bytes), ReadError> {
        loop {
            if let Some(header) = self.buffer.first_chunk::<FRAME_HEADER_BYTES>() {
                let frame = check(header).map_err(ReadError::Protocol)?;
                let payload_bytes = frame.payload_bytes as usize;
                if self.buffer.len() >= FRAME_HEADER_BYTES + payload_bytes {
                    self.deadline = None;
                    self.buffer.advance(FRAME_HEADER_BYTES);
                    return Ok((frame, self.buffer.split_to(payload_bytes).freeze()));
                }
                self.reserve(payload_bytes).await;
                // Grow by what arrives, not by what the header announces.
                self.buffer.reserve(payload_bytes.clamp(READ_BYTES, 64 << 10));
            } else {
                self.buffer.reserve(READ_BYTES);
            }
            let read = self.socket.read_buf(&mut self.buffer);
            let read = match self.deadline {
                Some(deadline) => timeout_at(deadline, read).await.unwrap_or(Ok(0)),
                None => read.await,
            };
            match read {
                Ok(0) | Err(_) => return Err(ReadError::Closed),
                Ok(_) => {}
            }
        }
    }
}
