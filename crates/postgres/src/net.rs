//! Sockets that never block for long: connecting within a deadline, and reads and writes that give
//! up after 50 ms, so that the caller can look around. Dray's own protocol runs over them, too.
//!
//! ```text
//!   Wait         the deadline of whoever connects, and whether to keep waiting
//!   TimedStream  a socket: fails with `WouldBlock` at least every 50 ms, also while bytes come in
//!                ├ counts the server's silence (`read_timeout`)
//!                └ belongs to the process that made it; a forked child can't use it
//! ```

mod stream;
mod tcp;
mod wait;

use std::time::Duration;

pub(crate) use self::stream::is_read_timeout;
pub use self::stream::{CancelCheck, Readable, TimedStream, check_process, is_timeout, write_all};
pub use self::tcp::{TcpParams, connect_tcp, connect_unix, resolve};
pub use self::wait::Wait;

/// How long a read or write waits before the caller may look around.
pub const TICK: Duration = Duration::from_millis(50);
