//! Writing into a table: all rows, or none.
//!
//! ```text
//!   append   BEGIN · rows · COMMIT
//!   create   CREATE TABLE dray_unfinished_… ─┬─ BEGIN · rows · COMMIT ─┬─ RENAME TABLE
//!                                            └─ BEGIN · rows · COMMIT ─┘  (other connections)
//! ```
//!
//! CREATE TABLE is no part of a transaction: it commits the one that is open. So a new table gets
//! its name once all rows are there, and is dropped if they are not. A table that it replaces stays
//! until then. `source/write/several.rs` has more about other connections.

mod column;
mod create;
mod encoder;
mod row_numbers;
mod rows;
mod select;
mod settings;
mod table;
mod values;

use std::thread;
use std::time::{Duration, Instant};

use dray_mysql::{CancelCheck as SocketCheck, Connection as Socket, Session};

use self::rows::Writing;
use self::settings::Settings;
use self::table::{
    Existing, NO_TABLE, Table, UNKNOWN_TABLE, already_there, check_arguments, create_statement,
    identifier, missing, naming_failed, place,
};
use super::super::write::{
    Batches, Look, Sent, UNDO_TIMEOUT, Watched, several, staging_name, undoing,
};
use super::MysqlSource;
use crate::error::{Error, ErrorKind, Result};
use crate::source::STOP_TIMEOUT;
use crate::watch::{Verdict, Watch};
use crate::write::{WriteJob, WriteMode, WriteOptions, WriteStats};

/// The savepoint within a transaction of the user's.
const SAVEPOINT: &str = "dray_write";
/// SQLSTATE `query_canceled`.
const QUERY_CANCELED: &str = "70100";
/// How long to wait before another connection is tried again.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

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
    several::check_connections(job.options, source.connection.session.is_in_transaction())?;
    let sent = Sent::default();
    let watched = Watched::new(watch, &sent);
    let look = || watched.look();
    let settings = source
        .run(&mut || look(), |connection, check| Settings::set(&mut connection.session, check))?;
    let mut writer = Writer { source, settings: &settings, sent: &sent, look: &look };
    let written = writer.write(job, &|error| watched.why(error));
    if !source.connection.session.is_broken() && !insist(source, &look, &settings.reset()) {
        source.connection.session.break_off();
    }
    written
}

/// Runs a statement of the program's own, also if the watch has cancelled. A late request to cancel
/// may hit the first try.
fn insist(source: &mut MysqlSource, look: Look<'_>, statement: &str) -> bool {
    let mut look = undoing(look);
    let mut ask = || {
        let asked = source.run(&mut look, |connection, check| {
            Ok(connection.session.ask(statement, check).map(drop)?)
        });
        asked.is_ok()
    };
    ask() || ask()
}

/// A connection that writes, after its settings.
struct Writer<'a> {
    source: &'a mut MysqlSource,
    settings: &'a Settings,
    sent: &'a Sent,
    look: Look<'a>,
}

/// Where rows go.
struct Target {
    /// As SQL writes it.
    database: String,
    /// With its database.
    name: String,
    existing: Option<Existing>,
}

impl Target {
    /// Another name for the table, which no other one has.
    fn staging(&self, table: &str) -> String {
        format!("{}.{}", self.database, identifier(&staging_name(table)))
    }
}

/// A table that gets its name at the end.
struct NewTable {
    /// Its name until then.
    staging: String,
    /// What the table that it replaces is called afterwards, until it is dropped.
    replaced: Option<String>,
    name: String,
}

impl NewTable {
    /// Whether the table has got its name, though the server's answer may be lost. Asked before
    /// anything is dropped.
    fn is_published(&self, source: &mut MysqlSource, look: Look<'_>) -> Result<bool> {
        source.run(&mut || look(), |connection, check| {
            Ok(Existing::find(&mut connection.session, &self.staging, check)?.is_none())
        })
    }
}

/// Drops a table; false if there is none.
fn drop_table(source: &mut MysqlSource, look: Look<'_>, table: &str) -> Result<bool> {
    source.run(&mut || look(), |connection, check| {
        match connection.session.ask(&format!("DROP TABLE {table}"), check) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.code(), Some(UNKNOWN_TABLE | NO_TABLE)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    })
}

