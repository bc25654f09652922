//! Why rows can't be written.

use std::fmt;

/// Why a value does not fit its column, as the end of a sentence.
pub(crate) type Reason = &'static str;

/// Why rows can't be written.
#[derive(Debug)]
pub enum Error {
    /// The types of a column and of its data don't match.
    Type {
        /// The column.
        column: String,
        /// What does not match.
        what: String,
        /// What the user can do.
        hint: String,
    },
    /// A value does not fit its column.
    Value {
        /// The column.
        column: String,
        /// Counted from 1, over all batches.
        row: u64,
        /// The value, shortened.
        value: String,
        /// The column's type as it was declared.
        declared: String,
        /// Why it does not fit.
        reason: Reason,
    },
    /// The data breaks Arrow's rules, or differs from its own schema.
    Data(String),
}

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type { column, what, .. } => write!(f, "column {column:?}: {what}"),
            Self::Value { column, row, value, declared, reason } => write!(
                f,
                "column {column:?}, row {row}: {value} can't be written as {declared}: {reason}"
            ),
            Self::Data(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {}

/// Why data of one type can't become values of another.
#[derive(Debug)]
pub(crate) struct Mismatch {
    pub(crate) what: String,
    pub(crate) hint: String,
}
