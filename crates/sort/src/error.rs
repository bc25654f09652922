//! Why rows can't be sorted.

use std::fmt;

/// Why rows can't be sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// A column to sort by is none of the rows'.
    Column {
        /// The column that was asked for, from 0.
        column: usize,
        /// How many there are.
        columns: usize,
    },
}

/// What may fail.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column { column, columns } => write!(out, "no column {column} to sort by, there are {columns}"),
        }
    }
}

impl std::error::Error for Error {}
