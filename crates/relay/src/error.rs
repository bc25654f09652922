//! A source's errors, as the server's.

use dray_client::{Error, ErrorKind};
use dray_driver::{ErrorKind as WireKind, ServerError};

/// The length of an SQLSTATE.
const SQLSTATE_BYTES: usize = 5;

/// The error of a database that can't be reached, or does not let the server in. What the client's
/// hint says of passwords and uris is for whoever runs the server, so it is left out.
pub(crate) fn of_connecting(name: &str, error: &Error) -> ServerError {
    ServerError {
        hint: "whoever runs the Dray server can check its --source and the database".to_owned(),
        ..source_error(format!("can't connect to the source {name}: {}", sentence(error)), error)
    }
}

/// The error of a statement.
pub(crate) fn of_statement(name: &str, error: &Error) -> ServerError {
    let kind = match error.kind() {
        ErrorKind::Query | ErrorKind::Usage => WireKind::Query,
        ErrorKind::Execution => WireKind::Execution,
        ErrorKind::Resources => WireKind::Resources,
        ErrorKind::Limit => WireKind::Limit,
        ErrorKind::Cancelled => WireKind::Cancelled,
        ErrorKind::Internal => WireKind::Internal,
        // The connection broke, or what came over it can't be right.
        _ => return source_error(format!("the source {name}: {}", sentence(error)), error),
    };
    ServerError { kind, ..source_error(sentence(error), error) }
}

fn source_error(message: String, error: &Error) -> ServerError {
    let sqlstate = error.sqlstate().filter(|sqlstate| sqlstate.len() == SQLSTATE_BYTES);
    ServerError {
        statement: 0,
        kind: WireKind::Source,
        sqlstate: sqlstate.unwrap_or_default().to_owned(),
        message,
        hint: error.hint().unwrap_or_default().to_owned(),
    }
}

/// The message with its causes.
fn sentence(error: &Error) -> String {
    let mut text = error.message().to_owned();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        // Some causes repeat their own.
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}
