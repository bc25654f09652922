//! Why a column or a value is refused.

use std::fmt;

/// Why a column has no type here, or a row could not be appended. It names the column and the row.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    what: String,
    /// The column's name, if one column is at fault.
    column: Option<String>,
    /// The row, counted from 1; 0 outside of rows.
    row: u64,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The column's type can't represent the value. The text says what to do about it.
    Unrepresentable,
    /// The bytes are not what the protocol says.
    Malformed,
    /// A type or a character set that is not known here.
    Unsupported,
    /// The builder can't hold the value.
    Limit,
}

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    #[cold]
    pub(crate) fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, what: what.into(), column: None, row: 0 }))
    }

    #[cold]
    pub(crate) fn malformed(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::Malformed, what)
    }

    pub(crate) fn of_column(mut self, name: &str) -> Self {
        self.0.column = Some(name.to_owned());
        self
    }

    pub(crate) fn of_row(mut self, row: u64) -> Self {
        self.0.row = row;
        self
    }

    /// The same error with its row counted over the whole result: `rows` came in earlier batches.
    pub fn after_rows(mut self, rows: u64) -> Self {
        if self.0.row > 0 {
            self.0.row = self.0.row.saturating_add(rows);
        }
        self
    }

    /// What is wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, what, column, row } = &*self.0;
        match (column, row) {
            (None, 0) => {}
            (None, row) => write!(f, "row {row}: ")?,
            (Some(column), 0) => write!(f, "column {column:?}: ")?,
            (Some(column), row) => write!(f, "column {column:?}, row {row}: ")?,
        }
        match kind {
            ErrorKind::Malformed => write!(f, "the server sent {what}"),
            _ => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {}

impl From<dray_format::Error> for Error {
    #[cold]
    fn from(error: dray_format::Error) -> Self {
        Self::new(ErrorKind::Limit, error.to_string())
    }
}

/// The message for a string that is not UTF-8. A server does not check every way by which bytes
/// become text.
pub fn not_utf8(error: &dray_format::Error) -> String {
    format!("{error}; CAST(… AS BINARY) gives a string's bytes")
}
