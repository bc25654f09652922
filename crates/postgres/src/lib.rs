//! PostgreSQL as a source of columns.

#![forbid(unsafe_code)]

mod certificate;
mod connect;
mod conninfo;
mod error;
mod files;
mod frames;
mod keywords;
mod login;
mod params;
mod socket;
mod tls;

pub use connect::{Canceller, LoggedIn, connect};
pub use error::{Error, ErrorKind, Result};
pub use params::ConnectParams;
pub use socket::{Socket, is_timeout};
