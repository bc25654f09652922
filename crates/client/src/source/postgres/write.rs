//! Writing into a table by `COPY … FROM STDIN`, in one transaction.
//!
//! ```text
//!   thread: the data's source ──▶ batches ──▶ dray-pgcopy: blocks ──▶ Session::send_copy
//! ```
//!
//! The server takes longer for a block than encoding the next one, and the socket's buffer keeps it
//! busy meanwhile, so encoding needs no thread of its own. `parallel.rs` does this over several
//! connections.

mod copy;
mod names;
mod parallel;
mod table;

use std::time::Instant;

use dray_postgres::{CancelCheck as SocketCheck, Session, Socket};

use self::copy::Copy;
use self::table::Table;
use super::super::write::{Batches, Look, Sent, Watched, several, undoing};
use super::connection::Connection;
use super::policy::StatementPolicy;
use crate::error::{Error, ErrorKind, Result};
use crate::watch::Watch;
use crate::write::{WriteJob, WriteStats};

/// The savepoint within a transaction of the user's.
const SAVEPOINT: &str = "dray_write";

/// Writes the data, all or nothing.
///
/// # Errors
/// Those of [`crate::Connection::write`].
pub(super) fn write(
    connection: &mut Connection,
    policy: &mut StatementPolicy,
    job: WriteJob<'_>,
    watch: &mut Watch,
) -> Result<WriteStats> {
    if connection.session.has_failed_transaction() {
        return Err(Error::new(ErrorKind::Execution, "the transaction has failed")
            .with_hint("roll it back first")
            .with_sqlstate("25P02"));
    }
    several::check_connections(job.options, connection.session.is_in_transaction())?;
    let sent = Sent::default();
    let watched = Watched::new(watch, &sent);
    match job.options.connections {
        1 => write_serial(connection, policy, job, &watched).map_err(|error| watched.why(error)),
        _ => parallel::write(connection, policy, job, &watched),
    }
}

fn write_serial(
    connection: &mut Connection,
    policy: &mut StatementPolicy,
    job: WriteJob<'_>,
    watched: &Watched<'_>,
) -> Result<WriteStats> {
    let look = || watched.look();
    in_transaction(connection, &look, |session, check| {
        let began = Instant::now();
        let WriteJob { table, schema, batches, options } = job;
        let table = Table::prepare(session, policy, table, &schema, options, check)?;
        let encoder = table.column_types(session, check)?.encoder(schema.clone())?;
        let prepare = began.elapsed();
        let batches = Batches::new(batches, 1);
        let copy = Copy {
            table: &table,
            schema: &schema,
            batches: &batches,
            sent: watched.sent(),
            look: &look,
        };
        Ok(WriteStats { prepare, ..copy.run(session, encoder, check)? })
    })
}

/// Runs `work` in a transaction, or in a savepoint of the user's. If it fails, nothing of it stays,
/// and the connection can be used.
fn in_transaction<T>(
    connection: &mut Connection,
    look: Look<'_>,
    work: impl FnOnce(&mut Session<Socket>, SocketCheck<'_>) -> Result<T>,
) -> Result<T> {
    let is_nested = connection.session.is_in_transaction();
    let (begin, commit, undo) = match is_nested {
        true => (
            format!("SAVEPOINT {SAVEPOINT}"),
            format!("RELEASE SAVEPOINT {SAVEPOINT}"),
            format!("ROLLBACK TO SAVEPOINT {SAVEPOINT}; RELEASE SAVEPOINT {SAVEPOINT}"),
        ),
        false => ("BEGIN".to_owned(), "COMMIT".to_owned(), "ROLLBACK".to_owned()),
    };
    let done = connection.run(&mut || look(), |connection, check| {
        let session = &mut connection.session;
        session.ask(&begin, check)?;
        let done = work(session, check)?;
        // From here on it is too late to cancel.
        session.ask(&commit, check)?;
        Ok(done)
    });
    done.inspect_err(|_| undo_all(connection, look, &undo, is_nested))
}

/// Rolls back what has failed. If that fails, the connection is given up.
fn undo_all(connection: &mut Connection, look: Look<'_>, undo: &str, is_nested: bool) {
    if connection.session.is_broken() || !connection.session.is_in_transaction() {
        return;
    }
    let mut look = undoing(look);
    let mut undone = |connection: &mut Connection| {
        let undone = connection.run(&mut look, |connection, check| {
            Ok(connection.session.ask(undo, check).map(drop)?)
        });
        undone.is_ok() && (is_nested || !connection.session.is_in_transaction())
    };
    // A late request to cancel may have hit the first try.
    if !undone(connection) && !undone(connection) {
        connection.session.break_off();
    }
}
