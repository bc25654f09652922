//! Why something failed.

use std::any::Any;
use std::fmt;

use dray_wire::{ErrorKind as WireKind, ProtocolError, ServerError};

use crate::memory::NoMemory;

/// SQLSTATE `character_not_in_repertoire`.
const NOT_IN_REPERTOIRE: &str = "22021";

/// SQLSTATE `datatype_mismatch`: data whose type a column does not take.
const TYPE_MISMATCH: &str = "42804";
/// SQLSTATE `numeric_value_out_of_range`: a value that does not fit its column.
const OUT_OF_RANGE: &str = "22003";

/// What kind of thing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The server can't be reached, or the connection broke.
    Connection,
    /// The token or password is missing or wrong, or the server's certificate is not trusted.
    Authentication,
    /// The SQL does not parse, bind or plan.
    Query,
    /// The statement failed while it ran.
    Execution,
    /// The server ran out of memory, disk or connections.
    Resources,
    /// A row or chunk is larger than a limit.
    Limit,
    /// The statement was cancelled.
    Cancelled,
    /// One end broke the protocol, or bytes were damaged in transit.
    Protocol,
    /// The call is wrong: a malformed uri, a bad option, a connection that is busy or closed.
    Usage,
    /// A defect in the server or in this client.
    Internal,
}

