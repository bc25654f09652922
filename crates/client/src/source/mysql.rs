//! A MySQL or MariaDB server: rows, over one connection.

mod connection;
mod parameters;
mod write;

use std::time::Instant;

use dray_format::Limits;
use dray_format::arrow::Decoder;
use dray_mysql::{CancelCheck as SocketCheck, CopyBytes, Options as RowOptions};
use dray_mysqltypes::{Options as TypeOptions, ZeroDates, not_utf8};
use dray_pgtypes::{NonFinite, NumericAs};
use dray_wire::partition::PartDescriptor;
use dray_wire::{Checksums, CompressionChoice, Estimate, RowLayout};

use self::connection::Connection;
use self::parameters::parameters;
use super::frames::DecoderCache;
use super::rows::{Cost, received, start_of};
use super::{Event, PlannedParts, ReceiveContext, Source, SourceKind, Start, TextRows, cancel};
use crate::error::{Error, ErrorKind, Result};
use crate::options::{ConnectOptions, ExtensionChoice, Partitions, PostgresOptions, QueryOptions};
use crate::partition::PlanOptions;
use crate::stats::{PathKind, TransferPath};
use crate::transaction::{Isolation, Transaction};
use crate::watch::{CancelCheck, Watch};
use crate::write::{WriteJob, WriteStats};

/// A connection to a MySQL or MariaDB server, as a source.
#[derive(Debug)]
pub(crate) struct MysqlSource {
    connection: Connection,
    scan: Option<Scan>,
    decoders: DecoderCache,
    /// The state of a transaction that [`Source::transaction`] began.
    own: OwnTransaction,
}

/// A transaction that the program began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OwnTransaction {
    None,
    Open,
    /// The server has ended it at a statement that failed: it was rolled back, as after a deadlock,
    /// or committed before a CREATE TABLE. Statements would now be transactions of their own.
    Ended,
}

