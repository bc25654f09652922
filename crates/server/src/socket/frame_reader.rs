//! Reads a client's frames.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use dray_wire::{FRAME_HEADER_BYTES, Frame, ProtocolError, ServerError};
use tokio::io::AsyncReadExt;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

use super::ReadHalf;
use crate::admission::Admission;

/// Why there is no next frame.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The client closed the connection, or it broke.
    Closed,
    /// The client broke the protocol.
    Protocol(ProtocolError),
    /// Others have used the memory for large frames for too long.
    NoMemory(ServerError),
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
    /// Has the memory for large frames of all connections.
    admission: Arc<Admission>,
    /// This connection's reservation of it, until [`Self::release`].
    reserved: Option<OwnedSemaphorePermit>,
    /// When the large frame that is on its way must be complete; Some once it has its memory.
    deadline: Option<Instant>,
}

impl FrameReader {
    pub(crate) fn new(socket: ReadHalf, received: BytesMut, admission: Arc<Admission>) -> Self {
        Self { socket, buffer: received, admission, reserved: None, deadline: None }
    }

    /// Returns the memory of the last large frame, once its payload is no longer in use.
    pub(crate) fn release(&mut self) {
        // One that is on its way keeps its own.
        if self.deadline.is_none() {
            self.reserved = None;
        }
    }

    /// Reserves memory for a large frame. While this waits, the client is not read from, which
    /// holds it back.
    async fn reserve(&mut self, payload_bytes: usize) -> Result<(), ReadError> {
        if payload_bytes <= UNRESERVED_BYTES_MAX || self.deadline.is_some() {
            return Ok(());
        }
        // Release first: waiting for more while holding some could deadlock with others.
        self.reserved = None;
        let reserved = self.admission.admit_request(payload_bytes as u64).await;
        self.reserved = Some(reserved.map_err(ReadError::NoMemory)?);
        let mebibytes = (payload_bytes >> 20) as u32;
        self.deadline = Some(Instant::now() + FRAME_TIMEOUT + FRAME_TIMEOUT_PER_MIB * mebibytes);
        Ok(())
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
                self.reserve(payload_bytes).await?;
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

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::UnboundedMemoryPool;
    use dray_wire::Kind;
    use tokio::io::AsyncWriteExt;
    use tokio::net::UnixStream;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn each_large_frame_has_a_deadline() {
        let (server, mut client) = UnixStream::pair().unwrap();
        let pool = Arc::new(UnboundedMemoryPool::default());
        let admission = Arc::new(Admission::new(pool, Duration::from_secs(60)));
        let mut reader = FrameReader::new(Box::new(server), BytesMut::new(), admission);
        let payload_bytes = UNRESERVED_BYTES_MAX as u32 + 1;
        let frame = Frame { kind: Kind::Query, payload_bytes };
        let check = |_: &[u8; FRAME_HEADER_BYTES]| Ok(frame);
        client.write_all(&frame.encode()).await.unwrap();
        client.write_all(&vec![7; payload_bytes as usize]).await.unwrap();
        let (_, payload) = reader.next(check).await.unwrap();
        assert_eq!((payload.len() as u32, reader.deadline), (payload_bytes, None));
        assert!(reader.reserved.is_some());
        // The next one only begins, and the memory of the first is still in use.
        client.write_all(&frame.encode()).await.unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while reader.deadline.is_none() {
            assert!(Instant::now() < deadline, "a frame without a deadline");
            assert!(timeout(Duration::from_millis(10), reader.next(check)).await.is_err());
        }
        reader.release();
        assert!(reader.reserved.is_some(), "the memory of the frame that has begun");
        client.write_all(&vec![7; payload_bytes as usize]).await.unwrap();
        reader.next(check).await.unwrap();
        reader.release();
        assert!(reader.reserved.is_none() && reader.deadline.is_none());
    }
}