impl Writer<'_> {
    fn run<T>(
        &mut self,
        work: impl FnOnce(&mut Session<Socket>, SocketCheck<'_>) -> Result<T>,
    ) -> Result<T> {
        let look = self.look;
        self.source.run(&mut || look(), |connection, check| work(&mut connection.session, check))
    }

    /// Writes the data. `why` says why that ends, by the error that ended it.
    fn write(&mut self, job: WriteJob<'_>, why: &dyn Fn(Error) -> Error) -> Result<WriteStats> {
        let WriteOptions { mode, temporary, .. } = *job.options;
        let target = self.run(|session, check| {
            let database = place(session, job.options, check)?;
            let name = format!("{database}.{}", identifier(job.table));
            let existing = Existing::find(session, &name, check)?;
            Ok(Target { database, name, existing })
        });
        let target = target.map_err(why)?;
        // A temporary table hides another one.
        let existing = target.existing.as_ref().filter(|table| table.is_temporary || !temporary);
        let written = match (mode, existing) {
            (WriteMode::Append, None) => Err(missing(&target.name)),
            (WriteMode::Append | WriteMode::CreateAppend, Some(table)) => self
                .run(|session, check| table.check_appendable(session, &target.name, check))
                .and_then(|()| self.append(target.name.clone(), job)),
            (WriteMode::Create, Some(_)) => Err(already_there(&target.name)),
            _ if temporary => self.create_temporary(&target, existing.is_some(), job),
            (WriteMode::Replace, Some(Existing { is_temporary: true, .. })) => {
                Err(Error::usage(format!("{} is a temporary table", target.name))
                    .with_hint("replace it as one, or drop it first"))
            }
            (WriteMode::Replace, Some(Existing { engine: None, .. })) => {
                Err(Error::usage(format!("{} is a view", target.name)).with_hint("drop it first"))
            }
            (_, existing) => return self.create(&target, existing.is_some(), job, why),
        };
        written.map_err(why)
    }

    /// Sends the rows into a table that is there.
    fn append(&mut self, name: String, job: WriteJob<'_>) -> Result<WriteStats> {
        let began = Instant::now();
        let WriteJob { schema, batches, .. } = job;
        // Without autocommit the user commits.
        let commits = self.source.connection.session.is_autocommit();
        let (settings, sent, look) = (self.settings, self.sent, self.look);
        self.in_transaction(commits, |session, check| {
            let table = Table::of(session, name, schema, check)?;
            let prepare = began.elapsed();
            let batches = Batches::new(batches, 1);
            let writing = Writing { table: &table, batches: &batches, settings, sent, look };
            Ok(WriteStats { prepare, ..writing.run(session, check)? })
        })
    }

    /// Sends the rows into a new table, over as many connections as the options say.
    fn fill(&mut self, name: String, job: WriteJob<'_>) -> Result<WriteStats> {
        let began = Instant::now();
        let WriteJob { schema, batches, options, .. } = job;
        let table = self.run(|session, check| Table::of(session, name, schema, check))?;
        let prepare = began.elapsed();
        let batches = Batches::new(batches, options.connections);
        let endpoint = self.source.connection.endpoint.clone();
        let (settings, sent, look) = (self.settings, self.sent, self.look);
        let own = |look: Look<'_>| {
            let source = &mut *self.source;
            Writer { source, settings, sent, look }.send_share(&table, &batches)
        };
        let other = |look: Look<'_>| {
            let connection = several::connect(look, |waits| endpoint.connect(waits))?;
            let source = &mut MysqlSource::over(connection);
            let mut writer = Writer { source, settings, sent, look };
            writer.run(|session, check| settings.set_alike(session, check))?;
            writer.send_share(&table, &batches)
        };
        Ok(WriteStats { prepare, ..several::write(options.connections, look, own, other)? })
    }

    /// Sends this connection's share of the rows.
    fn send_share(&mut self, table: &Table, batches: &Batches) -> Result<WriteStats> {
        let (settings, sent, look) = (self.settings, self.sent, self.look);
        self.in_transaction(true, |session, check| {
            Writing { table, batches, settings, sent, look }.run(session, check)
        })
    }

    /// Creates a table of the session's own. One that it replaces stays until all rows are in
    /// another one, from which the server copies them: a temporary table that gets another name
    /// would commit the user's transaction.
    fn create_temporary(
        &mut self,
        target: &Target,
        replaces: bool,
        job: WriteJob<'_>,
    ) -> Result<WriteStats> {
        let name = &target.name;
        let filled = if replaces { target.staging(job.table) } else { name.clone() };
        let undo = format!("DROP TEMPORARY TABLE IF EXISTS {filled}");
        let create = self.run(|session, check| {
            let create = |name: &str| create_statement(session, name, &job.schema, job.options);
            let (first, last) = (create(&filled)?, create(name)?);
            session.ask(&first, check)?;
            Ok(last)
        })?;
        let mut written = self.append(filled.clone(), job);
        if replaces && written.is_ok() {
            let drop = format!("DROP TEMPORARY TABLE {name}");
            let copy = format!("INSERT INTO {name} SELECT * FROM {filled}");
            // It is too late to cancel.
            let copied = self.source.run(&mut undoing(self.look), |connection, check| {
                for statement in [drop, create, copy] {
                    connection.session.ask(&statement, check)?;
                }
                Ok(())
            });
            written = copied.and(written);
        }
        if (replaces || written.is_err()) && !insist(self.source, self.look, &undo) {
            self.source.connection.session.break_off();
        }
        written
    }

    /// Creates a table that gets its name at the end.
    fn create(
        &mut self,
        target: &Target,
        replaces: bool,
        job: WriteJob<'_>,
        why: &dyn Fn(Error) -> Error,
    ) -> Result<WriteStats> {
        if self.source.connection.session.is_in_transaction() {
            return Err(Error::usage(
                "a transaction is open, and MySQL would commit it before it creates a table",
            )
            .with_hint("commit it first; or append to a table that exists")
            .with_sqlstate("25001"));
        }
        let own = || target.staging(job.table);
        let new =
            NewTable { staging: own(), replaced: replaces.then(own), name: target.name.clone() };
        let created = self.run(|session, check| {
            let create = create_statement(session, &new.staging, &job.schema, job.options)?;
            Ok(session.ask(&create, check).map(drop)?)
        });
        if let Err(error) = created {
            // What was interrupted may have created it.
            let is_refused = self.source.connection.session.is_usable()
                && error.sqlstate() != Some(QUERY_CANCELED);
            return Err(match is_refused {
                true => why(error),
                false => self.discard(&new, false, why(error)),
            });
        }
        let mut is_filled = false;
        let written = self.fill(new.staging.clone(), job).and_then(|stats| {
            is_filled = true;
            self.publish(&new)?;
            Ok(stats)
        });
        written.map_err(|error| self.discard(&new, is_filled, why(error)))
    }

    /// Gives the new table its name, and drops the one that had it.
    fn publish(&mut self, NewTable { staging, replaced, name }: &NewTable) -> Result<()> {
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
        if dropped.is_err() && !self.source.connection.session.is_broken() {
            // Foreign keys of other tables may hold it.
            let undo = format!("RENAME TABLE {name} TO {staging}, {replaced} TO {name}");
            insist(self.source, self.look, &undo);
        }
        dropped
    }

    /// Drops what is left of a new table after this error; over another connection if this one
    /// broke. Returns the error, which says what became of the table if it is still there.
    fn discard(&mut self, new: &NewTable, is_filled: bool, error: Error) -> Error {
        // The server may still be undoing what a broken connection has done, which takes its time.
        let (began, look) = (Instant::now(), self.look);
        let look = || {
            let waited = began.elapsed();
            let is_wanted = look() == Verdict::Continue;
            match waited < STOP_TIMEOUT || waited < UNDO_TIMEOUT && is_wanted {
                true => Verdict::Continue,
                false => Verdict::Cancel,
            }
        };
        // Once it is known it stays so: of a table that is dropped, it can't be asked again.
        let mut published = if is_filled { None } else { Some(false) };
        let mut clear = |source: &mut MysqlSource| -> Result<()> {
            let was_asked = published.is_some();
            let is_published = match published {
                Some(known) => known,
                None => *published.insert(new.is_published(source, &look)?),
            };
            if !is_published && (drop_table(source, &look, &new.staging)? || was_asked) {
                return Ok(());
            }
            // A RENAME whose answer was lost may have taken effect since the question.
            published = Some(true);
            if let Some(replaced) = &new.replaced {
                drop_table(source, &look, replaced)?;
            }
            Ok(())
        };
        // A late request to cancel may hit the first try.
        let mut clear_twice = |source: &mut MysqlSource| clear(source).or_else(|_| clear(source));
        let mut cleared = match self.source.connection.session.is_broken() {
            true => false,
            false => clear_twice(self.source).is_ok(),
        };
        // What the server refuses here it would refuse another connection, too.
        if !cleared && self.source.connection.session.is_broken() {
            self.source.connection.shut_down();
            let endpoint = &self.source.connection.endpoint;
            let mut other = several::connect(&look, |waits| endpoint.connect(waits));
            // The broken connection may still count for the limit of a user's connections.
            let is_full =
                |error: &Error| error.kind() == ErrorKind::Connection && error.sqlstate().is_some();
            while other.as_ref().is_err_and(is_full) && look() == Verdict::Continue {
                thread::sleep(RETRY_INTERVAL);
                other = several::connect(&look, |waits| endpoint.connect(waits));
            }
            cleared = other.and_then(|other| clear_twice(&mut MysqlSource::over(other))).is_ok();
        }
        match cleared.then_some(published).flatten() {
            Some(false) => error,
            Some(true) => {
                let more = format!("{} was written before: all rows are there", new.name);
                error.with_another_hint(&more)
            }
            None => {
                let own = [Some(&new.staging), new.replaced.as_ref()];
                let own: Vec<_> = own.into_iter().flatten().map(String::as_str).collect();
                let own = own.join(" or ");
                let more = format!("the unfinished table {own} may be left: look at it");
                error.with_another_hint(&more)
            }
        }
    }

    /// Runs `work` in a transaction, which `commits` at its end or is left open, or in a savepoint
    /// of the user's. If it fails, nothing of it stays.
    fn in_transaction<T>(
        &mut self,
        commits: bool,
        work: impl FnOnce(&mut Session<Socket>, SocketCheck<'_>) -> Result<T>,
    ) -> Result<T> {
        let is_nested = self.source.connection.session.is_in_transaction();
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
            let known = insist(self.source, self.look, "DO 0");
            let is_open = self.source.connection.session.is_in_transaction();
            if !known || is_open && !insist(self.source, self.look, &undo) {
                self.source.connection.session.break_off();
            }
        }
        done
    }
}
