//! The protocol of `spec/protocol.md`: messages, frames and the order they come in. Bytes in,
//! events out; sockets are the business of others.
//!
//! ```text
//!   driver reads 8 bytes ──▶ Session::frame ──▶ how many bytes follow, already held against the limits
//!   driver reads these   ──▶ Session::message ──▶ an event
//!                        or, at the client, Session::chunk ──▶ the chunk's header, checked; its body goes straight from
//!                                                              the socket into the buffer that it will stay in
//! ```
//!
//! A session says what must not happen (a query while one runs, a gap in the chunks, an end that
//! doesn't match); the driver only moves bytes. [`ClientSession`] is used by clients,
//! [`ServerSession`] by servers.

#![forbid(unsafe_code)]

mod client_session;
mod error;
mod frame;
mod message;
mod secret;
mod server_session;

pub use client_session::{ClientSession, ServerEvent};
pub use error::{ProtocolError, Refusal, Result};
pub use frame::{FRAME_HEADER_BYTES, Frame, Kind};
pub use message::{
    Cancel, Checksums, CompressionChoice, Encoded, Error as ServerError, ErrorKind, Estimate,
    Finished, Hello, Known, PriceSet, Progress, Query, Report, Started, Welcome,
};
pub use secret::Secret;
pub use server_session::{ClientEvent, ServerSession};

/// The protocol's version that this crate speaks.
pub const VERSION: u16 = 2;
/// The port of a server, unless it says otherwise.
pub const DEFAULT_PORT: u16 = 7117;
