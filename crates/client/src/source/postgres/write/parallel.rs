//! Writing over several connections by one COPY each: see `source/write/several.rs`.

use std::time::Instant;

use arrow::datatypes::SchemaRef;
use dray_pgcopy::Format;
use dray_postgres::{CancelCheck as SocketCheck, Session, Socket};

use super::super::super::write::{Batches, Look, Sent, Source, Watched, several, staging_name};
use super::super::connection::Connection;
use super::super::policy::StatementPolicy;
use super::copy::Copy;
use super::names::identifier;
use super::table::{ColumnTypes, Table, already_there, check_arguments, place};
use super::{SAVEPOINT, in_transaction};
use crate::error::{Error, Result};
use crate::source::STOP_TIMEOUT;
use crate::watch::Verdict;
use crate::write::{WriteJob, WriteMode, WriteOptions, WriteStats};

/// A table that is filled before it gets its name.
struct Staged {
    table: Table,
    types: ColumnTypes,
    /// The name that the table gets: with its schema, and without.
    name: String,
    bare_name: String,
}

/// Writes the data over several connections, all or nothing.
///
/// # Errors
/// Those of [`crate::Connection::write`].
pub(super) fn write(
    connection: &mut Connection,
    policy: &mut StatementPolicy,
    job: WriteJob<'_>,
    watched: &Watched<'_>,
) -> Result<WriteStats> {
    let WriteJob { table, schema, batches, options } = job;
    let look = || watched.look();
    let began = Instant::now();
    let mut staging = None;
    let staged = in_transaction(connection, &look, |session, check| {
        stage(session, policy, table, &schema, options, &mut staging, check)
    });
    let prepare = began.elapsed();
    let written = staged.and_then(|staged| {
        let stats = fill(connection, &staged, &schema, batches, options.connections, watched)?;
        in_transaction(connection, &look, |session, check| {
            publish(session, &staged, options.mode, check)
        })?;
        Ok(WriteStats { prepare, ..stats })
    });
    written.map_err(|error| {
        let error = watched.why(error);
        match staging {
            Some(staging) => discard(connection, &staging, error),
            None => error,
        }
    })
}

/// Creates the staging table, and notes its name. What would fail when it gets its own name fails
/// here, before any row is sent.
fn stage(
    session: &mut Session<Socket>,
    policy: &mut StatementPolicy,
    table: &str,
    schema: &SchemaRef,
    options: &WriteOptions,
    staging: &mut Option<String>,
    check: SocketCheck<'_>,
) -> Result<Staged> {
    check_arguments(session, table, schema, options, check)?;
    let place = place(session, options, check)?.unwrap_or_default();
    let bare_name = identifier(table);
    let name = format!("{place}.{bare_name}");
    session.ask(&format!("SAVEPOINT {SAVEPOINT}"), check)?;
    Table::create(session, policy, name.clone(), schema, options, check)?;
    let undo = format!("ROLLBACK TO SAVEPOINT {SAVEPOINT}; RELEASE SAVEPOINT {SAVEPOINT}");
    session.change(&undo, check)?;
    let own = staging.insert(format!("{place}.{}", identifier(&staging_name(table))));
    let options = WriteOptions { mode: WriteMode::Create, ..options.clone() };
    let table = Table::create(session, policy, own.clone(), schema, &options, check)?;
    let types = table.column_types(session, check)?;
    if types.encoder(schema.clone())?.format() == Format::Text {
        let what = "a column has a type that is sent as text, which each session may read in its \
                    own way";
        return Err(Error::usage(what).with_hint("write over one connection"));
    }
    Ok(Staged { table, types, name, bare_name })
}

/// Sends all rows into the staging table.
fn fill(
    connection: &mut Connection,
    staged: &Staged,
    schema: &SchemaRef,
    batches: Source,
    connections: usize,
    watched: &Watched<'_>,
) -> Result<WriteStats> {
    let endpoint = connection.endpoint.clone();
    let batches = Batches::new(batches, connections);
    let share = Share { staged, schema, batches: &batches, sent: watched.sent() };
    several::write(
        connections,
        &|| watched.look(),
        |look| share.copy(connection, look),
        |look| {
            let mut connection = several::connect(look, |waits| endpoint.connect(waits))?;
            share.copy(&mut connection, look)
        },
    )
}

/// What each connection takes its share of.
struct Share<'a> {
    staged: &'a Staged,
    schema: &'a SchemaRef,
    batches: &'a Batches,
    sent: &'a Sent,
}

impl Share<'_> {
    fn copy(&self, connection: &mut Connection, look: Look<'_>) -> Result<WriteStats> {
        let Self { staged, schema, batches, sent } = self;
        let encoder = staged.types.encoder((*schema).clone())?;
        in_transaction(connection, look, |session, check| {
            let copy = Copy { table: &staged.table, schema, batches, sent, look };
            copy.run(session, encoder, check)
        })
    }
}

/// Gives the table its name.
fn publish(
    session: &mut Session<Socket>,
    staged: &Staged,
    mode: WriteMode,
    check: SocketCheck<'_>,
) -> Result<()> {
    let Staged { table, name, bare_name, .. } = staged;
    if mode == WriteMode::Replace {
        session.change(&format!("DROP TABLE IF EXISTS {name}"), check)?;
    }
    let rename = format!("ALTER TABLE {} RENAME TO {bare_name}", table.name());
    session.change(&rename, check).map_err(already_there)
}

/// Drops the staging table after this error; over another connection if this one broke. Returns the
/// error, which says so if that fails.
fn discard(connection: &mut Connection, staging: &str, error: Error) -> Error {
    let statement = format!("DROP TABLE IF EXISTS {staging}");
    let deadline = Instant::now() + STOP_TIMEOUT;
    let drop_over = |connection: &mut Connection| {
        let mut look = || match Instant::now() < deadline {
            true => Verdict::Continue,
            false => Verdict::Cancel,
        };
        connection
            .run(&mut look, |connection, check| Ok(connection.session.change(&statement, check)?))
    };
    // A late request to cancel may hit the first try.
    let mut dropped = drop_over(connection);
    if dropped.is_err() && connection.is_usable() {
        dropped = drop_over(connection);
    }
    if connection.session.is_broken() {
        let mut keep_waiting = || Instant::now() < deadline;
        let other = connection.endpoint.connect(&mut keep_waiting);
        dropped = other.and_then(|mut other| drop_over(&mut other));
    }
    match dropped {
        Ok(()) => error,
        Err(_) => {
            error.with_another_hint(&format!("the unfinished table {staging} may be left: drop it"))
        }
    }
}
