//! Waiting for a database that is told to stop over a second connection.

use std::time::{Duration, Instant};

use dray_net::{CancelCheck as SocketCheck, Wait};

use super::StopDeadline;
use crate::error::{Error, ErrorKind, Result};
use crate::watch::{CancelCheck, Verdict};

/// A request to stop a statement is sent again after this time.
const CANCEL_INTERVAL: Duration = Duration::from_millis(200);

/// A connection whose statement a second connection can stop.
pub(super) trait Cancellable {
    /// The errors of its protocol.
    type Error: Into<Error>;
    /// Makes the second connection.
    type Canceller: Clone;

    fn canceller(&self) -> &Self::Canceller;

    /// Asks the server to stop what the connection is doing.
    fn cancel(canceller: &Self::Canceller, wait: &mut Wait<'_>) -> Result<(), Self::Error>;

    /// Reads what still comes of a statement.
    fn drain(&mut self, check: SocketCheck<'_, Self::Error>) -> Result<(), Self::Error>;

    /// Notes that the server was asked to stop. It may do so only once the next statement runs.
    fn expect_stop(&mut self) {}

    /// Has the server spend such a request on a statement that does nothing, if none runs now.
    ///
    /// # Errors
    /// When the connection breaks, or the check ends the wait.
    fn absorb_stop(&mut self, _: SocketCheck<'_, Self::Error>) -> Result<(), Self::Error> {
        Ok(())
    }

    fn is_running(&self) -> bool;

    /// Gives the connection up.
    fn break_off(&mut self);

    /// The error that ends a wait.
    fn wait_ended(why: &str) -> Self::Error;
}

/// Runs `work`, which waits for the server. When `cancel` says so, asks the server to stop, and
/// gives the connection up if it does not. Drains what still arrives of a statement that has
/// failed. A request that came too late stops no later statement.
///
/// # Errors
/// Those of `work`.
pub(super) fn run<C: Cancellable, T>(
    connection: &mut C,
    cancel: CancelCheck<'_>,
    work: impl FnOnce(&mut C, SocketCheck<'_, C::Error>) -> Result<T>,
) -> Result<T> {
    let canceller = connection.canceller().clone();
    let mut deadline: Option<StopDeadline> = None;
    // A server between two steps of the work ignores the request.
    let mut again = Instant::now();
    let mut check = || {
        let verdict = cancel();
        if verdict == Verdict::Continue && deadline.is_none() {
            return Ok(());
        }
        let deadline = *deadline.get_or_insert_default();
        deadline.check(verdict).map_err(|error| C::wait_ended(error.message()))?;
        match Instant::now() >= again {
            true => {
                again = Instant::now() + CANCEL_INTERVAL;
                send::<C>(&canceller, deadline, cancel)
            }
            false => Ok(()),
        }
    };
    let done = work(connection, &mut check);
    if deadline.is_some() {
        connection.expect_stop();
    }
    match &done {
        // The server has had its time to stop.
        Err(_) if deadline.is_some_and(|deadline| deadline.check(cancel()).is_err()) => {
            connection.break_off();
        }
        Err(_) if connection.is_running() => stop(connection, cancel),
        // The answer to one of the source's own statements was not read to its end, so the next
        // message could belong to anything.
        Err(error) if error.kind() == ErrorKind::Connection => connection.break_off(),
        _ => run_briefly(connection, cancel, C::absorb_stop),
    }
    done
}

/// Runs a short statement of the source's own, which nobody asks the server to stop. Gives the
/// connection up if that fails or takes too long.
pub(super) fn run_briefly<C: Cancellable>(
    connection: &mut C,
    cancel: CancelCheck<'_>,
    work: impl FnOnce(&mut C, SocketCheck<'_, C::Error>) -> Result<(), C::Error>,
) {
    let deadline = StopDeadline::default();
    let mut check = || deadline.check(cancel()).map_err(|error| C::wait_ended(error.message()));
    if work(connection, &mut check).is_err() {
        connection.break_off();
    }
}

/// Asks the server to stop the running statement and drains what still comes of it. Gives the
/// connection up if that takes too long.
pub(super) fn stop<C: Cancellable>(connection: &mut C, cancel: CancelCheck<'_>) {
    let deadline = StopDeadline::default();
    let canceller = connection.canceller().clone();
    let sent = send::<C>(&canceller, deadline, cancel);
    // A server that has not begun with the statement ignores the request.
    let mut again = Instant::now() + CANCEL_INTERVAL;
    let mut check = || {
        deadline.check(cancel()).map_err(|error| C::wait_ended(error.message()))?;
        if Instant::now() >= again {
            again = Instant::now() + CANCEL_INTERVAL;
            send::<C>(&canceller, deadline, cancel)?;
        }
        Ok(())
    };
    if sent.and_then(|()| connection.drain(&mut check)).is_err() {
        connection.break_off();
        return;
    }
    connection.expect_stop();
    run_briefly(connection, cancel, C::absorb_stop);
}

/// Asks the server to stop what runs, until the deadline or until the check says
/// [`Verdict::Abandon`].
fn send<C: Cancellable>(
    canceller: &C::Canceller,
    deadline: StopDeadline,
    cancel: CancelCheck<'_>,
) -> Result<(), C::Error> {
    C::cancel(canceller, &mut Wait::new(deadline.0, &mut || cancel() < Verdict::Abandon))
}
