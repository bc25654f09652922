//! Bytes on their way to a client, in vectored writes.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::WriteHalf;

/// Buffers per system call: IOV_MAX of Linux and the BSDs.
const PARTS_PER_WRITE: usize = 1024;

/// Buffers that are not yet written. Writing can be cancelled and resumed.
#[derive(Default)]
pub(crate) struct Outgoing {
    /// None of them is empty.
    parts: VecDeque<Bytes>,
}

impl Outgoing {
    pub(crate) fn push(&mut self, part: Bytes) {
        if !part.is_empty() {
            self.parts.push_back(part);
        }
    }

    /// Bytes that are left to write.
    pub(crate) fn bytes(&self) -> usize {
        self.parts.iter().map(Bytes::len).sum()
    }

    /// Writes what is left. Cancel safe: a later call goes on where this one stopped.
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
            let written = WriteVectored { socket, slices: &slices[..count] }.await?;
            self.advance(written);
        }
        socket.flush().await
    }

    fn advance(&mut self, mut written: usize) {
        debug_assert!(written <= self.bytes());
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
struct WriteVectored<'a, 'b> {
    socket: &'a mut (dyn AsyncWrite + Send + Unpin),
    slices: &'a [IoSlice<'b>],
}

impl Future for WriteVectored<'_, '_> {
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
