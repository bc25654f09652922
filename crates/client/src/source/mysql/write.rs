//! Writing into a table: all rows, or none.
//!
//! ```text
//!   append   BEGIN · rows · COMMIT
//!   create   CREATE TABLE dray_unfinished_… · BEGIN · rows · COMMIT · RENAME TABLE
//! ```
//!
//! CREATE TABLE is no part of a transaction: it commits the one that is open. So a new table gets
//! its name once all rows are there, and is dropped if they are not. A table that it replaces stays
//! until then.

mod column;
mod create;
mod encoder;
mod rows;
mod select;
mod settings;
mod table;
mod values;

use std::time::{Duration, Instant};

use dray_mysql::{CancelCheck as SocketCheck, Connection as Socket, Session};

use self::rows::Writing;
use self::settings::Settings;
use self::table::{
    Existing, Table, already_there, check_arguments, create_statement, identifier, missing,
    naming_failed, place,
};
use super::super::write::{Batches, Sent, Watched, staging_name};
use super::MysqlSource;
use crate::error::{Error, Result};
use crate::source::STOP_TIMEOUT;
use crate::watch::{Verdict, Watch};
use crate::write::{WriteJob, WriteMode, WriteOptions, WriteStats};

/// The savepoint within a transaction of the user's.
const SAVEPOINT: &str = "dray_write";
/// How long a server has to undo what a broken connection has done.
const UNDO_TIMEOUT: Duration = Duration::from_secs(60);

/// Writes the data, all or nothing.
///
/// # Errors
/// Those of [`crate::Connection::write`].
pub(super) fn write(
    source: &mut MysqlSource,
    job: WriteJob<'_>,
    watch: &mut Watch,
) -> Result<WriteStats> {
    check_arguments(job.table, &job.schema, job.options)?;
    let sent = Sent::default();
    let watched = Watched::new(watch, &sent);
    let written = with_settings(source, &watched, |source, packet_bytes_max| {
        let mut writer = Writer { source, watched: &watched, packet_bytes_max };
        writer.write(job)
    });
    written.map_err(|error| watched.why(error))
}

/// Runs `work` under the settings that writing needs.
fn with_settings<T>(
    source: &mut MysqlSource,
    watched: &Watched<'_>,
    work: impl FnOnce(&mut MysqlSource, usize) -> Result<T>,
) -> Result<T> {
    let settings = source.run(&mut || watched.look(), |connection, check| {
        Settings::set(&mut connection.session, check)
    })?;
    let done = work(source, settings.packet_bytes_max);
    if !source.connection.session.is_broken() && !insist(source, &settings.reset()) {
        source.connection.session.break_off();
    }
    done
}

/// Runs a statement of the program's own, whatever the watch says. A late request to cancel may hit
/// the first try.
fn insist(source: &mut MysqlSource, statement: &str) -> bool {
    let mut ask = || {
        let mut look = || Verdict::Continue;
        let asked = source.run(&mut look, |connection, check| {
            Ok(connection.session.ask(statement, check).map(drop)?)
        });
        asked.is_ok()
    };
    ask() || ask()
}

struct Writer<'a, 'w> {
    source: &'a mut MysqlSource,
    watched: &'a Watched<'w>,
    packet_bytes_max: usize,
}

/// Where rows go.
struct Target {
    /// As SQL writes it.
    database: String,
    /// With its database.
    name: String,
    existing: Option<Existing>,
}

