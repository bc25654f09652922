use std::fmt;

/// Why a value could not become part of a column. The caller knows which row and column it was.
#[derive(Debug)]
pub enum Error {
    /// The value has no equal in the column's type; what to do about it is in the text.
    Unrepresentable(String),
    /// The bytes are not a value of the type.
    Malformed(String),
    /// The column can't take it.
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

/// What is said of a string that is not UTF-8: some ways that bytes become text a server does not
/// check.
pub fn not_utf8(error: &dray_format::Error) -> String {
    format!("{error}; textsend(…) gives a string's bytes")
}
