use std::fmt;

/// Why a value could not become part of a column. The caller knows which row and column it was.
#[derive(Debug)]
pub enum Error {
    /// The value has no equal in the column's type; what to do about it is in the text.
    Unrepresentable(String),
    /// The bytes are not a value of the type.
    Malformed(String),
    /// The builder's `interrupted` said so in the middle of the value.
    Interrupted,
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
            Self::Interrupted => f.write_str("interrupted"),
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
