//! A session of a database, in which one client's statements run.

use std::borrow::BorrowMut;
use std::num::NonZero;
use std::sync::Arc;

use dray_client::{
    Connection, Error, HoldOptions, Limits, NonFinite, OtherConnections, Part, Partitions,
    PlanOptions, PostgresOptions, QueryOptions, Results, SourceKind, Transaction, Verdict, Watch,
};
use dray_driver::{
    BATCH_BYTES_MAX, Dialect, Division, Parts, ServerError, Sink, Statement, Stopped, Unfit,
    read_only_refusal,
};

use crate::database::Settings;
use crate::error::of_statement;
use crate::parts::{MysqlParts, PostgresParts};

/// The SQLSTATE of a prepared statement whose columns have changed. The connection forgets it, but
/// in a transaction can't run the statement again.
const COLUMNS_CHANGED: &str = "0A000";
/// Why one connection reads, if no others may.
const FEW_FREE: &str = "this machine or the number of the source's free connections is small";

/// A session of a database.
pub(crate) struct Session {
    database: Arc<Settings>,
    connection: Connection,
}

/// Why a statement ended early.
pub(crate) enum End {
    Failed(Error),
    Stopped,
}

impl End {
    /// Nobody waits for what is said about a statement that was stopped.
    pub(crate) fn into_answer(self, source: &str) -> Result<(), ServerError> {
        match self {
            Self::Stopped => Ok(()),
            Self::Failed(error) => Err(of_statement(source, &error)),
        }
    }
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
    pub(crate) fn new(database: Arc<Settings>, connection: Connection) -> Self {
        Self { database, connection }
    }

    /// Whether a statement may run.
    fn check(&self, statement: &Statement) -> Result<(), ServerError> {
        let Settings { name, dialect, writable, .. } = &*self.database;
        match *writable || dialect.reads(&statement.sql) {
            true => Ok(()),
            false => Err(read_only_refusal(name, dialect.reading_words())),
        }
    }

