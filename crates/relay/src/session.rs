//! A session of a database, in which one client's statements run.

use dray_client::{
    Connection, Error, Limits, Partitions, PostgresOptions, QueryOptions, Transaction, Verdict,
    Watch,
};
use dray_driver::{
    BATCH_BYTES_MAX, Dialect, ServerError, Sink, Statement, Stopped, read_only_refusal,
};

use crate::error::of_statement;

/// A session of a database.
pub(crate) struct Session {
    name: String,
    connection: Connection,
    dialect: Dialect,
    writable: bool,
}

/// Why a statement ended early.
enum End {
    Failed(Error),
    Stopped,
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Stopped> for End {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl Session {
    pub(crate) fn new(
        name: &str,
        connection: Connection,
        dialect: Dialect,
        writable: bool,
    ) -> Self {
        Self { name: name.to_owned(), connection, dialect, writable }
    }

    /// Runs a statement in a transaction of its own, which is read-only. Its settings stay, since
    /// the session is the client's alone.
    fn read(&mut self, statement: &Statement, sink: &mut dyn Sink) -> Result<(), End> {
        let begin = Transaction::Begin { isolation: None, read_only: true };
        self.transaction(begin, sink)?;
        let ran = self.pass_on(statement, sink);
        match ran {
            ended if !self.connection.is_usable() => ended,
            Ok(()) => self.transaction(Transaction::Commit, sink),
            Err(end) => {
                // If it fails, the connection is not usable any longer.
                let _ =
                    self.connection.transaction(Transaction::Rollback, &mut || Verdict::Continue);
                Err(end)
            }
        }
    }

    fn transaction(&mut self, step: Transaction, sink: &dyn Sink) -> Result<(), End> {
        let stopped = sink.watch();
        Ok(self.connection.transaction(step, &mut || verdict(stopped()))?)
    }

    /// Passes on the columns and the rows of a statement.
    fn pass_on(&mut self, statement: &Statement, sink: &mut dyn Sink) -> Result<(), End> {
        let options = QueryOptions {
            parameters: statement.parameters.clone(),
            // The server holds several batches at a time.
            limits: Limits {
                decoded_bytes_max: statement.limits.decoded_bytes_max.min(BATCH_BYTES_MAX),
                ..statement.limits
            },
            plan_only: statement.plan_only,
            postgres: PostgresOptions {
                // Others would not count as connections of the source.
                partitions: Partitions::Exactly(1),
                ..PostgresOptions::default()
            },
            ..QueryOptions::default()
        };
        let stopped = sink.watch();
        let watch: Watch = Box::new(move |_| verdict(stopped()));
        let sql = &statement.sql;
        let mut results = Connection::query_with(&mut self.connection, sql, &options, Some(watch))?;
        sink.begin(results.schema(), results.progress().estimate)?;
        // Leaving early drops the results, which cancels the statement at the database.
        while let Some(batch) = results.next_batch()? {
            sink.batch(batch)?;
        }
        Ok(())
    }
}

/// What becomes of a statement.
fn verdict(is_stopped: bool) -> Verdict {
    if is_stopped { Verdict::Cancel } else { Verdict::Continue }
}

impl dray_driver::Session for Session {
    fn server(&self) -> &str {
        self.connection.server()
    }

    fn is_usable(&self) -> bool {
        self.connection.is_usable()
    }

    fn run(&mut self, statement: &Statement, sink: &mut dyn Sink) -> Result<(), ServerError> {
        let ended = match self.writable {
            true => self.pass_on(statement, sink),
            false if self.dialect.reads(&statement.sql) => self.read(statement, sink),
            false => return Err(read_only_refusal(&self.name, self.dialect.reading_words())),
        };
        match ended {
            // Nobody waits for what the sink would say.
            Ok(()) | Err(End::Stopped) => Ok(()),
            Err(End::Failed(error)) => Err(of_statement(&self.name, &error)),
        }
    }
}