impl Writer<'_, '_> {
    fn run<T>(
        &mut self,
        work: impl FnOnce(&mut Session<Socket>, SocketCheck<'_>) -> Result<T>,
    ) -> Result<T> {
        let watched = self.watched;
        self.source
            .run(&mut || watched.look(), |connection, check| work(&mut connection.session, check))
    }

    fn write(&mut self, job: WriteJob<'_>) -> Result<WriteStats> {
        let WriteOptions { mode, temporary, .. } = *job.options;
        let target = self.run(|session, check| {
            let database = place(session, job.options, check)?;
            let name = format!("{database}.{}", identifier(job.table));
            let existing = Existing::find(session, &name, check)?;
            Ok(Target { database, name, existing })
        })?;
        // A temporary table hides another one.
        let existing = target.existing.as_ref().filter(|table| table.is_temporary || !temporary);
        match (mode, existing) {
            (WriteMode::Append, None) => Err(missing(&target.name)),
            (WriteMode::Append | WriteMode::CreateAppend, Some(table)) => {
                self.run(|session, check| table.check_appendable(session, &target.name, check))?;
                self.append(target.name, job)
            }
            (WriteMode::Create, Some(_)) => Err(already_there(&target.name)),
            _ if temporary => self.create_temporary(target.name, job),
            (WriteMode::Replace, Some(Existing { is_temporary: true, .. })) => {
                Err(Error::usage(format!("{} is a temporary table", target.name))
                    .with_hint("replace it as one, or drop it first"))
            }
            (WriteMode::Replace, Some(Existing { engine: None, .. })) => {
                Err(Error::usage(format!("{} is a view", target.name)).with_hint("drop it first"))
            }
            (_, existing) => self.create(&target, existing.is_some(), job),
        }
    }

    /// Sends the rows into a table that is there.
    fn append(&mut self, name: String, job: WriteJob<'_>) -> Result<WriteStats> {
        let began = Instant::now();
        let WriteJob { schema, batches, .. } = job;
        let (watched, packet_bytes_max) = (self.watched, self.packet_bytes_max);
        self.in_transaction(|session, check| {
            let table = Table::of(session, name, schema, check)?;
            let prepare = began.elapsed();
            let batches = Batches::new(batches, 1);
            let writing = Writing { table: &table, batches: &batches, watched, packet_bytes_max };
            Ok(WriteStats { prepare, ..writing.run(session, check)? })
        })
    }

    /// Creates a table of the session's own.
    fn create_temporary(&mut self, name: String, job: WriteJob<'_>) -> Result<WriteStats> {
        let drop = format!("DROP TEMPORARY TABLE IF EXISTS {name}");
        self.run(|session, check| {
            let create = create_statement(session, &name, &job.schema, job.options)?;
            session.ask(&drop, check)?;
            Ok(session.ask(&create, check).map(std::mem::drop)?)
        })?;
        let written = self.append(name, job);
        if written.is_err() && !insist(self.source, &drop) {
            self.source.connection.session.break_off();
        }
        written
    }

    /// Creates a table that gets its name at the end.
    fn create(&mut self, target: &Target, replaces: bool, job: WriteJob<'_>) -> Result<WriteStats> {
        if self.source.connection.session.is_in_transaction() {
            return Err(Error::usage(
                "a transaction is open, and MySQL would commit it before it creates a table",
            )
            .with_hint("commit it first; or append to a table that exists")
            .with_sqlstate("25001"));
        }
        let own = |table: &str| format!("{}.{}", target.database, identifier(&staging_name(table)));
        let staging = own(job.table);
        let replaced = replaces.then(|| own(job.table));
        let written = self
            .run(|session, check| {
                let create = create_statement(session, &staging, &job.schema, job.options)?;
                Ok(session.ask(&create, check).map(drop)?)
            })
            .and_then(|()| {
                let stats = self.append(staging.clone(), job)?;
                self.publish(&staging, replaced.as_deref(), &target.name)?;
                Ok(stats)
            });
        written.map_err(|error| self.discard(&staging, error))
    }

    /// Gives the new table its name, and drops the one that had it.
    fn publish(&mut self, staging: &str, replaced: Option<&str>, name: &str) -> Result<()> {
        let rename = match replaced {
            Some(replaced) => format!("RENAME TABLE {name} TO {replaced}, {staging} TO {name}"),
            None => format!("RENAME TABLE {staging} TO {name}"),
        };
        self.run(|session, check| {
            session.ask(&rename, check).map(drop).map_err(|error| naming_failed(error, name))
        })?;
        let Some(replaced) = replaced else { return Ok(()) };
        let dropped = self.run(|session, check| {
            Ok(session.ask(&format!("DROP TABLE {replaced}"), check).map(drop)?)
        });
        dropped.map_err(|error| {
            // Foreign keys of other tables may hold it.
            let back = format!("RENAME TABLE {name} TO {staging}, {replaced} TO {name}");
            match insist(self.source, &back) {
                true => error,
                false => with_more(error, &format!("the replaced table is now {replaced}")),
            }
        })
    }

    /// Drops the new table after this error; over another connection if this one broke. Returns the
    /// error, which says so if that fails.
    fn discard(&mut self, staging: &str, error: Error) -> Error {
        let statement = format!("DROP TABLE IF EXISTS {staging}");
        let is_usable = !self.source.connection.session.is_broken();
        let dropped = (is_usable && insist(self.source, &statement))
            || self.drop_over_another(&statement).is_ok();
        match dropped {
            true => error,
            false => {
                with_more(error, &format!("the unfinished table {staging} may be left: drop it"))
            }
        }
    }

    /// Runs a statement over another connection. The server may still be undoing what this one has
    /// done, which takes its time.
    fn drop_over_another(&self, statement: &str) -> Result<()> {
        let (began, watched) = (Instant::now(), self.watched);
        let has_time = || {
            let waited = began.elapsed();
            waited < STOP_TIMEOUT || waited < UNDO_TIMEOUT && watched.look() == Verdict::Continue
        };
        let mut other = self.source.connection.endpoint.connect(&mut || has_time())?;
        let mut check = || match has_time() {
            true => Ok(()),
            false => Err(dray_mysql::Error::wait_ended("the server did not answer in time")),
        };
        Ok(other.session.ask(statement, &mut check).map(drop)?)
    }

    /// Runs `work` in a transaction, or in a savepoint of the user's. If it fails, nothing of it
    /// stays.
    fn in_transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Session<Socket>, SocketCheck<'_>) -> Result<T>,
    ) -> Result<T> {
        let session = &self.source.connection.session;
        let (is_nested, commits) = (session.is_in_transaction(), session.is_autocommit());
        let (begin, undo) = match is_nested {
            true => ("SAVEPOINT", "ROLLBACK TO SAVEPOINT"),
            false => ("START TRANSACTION", "ROLLBACK"),
        };
        let (begin, commit, undo) = match is_nested {
            true => (
                format!("{begin} {SAVEPOINT}"),
                Some(format!("RELEASE SAVEPOINT {SAVEPOINT}")),
                format!("{undo} {SAVEPOINT}"),
            ),
            // Without autocommit the user commits.
            false => (begin.to_owned(), commits.then(|| "COMMIT".to_owned()), undo.to_owned()),
        };
        let done = self.run(|session, check| {
            session.ask(&begin, check)?;
            let done = work(session, check)?;
            // From here on it is too late to cancel.
            if let Some(commit) = &commit {
                session.ask(commit, check)?;
            }
            Ok(done)
        });
        if done.is_err() && self.source.connection.session.is_usable() {
            // The errors of a server do not say whether they have ended the whole transaction, as a
            // deadlock does; the answer to any other statement does.
            let known = insist(self.source, "DO 0");
            let is_open = self.source.connection.session.is_in_transaction();
            if !known || is_open && !insist(self.source, &undo) {
                self.source.connection.session.break_off();
            }
        }
        done
    }
}

/// The same error, with more in its hint.
fn with_more(error: Error, more: &str) -> Error {
    let before = error.hint().map(|hint| format!("{hint}; ")).unwrap_or_default();
    error.with_hint(format!("{before}{more}"))
}
