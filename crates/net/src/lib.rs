//! Sockets that never block for long: connecting within a deadline, and reads and writes that give
//! up after 50 ms, so that the caller can look around. All protocols of Dray's client run over
//! them. There are no threads, except one that looks up a host's name.
//!
//! ```text
//!   Wait         the deadline of whoever connects, and whether to keep waiting
//!   TimedStream  a socket: fails with `WouldBlock` at least every 50 ms, also while bytes come in
//!                ├ counts the server's silence (`read_timeout`)
//!                └ belongs to the process that made it; a forked child can't use it
//!   Tls          certificates as the user asks for them, and the handshake
//!   Socket       one of them all: TCP, TLS, Unix
//! ```

#![forbid(unsafe_code)]

mod certificate;
mod socket;
mod stream;
mod tcp;
mod tls;
mod uri;
mod verifier;
mod wait;

use std::time::Duration;

pub use certificate::{rsa_public_key, server_end_point};
pub use socket::{Address, Socket};
pub use stream::{
    CancelCheck, Readable, TimedStream, check_process, is_read_timeout, is_timeout, write_all,
};
pub use tcp::{TcpParams, connect_tcp, connect_unix, resolve};
pub use tls::{Roots, Tls, TlsError, TlsFailure, TlsParams, TlsStream, Verification, is_tls_error};
pub use uri::{parse_seconds, percent_decode};
pub use wait::Wait;

/// How long a read or write waits before the caller may look around.
pub const TICK: Duration = Duration::from_millis(50);
