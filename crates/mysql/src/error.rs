//! Why something failed.

use std::fmt;

use dray_net::is_read_timeout;

/// The error of a statement that a `KILL QUERY` ended: ER_QUERY_INTERRUPTED.
const INTERRUPTED: u16 = 1317;

/// What kind of thing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The server can't be reached, or the connection broke.
    Connection,
    /// The server does not let the user in, or its certificate is not trusted.
    Authentication,
    /// The server refused or ended a statement: [`Error::sqlstate`] and [`Error::code`] say why.
    Server,
    /// A value does not fit its column.
    Value,
    /// Something is larger than a limit.
    Limit,
    /// The server broke the protocol.
    Protocol,
    /// The call is wrong: a malformed uri, a bad option.
    Usage,
}

/// Why something failed: a kind, one sentence, its cause, and what the user can do. Displayed as
/// `message: cause (hint)`.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    hint: String,
    sqlstate: String,
    /// The server's number of the error; 0 if it is not the server's.
    code: u16,
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
            cause: None,
        }))
    }

    /// The error of a caller who ends a wait.
    pub fn wait_ended(why: &str) -> Self {
        Self::new(ErrorKind::Connection, why)
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    pub(crate) fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.0.kind = kind;
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

    pub(crate) fn with_code(mut self, code: u16) -> Self {
        self.0.code = code;
        self
    }

    pub(crate) fn with_cause(
        mut self,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// The same error, with a sentence before its own.
    pub(crate) fn after(mut self, what: &str) -> Self {
        self.0.message = format!("{what}: {}", self.0.message);
        self
    }

    /// Whether the server was silent for `read_timeout`.
    pub fn is_read_timeout(&self) -> bool {
        self.0.cause.as_deref().is_some_and(|cause| is_read_timeout(cause))
    }

    /// Whether the statement ended because somebody cancelled it.
    pub fn is_interrupted(&self) -> bool {
        self.0.code == INTERRUPTED
    }

    /// What kind of thing went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The sentence, without cause and hint.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The sentence with its cause, to become part of another.
    pub(crate) fn message_and_cause(&self) -> String {
        match &self.0.cause {
            Some(cause) => format!("{}: {cause}", self.0.message),
            None => self.0.message.clone(),
        }
    }

    /// What the user can do.
    pub fn hint(&self) -> Option<&str> {
        Some(self.0.hint.as_str()).filter(|hint| !hint.is_empty())
    }

    /// The SQLSTATE that the server gave, or would give.
    pub fn sqlstate(&self) -> Option<&str> {
        Some(self.0.sqlstate.as_str()).filter(|sqlstate| !sqlstate.is_empty())
    }

    /// The server's own number of the error, such as 1146 for a table that does not exist.
    pub fn code(&self) -> Option<u16> {
        Some(self.0.code).filter(|code| *code > 0)
    }

    /// The cause, for an error that replaces this one.
    pub fn into_cause(self) -> Option<Box<dyn std::error::Error + Send + Sync>> {
        self.0.cause
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(cause) = &self.0.cause {
            write!(f, ": {cause}")?;
        }
        match self.hint() {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.cause.as_deref().map(|cause| cause as _)
    }
}

/// SQLSTATE `numeric_value_out_of_range`: a value that does not fit its column.
pub(crate) const OUT_OF_RANGE: &str = "22003";
/// SQLSTATE `program_limit_exceeded`.
pub(crate) const LIMIT_EXCEEDED: &str = "54000";

/// Called about every [`TICK`](dray_net::TICK) while a socket is read or written; an error ends the
/// wait.
pub type CancelCheck<'a> = dray_net::CancelCheck<'a, Error>;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
