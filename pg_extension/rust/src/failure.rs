//! Why a stream ends early.

use dray_format::{Error, ErrorKind};
use dray_pgtypes::not_utf8;
use dray_wire::ProtocolError;

/// Why a stream ends early. The C half turns each kind into an SQLSTATE.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Memory is short.
    Memory,
    /// A column is larger than a chunk can hold, or a row than the client accepts.
    Limit(String),
    /// The server has asked the statement to end.
    Interrupted,
    /// A value does not fit its column. The text names the column and the row.
    Value(String),
    /// A string is not UTF-8. The text names the column.
    Text(String),
    /// A defect of ours.
    Internal(String),
}

impl Failure {
    /// The row under construction exceeds `row_bytes_max`. Its whole size is not known yet.
    #[cold]
    pub(crate) fn row_too_large(row_bytes_max: u64) -> Self {
        Self::Limit(format!(
            "a row needs over {row_bytes_max} bytes, which is the limit; raise row_bytes_max"
        ))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Limit => Self::Limit(error.to_string()),
            ErrorKind::Utf8 => Self::Text(not_utf8(&error)),
            _ => Self::Internal(error.to_string()),
        }
    }
}

impl From<ProtocolError> for Failure {
    fn from(error: ProtocolError) -> Self {
        Self::Internal(error.to_string())
    }
}
