//! Reads a client's frames.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use dray_wire::{FRAME_HEADER_BYTES, Frame, ProtocolError};
use tokio::io::AsyncReadExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::ReadHalf;
use crate::admission::request_units;

/// Why the reader has nothing more to say.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The peer closed the connection, or it broke.
    Gone,
    /// It sent something that is not the protocol.
    Protocol(ProtocolError),
}

/// Room for at least so many bytes is made for a read.
const READ_BYTES: usize = 4096;

/// Frames up to this size are read without asking for room.
const FREE_BYTES: usize = 64 << 10;
/// So long may a larger one take to arrive: others wait for the room that it has.
const FRAME_TIMEOUT: Duration = Duration::from_secs(30);
const FRAME_TIMEOUT_PER_MIB: Duration = Duration::from_secs(10);

/// Reads frames; a read that is dropped half-way loses nothing.
pub(crate) struct FrameReader {
    socket: ReadHalf,
    buffer: BytesMut,
    /// The room that all connections have for large frames,
    room: Arc<Semaphore>,
    /// and what of it this one has, until [`Self::release`].
    taken: Option<OwnedSemaphorePermit>,
    /// When a large frame has to be there.
    deadline: Option<Instant>,
}

impl FrameReader {
    pub(crate) fn new(socket: ReadHalf, received: BytesMut, room: Arc<Semaphore>) -> Self {
        Self { socket, buffer: received, room, taken: None, deadline: None }
    }

    /// Gives back the room of the last large frame, which nobody uses any more.
    pub(crate) fn release(&mut self) {
        self.taken = None;
    }

    /// Waits for room for a large frame, once: what others send is not read meanwhile, and so held
    /// back.
    async fn take_room(&mut self, payload_bytes: usize) {
        let units = request_units(payload_bytes as u64);
        if payload_bytes <= FREE_BYTES
            || self.taken.as_ref().is_some_and(|taken| taken.num_permits() >= units as usize)
        {
            return;
        }
        // What it has is too little; nobody waits for more who holds some.
        self.taken = None;
        self.taken = self.room.clone().acquire_many_owned(units).await.ok();
        self.deadline = Some(
            Instant::now() + FRAME_TIMEOUT + FRAME_TIMEOUT_PER_MIB * (payload_bytes >> 20) as u32,
        );
    }

    /// The next frame. `check` sees its header before any room is made for its payload.
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
                self.take_room(payload_bytes).await;
                // Grow with what has arrived, not with what was announced.
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
                Ok(0) | Err(_) => return Err(ReadError::Gone),
                Ok(_) => {}
            }
        }
    }
}
