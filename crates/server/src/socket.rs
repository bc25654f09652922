//! A client's socket, and its two directions.

mod frame_reader;
mod outgoing;

use std::convert::Infallible;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) use self::frame_reader::{FrameReader, ReadError};
pub(crate) use self::outgoing::Outgoing;
use crate::pipes::Pipes;
use crate::tcp::TcpMonitor;

/// Where a client is, relative to this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerLocality {
    /// On this host, over a Unix socket.
    Unix,
    /// On this host, over TCP.
    Loopback,
    /// On another host, or behind a proxy, over TCP.
    Remote,
    /// Anywhere, over TLS.
    Tls { loopback: bool },
}

impl PeerLocality {
    pub(crate) fn is_same_host(self) -> bool {
        !matches!(self, Self::Remote | Self::Tls { loopback: false })
    }

    /// Whether the bytes leave this host without another integrity check.
    pub(crate) fn needs_checksums(self) -> bool {
        self == Self::Remote
    }
}

pub(crate) type ReadHalf = Box<dyn AsyncRead + Send + Unpin>;

/// Where bytes for the client go.
pub(crate) enum WriteHalf {
    Socket(Box<dyn AsyncWrite + Send + Unpin>),
    /// Pipes that a client on a Unix socket offered (protocol.md section 9).
    Pipes(Pipes),
}

impl WriteHalf {
    /// Releases memory that pipes no longer refer to, for as long as this is polled.
    pub(crate) async fn keep_reclaiming(&mut self) -> Infallible {
        match self {
            Self::Pipes(pipes) => pipes.keep_reclaiming().await,
            Self::Socket(_) => std::future::pending().await,
        }
    }
}

/// A connection that is ready for the client's hello.
pub(crate) struct OpenSocket {
    pub(crate) read: ReadHalf,
    /// Bytes that have been read already.
    pub(crate) received: BytesMut,
    pub(crate) write: WriteHalf,
    pub(crate) locality: PeerLocality,
    /// The kernel's TCP statistics, if the client is on another host.
    pub(crate) tcp: Option<TcpMonitor>,
}
