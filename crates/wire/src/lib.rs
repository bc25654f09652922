//! The protocol of `spec/protocol.md`: messages, frames and the order they come in. Bytes in, events out; sockets are the
//! business of others.
//!
//! ```text
//!   driver reads 8 bytes ──▶ Session::frame ──▶ how many bytes follow, already held against the limits
//!   driver reads these   ──▶ Session::message ──▶ an event
//!                        or, at the client, Session::chunk ──▶ the chunk's header, checked; its body goes straight from
//!                                                              the socket into the buffer that it will stay in
//! ```
//!
//! A session says what must not happen (a query while one runs, a gap in the chunks, an end that doesn't match); the driver
//! only moves bytes. [`ClientSession`] is used by clients, [`ServerSession`] by servers.

#![forbid(unsafe_code)]

mod client_session;
mod frame;
mod message;
mod server_session;

pub use client_session::{ClientSession, ServerEvent};
pub use frame::{FRAME_HEADER_BYTES, Frame, Kind};
pub use message::{
    Cancel, Checksums, CompressionChoice, Error as ServerError, ErrorKind, Estimate, Finished, Hello, Known, Progress,
    Query, Started, Welcome,
};
pub use server_session::{ClientEvent, ServerSession};

/// The protocol's version that this crate speaks.
pub const VERSION: u16 = 1;
/// The port of a server, unless it says otherwise.
pub const DEFAULT_PORT: u16 = 7117;

/// The peer broke a rule of the protocol, and the connection can't go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtocolError(String);

impl ProtocolError {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl std::fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ProtocolError {}

impl From<dray_format::Error> for ProtocolError {
    fn from(error: dray_format::Error) -> Self {
        Self(error.to_string())
    }
}

/// A result of this crate.
pub type Result<T, E = ProtocolError> = std::result::Result<T, E>;
