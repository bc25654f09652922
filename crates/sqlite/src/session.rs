//! A session: a connection of its own to the file.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dray_driver::{
    BATCH_BYTES_MAX, BATCH_ROWS_MAX, ErrorKind, Estimate, ServerError, Sink, Statement, error,
    failed,
};
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::{Batch, Connection, Error, OpenFlags};

use crate::bind::bind;
use crate::columns::Columns;
use crate::error::{End, message, of_statement, refused};
use crate::guard::{guard, limit};
use crate::names::name_that_is_no_text;
use crate::stack::Stack;

/// How long to wait for a program that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// SQLite's steps between two questions whether somebody still waits: well below a millisecond.
const STEPS: i32 = 10_000;

/// A session with a file.
#[derive(Debug)]
pub(crate) struct Session {
    name: String,
    connection: Connection,
    writable: bool,
    server: String,
    stack: Arc<Stack>,
}

impl Session {
    /// Opens a file that exists.
    ///
    /// # Errors
    /// A clause.
    pub(crate) fn open(name: &str, path: &Path, writable: bool) -> Result<Self, String> {
        if !path.is_file() {
            return Err("its file is not there".to_owned());
        }
        let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX
            | match writable {
                true => OpenFlags::SQLITE_OPEN_READ_WRITE,
                false => OpenFlags::SQLITE_OPEN_READ_ONLY,
            };
        // SQLite's own words name the path, which is for whoever runs the server.
        let mut connection =
            Connection::open_with_flags(path, flags).map_err(|_| "SQLite can't open its file")?;
        let stack = Arc::new(Stack::default());
        let read = |connection: &mut Connection| {
            limit(connection)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            // The file is read only now.
            connection.query_row("PRAGMA schema_version", (), |_| Ok(()))?;
            let refused = name_that_is_no_text(connection)?;
            guard(connection, writable, &stack)?;
            Ok::<_, Error>(refused)
        };
        if let Some(refused) = read(&mut connection).map_err(|cause| message(&cause))? {
            return Err(refused);
        }
        let server = format!("SQLite {}", rusqlite::version());
        Ok(Self { name: name.to_owned(), connection, writable, server, stack })
    }

    /// Prepares a statement that comes alone. `Connection::prepare` recurses over all that follow.
    fn prepare(&self, sql: &str) -> rusqlite::Result<rusqlite::Statement<'_>> {
        let mut statements = Batch::new(&self.connection, sql);
        let prepared = statements.next()?.ok_or(Error::Empty)?;
        match statements.next()? {
            None => Ok(prepared),
            Some(_) => Err(Error::MultipleStatement),
        }
    }

    /// Runs a statement. It is a transaction, so its rows are of one state of the file, and what it
    /// changes stays only if all its rows have been passed on.
    fn execute(&self, statement: &Statement, sink: &mut dyn Sink) -> Result<(), End> {
        if statement.sql.contains('\0') {
            return Err(failed("42601", "a statement has a byte 0").into());
        }
        self.stack.begin();
        let failed_by = |cause| self.failed_by(&cause);
        let mut prepared = self.prepare(&statement.sql).map_err(failed_by)?;
        if !self.writable && !prepared.readonly() {
            return Err(refused(&self.name, "it writes").into());
        }
        if statement.plan_only && !prepared.readonly() {
            let what = "a statement that writes can't be planned without running it";
            return Err(failed("0A000", what).into());
        }
        bind(&self.name, &mut prepared, statement.parameters.as_ref())?;
        let returns_changes = !prepared.readonly() && prepared.column_count() > 0;
        if !returns_changes || !self.connection.is_autocommit() || is_pragma(&statement.sql) {
            return self.pass_on(&mut prepared, statement, sink);
        }
        // By itself, SQLite commits even if the rows are given up.
        let transaction = self.connection.unchecked_transaction().map_err(failed_by)?;
        self.pass_on(&mut prepared, statement, sink)?;
        transaction.commit().map_err(failed_by)
    }

    /// Passes the result of a statement on.
    fn pass_on(
        &self,
        prepared: &mut rusqlite::Statement<'_>,
        statement: &Statement,
        sink: &mut dyn Sink,
    ) -> Result<(), End> {
        let row_bytes_max = statement.limits.row_bytes_max;
        let mut rows = prepared.raw_query();
        let mut columns = None;
        let mut has_begun = false;
        while let Some(row) = rows.next().map_err(|cause| self.failed_by(&cause))? {
            // The first step compiles the statement again if another program has changed tables.
            let columns = columns.get_or_insert_with(|| Columns::of(row.as_ref(), row_bytes_max));
            columns.push(row)?;
            if columns.rows() >= BATCH_ROWS_MAX || columns.bytes() >= BATCH_BYTES_MAX {
                pass_on(columns, &mut has_begun, sink, statement.plan_only)?;
                if statement.plan_only {
                    return Ok(());
                }
            }
        }
        drop(rows);
        let mut columns = columns.unwrap_or_else(|| Columns::of(prepared, row_bytes_max));
        pass_on(&mut columns, &mut has_begun, sink, statement.plan_only)
    }

    fn failed_by(&self, cause: &Error) -> End {
        match self.stack.is_exceeded() {
            true => error(ErrorKind::Limit, "54001", "the statement is nested too deep", "").into(),
            false => of_statement(&self.name, cause),
        }
    }
}

/// Whether a statement is a PRAGMA, of which many fail or do nothing in a transaction.
fn is_pragma(sql: &str) -> bool {
    let mut rest = sql;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ';');
        let behind = if let Some(comment) = rest.strip_prefix("--") {
            comment.split_once('\n')
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/")
        } else {
            return rest.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("PRAGMA"));
        };
        rest = behind.map_or("", |(_, rest)| rest);
    }
}

/// Passes on the rows that are there, after the columns.
fn pass_on(
    columns: &mut Columns,
    has_begun: &mut bool,
    sink: &mut dyn Sink,
    plan_only: bool,
) -> Result<(), End> {
    let batch = columns.finish()?;
    if !*has_begun {
        // SQLite tells no estimate: counting a table reads all of it.
        sink.begin(batch.schema(), Estimate::default())?;
        *has_begun = true;
    }
    if !plan_only && batch.num_rows() > 0 {
        sink.batch(batch)?;
    }
    Ok(())
}

impl dray_driver::Session for Session {
    fn server(&self) -> &str {
        &self.server
    }

    fn is_usable(&self) -> bool {
        true
    }

    fn run(&mut self, statement: &Statement, sink: &mut dyn Sink) -> Result<(), ServerError> {
        let stopped = sink.watch();
        let watched = self.connection.progress_handler(STEPS, Some(stopped));
        let ended = match watched {
            Ok(()) => self.execute(statement, sink),
            Err(cause) => Err(of_statement(&self.name, &cause)),
        };
        // It keeps the statement's sink open.
        let forgotten = self.connection.progress_handler(0, None::<fn() -> bool>);
        match ended.and(forgotten.map_err(|cause| of_statement(&self.name, &cause))) {
            // Nobody waits for an error.
            Ok(()) | Err(End::Stopped) => Ok(()),
            Err(End::Failed(error)) => Err(error),
        }
    }
}
