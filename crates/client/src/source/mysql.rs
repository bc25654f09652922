//! A MySQL or MariaDB server: rows, over one connection, or a table over several.
//!
//! ```text
//!   MysqlSource ── table.rs: which ranges? ── reason.rs: why not several connections
//!        │            └── divide.rs, keys.rs, explain.rs
//!        │
//!        ├── order.rs, scan.rs     one connection ──────────────────┐
//!        └── ../partitioned.rs     several                          ├─ connection.rs
//!              └── ranges.rs       scans of ranges ─────────────────┘
//!                    └── snapshot.rs   one snapshot for all of them
//!        held.rs                   parts that this process reads
//!        write.rs                  rows into a table
//! ```

mod connection;
mod divide;
mod explain;
mod held;
mod keys;
mod order;
mod parameters;
mod ranges;
mod reason;
mod scan;
mod settings;
mod snapshot;
mod table;
mod write;

use std::time::{Duration, Instant};

use dray_mysql::{CancelCheck as SocketCheck, TableScan};
use dray_pgtypes::NumericAs;
use dray_wire::partition::PartDescriptor;
use dray_wire::{Checksums, CompressionChoice, Estimate, Known, RowLayout};

use self::connection::Connection;
use self::ranges::TableRanges;
use self::reason::Reason;
use self::scan::Scan;
use self::settings::Settings;
use self::snapshot::{CommitLock, Snapshot, SnapshotJob};
use self::table::{Facts, Ranges, Table};
use super::frames::DecoderCache;
use super::partitioned::{Connections, FailedConnections, PartitionedScan, SmallTables};
use super::{Event, HeldParts, PlannedParts, ReceiveContext, Source, SourceKind, TextRows, cancel};
use crate::error::{Error, ErrorKind, Result};
use crate::held_plan::HoldOptions;
use crate::options::{
    ConnectOptions, ExtensionChoice, OtherConnections, Partitions, PostgresOptions, QueryOptions,
};
use crate::partition::PlanOptions;
use crate::stats::{PathKind, TransferPath};
use crate::transaction::{Isolation, Transaction};
use crate::watch::{CancelCheck, Verdict, Watch};
use crate::write::{WriteJob, WriteStats};

/// A connection to a MySQL or MariaDB server, as a source.
#[derive(Debug)]
pub(crate) struct MysqlSource {
    connection: Connection,
    running: Running,
    /// Of the last statement.
    connections: Connections<Reason>,
    /// The size of the last statement's result.
    estimate: Estimate,
    small_tables: SmallTables,
    failed_connections: FailedConnections,
    /// Why its rows have no order that was asked for.
    unordered: Option<String>,
    /// Other connections read it, so this one has nothing left of it.
    was_elsewhere: bool,
    decoders: DecoderCache,
    /// The state of a transaction that [`Source::transaction`] began.
    own: OwnTransaction,
}

/// What a table is divided for.
#[derive(Debug, Clone, Copy)]
struct Size {
    connections_max: usize,
    ranges_max: usize,
    /// Whether the lock may hold back other sessions, if no number of connections was asked for.
    may_lock: bool,
}

impl Size {
    const ANY: Self = Self { connections_max: usize::MAX, ranges_max: usize::MAX, may_lock: false };
}

/// A table in ranges, and the connections to read it over.
struct Divided {
    table: Table,
    snapshot: Snapshot,
    /// The session's limit of a statement's time.
    timeout: Option<Duration>,
}

/// A transaction that the program began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OwnTransaction {
    None,
    Open,
    /// Open, unless the server has ended it at the statement that has just failed.
    Doubtful,
    /// The server has ended it at a statement that failed: it was rolled back, as after a deadlock,
    /// or committed before a CREATE TABLE. Statements would now be transactions of their own.
    Ended,
}

/// The running statement.
#[derive(Debug)]
enum Running {
    None,
    Serial(Scan),
    Partitioned(Box<PartitionedScan<TableRanges>>),
}

