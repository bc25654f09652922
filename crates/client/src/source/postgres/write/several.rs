//! Writing over several connections: all fill one new table, which gets its name at the end.
//!
//! ```text
//!   coordinator   create a staging table · COPY ─┬─ all have ended ─▶ drop the old table, rename
//!   worker                       connect · COPY ─┤
//!   worker                       connect · COPY ─┘
//! ```
//!
//! Each COPY is a transaction of its own, but of a table that nobody knows: the last transaction
//! makes all rows appear, or none. After a failure the staging table is dropped. If this process
//! ends in the middle, the staging table stays, and its name says what it is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use arrow::datatypes::SchemaRef;
use dray_pgcopy::Format;
use dray_postgres::{CancelCheck as SocketCheck, Session, Socket};

use super::super::super::write::{Batches, Sent, Source, Watched, staging_name};
use super::super::connection::{Connection, Endpoint};
use super::super::policy::StatementPolicy;
use super::copy::Copy;
use super::names::identifier;
use super::table::{ColumnTypes, Table, already_there, check_arguments, place};
use super::{SAVEPOINT, in_transaction};
use crate::error::{Error, ErrorKind, Result, panic_text};
use crate::source::STOP_TIMEOUT;
use crate::watch::Verdict;
use crate::write::{WriteJob, WriteMode, WriteOptions, WriteStats};

/// The most connections.
const CONNECTIONS_MAX: usize = 64;
/// How long the coordinator sleeps between looks at its workers.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

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
    check_possible(connection, job.options)?;
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

fn check_possible(connection: &Connection, options: &WriteOptions) -> Result<()> {
    let connections = options.connections;
    if !(1..=CONNECTIONS_MAX).contains(&connections) {
        let what = format!("{connections} connections, expected 1 to {CONNECTIONS_MAX}");
        return Err(Error::usage(what));
    }
    let why = if connection.session.is_in_transaction() {
        "a transaction is open, and rows of other connections could not belong to it"
    } else if options.temporary {
        "a temporary table belongs to one connection"
    } else if matches!(options.mode, WriteMode::Append | WriteMode::CreateAppend) {
        "rows that several connections append would be several transactions, of which some may fail"
    } else {
        return Ok(());
    };
    Err(Error::usage(why).with_hint(
        "write over one connection; several can create or replace a table, outside a transaction",
    ))
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
    let shared = Shared {
        staged,
        schema,
        endpoint: connection.endpoint.clone(),
        batches: Batches::new(batches, connections),
        sent: watched.sent(),
        stopped: AtomicBool::new(false),
        abandoned: AtomicBool::new(false),
        outcome: Mutex::new(Ok(WriteStats::default())),
    };
    let look = || shared.look_after(watched.look());
    thread::scope(|scope| {
        let mut workers = Vec::new();
        for number in 2..=connections {
            let name = format!("dray-write-{number}");
            let worker = thread::Builder::new().name(name);
            match worker.spawn_scoped(scope, || shared.work()) {
                Ok(worker) => workers.push(worker),
                Err(cause) => {
                    let what = "can't start a thread for each connection";
                    shared.note(Err(Error::new(ErrorKind::Resources, what).with_cause(cause)));
                    break;
                }
            }
        }
        shared.note(shared.copy(connection, &look));
        while workers.iter().any(|worker| !worker.is_finished()) {
            look();
            thread::sleep(LOOK_INTERVAL);
        }
        for worker in workers {
            if let Err(panic) = worker.join() {
                shared.note(Err(Error::new(ErrorKind::Internal, panic_text(&*panic))));
            }
        }
    });
    shared.outcome.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// What the connections share.
struct Shared<'a> {
    staged: &'a Staged,
    schema: &'a SchemaRef,
    /// How workers connect.
    endpoint: Endpoint,
    batches: Batches,
    sent: &'a Sent,
    /// One has failed, or the watch has cancelled.
    stopped: AtomicBool,
    /// Nobody waits for the server.
    abandoned: AtomicBool,
    /// The sums of those that have ended, or the first failure.
    outcome: Mutex<Result<WriteStats>>,
}

impl Shared<'_> {
    /// A worker: its connection and its share.
    fn work(&self) {
        let Endpoint { uri, options, .. } = &self.endpoint;
        let mut keep_waiting = || self.verdict() == Verdict::Continue;
        let connected = Connection::connect(uri, options, &mut keep_waiting).map_err(|error| {
            let what = "another connection to write over can't be made";
            let sqlstate = error.sqlstate().unwrap_or_default().to_owned();
            Error::new(error.kind(), what).with_sqlstate(sqlstate).with_cause(error)
        });
        let look = || self.verdict();
        self.note(connected.and_then(|mut connection| self.copy(&mut connection, &look)));
    }

    /// The share of one connection.
    fn copy(&self, connection: &mut Connection, look: &dyn Fn() -> Verdict) -> Result<WriteStats> {
        let Self { staged, schema, batches, sent, .. } = self;
        let encoder = staged.types.encoder((*schema).clone())?;
        in_transaction(connection, look, |session, check| {
            let copy = Copy { table: &staged.table, schema, batches, sent, look };
            copy.run(session, encoder, check)
        })
    }

    /// Notes how a connection has ended. The others stop after a failure.
    fn note(&self, ended: Result<WriteStats>) {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        match (&mut *outcome, ended) {
            (Ok(sum), Ok(stats)) => sum.add(&stats),
            (Ok(_), Err(error)) => {
                self.stopped.store(true, Ordering::SeqCst);
                *outcome = Err(error);
            }
            (Err(_), _) => {}
        }
    }

    /// What a connection has to do.
    fn verdict(&self) -> Verdict {
        match (self.abandoned.load(Ordering::SeqCst), self.stopped.load(Ordering::SeqCst)) {
            (true, _) => Verdict::Abandon,
            (false, true) => Verdict::Cancel,
            (false, false) => Verdict::Continue,
        }
    }

    /// The same for the coordinator, whose watch has decided this.
    fn look_after(&self, verdict: Verdict) -> Verdict {
        self.stopped.fetch_or(verdict > Verdict::Continue, Ordering::SeqCst);
        self.abandoned.fetch_or(verdict == Verdict::Abandon, Ordering::SeqCst);
        self.verdict()
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
        let Endpoint { uri, options, .. } = &connection.endpoint;
        let mut keep_waiting = || Instant::now() < deadline;
        dropped = Connection::connect(uri, options, &mut keep_waiting)
            .and_then(|mut other| drop_over(&mut other));
    }
    match dropped {
        Ok(()) => error,
        Err(_) => {
            let before = error.hint().map(|hint| format!("{hint}; ")).unwrap_or_default();
            let hint = format!("{before}the unfinished table {staging} may be left: drop it");
            error.with_hint(hint)
        }
    }
}
