//! A PostgreSQL server: with its extension the frames of Dray's own protocol, else rows; over one
//! connection, or a table over several.
//!
//! ```text
//!   PostgresSource ── policy.rs, table.rs: which path? ── reason.rs: why not the other
//!        │
//!        ├── serial.rs          one connection ─────────────────────────┐
//!        └── ../partitioned.rs  several                                 ├─ connection.rs
//!              └── ranges.rs    serial scans of ranges ─────────────────┘
//!                    └── snapshot.rs   one snapshot for all of them
//!
//!        ├── planner.rs         holds a snapshot for other processes ─┐
//!        └── part.rs            reads a part under it ────────────────┴─ held.rs: the same one?
//!                                                                        import.rs: under it
//! ```

mod connection;
mod held;
mod import;
mod parameters;
mod part;
mod planner;
mod policy;
mod ranges;
mod reason;
mod serial;
mod snapshot;
mod sql;
mod table;
mod volatility;
mod write;

use std::time::Instant;

use dray_postgres::CancelCheck as SocketCheck;
use dray_wire::RowLayout;
use dray_wire::partition::PartDescriptor;

use self::connection::Connection;
use self::part::OpenPart;
use self::policy::{Candidate, StatementPolicy};
use self::ranges::TableRanges;
use self::reason::{Decision, Format, Path, Reason};
use self::serial::{SerialScan, chunks_of};
use self::snapshot::{BEGIN, NO_IDLE_TIMEOUT, Snapshot};
use self::table::{Requested, Table};
use super::frames::DecoderCache;
use super::partitioned::{Connections, Distance, PartitionedScan};
use super::{Event, PlannedParts, ReceiveContext, Source, SourceKind, TextRows, cancel};
use crate::error::{Error, ErrorKind, Result};
use crate::options::{ConnectOptions, ExtensionChoice, OtherConnections, Partitions, QueryOptions};
use crate::partition::PlanOptions;
use crate::stats::TransferPath;
use crate::transaction::{Isolation, Transaction};
use crate::watch::{CancelCheck, Verdict, Watch};
use crate::write::{WriteJob, WriteStats};

/// A connection to a PostgreSQL server, as a source.
#[derive(Debug)]
pub(crate) struct PostgresSource {
    connection: Connection,
    policy: StatementPolicy,
    scan: Scan,
    /// The part of a plan that the scan reads.
    part: Option<OpenPart>,
    /// Of the last statement.
    path: Option<Path>,
    decoders: DecoderCache,
}

/// The scan of the running statement.
#[derive(Debug)]
enum Scan {
    None,
    Serial(SerialScan),
    Partitioned(Box<PartitionedScan<TableRanges>>),
}

impl PostgresSource {
    /// Whether a uri or connection string is PostgreSQL's.
    pub(crate) fn is_for(uri: &str) -> bool {
        uri.starts_with("postgresql://")
            || uri.starts_with("postgres://")
            || !uri.contains("://") && uri.contains('=')
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
        Ok(Self {
            connection: Connection::connect(uri, options, keep_waiting)?,
            policy: StatementPolicy::default(),
            scan: Scan::None,
            part: None,
            path: None,
            decoders: DecoderCache::default(),
        })
    }

    fn next_of_scan(
        &mut self,
        context: &mut ReceiveContext<'_>,
        cancel: CancelCheck<'_>,
    ) -> Result<Event> {
        match std::mem::replace(&mut self.scan, Scan::None) {
            Scan::None => Ok(Event::Finished { server: None }),
            Scan::Serial(scan) => self.next_serial(scan, context, cancel),
            Scan::Partitioned(scan) => self.next_partitioned(scan, context, cancel),
        }
    }

    /// Plans a statement without running it.
    fn plan(&mut self, sql: &str, options: &QueryOptions, cancel: CancelCheck<'_>) -> Result<()> {
        let decoders = &mut self.decoders;
        let scan = self.connection.run(cancel, |connection, check| {
            SerialScan::plan(connection, sql, options, decoders, check)
        })?;
        let choice = options.postgres.extension;
        let format = match self.policy.decide_extension(&self.connection, sql, choice) {
            Decision::Run(()) => Format::Chunks { version: None },
            Decision::Refused(reason) => Format::Rows(reason),
        };
        self.path = Some(Path { format, connections: Connections::One(None) });
        self.scan = Scan::Serial(scan);
        Ok(())
    }

