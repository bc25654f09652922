//! Bytes on their way to a client, in vectored writes.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::WriteHalf;

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
