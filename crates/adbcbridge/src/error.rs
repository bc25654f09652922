//! A driver's errors, as those of the bridge.

use adbc_core::error::{Error, Status};
use dray_bridge::{Failure, FailureKind};

use crate::source::Source;

/// The length of an SQLSTATE.
const SQLSTATE_BYTES: usize = 5;

/// The error of a database that can't be opened.
pub(crate) fn of_opening(source: &Source, error: &Error) -> Failure {
    failure(FailureKind::Connection, source, error)
}

/// The error of a statement.
pub(crate) fn of_statement(source: &Source, error: &Error) -> Failure {
    let state = sqlstate(error);
    let kind = match error.status {
        _ if state.starts_with("08") || state.starts_with("57P") => FailureKind::Connection,
        Status::Cancelled => FailureKind::Cancelled,
        Status::InvalidArguments
        | Status::NotFound
        | Status::NotImplemented
        | Status::AlreadyExists
        | Status::Unauthenticated
        | Status::Unauthorized => FailureKind::Query,
        _ if state.starts_with("42") => FailureKind::Query,
        _ if state.starts_with("53") => FailureKind::Resources,
        _ => FailureKind::Execution,
    };
    failure(kind, source, error)
}

fn failure(kind: FailureKind, source: &Source, error: &Error) -> Failure {
    let message = match error.message.trim() {
        // The driver manager says the second for none.
        "" | "<empty>" => format!("the driver failed without a message: {:?}", error.status),
        message => source.hide(message),
    };
    let usable = kind != FailureKind::Connection;
    Failure { usable, ..Failure::new(kind, &sqlstate(error), message) }
}

/// Five characters, or none.
fn sqlstate(error: &Error) -> String {
    let state: String =
        error.sqlstate.iter().map(|&byte| char::from(byte.cast_unsigned())).collect();
    let is_state = state.len() == SQLSTATE_BYTES
        && state.chars().all(|one| one.is_ascii_alphanumeric())
        && state != "00000";
    if is_state { state } else { String::new() }
}