    /// Starts a statement in the way that its options and the policy say.
    fn start_statement(
        &mut self,
        sql: &str,
        options: &QueryOptions,
        cancel: CancelCheck<'_>,
    ) -> Result<()> {
        if options.postgres.partition_by.is_some() {
            return Err(Error::usage(
                "partition_by is for MySQL and MariaDB; PostgreSQL's tables are divided by blocks",
            ));
        }
        // The server would accept more values than there are parameters.
        let given = options.parameters.as_ref().map_or(0, |row| row.num_columns());
        match self.connection.session.parameters_in(sql) {
            Some(highest) if given > highest => return Err(parameters::surplus(highest, given)),
            _ => {}
        }
        if options.plan_only {
            return self.plan(sql, options, cancel);
        }
        match self.start_partitioned(sql, options, usize::MAX, cancel)? {
            Decision::Run(_) => Ok(()),
            Decision::Refused(reason) => self.start_serial(sql, options, reason, cancel),
        }
    }

    /// Starts a statement over several connections, and no more than `at_most`, unless there is a
    /// reason not to.
    fn start_partitioned(
        &mut self,
        sql: &str,
        options: &QueryOptions,
        at_most: usize,
        cancel: CancelCheck<'_>,
    ) -> Result<Decision<usize>> {
        let policy = &mut self.policy;
        let prepared = self.connection.run(cancel, |connection, check| {
            prepare(connection, policy, sql, options, at_most, check)
        })?;
        let (job, format) = match prepared {
            Decision::Run(prepared) => prepared,
            Decision::Refused(reason) => return Ok(Decision::Refused(reason)),
        };
        let count = job.workers;
        match PartitionedScan::start(job, cancel) {
            Ok(scan) => {
                let connections = Connections::Several { count, failures: scan.failures() };
                self.path = Some(Path { format, connections });
                self.scan = Scan::Partitioned(Box::new(scan));
                Ok(Decision::Run(count))
            }
            Err(error) => {
                self.connection.end_transaction("ROLLBACK", cancel)?;
                match error.kind() {
                    ErrorKind::Cancelled => return Err(error),
                    ErrorKind::Connection => self.policy.note_failed_connections(error.to_string()),
                    _ => {}
                }
                Ok(Decision::Refused(Reason::NoOtherConnection(error.to_string())))
            }
        }
    }

    /// Starts a statement over one connection; `why` says why several do not read it.
    fn start_serial(
        &mut self,
        sql: &str,
        options: &QueryOptions,
        why: Reason,
        cancel: CancelCheck<'_>,
    ) -> Result<()> {
        self.policy.note_statement(&self.connection.session, sql);
        let choice = options.postgres.extension;
        let extension = self.policy.decide_extension(&self.connection, sql, choice);
        let decoders = &mut self.decoders;
        let (scan, format) = self.connection.run(cancel, |connection, check| {
            SerialScan::start(connection, extension, sql, options, decoders, check)
        })?;
        let why = (options.postgres.partitions != Partitions::Exactly(1)).then_some(why);
        self.path = Some(Path { format, connections: Connections::One(why) });
        self.scan = Scan::Serial(scan);
        Ok(())
    }

    fn next_serial(
        &mut self,
        mut scan: SerialScan,
        context: &mut ReceiveContext<'_>,
        cancel: CancelCheck<'_>,
    ) -> Result<Event> {
        let decoders = &mut self.decoders;
        let event = self
            .connection
            .run(cancel, |connection, check| scan.next(connection, decoders, context, check))?;
        match event {
            Event::Finished { .. } => {
                if let Some(rows) = scan.rows() {
                    self.policy.note_rows(rows, &self.connection.extension);
                }
            }
            _ => self.scan = Scan::Serial(scan),
        }
        Ok(event)
    }

