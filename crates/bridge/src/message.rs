//! The objects in frames: `spec/bridge.md` sections 2 and 3.

use std::fmt;

use dray_driver::ErrorKind;
use serde::{Deserialize, Serialize};

/// The version that both sides must have.
pub const VERSION: u32 = 1;

/// Open the database.
#[derive(Clone, Serialize, Deserialize)]
pub struct Open {
    /// The version of the frames.
    pub version: u32,
    /// The source's name.
    pub name: String,
    /// Where the database is. It may have a password.
    pub uri: String,
    /// Whether statements may write.
    pub writable: bool,
}

/// Without the uri, which may have a password.
impl fmt::Debug for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, name, writable, .. } = self;
        f.debug_struct("Open")
            .field("version", version)
            .field("name", name)
            .field("writable", writable)
            .finish_non_exhaustive()
    }
}

/// Run a statement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Query {
    /// Its text.
    pub sql: String,
    /// Whether the values of its parameters came before.
    pub parameters: bool,
    /// Whether only its columns are wanted.
    pub plan_only: bool,
    /// The most rows of a batch.
    pub batch_rows: usize,
    /// The most bytes of a batch of several rows, about.
    pub batch_bytes: u64,
    /// The most bytes of a row.
    pub row_bytes: u64,
}

/// The database is open.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ready {
    /// The version of the frames.
    pub version: u32,
    /// The database's name and version.
    pub server: String,
    /// Whose SQL it takes, `sql` if that is not known.
    pub dialect: String,
}

/// The columns are known.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Begun {
    /// How many rows are expected.
    pub estimated_rows: Option<u64>,
}

/// The result is complete.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Finished {
    /// How many rows it has.
    pub rows: u64,
}

/// It failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What sort of failure it is.
    pub kind: FailureKind,
    /// Five characters, or none.
    #[serde(default)]
    pub sqlstate: String,
    /// What happened, in one sentence.
    pub message: String,
    /// What the user can do; may be empty.
    #[serde(default)]
    pub hint: String,
    /// Whether the bridge takes another statement.
    pub usable: bool,
}

impl Failure {
    /// A failure after which the session can be used.
    pub fn new(kind: FailureKind, sqlstate: &str, message: impl Into<String>) -> Self {
        let (sqlstate, message) = (sqlstate.to_owned(), message.into());
        Self { kind, sqlstate, message, hint: String::new(), usable: true }
    }
}

/// What sort of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailureKind {
    /// The statement is wrong, or not allowed.
    Query,
    /// It failed while it ran.
    Execution,
    /// The database can't be reached, or its connection broke.
    Connection,
    /// Memory, disk or connections ran out.
    Resources,
    /// A row is larger than the client accepts.
    Limit,
    /// It was cancelled.
    Cancelled,
    /// A defect of the bridge.
    Internal,
}

impl From<FailureKind> for ErrorKind {
    fn from(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Query => Self::Query,
            FailureKind::Execution => Self::Execution,
            FailureKind::Connection => Self::Source,
            FailureKind::Resources => Self::Resources,
            FailureKind::Limit => Self::Limit,
            FailureKind::Cancelled => Self::Cancelled,
            FailureKind::Internal => Self::Internal,
        }
    }
}
