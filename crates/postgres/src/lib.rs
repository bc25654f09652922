//! PostgreSQL as a source of columns.

#![forbid(unsafe_code)]

mod error;

pub use error::{Error, ErrorKind, Result};
