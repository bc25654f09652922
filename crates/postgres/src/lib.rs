//! PostgreSQL as a source of columns.
//!
//! [`connect`] logs in as libpq would, and returns the socket. A [`Session`] runs statements over
//! it. Rows of a stock server are parsed straight into column builders, without row objects in
//! between; with the server's extension, the caller reads the frames that it sends. Arrow is the
//! caller's, and so are threads, except the one that looks up a host's name.
//!
//! Each folder is one subject:
//!
//! ```text
//!   connect/   connection strings, hosts, TLS, login
//!   net/       sockets that never block for long
//!   session/   statements and their results
//!   sql/       statements as tokens
//!   scan/      which statements several connections can share
//! ```

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

pub use connect::{
    Canceller, ConnectParams, LoggedIn, Shareable, Socket, connect, parse_seconds, percent_decode,
    shareable,
};
pub use copy_reader::{CopyReader, Description};
pub use error::{Error, ErrorKind, Result};
pub use net::{
    CancelCheck, TICK, TcpParams, TimedStream, Wait, check_process, connect_tcp, connect_unix,
    is_timeout, resolve, write_all,
};
pub use scan::{NotSplittable, References, TableScan, Unreadable, is_tid_range_scan};
pub use session::{CopyBytes, CopyStart, Options, Parameter, Session, miscount};
pub use sql::{enclosable, is_query, parameters_in};
pub use version::other_library;
