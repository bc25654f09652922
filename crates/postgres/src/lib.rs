//! PostgreSQL as a source of columns.
//!
//! [`connect`] logs in as libpq would, and returns the socket. A [`Session`] runs statements over
//! it. Rows of a stock server are parsed straight into column builders, without row objects in
//! between; with the server's extension, the caller reads the frames that it sends. Arrow and
//! threads are the caller's.
//!
//! Each folder is one subject:
//!
//! ```text
//!   connect/   connection strings, hosts, TLS, login
//!   session/   statements and their results
//!   sql/       statements as tokens
//!   scan/      which statements several connections can share
//! ```

#![forbid(unsafe_code)]

mod catalog;
mod connect;
mod copy_reader;
mod error;
mod scan;
mod session;
mod sql;
mod version;

pub use connect::{Canceller, ConnectParams, LoggedIn, Shareable, connect, shareable};
pub use copy_reader::{CopyReader, Description};
pub use dray_net::Socket;
pub use error::{CancelCheck, Error, ErrorKind, Result};
pub use scan::{NotSplittable, References, TableScan, Unreadable};
pub use session::{CopyBytes, CopyStart, Options, Parameter, Session, miscount};
pub use sql::{enclosable, is_query, parameters_in};
pub use version::other_library;
