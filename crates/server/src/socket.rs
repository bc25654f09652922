//! Sockets that the server speaks over, and reading frames from them.

use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use dray_wire::{FRAME_HEADER_BYTES, Frame, ProtocolError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::admission::request_units;
use crate::pipes::Pipes;
use crate::tcp::TcpMonitor;

/// Where a peer is, as far as speed is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    /// A Unix socket.
    Unix,
    /// TCP on this host.
    Loopback,
    /// TCP to another host.
    Remote,
    /// TLS over TCP; whether it is on this host.
    Tls { loopback: bool },
}

impl Link {
    pub(crate) fn is_same_host(self) -> bool {
        !matches!(self, Self::Remote | Self::Tls { loopback: false })
    }

    /// Whether the bytes leave this host with nothing else to guard them.
    pub(crate) fn needs_checksums(self) -> bool {
        self == Self::Remote
    }
}

pub(crate) type ReadHalf = Box<dyn AsyncRead + Send + Unpin>;

/// The way to the client.
pub(crate) enum WriteHalf {
    Socket(Box<dyn AsyncWrite + Send + Unpin>),
    Pipes(Pipes),
}

impl WriteHalf {
    /// Gives back memory that was lent to pipes, for as long as this is polled.
    pub(crate) async fn keep_reclaiming(&mut self) -> Infallible {
        match self {
            Self::Pipes(pipes) => pipes.keep_reclaiming().await,
            Self::Socket(_) => std::future::pending().await,
        }
    }
}

/// A connection that is ready for the greeting.
pub(crate) struct Open {
    pub(crate) read: ReadHalf,
    /// What was read already.
    pub(crate) received: BytesMut,
    pub(crate) write: WriteHalf,
    pub(crate) link: Link,
    /// Watches the connection, if the client is on another host.
    pub(crate) tcp: Option<TcpMonitor>,
}

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

/// Parts of a frame, of which a front has been written. Writing can be interrupted and taken up
/// again.
#[derive(Default)]
pub(crate) struct Outgoing {
    parts: std::collections::VecDeque<Bytes>,
}

/// How many parts one system call takes: IOV_MAX of Linux and the BSDs.
const PARTS_PER_WRITE: usize = 1024;

impl Outgoing {
    pub(crate) fn push(&mut self, part: Bytes) {
        if !part.is_empty() {
            self.parts.push_back(part);
        }
    }

    /// How much is left.
    pub(crate) fn bytes(&self) -> usize {
        self.parts.iter().map(Bytes::len).sum()
    }

    /// Writes what is left. Safe to drop and call again.
    pub(crate) async fn write(&mut self, socket: &mut WriteHalf) -> io::Result<()> {
        let socket = match socket {
            WriteHalf::Socket(socket) => socket,
            WriteHalf::Pipes(pipes) => return pipes.write(&mut self.parts).await,
        };
        while !self.parts.is_empty() {
            let mut slices = [IoSlice::new(&[]); PARTS_PER_WRITE];
            let count = self.parts.len().min(PARTS_PER_WRITE);
            slices
                .iter_mut()
                .zip(&self.parts)
                .for_each(|(slice, part)| *slice = IoSlice::new(part));
            let written = WriteSome { socket, slices: &slices[..count] }.await?;
            self.advance(written);
        }
        socket.flush().await
    }

    fn advance(&mut self, mut written: usize) {
        while let Some(front) = self.parts.front_mut() {
            if written < front.len() {
                front.advance(written);
                return;
            }
            written -= front.len();
            self.parts.pop_front();
        }
    }
}

/// One vectored write.
struct WriteSome<'a, 'b> {
    socket: &'a mut (dyn AsyncWrite + Send + Unpin),
    slices: &'a [IoSlice<'b>],
}

impl Future for WriteSome<'_, '_> {
    type Output = io::Result<usize>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let slices = self.slices;
        Pin::new(&mut *self.socket).poll_write_vectored(context, slices).map(
            |written| match written {
                Ok(0) => Err(io::ErrorKind::WriteZero.into()),
                other => other,
            },
        )
    }
}
