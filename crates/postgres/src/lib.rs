//! PostgreSQL as a source of columns.
//!
//! A [`Session`] runs statements on a logged-in socket. Rows of a stock server are parsed straight into column builders, no row
//! objects in between; with the server's extension, the session is the way to the frames that it sends. Threads, Arrow and
//! what to do with a result are the caller's.

#![forbid(unsafe_code)]

mod catalog;
mod error;
mod session;
mod sql;
mod wire;

pub use error::{Error, ErrorKind, Result};
pub use session::{Options, Parameter, Session};
pub use wire::Patience;
