//! PostgreSQL as a source of columns.
//!
//! [`connect`] logs in as libpq would, and gives the socket. A [`Session`] runs statements on it: rows of a stock server are
//! parsed straight into column builders, no row objects in between; with the server's extension, the session is the way to the
//! frames that it sends. Threads, Arrow and what to do with a result are the caller's.

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
mod login;
mod parameter;
mod params;
mod rows;
mod session;
mod socket;
mod split;
mod sql;
mod tls;
mod wire;

pub use connect::{Canceller, LoggedIn, connect};
pub use copy_reader::{CopyReader, Description};
pub use error::{Error, ErrorKind, Result};
pub use parameter::Parameter;
pub use params::ConnectParams;
pub use rows::CopyBytes;
pub use session::{CopyStart, Options, Session};
pub use socket::{Socket, is_timeout};
pub use split::{Split, attributes, functions_of, is_range_scan, leaves_session_alone};
pub use sql::{enclosable, is_query};
pub use wire::Patience;
