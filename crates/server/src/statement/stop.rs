//! Reasons for a statement to end before its result is complete.

use std::any::Any;

use dray_wire::{ClientEvent, ErrorKind, ServerError};

use crate::connection::{Closed, Connection};
use crate::engine;

/// Why a statement ended early.
pub(super) enum Stop {
    /// It failed. The client gets the error, and the connection stays open.
    Failed(ServerError),
    /// Its connection was closed.
    Closed,
}

impl From<ServerError> for Stop {
    fn from(error: ServerError) -> Self {
        Self::Failed(error)
    }
}

impl From<Closed> for Stop {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

/// Waits for `work` while nothing is sent, and stops early if the client cancels or leaves.
pub(super) async fn while_client_waits<T>(
    connection: &mut Connection,
    work: impl Future<Output = T>,
) -> Result<T, Stop> {
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return Ok(done),
            event = connection.event() => check_event(event?)?,
        }
    }
}

/// Stops on a cancel or a goodbye.
pub(super) fn check_event(event: ClientEvent) -> Result<(), Stop> {
    match event {
        ClientEvent::Cancel => Err(engine::error(
            ErrorKind::Cancelled,
            "57014",
            "the statement was cancelled at the client's request",
            "",
        )
        .into()),
        ClientEvent::Goodbye => Err(Stop::Closed),
        _ => Ok(()),
    }
}

/// Stops if a producer failed, panicked or was aborted.
pub(super) fn check_producer(
    ended: Result<Result<(), ServerError>, tokio::task::JoinError>,
) -> Result<(), Stop> {
    match ended {
        Ok(result) => result.map_err(Stop::from),
        Err(join) => Err(match join.try_into_panic() {
            Ok(panic) => panic_error(panic),
            Err(_) => engine::error(ErrorKind::Cancelled, "57014", "the statement was stopped", ""),
        }
        .into()),
    }
}

/// The error of a panic on one of the statement's threads.
pub(crate) fn panic_error(panic: Box<dyn Any + Send>) -> ServerError {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    let message =
        format!("the engine failed on this statement: {}", text.unwrap_or("no reason given"));
    let hint = "this is a defect; please report the query";
    engine::error(ErrorKind::Internal, "XX000", message, hint)
}
