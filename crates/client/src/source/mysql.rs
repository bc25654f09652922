//! A MySQL or MariaDB server: rows, over one connection.

mod connection;
mod parameters;

use std::time::Instant;

use dray_format::arrow::Decoder;
use dray_format::{BuiltBatch, Limits};
use dray_mysql::{CancelCheck as SocketCheck, CopyBytes, Options as RowOptions};
use dray_mysqltypes::{Options as TypeOptions, ZeroDates, not_utf8};
use dray_pgtypes::{NonFinite, NumericAs};
use dray_wire::partition::PartDescriptor;
use dray_wire::{Checksums, CompressionChoice, Estimate, RowLayout};

use self::connection::Connection;
use self::parameters::parameters;
use super::frames::DecoderCache;
use super::{
    Event, PlannedParts, ReceiveContext, ReceivedBatch, Source, SourceKind, Start, TextRows, cancel,
};
use crate::error::{Error, ErrorKind, Result};
use crate::options::{ConnectOptions, ExtensionChoice, Partitions, PostgresOptions, QueryOptions};
use crate::partition::PlanOptions;
use crate::stats::{PathKind, TransferPath};
use crate::transaction::{Isolation, Transaction};
use crate::watch::CancelCheck;

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
    /// The server has rolled it back, as after a deadlock. Statements would now be transactions of
    /// their own.
    Lost,
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

    /// [`cancel::run`], after which it is known whether a transaction is still open: errors do not
    /// say so.
    fn run<T>(
        &mut self,
        cancel: CancelCheck<'_>,
        work: impl FnOnce(&mut Connection, SocketCheck<'_>) -> Result<T>,
    ) -> Result<T> {
        let done = cancel::run(&mut self.connection, cancel, work);
        if done.is_err() && self.own == OwnTransaction::Open && self.is_usable() {
            // If this fails, the connection is given up.
            let _ = cancel::run(&mut self.connection, cancel, |connection, check| {
                Ok(connection.session.ask("DO 0", check)?)
            });
            if !self.connection.session.is_in_transaction() {
                self.own = OwnTransaction::Lost;
            }
        }
        done
    }

    fn next_batch(
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
        let Some(built): Option<BuiltBatch> = session.next_batch(copy, check)? else {
            *context.profile = session.take_profile();
            return Ok(Event::Finished { server: None });
        };
        let receive = session.waited() - waited;
        let parse = began.elapsed().saturating_sub(receive);
        let arrived = Instant::now();
        let decoded_bytes = built.batch().plain_bytes(0, built.batch().rows);
        Ok(Event::Batch(ReceivedBatch {
            batch: decoder.built(built).map_err(|error| Error::of_rows(error, not_utf8))?,
            wire_bytes: session.bytes() - bytes,
            decoded_bytes,
            arrived,
            receive,
            parse,
            decode: arrived.elapsed(),
        }))
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
        if self.own == OwnTransaction::Lost {
            return Err(rolled_back("the server has rolled the transaction back"));
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
        let start = Some(Box::new(Start {
            schema: decoder.schema().clone(),
            estimate: Estimate::default(),
            compression: CompressionChoice::None,
            checksums: false,
            plan: Default::default(),
        }));
        self.scan = Some(Scan { start, decoder, planned: options.plan_only });
        Ok(())
    }

    fn next(&mut self, context: &mut ReceiveContext<'_>, cancel: CancelCheck<'_>) -> Result<Event> {
        let Some(mut scan) = self.scan.take() else { return Ok(Event::Finished { server: None }) };
        let event = match scan.start.take() {
            Some(start) => Event::Started(*start),
            None if scan.planned => Event::Finished { server: None },
            None => self.run(cancel, |connection, check| {
                Self::next_batch(connection, &scan.decoder, context, check)
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
    }

    fn is_in_transaction(&self) -> bool {
        self.own == OwnTransaction::Lost || self.connection.session.is_in_transaction()
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
            (OwnTransaction::Lost, Transaction::Commit) => {
                Err(rolled_back("the transaction was rolled back, not committed"))
            }
            _ => Ok(()),
        }
    }

    fn ask(&mut self, sql: &str, cancel: CancelCheck<'_>) -> Result<TextRows> {
        self.run(cancel, |connection, check| Ok(connection.session.ask(sql, check)?))
    }
}

fn rolled_back(what: &str) -> Error {
    Error::new(ErrorKind::Execution, what)
        .with_hint("a statement in it had failed; roll back, and begin again")
        .with_sqlstate("25P02")
}

fn no_parts() -> Error {
    Error::usage("statements of MySQL and MariaDB can't be divided into parts")
        .with_hint("run the statement, or several with a condition each")
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
