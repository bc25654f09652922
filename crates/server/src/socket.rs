//! Sockets that the server speaks over, and reading frames from them.

mod frame_reader;
mod outgoing;

use std::convert::Infallible;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) use self::frame_reader::{FrameReader, ReadError};
pub(crate) use self::outgoing::Outgoing;
use crate::pipes::Pipes;
use crate::way::Way;

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
    /// What the kernel tells of the way, where the client is on another host.
    pub(crate) way: Option<Way>,
}
