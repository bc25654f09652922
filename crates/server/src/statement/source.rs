//! What a statement for a source waits for: its client's session, and other connections.

use std::sync::Arc;

use dray_wire::{ErrorKind, ServerError};
use tokio::sync::OwnedSemaphorePermit;

use super::stop::{Stop, while_client_waits};
use crate::connection::{Closed, Connection, SourceInUse, idle_too_long, stopped, stopping_error};
use crate::engine;
use crate::relay::{self, HeldPlan, PartReader, Relay};

/// What runs a statement at a source.
pub(super) enum Runner {
    Session(Arc<SourceInUse>),
    Part(PartReader),
}

/// The client's session of its source, which begins with its first statement.
pub(super) async fn session(
    connection: &mut Connection,
    relay: &Arc<Relay>,
) -> Result<Arc<SourceInUse>, Stop> {
    if let Some(source) = &connection.source {
        return Ok(source.clone());
    }
    let timeout = connection.shared.wait_timeout;
    let permit = unless_stopped(connection, relay.connections(1, timeout)).await?;
    begin_session(connection, relay, permit)
}

/// The client's session, and a connection for a plan.
pub(super) async fn session_and_connection(
    connection: &mut Connection,
    relay: &Arc<Relay>,
) -> Result<(Arc<SourceInUse>, OwnedSemaphorePermit), Stop> {
    // The session, and the plan's own connection.
    relay.check_allows(2, "a plan of parts")?;
    if let Some(source) = connection.source.clone() {
        let permit = another_connection(connection, &source).await?;
        return Ok((source, permit));
    }
    // Both at once: clients that have one and wait for the other would wait for each other.
    let timeout = connection.shared.wait_timeout;
    let mut permits = unless_stopped(connection, relay.connections(2, timeout)).await?;
    let of_session = permits.split(1).ok_or_else(relay::lost)?;
    Ok((begin_session(connection, relay, of_session)?, permits))
}

/// Waits for what a part is read over.
pub(super) async fn part_reader(
    connection: &mut Connection,
    relay: &Arc<Relay>,
    plan: Arc<HeldPlan>,
    index: usize,
) -> Result<PartReader, Stop> {
    let permit = if !plan.parts().opens_connections() {
        let free = plan.free();
        // As long as it takes: they become free when other parts have been read.
        let acquired = async { free.acquire_owned().await.map_err(|_| relay::lost()) };
        unless_stopped(connection, acquired).await?
    } else if let Some(source) = connection.source.clone() {
        // This client's session, the plan's own connection, and the one for the part.
        relay.check_allows(3, "reading a part over a connection that has run statements")?;
        another_connection(connection, &source).await?
    } else {
        let timeout = connection.shared.wait_timeout;
        unless_stopped(connection, relay.connections(1, timeout)).await?
    };
    Ok(PartReader { plan, index, permit })
}

fn begin_session(
    connection: &mut Connection,
    relay: &Arc<Relay>,
    permit: OwnedSemaphorePermit,
) -> Result<Arc<SourceInUse>, Stop> {
    let session = relay.session(permit)?;
    let source = Arc::new(SourceInUse { relay: relay.clone(), session });
    Ok(connection.source.insert(source).clone())
}

/// A connection for a client that has a session. The first client that waits so keeps its session.
/// The next ones count as idle, and are closed if others want a session.
async fn another_connection(
    connection: &mut Connection,
    source: &SourceInUse,
) -> Result<OwnedSemaphorePermit, Stop> {
    let shared = connection.shared.clone();
    let idle = idle_too_long(Some(source), &shared);
    let acquired = source.relay.another_connection(shared.wait_timeout, idle);
    match unless_stopped(connection, acquired).await? {
        Some(permit) => Ok(permit),
        None => {
            let what = format!(
                "the statement waited {:?} for another connection to {}, and others waited for \
                 that of its client",
                shared.stall_timeout_contended, source.relay.name
            );
            let hint = "connect again, or raise the server's --source-connections";
            let error = engine::error(ErrorKind::Source, "57P05", what, hint);
            Ok(connection.close(error).await.and(Err(Closed))?)
        }
    }
}

/// Waits while nothing is sent, until the client cancels or leaves, or the server stops.
async fn unless_stopped<T>(
    connection: &mut Connection,
    work: impl Future<Output = Result<T, ServerError>>,
) -> Result<T, Stop> {
    let mut stopping = connection.shared.stopping.clone();
    let work = async {
        tokio::select! {
            done = work => done,
            () = stopped(&mut stopping) => Err(stopping_error()),
        }
    };
    Ok(while_client_waits(connection, work).await??)
}