    /// The workers' transactions end before the coordinator's, whose lock keeps the table as it is.
    fn next_partitioned(
        &mut self,
        mut scan: Box<PartitionedScan<TableRanges>>,
        context: &mut ReceiveContext<'_>,
        cancel: CancelCheck<'_>,
    ) -> Result<Event> {
        let event = scan.next(context, cancel);
        match &event {
            Ok(Event::Finished { .. }) => {
                if let Some(Path { connections: Connections::Several { failures, .. }, .. }) =
                    &mut self.path
                {
                    *failures = scan.failures();
                }
                scan.stop(cancel);
                let checked = self.connection.run(cancel, |connection, check| {
                    scan.table().snapshot.check_leaves(&mut connection.session, check)
                });
                let how = if checked.is_ok() { "COMMIT" } else { "ROLLBACK" };
                let ended = self.connection.end_transaction(how, cancel);
                checked.and(ended)?;
            }
            Ok(_) => self.scan = Scan::Partitioned(scan),
            Err(_) => {
                scan.stop(cancel);
                // The first error counts.
                let _ = self.connection.end_transaction("ROLLBACK", cancel);
            }
        }
        event
    }
}

/// What a commit says that the server took for a rollback.
const ROLLED_BACK: &str = "the transaction was rolled back, not committed";

/// The statement that begins or ends a transaction.
fn control_statement(step: Transaction) -> String {
    let (isolation, read_only) = match step {
        Transaction::Commit => return "COMMIT".to_owned(),
        Transaction::Rollback => return "ROLLBACK".to_owned(),
        Transaction::Begin { isolation, read_only } => (isolation, read_only),
    };
    let isolation = match isolation {
        None => "",
        Some(Isolation::ReadUncommitted) => " ISOLATION LEVEL READ UNCOMMITTED",
        Some(Isolation::ReadCommitted) => " ISOLATION LEVEL READ COMMITTED",
        Some(Isolation::RepeatableRead) => " ISOLATION LEVEL REPEATABLE READ",
        Some(Isolation::Serializable) => " ISOLATION LEVEL SERIALIZABLE",
    };
    format!("BEGIN{isolation}{}", if read_only { " READ ONLY" } else { "" })
}

/// Decides whether to read a statement over several connections, and takes the snapshot that they
/// read under.
fn prepare(
    connection: &mut Connection,
    policy: &mut StatementPolicy,
    sql: &str,
    options: &QueryOptions,
    at_most: usize,
    check: SocketCheck<'_>,
) -> Result<Decision<(TableRanges, Format)>> {
    let began = Instant::now();
    let Candidate { mut scan, connections } =
        match policy.decide_partitions(&connection.session, sql, options) {
            Decision::Run(candidate) => candidate,
            Decision::Refused(reason) => return Ok(Decision::Refused(reason)),
        };
    let choice = options.postgres.extension;
    let extension = policy.decide_extension(connection, sql, choice);
    if choice == ExtensionChoice::Always && matches!(extension, Decision::Refused(_)) {
        return Ok(Decision::Refused(Reason::ExtensionRequired));
    }
    let session = &mut connection.session;
    let requested = Requested { connections, at_most, ordered: options.postgres.ordered };
    let table = match Table::inspect(session, &mut scan, policy.attributes(), requested, check)? {
        Decision::Run(table) => table,
        Decision::Refused(reason) => {
            policy.small_tables.note(sql);
            return Ok(Decision::Refused(reason));
        }
    };
    let begin = format!("{BEGIN}; {NO_IDLE_TIMEOUT}; ");
    let taken = Snapshot::take(session, &begin, &scan, sql, None, check);
    let ended = match &taken {
        Ok(Decision::Run(_)) => Ok(()),
        _ => {
            let mut cancel = || check().map_or(Verdict::Abandon, |()| Verdict::Continue);
            connection.end_transaction("ROLLBACK", &mut cancel)
        }
    };
    let snapshot = match taken? {
        Decision::Run(snapshot) => snapshot,
        Decision::Refused(reason) => {
            ended?;
            return Ok(Decision::Refused(reason));
        }
    };
    let per_worker = Distance::of(connection.session.stream()).ranges_per_worker();
    let mut range_options = options.clone();
    range_options.postgres.partitions = Partitions::Exactly(1);
    let format = match extension {
        Decision::Run(()) => chunks_of(&connection.extension),
        Decision::Refused(reason) => {
            range_options.postgres.extension = ExtensionChoice::Never;
            Format::Rows(reason)
        }
    };
    let job = TableRanges {
        endpoint: connection.endpoint.clone(),
        ranges: table.ranges(&scan, per_worker),
        scan,
        snapshot,
        options: range_options,
        deadline: table.timeout.map(|timeout| began + timeout),
        workers: table.workers,
        ordered: options.postgres.ordered,
    };
    Ok(Decision::Run((job, format)))
}

