//! Why rows can't be nested.

use std::fmt;

use arrow::error::ArrowError;

/// Why rows could not be nested.
#[derive(Debug)]
pub enum Error {
    /// The specification is wrong, or does not fit what its statements return.
    Spec(String),
    /// The source can't give all levels what they need.
    Source(&'static str),
    /// The statement of a level failed.
    Statement {
        /// The level.
        level: String,
        /// What the source said.
        cause: ArrowError,
    },
    /// The rows contradict the specification: a key is there twice, or a row has no parent.
    Rows(String),
    /// Sorting failed.
    Sort(dray_sort::Error),
    /// Arrow refused to build an array.
    Arrow(ArrowError),
}

impl Error {
    /// The failure of a level's rows: of its statement, or of what was nested in them before.
    pub(crate) fn statement(level: &str, cause: ArrowError) -> Self {
        Self::own(cause).unwrap_or_else(|cause| Self::Statement { level: level.to_owned(), cause })
    }

    /// The error of this crate that Arrow carries.
    fn own(error: ArrowError) -> Result<Self, ArrowError> {
        match error {
            ArrowError::ExternalError(cause) => match cause.downcast::<Self>() {
                Ok(own) => Ok(*own),
                Err(cause) => Err(ArrowError::ExternalError(cause)),
            },
            other => Err(other),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spec(what) | Self::Rows(what) => f.write_str(what),
            Self::Source(what) => f.write_str(what),
            Self::Statement { level, cause: ArrowError::ExternalError(cause) } => {
                write!(f, "the statement of {level} failed: {cause}")
            }
            Self::Statement { level, cause } => {
                write!(f, "the statement of {level} failed: {cause}")
            }
            Self::Sort(cause) => cause.fmt(f),
            Self::Arrow(cause) => cause.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Spec(_) | Self::Source(_) | Self::Rows(_) => None,
            Self::Statement { cause, .. } | Self::Arrow(cause) => Some(cause),
            Self::Sort(cause) => Some(cause),
        }
    }
}

impl From<dray_sort::Error> for Error {
    fn from(error: dray_sort::Error) -> Self {
        Self::Sort(error)
    }
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Self {
        Self::own(error).unwrap_or_else(Self::Arrow)
    }
}

impl From<dray_format::Error> for Error {
    fn from(error: dray_format::Error) -> Self {
        Self::Arrow(ArrowError::ExternalError(Box::new(error)))
    }
}

impl From<Error> for ArrowError {
    fn from(error: Error) -> Self {
        match error {
            Error::Arrow(error) => error,
            error => Self::ExternalError(Box::new(error)),
        }
    }
}

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
