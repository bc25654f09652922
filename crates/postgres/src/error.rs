use std::fmt;

use crate::line::is_silence;

/// What kind of thing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The server can't be reached, or the connection broke.
    Connection,
    /// The server does not let the user in, or its certificate is not trusted.
    Authentication,
    /// The server refused or ended a statement: [`Error::sqlstate`] says why.
    Server,
    /// A value has no place in its column.
    Value,
    /// Something is larger than a limit.
    Limit,
    /// The server sent what it may not send.
    Protocol,
    /// The call can't be done: a bad connection string or option.
    Usage,
}

/// Why something failed: a kind, one sentence, and what to do about it.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    hint: String,
    sqlstate: String,
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            hint: String::new(),
            sqlstate: String::new(),
            cause: None,
        }))
    }

    /// The error of a caller who does not wait any longer.
    pub fn gave_up(why: &str) -> Self {
        Self::new(ErrorKind::Connection, why)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = hint.into();
        self
    }

    pub(crate) fn with_sqlstate(mut self, sqlstate: impl Into<String>) -> Self {
        self.0.sqlstate = sqlstate.into();
        self
    }

    pub(crate) fn cause(
        mut self,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// Whether the server was silent for as long as `read_timeout`.
    pub fn is_silence(&self) -> bool {
        self.0.cause.as_deref().is_some_and(|cause| is_silence(cause))
    }

    /// What kind of thing went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The sentence, with its cause.
    pub fn message(&self) -> String {
        match &self.0.cause {
            Some(cause) => format!("{}: {cause}", self.0.message),
            None => self.0.message.clone(),
        }
    }

    /// What the user can do; empty if there is nothing to say.
    pub fn help(&self) -> &str {
        &self.0.hint
    }

    /// The SQLSTATE that the server gave, or that it would give; or nothing.
    pub fn sqlstate(&self) -> &str {
        &self.0.sqlstate
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())?;
        match self.0.hint.as_str() {
            "" => Ok(()),
            hint => write!(f, " ({hint})"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.cause.as_deref().map(|cause| cause as _)
    }
}

/// `numeric_value_out_of_range`: a value that a column does not have.
pub(crate) const OUT_OF_RANGE: &str = "22003";
/// `program_limit_exceeded`.
pub(crate) const LIMIT_EXCEEDED: &str = "54000";

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
