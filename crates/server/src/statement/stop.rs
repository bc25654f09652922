//! Why a statement ends before its result does.

use std::any::Any;

use dray_wire::{ClientEvent, ErrorKind, ServerError};

use crate::connection::{Closed, Connection};
use crate::engine;

/// Why a statement stopped before its end.
pub(super) enum Stop {
    Failed(ServerError),
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

/// Waits for something that sends nothing, and stops when the client cancels or leaves.
pub(super) async fn watched<T>(
    connection: &mut Connection,
    work: impl Future<Output = T>,
) -> Result<T, Stop> {
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return Ok(done),
            event = connection.event() => stop_on(event?)?,
        }
    }
}

pub(super) fn stop_on(event: ClientEvent) -> Result<(), Stop> {
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

pub(super) fn producer_ended(
    ended: Result<Result<(), ServerError>, tokio::task::JoinError>,
) -> Result<(), Stop> {
    match ended {
        Ok(result) => result.map_err(Stop::from),
        Err(join) => Err(match join.try_into_panic() {
            Ok(panic) => panicked(panic),
            Err(_) => engine::error(ErrorKind::Cancelled, "57014", "the statement was stopped", ""),
        }
        .into()),
    }
}

pub(super) fn panicked(panic: Box<dyn Any + Send>) -> ServerError {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    let message =
        format!("the engine failed on this statement: {}", text.unwrap_or("no reason given"));
    engine::error(
        ErrorKind::Internal,
        "XX000",
        message,
        "this is a defect; please report the query",
    )
}