    /// Runs a statement in a transaction of its own, which is read-only. Its settings stay, since
    /// the session is the client's alone. `why` tells why no others read it.
    fn read(&mut self, statement: &Statement, why: &str, sink: &mut dyn Sink) -> Result<(), End> {
        let begin = Transaction::Begin { isolation: None, read_only: true };
        self.transaction(begin, sink)?;
        let started = self.start(statement, sink).map(|results| send_alone(results, why, sink));
        let ran = match started {
            Err(error) if error.sqlstate() == Some(COLUMNS_CHANGED) => {
                self.transaction(Transaction::Rollback, sink)?;
                self.transaction(begin, sink)?;
                self.pass_on(statement, why, sink)
            }
            Err(error) => Err(error.into()),
            Ok(ended) => ended,
        };
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

    /// Passes on a table that several connections read, all of which only read. If the session is
    /// to run the statement, nothing was passed on, and half a sentence tells why; it is empty for
    /// a plan, which nobody reads.
    fn read_over_several(
        &mut self,
        statement: &Statement,
        sink: &mut dyn Sink,
    ) -> Result<Option<String>, End> {
        if statement.plan_only {
            return Ok(Some(String::new()));
        }
        let Settings { dialect, partitions, .. } = *self.database;
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let readers_max = partitions.map_or(processors, |allowed| allowed.min(processors));
        // One more, which those of MySQL and MariaDB need while they begin.
        let at_most = sink.reserve(readers_max + usize::from(dialect == Dialect::Mysql));
        let mut why = FEW_FREE.to_owned();
        if at_most > 1 {
            let mut options = query_options(statement);
            options.postgres.partitions = Partitions::Auto;
            let others = OtherConnections { at_most, may_lock: partitions.is_some() };
            let (sql, watch) = (&statement.sql, Some(watch(sink)));
            match self.connection.query_over_several(sql, &options, others, watch)? {
                Ok((results, count)) => {
                    sink.reserve(count);
                    sink.tell_path(&results.stats().path.reason);
                    send(results, sink)?;
                    return Ok(None);
                }
                Err(reason) => why = reason,
            }
        }
        sink.reserve(0);
        Ok(Some(why))
    }

    /// Passes on the columns and the rows of a statement.
    fn pass_on(
        &mut self,
        statement: &Statement,
        why: &str,
        sink: &mut dyn Sink,
    ) -> Result<(), End> {
        send_alone(self.start(statement, sink)?, why, sink)
    }

    fn start(
        &mut self,
        statement: &Statement,
        sink: &dyn Sink,
    ) -> Result<Results<&mut Connection>, Error> {
        let options = query_options(statement);
        let watch = Some(watch(sink));
        Connection::query_with(&mut self.connection, &statement.sql, &options, watch)
    }
}

/// How the client runs a statement.
pub(crate) fn query_options(statement: &Statement) -> QueryOptions {
    QueryOptions {
        parameters: statement.parameters.clone(),
        // The server holds several batches at a time.
        limits: Limits {
            decoded_bytes_max: statement.limits.decoded_bytes_max.min(BATCH_BYTES_MAX),
            ..statement.limits
        },
        plan_only: statement.plan_only,
        estimate: statement.estimate,
        postgres: PostgresOptions {
            // Others would have to be reserved at the source.
            partitions: Partitions::Exactly(1),
            nonfinite: match statement.unfit {
                Unfit::Error => NonFinite::Error,
                Unfit::Null => NonFinite::Null,
                Unfit::Text => NonFinite::Text,
            },
            ..PostgresOptions::default()
        },
        ..QueryOptions::default()
    }
}

/// Passes on the columns and the rows of a result. Leaving early drops the results, which cancels
/// the statement at the database.
pub(crate) fn send<C: BorrowMut<Connection>>(
    mut results: Results<C>,
    sink: &mut dyn Sink,
) -> Result<(), End> {
    sink.begin(results.schema(), results.progress().estimate)?;
    while let Some(batch) = results.next_batch()? {
        sink.batch(batch)?;
    }
    Ok(())
}

/// Passes on a result that one connection reads, and tells `why` no others do.
fn send_alone(
    results: Results<&mut Connection>,
    why: &str,
    sink: &mut dyn Sink,
) -> Result<(), End> {
    if !why.is_empty() {
        sink.tell_path(&match results.kind() {
            // Its own words are that there is one connection.
            SourceKind::Mysql => format!("one connection: {why}"),
            _ => format!("{}; one connection: {why}", results.stats().path.reason),
        });
    }
    send(results, sink)
}

/// Looks whether anybody still waits for the rows.
pub(crate) fn watch(sink: &dyn Sink) -> Watch {
    let stopped = sink.watch();
    Box::new(move |_| verdict(stopped()))
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

    fn plan(
        &mut self,
        statement: &Statement,
        division: &Division,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Arc<dyn Parts>>, ServerError> {
        self.check(statement)?;
        let (database, options) = (self.database.clone(), query_options(statement));
        let mut cancel = || verdict(!keep_waiting());
        let parts: Result<Arc<dyn Parts>, Error> = match database.dialect {
            Dialect::Postgres => {
                let planned = plan_options(division).and_then(|plan| {
                    self.connection.partitions(&statement.sql, &options, &plan, &mut cancel)
                });
                planned.and_then(|plan| Ok(Arc::new(PostgresParts::new(database, plan)?) as _))
            }
            Dialect::Mysql => {
                let hold = hold_options(&database, division);
                let held = self.connection.hold_parts(&statement.sql, &options, &hold, &mut cancel);
                held.map(|plan| Arc::new(MysqlParts::new(database, plan)) as _)
            }
            Dialect::Hive | Dialect::Other => return Ok(None),
        };
        parts.map(Some).map_err(|error| of_statement(&self.database.name, &error))
    }

    fn run(&mut self, statement: &Statement, sink: &mut dyn Sink) -> Result<(), ServerError> {
        self.check(statement)?;
        let ended = self.read_over_several(statement, sink).and_then(|why| match why {
            None => Ok(()),
            Some(why) if self.database.writable => self.pass_on(statement, &why, sink),
            Some(why) => self.read(statement, &why, sink),
        });
        ended.or_else(|end| end.into_answer(&self.database.name))
    }
}

/// # Errors
/// If the earlier plan's descriptor is damaged.
fn plan_options(division: &Division) -> Result<PlanOptions, Error> {
    let earlier = division.earlier.as_ref().and_then(|parts| parts.snapshot());
    Ok(PlanOptions {
        at_most: division.parts_max,
        lease: division.lease,
        snapshot: earlier.map(Part::decode).transpose()?,
        ..PlanOptions::default()
    })
}

fn hold_options(database: &Settings, division: &Division) -> HoldOptions {
    let Division { parts_max: at_most, lease, connections_max, .. } = *division;
    let connections_max =
        database.partitions.map_or(connections_max, |allowed| allowed.min(connections_max));
    HoldOptions { at_most, connections_max, lease, may_lock: database.partitions.is_some() }
}
