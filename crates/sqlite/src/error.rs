//! SQLite's errors, as the server's.

use dray_driver::{ErrorKind, ServerError, error, failed};
use rusqlite::{Error, ErrorCode};

/// Why a statement ended early.
#[derive(Debug)]
pub(crate) enum End {
    Failed(ServerError),
    Stopped,
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

/// The error of a statement of the source `name`.
pub(crate) fn of_statement(name: &str, cause: &Error) -> End {
    if matches!(cause, Error::MultipleStatement) {
        return failed("42601", "a statement comes alone, without another behind it").into();
    }
    let message = message(cause);
    let source = |sqlstate, hint| {
        error(ErrorKind::Source, sqlstate, format!("the source {name}: {message}"), hint)
    };
    let ended = match cause.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => return End::Stopped,
        Some(ErrorCode::AuthorizationForStatementDenied | ErrorCode::ReadOnly) => {
            refused(name, &message)
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            error(ErrorKind::Resources, "55P03", message, "another program writes; try again")
        }
        Some(ErrorCode::ConstraintViolation) => failed("23000", message),
        Some(ErrorCode::TypeMismatch) => failed("22000", message),
        Some(ErrorCode::TooBig) => error(ErrorKind::Limit, "54000", message, ""),
        Some(ErrorCode::OutOfMemory) => {
            let hint = "the statements of all clients share SQLite's memory: ask for fewer or \
                        shorter values in a row, or try again";
            error(ErrorKind::Resources, "53200", message, hint)
        }
        Some(ErrorCode::DiskFull) => error(ErrorKind::Resources, "53100", message, ""),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            source("XX001", "PRAGMA integrity_check tells what is wrong with the file")
        }
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => source("58030", ""),
        _ => failed("42000", message),
    };
    ended.into()
}

/// The error of a statement that the source does not take.
pub(crate) fn refused(name: &str, why: &str) -> ServerError {
    let message = format!("the source {name} does not take this statement: {why}");
    let hint = "the server's option --source-writable lets clients write to the file; no source \
                opens other files, loads extensions, or takes a PRAGMA that reaches beyond the \
                file and the connection";
    error(ErrorKind::Query, "25006", message, hint)
}

/// SQLite's words, without its path to the file.
pub(crate) fn message(cause: &Error) -> String {
    match cause {
        Error::SqliteFailure(_, Some(message)) => message.clone(),
        Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    }
}
