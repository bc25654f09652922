//! PostgreSQL as a source of columns.
//!
//! [`connect`] logs in as libpq would, and gives the socket. A [`Session`] runs statements on it:
//! rows of a stock server are parsed straight into column builders, no row objects in between; with
//! the server's extension, the session is the way to the frames that it sends. Threads, Arrow and
//! what to do with a result are the caller's.

#![forbid(unsafe_code)]

mod catalog;
mod certificate;
mod connect;
mod conninfo;
mod copy_reader;
mod error;
mod files;
mod frames;
mod keywords;
mod line;
mod login;
mod parameter;
mod params;
mod rows;
mod session;
mod settings;
mod socket;
mod split;
mod sql;
mod tag;
mod tls;
mod tokens;
mod used;
mod version;
mod wire;

pub use connect::{Canceller, LoggedIn, connect};
pub use copy_reader::{CopyReader, Description};
pub use error::{Error, ErrorKind, Result};
pub use line::{
    Line, TICK, TcpParams, Wait, check_process, connect_tcp, connect_unix, is_timeout, resolve,
    write_all,
};
pub use parameter::Parameter;
pub use params::{ConnectParams, parse_seconds};
pub use rows::CopyBytes;
pub use session::{CopyStart, Options, Session};
pub use socket::Socket;
pub use split::{Split, attributes, is_range_scan, leaves_session_alone};
pub use sql::{enclosable, is_query};
pub use tag::miscount;
pub use used::Used;
pub use version::other_library;
pub use wire::Patience;