/// The running statement.
#[derive(Debug)]
struct Scan {
    /// Taken when the result starts.
    start: Option<Box<Start>>,
    decoder: Decoder,
    /// The statement is only planned.
    planned: bool,
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
        let connection = Connection::connect(uri, options, keep_waiting)?;
        let decoders = DecoderCache::default();
        Ok(Self { connection, scan: None, decoders, own: OwnTransaction::None })
    }

    /// [`cancel::run`], after which it is known whether the program's transaction is still open.
    fn run<T>(
        &mut self,
        cancel: CancelCheck<'_>,
        work: impl FnOnce(&mut Connection, SocketCheck<'_>) -> Result<T>,
    ) -> Result<T> {
        let done = cancel::run(&mut self.connection, cancel, work);
        match &done {
            // A statement such as COMMIT or CREATE TABLE has ended it.
            Ok(_) if self.is_usable() && !self.connection.session.is_in_transaction() => {
                self.own = OwnTransaction::None;
            }
            Ok(_) => {}
            Err(_) => self.check_transaction(cancel),
        }
        done
    }

    /// The next rows of the running statement.
    fn next_rows(
        connection: &mut Connection,
        decoder: &Decoder,
        context: &mut ReceiveContext<'_>,
        check: SocketCheck<'_>,
    ) -> Result<Event> {
        let session = &mut connection.session;
        let (bytes, waited, began) = (session.bytes(), session.waited(), Instant::now());
        let is_table = context.memory.block_bytes() > 0;
        let mut copy = |bytes: &[u8]| context.memory.copy(bytes).ok();
        let copy: Option<CopyBytes<'_>> = if is_table { Some(&mut copy) } else { None };
        let Some(built) = session.next_batch(copy, check)? else {
            *context.profile = session.take_profile();
            return Ok(Event::Finished { server: None });
        };
        let wire_bytes = session.bytes() - bytes;
        let cost = Cost { began, wire_bytes, receive: session.waited() - waited };
        Ok(Event::Batch(received(built, cost, decoder, not_utf8)?))
    }

    /// Asks a server whether a transaction is still open, after an error: errors do not say so.
    fn check_transaction(&mut self, cancel: CancelCheck<'_>) {
        if self.own != OwnTransaction::Open || !self.is_usable() {
            return;
        }
        // If this fails, the connection is given up.
        let _ = cancel::run(&mut self.connection, cancel, |connection, check| {
            Ok(connection.session.ask("DO 0", check)?)
        });
        if !self.connection.session.is_in_transaction() {
            self.own = OwnTransaction::Ended;
        }
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
        self.connection.session.is_usable()
    }

    fn is_running(&self) -> bool {
        self.connection.session.is_running()
    }

    fn break_off(&mut self) {
        self.connection.session.break_off();
    }

    fn path(&self) -> TransferPath {
        TransferPath { kind: PathKind::Rows, reason: "one connection".to_owned() }
    }

    fn start(
        &mut self,
        sql: &str,
        options: &QueryOptions,
        _: RowLayout,
        cancel: CancelCheck<'_>,
    ) -> Result<()> {
        self.scan = None;
        if self.own == OwnTransaction::Ended {
            return Err(ended("the transaction is over"));
        }
        let row_options = row_options(options)?;
        let parameters = parameters(options.parameters.as_ref())?;
        let schema = self.run(cancel, |connection, check| {
            Ok(match options.plan_only {
                true => connection.session.describe(sql, &row_options, check)?,
                false => connection.session.start(sql, &parameters, &row_options, check)?,
            })
        })?;
        let decoder = self.decoders.decoder(schema, options.strings);
        let start = Some(start_of(&decoder, Estimate::default()));
        self.scan = Some(Scan { start, decoder, planned: options.plan_only });
        Ok(())
    }

    fn next(&mut self, context: &mut ReceiveContext<'_>, cancel: CancelCheck<'_>) -> Result<Event> {
        let Some(mut scan) = self.scan.take() else { return Ok(Event::Finished { server: None }) };
        let event = match scan.start.take() {
            Some(start) => Event::Started(*start),
            None if scan.planned => Event::Finished { server: None },
            None => self.run(cancel, |connection, check| {
                Self::next_rows(connection, &scan.decoder, context, check)
            })?,
        };
        if !matches!(event, Event::Finished { .. }) {
            self.scan = Some(scan);
        }
        Ok(event)
    }

    fn stop(&mut self, cancel: CancelCheck<'_>) {
        self.scan = None;
        cancel::stop(&mut self.connection, cancel);
        self.check_transaction(cancel);
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
        _: &PlanOptions,
        _: CancelCheck<'_>,
    ) -> Result<PlannedParts> {
        Err(no_parts())
    }

    fn begin_part(&mut self, _: &PartDescriptor, _: CancelCheck<'_>) -> Result<String> {
        Err(no_parts())
    }

    fn transaction(&mut self, step: Transaction, cancel: CancelCheck<'_>) -> Result<()> {
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
        if self.own == OwnTransaction::Ended {
            return Err(ended("the transaction is over"));
        }
        write::write(self, job, watch)
    }

    fn ask(&mut self, sql: &str, cancel: CancelCheck<'_>) -> Result<TextRows> {
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

fn no_parts() -> Error {
    Error::usage("statements of MySQL and MariaDB can't be divided into parts")
        .with_hint("run the statement, or several with a condition each")
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

/// How rows are read.
///
/// # Errors
/// Usage, for options that would be ignored.
fn row_options(options: &QueryOptions) -> Result<RowOptions> {
    let PostgresOptions { extension, numeric, nonfinite, partitions, ordered: _ } =
        options.postgres;
    // One connection keeps the order of rows.
    if extension == ExtensionChoice::Always
        || numeric != NumericAs::default()
        || !matches!(partitions, Partitions::Auto | Partitions::Exactly(1))
    {
        return Err(Error::usage(
            "extension, numeric and partitions are for PostgreSQL; this is a MySQL or MariaDB \
             server",
        ));
    }
    if !matches!(options.compression, CompressionChoice::Auto | CompressionChoice::None)
        || options.checksums == Checksums::On
    {
        return Err(Error::usage("rows of MySQL and MariaDB have no compression and no checksums")
            .with_hint("compress=zlib in the uri compresses their protocol"));
    }
    let Limits { decoded_bytes_max, row_bytes_max, .. } = options.limits;
    let bytes = |limit| usize::try_from(limit).unwrap_or(usize::MAX);
    let zero_dates = match nonfinite {
        NonFinite::Error => ZeroDates::Error,
        NonFinite::Null => ZeroDates::Null,
        NonFinite::Text => ZeroDates::Text,
    };
    Ok(RowOptions {
        types: TypeOptions { zero_dates },
        batch_rows: options.batch_rows.max(1),
        batch_bytes: bytes(decoded_bytes_max),
        row_bytes_max: bytes(row_bytes_max),
    })
}
