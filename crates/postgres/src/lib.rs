//! PostgreSQL as a source of columns.
//!
//! [`connect`] logs in as libpq would, and gives the socket. A [`Session`] runs statements on it:
//! rows of a stock server are parsed straight into column builders, no row objects in between; with
//! the server's extension, the session is the way to the frames that it sends. Threads, Arrow and
//! what to do with a result are the caller's.

#![forbid(unsafe_code)]

mod catalog;
mod connect;
mod copy_reader;
mod error;
mod net;
mod scan;
mod session;
mod sql;
mod version;

pub use connect::{Canceller, ConnectParams, LoggedIn, Socket, connect, parse_seconds};
pub use copy_reader::{CopyReader, Description};
pub use error::{Error, ErrorKind, Result};
pub use net::{
    CancelCheck, TICK, TcpParams, TimedStream, Wait, check_process, connect_tcp, connect_unix,
    is_timeout, resolve, write_all,
};
pub use scan::{NotSplittable, References, TableScan, Unreadable, is_tid_range_scan};
pub use session::{CopyBytes, CopyStart, Options, Parameter, Session, miscount};
pub use sql::{enclosable, is_query};
pub use version::other_library;