/// Why something failed: a kind, one sentence, its cause, and what the user can do. Displayed as
/// `message: cause (error 1205; hint)`, with the number of a server that has one.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    hint: String,
    sqlstate: String,
    /// The server's number of the error; 0 if it is not the server's.
    code: u32,
    /// The server was silent for `read_timeout`.
    is_read_timeout: bool,
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            hint: String::new(),
            sqlstate: String::new(),
            code: 0,
            is_read_timeout: false,
            cause: None,
        }))
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    pub(crate) fn with_message(mut self, message: impl Into<String>) -> Self {
        self.0.message = message.into();
        self
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = hint.into();
        self
    }

    pub(crate) fn with_sqlstate(mut self, sqlstate: impl Into<String>) -> Self {
        self.0.sqlstate = sqlstate.into();
        self
    }

    pub(crate) fn with_cause(
        mut self,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// With more that the user can do, or has to know.
    pub(crate) fn with_another_hint(mut self, more: &str) -> Self {
        if !self.0.hint.is_empty() && !more.is_empty() {
            self.0.hint.push_str("; ");
        }
        self.0.hint.push_str(more);
        self
    }

    /// An error that another one of a client has caused, with the kind and SQLSTATE of that, and
    /// the hints of both.
    pub(crate) fn like_its_cause(mut self) -> Self {
        match self.0.cause.take().map(|cause| cause.downcast::<Self>()) {
            Some(Ok(mut cause)) => {
                cause.0.message = format!("{}: {}", self.0.message, cause.0.message);
                return cause.with_another_hint(&self.0.hint);
            }
            Some(Err(other)) => self.0.cause = Some(other),
            None => {}
        }
        self
    }

    /// The error of a database's rows that can't become a batch. A string that is not UTF-8 has the
    /// kind and SQLSTATE that PostgreSQL's extension gives it, and the text of `not_utf8`.
    pub(crate) fn of_rows(
        error: dray_format::Error,
        not_utf8: fn(&dray_format::Error) -> String,
    ) -> Self {
        match error.kind() {
            dray_format::ErrorKind::Utf8 => {
                Self::new(ErrorKind::Execution, not_utf8(&error)).with_sqlstate(NOT_IN_REPERTOIRE)
            }
            _ => error.into(),
        }
    }

    /// Whether the server was silent for `read_timeout`. Another try would wait as long.
    pub fn is_read_timeout(&self) -> bool {
        self.0.is_read_timeout
    }

    /// What kind of thing went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The sentence, without cause and hint.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What the user can do.
    pub fn hint(&self) -> Option<&str> {
        Some(self.0.hint.as_str()).filter(|hint| !hint.is_empty())
    }

    /// The SQLSTATE that the server gave, or would give.
    pub fn sqlstate(&self) -> Option<&str> {
        Some(self.0.sqlstate.as_str()).filter(|sqlstate| !sqlstate.is_empty())
    }

    /// The number that MySQL or MariaDB gave the error, or its cause: 1205 for a lock that was
    /// waited for too long. Many of their errors have the general SQLSTATE HY000.
    pub fn code(&self) -> Option<u32> {
        let cause = || self.0.cause.as_ref()?.downcast_ref::<Self>()?.code();
        Some(self.0.code).filter(|code| *code > 0).or_else(cause)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(cause) = &self.0.cause {
            write!(f, ": {cause}")?;
        }
        // A cause that has the number has displayed it.
        match (self.0.code, self.hint()) {
            (0, None) => Ok(()),
            (0, Some(hint)) => write!(f, " ({hint})"),
            (code, None) => write!(f, " (error {code})"),
            (code, Some(hint)) => write!(f, " (error {code}; {hint})"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.cause.as_deref().map(|cause| cause as _)
    }
}

impl From<ServerError> for Error {
    fn from(error: ServerError) -> Self {
        let kind = match error.kind {
            WireKind::Protocol => ErrorKind::Protocol,
            WireKind::Authentication => ErrorKind::Authentication,
            WireKind::Query => ErrorKind::Query,
            WireKind::Execution => ErrorKind::Execution,
            WireKind::Resources => ErrorKind::Resources,
            WireKind::Limit => ErrorKind::Limit,
            WireKind::Cancelled => ErrorKind::Cancelled,
            WireKind::Shutdown | WireKind::Source => ErrorKind::Connection,
            WireKind::Internal => ErrorKind::Internal,
        };
        Self::new(kind, error.message).with_hint(error.hint).with_sqlstate(error.sqlstate)
    }
}

impl From<NoMemory> for Error {
    fn from(cause: NoMemory) -> Self {
        Self::new(ErrorKind::Resources, "no memory to receive into").with_cause(cause)
    }
}

impl From<ProtocolError> for Error {
    fn from(error: ProtocolError) -> Self {
        Self::new(ErrorKind::Protocol, error.to_string())
    }
}

impl From<dray_format::Error> for Error {
    fn from(error: dray_format::Error) -> Self {
        let kind = match error.kind() {
            dray_format::ErrorKind::Limit => ErrorKind::Limit,
            _ => ErrorKind::Protocol,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<dray_page::Error> for Error {
    fn from(error: dray_page::Error) -> Self {
        use dray_page::ErrorKind as Kind;
        let kind = match error.kind() {
            Kind::Limit => ErrorKind::Limit,
            Kind::Unsupported | Kind::Internal => ErrorKind::Internal,
            _ => ErrorKind::Protocol,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<dray_postgres::Error> for Error {
    fn from(error: dray_postgres::Error) -> Self {
        use dray_postgres::ErrorKind as Kind;
        let kind = match error.kind() {
            Kind::Connection => ErrorKind::Connection,
            Kind::Authentication => ErrorKind::Authentication,
            Kind::Server => kind_of_sqlstate(error.sqlstate().unwrap_or_default()),
            Kind::Value => ErrorKind::Execution,
            Kind::Limit => ErrorKind::Limit,
            Kind::Usage => ErrorKind::Usage,
            _ => ErrorKind::Protocol,
        };
        let mut converted = Self::new(kind, error.message())
            .with_hint(error.hint().unwrap_or_default())
            .with_sqlstate(error.sqlstate().unwrap_or_default());
        converted.0.is_read_timeout = error.is_read_timeout();
        converted.0.cause = error.into_cause();
        converted
    }
}

impl From<dray_mysql::Error> for Error {
    fn from(error: dray_mysql::Error) -> Self {
        use dray_mysql::ErrorKind as Kind;
        let kind = match error.kind() {
            Kind::Connection => ErrorKind::Connection,
            Kind::Authentication => ErrorKind::Authentication,
            Kind::Server => kind_of_code(&error),
            Kind::Value => ErrorKind::Execution,
            Kind::Limit => ErrorKind::Limit,
            Kind::Usage => ErrorKind::Usage,
            _ => ErrorKind::Protocol,
        };
        let mut converted = Self::new(kind, error.message())
            .with_hint(error.hint().unwrap_or_default())
            .with_sqlstate(error.sqlstate().unwrap_or_default());
        converted.0.code = error.code().map_or(0, u32::from);
        converted.0.is_read_timeout = error.is_read_timeout();
        converted.0.cause = error.into_cause();
        converted
    }
}

impl From<dray_pgcopy::Error> for Error {
    fn from(error: dray_pgcopy::Error) -> Self {
        use dray_pgcopy::Error as Copy;
        let message = error.to_string();
        match error {
            Copy::Type { hint, .. } => {
                Self::new(ErrorKind::Query, message).with_hint(hint).with_sqlstate(TYPE_MISMATCH)
            }
            Copy::Value { .. } => {
                Self::new(ErrorKind::Execution, message).with_sqlstate(OUT_OF_RANGE)
            }
            Copy::Data(_) => Self::new(ErrorKind::Execution, message),
        }
    }
}

/// The kind of a PostgreSQL server's error (its manual, appendix "PostgreSQL Error Codes").
fn kind_of_sqlstate(sqlstate: &str) -> ErrorKind {
    match sqlstate {
        // The server shuts down, or somebody ended the session.
        "57P01" | "57P02" | "57P03" | "57P05" => return ErrorKind::Connection,
        _ => {}
    }
    match sqlstate.get(..2).unwrap_or_default() {
        "08" => ErrorKind::Connection,
        "28" => ErrorKind::Authentication,
        "0A" | "26" | "34" | "3D" | "3F" | "42" => ErrorKind::Query,
        "53" => ErrorKind::Resources,
        "54" => ErrorKind::Limit,
        "XX" => ErrorKind::Internal,
        _ => ErrorKind::Execution,
    }
}

/// The kind of a MySQL server's error (its manual, "Server Error Message Reference"). Many errors
/// have the general SQLSTATE HY000, so the server's own number comes first.
fn kind_of_code(error: &dray_mysql::Error) -> ErrorKind {
    match error.code().unwrap_or_default() {
        // Shutting down or killed; too many connections, memory, disk, temporary space.
        1053 | 1927 | 3169 => ErrorKind::Connection,
        // Somebody killed the statement.
        1317 => ErrorKind::Cancelled,
        1021 | 1037 | 1038 | 1040 | 1041 | 1114 | 1203 | 1226 => ErrorKind::Resources,
        1301 => ErrorKind::Limit,
        // No database selected; unknown tables and columns; no such function; denied.
        1046 | 1049 | 1051 | 1054 | 1064 | 1142 | 1143 | 1146 | 1305 | 1370 => ErrorKind::Query,
        _ => kind_of_sqlstate(error.sqlstate().unwrap_or_default()),
    }
}

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The message of a panic.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("an assumption of Dray does not hold: {}", message.unwrap_or("it panicked"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_servers() {
        let mut error = Error::new(ErrorKind::Execution, "lock wait timeout exceeded");
        assert_eq!(error.code(), None);
        error.0.code = 1205;
        assert_eq!(error.code(), Some(1205));
        assert_eq!(error.to_string(), "lock wait timeout exceeded (error 1205)");
        let outer = Error::new(ErrorKind::Execution, "can't write").with_cause(error);
        assert_eq!(outer.code(), Some(1205));
        assert_eq!(outer.to_string(), "can't write: lock wait timeout exceeded (error 1205)");
        let mut error = Error::new(ErrorKind::Resources, "too many connections").with_hint("wait");
        error.0.code = 1040;
        assert_eq!(error.to_string(), "too many connections (error 1040; wait)");
    }
}
