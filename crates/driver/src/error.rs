//! Errors that several drivers have in common.

use dray_wire::{ErrorKind, ServerError};

/// The length of an SQLSTATE.
const SQLSTATE_BYTES: usize = 5;
/// `read_only_sql_transaction`.
const READ_ONLY: &str = "25006";
/// `sqlclient_unable_to_establish_sqlconnection`.
const CANNOT_CONNECT: &str = "08001";
/// `connection_failure`.
const LOST_CONNECTION: &str = "08006";
/// What a source that is read-only can become.
const WRITABLE: &str = "the server's option --source-writable lets its clients write";

/// An error. Without a valid `sqlstate` it has none.
pub fn error(
    kind: ErrorKind,
    sqlstate: &str,
    message: impl Into<String>,
    hint: impl Into<String>,
) -> ServerError {
    let sqlstate = if sqlstate.len() == SQLSTATE_BYTES { sqlstate } else { "" };
    ServerError {
        statement: 0,
        kind,
        sqlstate: sqlstate.to_owned(),
        message: message.into(),
        hint: hint.into(),
    }
}

/// The source `name` can't be reached, or lets nobody in. `cause` is a clause without a password.
pub fn cannot_connect(name: &str, cause: &str) -> ServerError {
    let message = format!("can't connect to the source {name}: {cause}");
    let hint = "whoever runs the Dray server can check its --source and the database";
    error(ErrorKind::Source, CANNOT_CONNECT, message, hint)
}

/// The connection to the source `name` broke, or what came over it can't be right.
pub fn lost_connection(name: &str, cause: &str) -> ServerError {
    let message = format!("the source {name}: {cause}");
    error(ErrorKind::Source, LOST_CONNECTION, message, "run the statement again")
}

/// The database refused a statement, or failed to run it, in these words.
pub fn failed(sqlstate: &str, message: impl Into<String>) -> ServerError {
    error(ErrorKind::Query, sqlstate, message, "")
}

/// A source takes only statements that begin with one of `words`.
pub fn read_only_refusal(name: &str, words: &[&str]) -> ServerError {
    let words = words.join(", ");
    let message = format!("the source {name} is read-only: a statement must begin with {words}");
    error(ErrorKind::Query, READ_ONLY, message, WRITABLE)
}

/// A source takes no text that may be several statements.
pub(crate) fn several_refusal(name: &str) -> ServerError {
    let message = format!(
        "the source {name} is read-only: it takes one statement at a time, and here a semicolon \
         may separate several"
    );
    error(ErrorKind::Query, READ_ONLY, message, WRITABLE)
}

/// A source takes no statement with a word that may begin another one.
pub(crate) fn word_refusal(name: &str, word: &str) -> ServerError {
    let message = format!(
        "the source {name} is read-only: the word {word} may begin another statement; put it into \
         quotes if it is a name"
    );
    error(ErrorKind::Query, READ_ONLY, message, WRITABLE)
}
