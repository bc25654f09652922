//! MySQL and MariaDB as a source of columns.
//!
//! [`connect`] logs in as the servers' own clients would. A [`Session`] runs statements, whose rows
//! are parsed straight into column builders, without row objects in between. Arrow and threads are
//! the caller's. The crate `mysql_common` knows the login's messages and how passwords are hashed;
//! packets and rows are read here.
//!
//! Each folder is one subject:
//!
//! ```text
//!   connect/   uris, option files, TLS, login
//!   session/   statements and their results
//!   scan/      statements that several connections can read
//! ```

#![forbid(unsafe_code)]

mod answer;
mod connect;
mod connection;
mod error;
mod fields;
mod packets;
mod scan;
mod server;
mod session;
mod sql;

pub use connect::{Canceller, ConnectParams, LoggedIn, connect, log_in_over};
pub use connection::Connection;
pub use error::{CancelCheck, Error, ErrorKind, Result};
pub use scan::{Joined, Key, NotSplittable, TableScan, shared_tables};
pub use server::Server;
pub use session::{
    Bound, BoundType, CopyBytes, FILE_NAME, Options, Parameter, Session, Taken, write_string,
};
pub use sql::parameters_in;