impl Source for PostgresSource {
    fn server(&self) -> &str {
        &self.connection.server
    }

    fn kind(&self) -> SourceKind {
        SourceKind::Postgres
    }

    fn place(&self) -> &str {
        &self.connection.place
    }

    fn is_usable(&self) -> bool {
        self.connection.is_usable() && !matches!(self.scan, Scan::Partitioned(_))
    }

    fn is_running(&self) -> bool {
        let session = &self.connection.session;
        let is_open = matches!(self.scan, Scan::Partitioned(_)) || self.part.is_some();
        session.is_running() || is_open && session.is_usable()
    }

    fn break_off(&mut self) {
        self.connection.session.break_off();
    }

    fn path(&self) -> TransferPath {
        self.path.as_ref().map(Path::describe).unwrap_or_default()
    }

    fn start(
        &mut self,
        sql: &str,
        options: &QueryOptions,
        _: RowLayout,
        cancel: CancelCheck<'_>,
    ) -> Result<()> {
        self.scan = Scan::None;
        let started = self.start_statement(sql, options, cancel);
        if started.is_err() {
            self.abandon_part(cancel);
        }
        started
    }

    fn start_over_several(
        &mut self,
        sql: &str,
        options: &QueryOptions,
        others: OtherConnections,
        cancel: CancelCheck<'_>,
    ) -> Result<Result<usize, String>> {
        self.scan = Scan::None;
        Ok(match self.start_partitioned(sql, options, others.at_most, cancel)? {
            Decision::Run(count) => Ok(count),
            Decision::Refused(reason) => Err(reason.to_string()),
        })
    }

    fn next(&mut self, context: &mut ReceiveContext<'_>, cancel: CancelCheck<'_>) -> Result<Event> {
        match self.part {
            Some(_) => self.next_of_part(context, cancel),
            None => self.next_of_scan(context, cancel),
        }
    }

    fn stop(&mut self, cancel: CancelCheck<'_>) {
        match std::mem::replace(&mut self.scan, Scan::None) {
            Scan::Partitioned(mut scan) => {
                scan.stop(cancel);
                // If this fails, the connection is given up.
                let _ = self.connection.end_transaction("ROLLBACK", cancel);
            }
            Scan::None | Scan::Serial(_) if self.connection.session.is_running() => {
                cancel::stop(&mut self.connection, cancel);
            }
            // The server has sent all of a part.
            Scan::None | Scan::Serial(_) => {}
        }
        self.abandon_part(cancel);
    }

    fn plan_parts(
        &mut self,
        sql: &str,
        query: &QueryOptions,
        plan: &PlanOptions,
        cancel: CancelCheck<'_>,
    ) -> Result<PlannedParts> {
        self.plan_statement(sql, query, plan, cancel)
    }

    fn begin_part(&mut self, part: &PartDescriptor, cancel: CancelCheck<'_>) -> Result<String> {
        self.open_part(part, cancel)
    }

    fn is_in_transaction(&self) -> bool {
        self.connection.session.is_in_transaction()
    }

    fn rows_changed(&self) -> Option<u64> {
        self.connection.session.rows_changed()
    }

    fn parameters_in(&self, sql: &str) -> usize {
        self.connection.session.parameters_in(sql).unwrap_or_default()
    }

    fn transaction(&mut self, step: Transaction, cancel: CancelCheck<'_>) -> Result<()> {
        let failed = self.connection.session.has_failed_transaction();
        self.ask(&control_statement(step), cancel)?;
        match step {
            Transaction::Commit if failed => Err(Error::new(ErrorKind::Execution, ROLLED_BACK)
                .with_hint("a statement in it had failed")
                .with_sqlstate("25P02")),
            _ => Ok(()),
        }
    }

    fn write(&mut self, job: WriteJob<'_>, watch: &mut Watch) -> Result<WriteStats> {
        write::write(&mut self.connection, &mut self.policy, job, watch)
    }

    fn ask(&mut self, sql: &str, cancel: CancelCheck<'_>) -> Result<TextRows> {
        self.connection.run(cancel, |connection, check| Ok(connection.session.ask(sql, check)?))
    }
}