impl MysqlSource {
    /// Whether a uri is MySQL's or MariaDB's.
    pub(crate) fn is_for(uri: &str) -> bool {
        uri.starts_with("mysql://") || uri.starts_with("mariadb://")
    }

    /// Connects and logs in, while `keep_waiting` returns true.
    ///
    /// # Errors
    /// When the uri is malformed, nobody answers there, or the server refuses.
    pub(crate) fn connect(
        uri: &str,
        options: &ConnectOptions,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Self> {
        Ok(Self::over(Connection::connect(uri, options, keep_waiting)?))
    }

    fn over(connection: Connection) -> Self {
        Self {
            connection,
            running: Running::None,
            connections: Connections::One(None),
            estimate: Estimate::default(),
            small_tables: SmallTables::default(),
            failed_connections: FailedConnections::default(),
            unordered: None,
            was_elsewhere: false,
            decoders: DecoderCache::default(),
            own: OwnTransaction::None,
        }
    }

    /// [`cancel::run`], after which it is known whether the program's transaction is still open.
    fn run<T>(
        &mut self,
        cancel: CancelCheck<'_>,
        work: impl FnOnce(&mut Connection, SocketCheck<'_>) -> Result<T>,
    ) -> Result<T> {
        let done = self.run_users(cancel, work);
        self.check_transaction(cancel);
        done
    }

    /// [`cancel::run`] for the user's statement. If it fails, the server is not asked about the
    /// transaction before the next one: that may be about the errors, which the question replaces.
    fn run_users<T>(
        &mut self,
        cancel: CancelCheck<'_>,
        work: impl FnOnce(&mut Connection, SocketCheck<'_>) -> Result<T>,
    ) -> Result<T> {
        let done = cancel::run(&mut self.connection, cancel, work);
        match &done {
            Ok(_) if self.is_usable() => self.note_transaction(),
            Err(_) if self.own == OwnTransaction::Open => self.own = OwnTransaction::Doubtful,
            _ => {}
        }
        done
    }

    /// Notes whether the program's transaction is still open, which the server has just said.
    fn note_transaction(&mut self) {
        let is_open = self.connection.session.is_in_transaction();
        self.own = match self.own {
            OwnTransaction::Doubtful if is_open => OwnTransaction::Open,
            OwnTransaction::Doubtful => OwnTransaction::Ended,
            // By a statement such as COMMIT or CREATE TABLE.
            OwnTransaction::Open if !is_open => OwnTransaction::None,
            known => known,
        };
    }

    /// Starts a statement over several connections, unless there is a reason not to.
    fn start_partitioned(
        &mut self,
        sql: &str,
        options: &QueryOptions,
        size: Size,
        cancel: CancelCheck<'_>,
    ) -> Result<Result<usize, Reason>> {
        let began = Instant::now();
        let Divided { table, snapshot, timeout } = match self.divide(sql, options, size, cancel)? {
            Ok(divided) => divided,
            Err(reason) => return Ok(Err(reason)),
        };
        let (connections, failures) = (snapshot.workers, snapshot.failures);
        let count = connections.len();
        let mut range_options = options.clone();
        range_options.postgres.partitions = Partitions::Exactly(1);
        let deadline = timeout.map(|timeout| began + timeout);
        let ranges = TableRanges::new(connections, table.ranges, range_options, deadline);
        (self.unordered, self.was_elsewhere) = (None, true);
        let mut scan = PartitionedScan::start(ranges, cancel)?;
        scan.set_estimate(self.estimate);
        self.connections = Connections::Several { count, failures };
        self.running = Running::Partitioned(Box::new(scan));
        Ok(Ok(count))
    }

    /// Divides a statement's table into ranges, for connections that see one snapshot, unless there
    /// is a reason not to.
    fn divide(
        &mut self,
        sql: &str,
        options: &QueryOptions,
        size: Size,
        cancel: CancelCheck<'_>,
    ) -> Result<Result<Divided, Reason>> {
        let (scan, asked) = match self.candidate(sql, options, size.may_lock) {
            Ok(candidate) => candidate,
            Err(reason) => return Ok(Err(reason)),
        };
        let mut estimate = Estimate::default();
        let PostgresOptions { ordered, partition_by, .. } = &options.postgres;
        let ranges = Ranges { at_most: size.ranges_max, ordered: *ordered };
        let by = partition_by.as_deref();
        let prepared = self.run(cancel, |connection, check| {
            let prepared =
                prepare(connection, (&scan, by), sql, asked, ranges, &mut estimate, check);
            match prepared {
                // If the user's statement is wrong, running it will say so.
                Err(error) if is_refusal(&error) && connection.session.is_usable() => {
                    Ok(Err(Reason::ServerRefused(error.to_string())))
                }
                prepared => prepared,
            }
        })?;
        self.estimate = estimate;
        let (table, settings) = match prepared {
            Ok(prepared) => prepared,
            Err(reason) => {
                if asked.is_none() && by.is_none() {
                    self.small_tables.note(sql);
                }
                return Ok(Err(reason));
            }
        };
        let job = SnapshotJob {
            endpoint: self.connection.endpoint.clone(),
            scan: &scan,
            settings: &settings,
            workers: table.workers.min(table.ranges.len()).min(size.connections_max),
            lock: CommitLock::of(&self.connection),
        };
        Ok(match job.take(&mut self.connection, cancel)? {
            Ok(snapshot) => Ok(Divided { table, snapshot, timeout: settings.timeout() }),
            Err(reason) => {
                // The user may change the settings back.
                if reason != Reason::OtherSettings {
                    self.failed_connections.note(reason.to_string());
                }
                Err(reason)
            }
        })
    }

    /// Whether a statement's table is worth inspecting for several connections, and how many of
    /// them were asked for.
    fn candidate(
        &self,
        sql: &str,
        options: &QueryOptions,
        may_lock: bool,
    ) -> Result<(TableScan, Option<usize>), Reason> {
        let session = &self.connection.session;
        let by_primary_key = options.postgres.partition_by.is_none();
        let asked = match options.postgres.partitions {
            Partitions::Exactly(count) => Some(usize::from(count)),
            Partitions::Auto => match self.failed_connections.recent() {
                Some(why) => return Err(Reason::ConnectionsFailedBefore(why.to_owned())),
                None if by_primary_key && self.small_tables.has(sql) => {
                    return Err(Reason::SmallTableBefore);
                }
                None => None,
            },
        };
        if self.own != OwnTransaction::None || session.is_in_transaction() {
            return Err(Reason::InTransaction);
        }
        let scan = TableScan::parse(sql, session.escapes()).map_err(Reason::NotSplittable)?;
        match (asked, CommitLock::of(&self.connection)) {
            (None, CommitLock::FlushTables) if !may_lock => Err(Reason::LockNotAsked),
            _ => Ok((scan, asked)),
        }
    }

    /// Asks the planner for the rows of a statement, if somebody wants to know.
    fn estimate_rows(
        &mut self,
        sql: &str,
        options: &QueryOptions,
        cancel: CancelCheck<'_>,
    ) -> Result<()> {
        let is_known = self.estimate.rows != Known::Unknown;
        // Else the question would begin a transaction.
        let commits = self.connection.session.is_autocommit();
        if is_known
            || !options.estimate
            || !commits
            || options.parameters.is_some()
            || self.connection.session.reads_what_is_left(sql)
        {
            return Ok(());
        }
        let rows = self.run(cancel, |connection, check| {
            Ok(explain::estimate(&mut connection.session, sql, check)?)
        });
        match rows {
            Ok(rows) => self.estimate.rows = rows.map_or(Known::Unknown, Known::Estimate),
            // If the statement is wrong, running it will say so.
            Err(error) if is_refusal(&error) && self.is_usable() => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The next event of a table that several connections read.
    fn next_partitioned(
        &mut self,
        mut scan: Box<PartitionedScan<TableRanges>>,
        context: &mut ReceiveContext<'_>,
        cancel: CancelCheck<'_>,
    ) -> Result<Event> {
        let event = scan.next(context, cancel);
        match &event {
            Ok(Event::Finished { .. }) => {
                if let Connections::Several { failures, .. } = &mut self.connections {
                    failures.extend(scan.failures());
                }
                scan.stop(cancel);
            }
            Ok(_) => self.running = Running::Partitioned(scan),
            Err(_) => scan.stop(cancel),
        }
        event
    }

    /// Asks a server whether a transaction is still open, after an error: errors do not say so.
    fn check_transaction(&mut self, cancel: CancelCheck<'_>) {
        if self.own != OwnTransaction::Doubtful || !self.is_usable() {
            return;
        }
        // If this fails, the connection is given up.
        cancel::run_briefly(&mut self.connection, cancel, |connection, check| {
            connection.session.settle(check)
        });
        self.note_transaction();
    }
}

impl Source for MysqlSource {
    fn server(&self) -> &str {
        &self.connection.server
    }

    fn kind(&self) -> SourceKind {
        SourceKind::Mysql
    }

    fn place(&self) -> &str {
        &self.connection.place
    }

    fn is_usable(&self) -> bool {
        self.connection.session.is_usable() && !matches!(self.running, Running::Partitioned(_))
    }

    fn is_running(&self) -> bool {
        let session = &self.connection.session;
        session.is_running()
            || matches!(self.running, Running::Partitioned(_)) && session.is_usable()
    }

    fn break_off(&mut self) {
        self.connection.session.break_off();
    }

    fn path(&self) -> TransferPath {
        let compression = self.connection.session.stream().compression();
        let how = compression.map(|name| format!("; compressed by {name}")).unwrap_or_default();
        let reason = format!("{}{}{how}", self.connections, self.unordered());
        TransferPath { kind: PathKind::Rows, reason }
    }

    fn start(
        &mut self,
        sql: &str,
        options: &QueryOptions,
        _: RowLayout,
        cancel: CancelCheck<'_>,
    ) -> Result<()> {
        self.running = Running::None;
        self.estimate = Estimate::default();
        if self.was_elsewhere && self.connection.session.reads_what_is_left(sql) {
            return Err(was_elsewhere());
        }
        let session = &self.connection.session;
        if !session.is_diagnostic(sql) {
            if self.own == OwnTransaction::Doubtful && session.reads_what_is_left(sql) {
                return Err(would_be_replaced());
            }
            self.check_transaction(cancel);
        }
        if self.own == OwnTransaction::Ended {
            return Err(ended("the transaction is over"));
        }
        check_options(options)?;
        let refused = match options.postgres.partitions {
            Partitions::Exactly(1) => None,
            _ if options.plan_only => None,
            _ => match self.start_partitioned(sql, options, Size::ANY, cancel)? {
                Ok(_) => return Ok(()),
                Err(reason) => Some(reason),
            },
        };
        self.connections = Connections::One(refused);
        self.was_elsewhere &= options.plan_only;
        self.estimate_rows(sql, options, cancel)?;
        let ordered = self.in_order(sql, options, cancel)?;
        let sql = ordered.as_deref().unwrap_or(sql);
        let (mut decoders, estimate) = (std::mem::take(&mut self.decoders), self.estimate);
        let scan = self.run_users(cancel, |connection, check| {
            Scan::start(connection, sql, options, estimate, &mut decoders, check)
        });
        self.decoders = decoders;
        self.running = Running::Serial(scan?);
        Ok(())
    }

    fn start_over_several(
        &mut self,
        sql: &str,
        options: &QueryOptions,
        others: OtherConnections,
        cancel: CancelCheck<'_>,
    ) -> Result<Result<usize, String>> {
        let OtherConnections { at_most, may_lock } = others;
        // One more takes the lock under which they begin.
        let size = Size { connections_max: at_most.saturating_sub(1), may_lock, ..Size::ANY };
        if size.connections_max < 2 {
            return Ok(Err(Reason::FewConnections.to_string()));
        }
        self.running = Running::None;
        self.estimate = Estimate::default();
        let started = self.start_partitioned(sql, options, size, cancel)?;
        Ok(started.map_err(|reason| reason.to_string()))
    }

    fn next(&mut self, context: &mut ReceiveContext<'_>, cancel: CancelCheck<'_>) -> Result<Event> {
        match std::mem::replace(&mut self.running, Running::None) {
            Running::None => Ok(Event::Finished { server: None }),
            Running::Partitioned(scan) => self.next_partitioned(scan, context, cancel),
            Running::Serial(mut scan) => {
                let event = self
                    .run_users(cancel, |connection, check| scan.next(connection, context, check))?;
                if !matches!(event, Event::Finished { .. }) {
                    self.running = Running::Serial(scan);
                }
                Ok(event)
            }
        }
    }

    fn stop(&mut self, cancel: CancelCheck<'_>) {
        match std::mem::replace(&mut self.running, Running::None) {
            Running::Partitioned(mut scan) => scan.stop(cancel),
            Running::None | Running::Serial(_) => {
                cancel::stop(&mut self.connection, cancel);
                if self.own == OwnTransaction::Open {
                    self.own = OwnTransaction::Doubtful;
                }
                // It has settled the connection.
                if self.is_usable() {
                    self.note_transaction();
                }
            }
        }
    }

    fn is_in_transaction(&self) -> bool {
        self.own == OwnTransaction::Ended || self.connection.session.is_in_transaction()
    }

    fn rows_changed(&self) -> Option<u64> {
        self.connection.session.rows_changed()
    }

    fn parameters_in(&self, sql: &str) -> usize {
        self.connection.session.parameters_in(sql).unwrap_or_default()
    }

    fn plan_parts(
        &mut self,
        _: &str,
        _: &QueryOptions,
        plan: &PlanOptions,
        _: CancelCheck<'_>,
    ) -> Result<PlannedParts> {
        match plan.snapshot {
            Some(_) => Err(no_shared_snapshot()),
            None => Err(no_parts()),
        }
    }

    fn hold_parts(
        &mut self,
        sql: &str,
        query: &QueryOptions,
        hold: &HoldOptions,
        cancel: CancelCheck<'_>,
    ) -> Result<HeldParts> {
        self.hold(sql, query, hold, cancel)
    }

    fn begin_part(&mut self, _: &PartDescriptor, _: CancelCheck<'_>) -> Result<String> {
        Err(no_parts())
    }

    fn transaction(&mut self, step: Transaction, cancel: CancelCheck<'_>) -> Result<()> {
        self.check_transaction(cancel);
        let begins = matches!(step, Transaction::Begin { .. });
        let was = std::mem::replace(&mut self.own, OwnTransaction::None);
        for statement in control_statements(step) {
            self.ask(&statement, cancel)?;
        }
        if begins {
            self.own = OwnTransaction::Open;
        }
        match (was, step) {
            (OwnTransaction::Ended, Transaction::Commit) => {
                Err(ended("there is no transaction to commit"))
            }
            _ => Ok(()),
        }
    }

    fn write(&mut self, job: WriteJob<'_>, watch: &mut Watch) -> Result<WriteStats> {
        self.check_transaction(&mut || Verdict::Continue);
        if self.own == OwnTransaction::Ended {
            return Err(ended("the transaction is over"));
        }
        self.was_elsewhere = false;
        write::write(self, job, watch)
    }

    fn ask(&mut self, sql: &str, cancel: CancelCheck<'_>) -> Result<TextRows> {
        self.was_elsewhere = false;
        self.run(cancel, |connection, check| Ok(connection.session.ask(sql, check)?))
    }
}

/// SQLSTATE `invalid_transaction_state`.
const TRANSACTION_STATE: &str = "25000";
/// SQLSTATE `feature_not_supported`.
const NOT_SUPPORTED: &str = "0A000";

fn ended(what: &str) -> Error {
    Error::new(
        ErrorKind::Execution,
        format!("{what}: the server has ended it at a statement that failed"),
    )
    .with_hint("roll back, and begin again")
    .with_sqlstate(TRANSACTION_STATE)
}

fn would_be_replaced() -> Error {
    let what = "a statement of the transaction has failed, and what it has left is replaced when \
                the server is asked whether the transaction is still open";
    Error::usage(what).with_hint("SHOW ERRORS and SHOW WARNINGS can be read before")
}

fn was_elsewhere() -> Error {
    Error::usage("the statement before was read over several connections, so nothing is left of it")
        .with_hint("run it with partitions=1")
}

fn no_shared_snapshot() -> Error {
    let what = "MySQL and MariaDB can't begin a transaction under the snapshot of another one, so \
                no plan can have the snapshot of an earlier one";
    Error::usage(what)
        .with_hint("read what must be consistent by one statement")
        .with_sqlstate(NOT_SUPPORTED)
}

fn no_parts() -> Error {
    Error::usage("MySQL and MariaDB have no snapshot that other processes can share")
        .with_hint("plan the statement through `dray serve --source`, which holds one for them")
        .with_sqlstate(NOT_SUPPORTED)
}

/// The statements that begin or end a transaction. The isolation is that of the next transaction
/// alone.
fn control_statements(step: Transaction) -> Vec<String> {
    let (isolation, read_only) = match step {
        Transaction::Commit => return vec!["COMMIT".to_owned()],
        Transaction::Rollback => return vec!["ROLLBACK".to_owned()],
        Transaction::Begin { isolation, read_only } => (isolation, read_only),
    };
    let isolation = isolation.map(|isolation| match isolation {
        Isolation::ReadUncommitted => "READ UNCOMMITTED",
        Isolation::ReadCommitted => "READ COMMITTED",
        Isolation::RepeatableRead => "REPEATABLE READ",
        Isolation::Serializable => "SERIALIZABLE",
    });
    let begin = if read_only { "START TRANSACTION READ ONLY" } else { "START TRANSACTION" };
    let set = isolation.map(|level| format!("SET TRANSACTION ISOLATION LEVEL {level}"));
    set.into_iter().chain([begin.to_owned()]).collect()
}

/// What is needed to read a table over several connections: its ranges, and the session's settings.
/// Sets the estimate of the result, whether or not they read it.
fn prepare(
    connection: &mut Connection,
    (scan, by): (&TableScan, Option<&str>),
    sql: &str,
    asked: Option<usize>,
    ranges: Ranges,
    estimate: &mut Estimate,
    check: SocketCheck<'_>,
) -> Result<Result<(Table, Settings), Reason>> {
    let session = &mut connection.session;
    let Some(facts) = Facts::of(session, scan, by, check)? else {
        return Ok(Err(Reason::UnknownTable));
    };
    if let Some(rows) = facts.rows.filter(|_| !scan.is_filtered()) {
        estimate.rows = Known::Estimate(rows);
    }
    let table = match Table::divide(session, scan, &facts, sql, asked, ranges, check)? {
        Ok(table) => table,
        Err(reason) => return Ok(Err(reason)),
    };
    let settings = Settings::of(session, check)?;
    Ok(match settings.reason() {
        None => Ok((table, settings)),
        Some(reason) => Err(reason),
    })
}

/// Whether the server refused a statement, rather than that the connection broke or the user
/// cancelled.
fn is_refusal(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Execution | ErrorKind::Query)
}

/// Refuses options that would be ignored.
fn check_options(options: &QueryOptions) -> Result<()> {
    let PostgresOptions { extension, numeric, .. } = &options.postgres;
    if *extension == ExtensionChoice::Always || *numeric != NumericAs::default() {
        return Err(Error::usage(
            "extension and numeric are for PostgreSQL; this is a MySQL or MariaDB server",
        ));
    }
    if !matches!(options.compression, CompressionChoice::Auto | CompressionChoice::None)
        || options.checksums == Checksums::On
    {
        return Err(Error::usage("rows of MySQL and MariaDB have no compression and no checksums")
            .with_hint("compress=zlib or zstd in the uri compresses their protocol"));
    }
    Ok(())
}
