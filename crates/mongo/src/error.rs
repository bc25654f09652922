//! Errors of MongoDB and of its driver, as a source's.

use dray_driver::{ErrorKind, ServerError, error, failed, lost_connection};
use mongodb::error::{Error, ErrorKind as Cause};

/// SQLSTATEs of what MongoDB names by codes.
const SYNTAX_ERROR: &str = "42601";
const INSUFFICIENT_PRIVILEGE: &str = "42501";
/// MongoDB's code `Unauthorized`.
const UNAUTHORIZED: i32 = 13;

/// BSON that can't be read, in words that follow a colon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) String);

impl From<mongodb::bson::error::Error> for Malformed {
    fn from(error: mongodb::bson::error::Error) -> Self {
        Self(error.to_string())
    }
}

/// Why a statement ended early.
#[derive(Debug)]
pub(crate) enum End {
    /// The server or its driver failed.
    Source(Error),
    /// Anything else failed.
    Failed(ServerError),
    /// Nobody waits any longer.
    Stopped,
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Source(error)
    }
}

impl From<ServerError> for End {
    fn from(error: ServerError) -> Self {
        Self::Failed(error)
    }
}

impl From<dray_driver::Stopped> for End {
    fn from(_: dray_driver::Stopped) -> Self {
        Self::Stopped
    }
}

impl From<dray_format::Error> for End {
    fn from(cause: dray_format::Error) -> Self {
        let kind = match cause.kind() {
            dray_format::ErrorKind::Limit => ErrorKind::Limit,
            _ => ErrorKind::Internal,
        };
        Self::Failed(error(kind, "", cause.to_string(), ""))
    }
}

/// The error of a statement, and whether the session is lost by it.
pub(crate) fn of_statement(name: &str, error: &Error) -> (ServerError, bool) {
    match &*error.kind {
        Cause::Command(command) => {
            let sqlstate = if command.code == UNAUTHORIZED { INSUFFICIENT_PRIVILEGE } else { "" };
            (failed(sqlstate, sentence(error)), false)
        }
        Cause::Io(_) => {
            (lost_connection(name, &format!("the connection broke: {}", sentence(error))), true)
        }
        _ => (lost_connection(name, &sentence(error)), true),
    }
}

/// A statement that is not what a source takes. `what` is a sentence without a dot.
pub(crate) fn not_taken(what: impl Into<String>) -> ServerError {
    let hint = "a statement for MongoDB is JSON, such as {\"find\": \"orders\", \"limit\": 10}; \
                {\"listCollections\": 1} lists the collections";
    error(ErrorKind::Query, SYNTAX_ERROR, what, hint)
}

/// The message with its cause. The driver's own text has all of the server's answer, and its kinds
/// in Rust's notation.
pub(crate) fn sentence(error: &Error) -> String {
    let text = match &*error.kind {
        Cause::Command(command) => {
            let (message, code) = (command.message.trim_end_matches('.'), command.code);
            match command.code_name.as_str() {
                "" => format!("{message} (MongoDB's error {code})"),
                name => format!("{message} (MongoDB's error {code}, {name})"),
            }
        }
        Cause::Authentication { message, .. }
        | Cause::InvalidArgument { message, .. }
        | Cause::ConnectionPoolCleared { message, .. }
        | Cause::IncompatibleServer { message, .. }
        | Cause::InvalidTlsConfig { message, .. }
        | Cause::InvalidResponse { message, .. } => message.clone(),
        // What it says of the servers is in Rust's notation.
        Cause::ServerSelection { message, .. } => {
            message.split(" Topology: ").next().unwrap_or_default().to_owned()
        }
        Cause::Io(cause) => cause.to_string(),
        other => other.to_string(),
    };
    match std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<Error>()) {
        Some(cause) => format!("{text}: {}", sentence(cause)),
        None => text,
    }
}
