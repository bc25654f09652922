//! Why a value can't be part of a column.

use std::fmt;

/// Why a value could not become part of a column. The caller knows the row and the column.
#[derive(Debug)]
pub enum Error {
    /// The column's type can't represent the value. The text says what to do about it.
    Unrepresentable(String),
    /// The bytes are not a value of the type.
    Malformed(String),
    /// The column can't hold it.
    Format(dray_format::Error),
}

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unrepresentable(what) => f.write_str(what),
            Self::Malformed(what) => write!(f, "the server sent {what}"),
            Self::Format(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<dray_format::Error> for Error {
    fn from(error: dray_format::Error) -> Self {
        Self::Format(error)
    }
}

/// The message for a string that is not UTF-8. A server does not check every way by which bytes
/// become text.
pub fn not_utf8(error: &dray_format::Error) -> String {
    format!("{error}; textsend(…) gives a string's bytes")
}
