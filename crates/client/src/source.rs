//! Sources of results.
//!
//! A source speaks one protocol and yields a result as decoded Arrow batches, with what each of
//! them cost. [`Results`](crate::Results) joins and counts batches and knows no protocol, so a new
//! source is a new module here and a line in [`connect`].
//!
//! ```text
//!   dray://        source/dray.rs      ─┐
//!                                       ├─ frames.rs: chunks ─▶ Event::Batch ─┐
//!   postgresql://  source/postgres.rs  ─┤                                     ├─▶ results.rs
//!   mysql://       source/mysql.rs     ─┴─ rows ──────────────▶ Event::Batch ─┘
//! ```

mod cancel;
mod dray;
mod frames;
mod mysql;
mod partitioned;
mod postgres;
mod rows;
mod times;
mod write;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use dray_format::Profile;
use dray_format::arrow::{Decoder, StringLayout};
use dray_page::{Layout, VerifiedPage};
use dray_wire::partition::PartDescriptor;
use dray_wire::{CompressionChoice, Estimate, Finished, Query, Report, RowLayout};

pub use self::dray::Uri;
use self::dray::{DraySource, encode_parameters};
use self::mysql::MysqlSource;
use self::postgres::PostgresSource;
use crate::error::{Error, ErrorKind, Result};
use crate::held_plan::HoldOptions;
use crate::memory::Arena;
use crate::options::{ConnectOptions, OtherConnections, QueryOptions};
use crate::partition::PlanOptions;
use crate::stats::TransferPath;
use crate::transaction::Transaction;
use crate::watch::{CancelCheck, Verdict, Watch};
use crate::write::{WriteJob, WriteStats};

/// How long a server has to stop a statement before the connection is given up.
pub(crate) const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Connects to the server at `uri`, while `keep_waiting` returns true.
///
/// # Errors
/// When the uri is malformed, nobody answers there, or the server refuses.
pub(crate) fn connect(
    uri: &str,
    options: &ConnectOptions,
    keep_waiting: &mut dyn FnMut() -> bool,
) -> Result<Box<dyn Source>> {
    if PostgresSource::is_for(uri) {
        return Ok(Box::new(PostgresSource::connect(uri, options, keep_waiting)?));
    }
    if MysqlSource::is_for(uri) {
        return Ok(Box::new(MysqlSource::connect(uri, options, keep_waiting)?));
    }
    Ok(Box::new(DraySource::connect(uri, options, keep_waiting)?))
}

/// The kinds of servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// A Dray server.
    Dray,
    /// PostgreSQL, or a server that speaks its protocol.
    Postgres,
    /// MySQL, MariaDB, or a server that speaks their protocol.
    Mysql,
    /// A database behind a Dray server whose SQL this client does not know.
    Other,
}

impl SourceKind {
    /// The name of its SQL: `dray`, `postgresql`, `mysql` or `other`.
    pub fn dialect_name(self) -> &'static str {
        match self {
            Self::Dray => "dray",
            Self::Postgres => "postgresql",
            Self::Mysql => "mysql",
            Self::Other => "other",
        }
    }
}

/// A connection to a server, in the server's protocol. It runs one statement at a time.
pub(crate) trait Source: Debug + Send {
    /// The server's name and version.
    fn server(&self) -> &str;

    /// Which kind of server it is.
    fn kind(&self) -> SourceKind;

    /// The kind of server whose SQL it takes: another if the server passes statements on.
    fn dialect(&self) -> SourceKind {
        self.kind()
    }

    /// The server's address, without secrets.
    fn place(&self) -> &str;

    /// Whether a statement can be started.
    fn is_usable(&self) -> bool;

    /// Whether a statement is running.
    fn is_running(&self) -> bool;

    /// Gives the connection up, without a word to the server.
    fn break_off(&mut self);

    /// The path of the last statement's result.
    fn path(&self) -> TransferPath;

    /// Starts a statement, whose rows may travel in this layout.
    ///
    /// # Errors
    /// When the statement is refused or the connection breaks.
    fn start(
        &mut self,
        sql: &str,
        options: &QueryOptions,
        layout: RowLayout,
        cancel: CancelCheck<'_>,
    ) -> Result<()>;

    /// Starts a statement over other connections than this one, all of which see one snapshot and
    /// only read. Returns how many read it; if this connection is to read it, why, with nothing
    /// started.
    ///
    /// # Errors
    /// When the connection breaks or the statement is cancelled.
    fn start_over_several(
        &mut self,
        sql: &str,
        options: &QueryOptions,
        others: OtherConnections,
        cancel: CancelCheck<'_>,
    ) -> Result<Result<usize, String>> {
        let _ = (sql, options, others, cancel);
        Ok(Err("it has no others".to_owned()))
    }

    /// Waits for the next event of the running statement. The first is [`Event::Started`], the last
    /// [`Event::Finished`] or an error.
    ///
    /// # Errors
    /// When the statement fails, the connection breaks, or what arrived is damaged. A source whose
    /// server can't be trusted any longer breaks the connection off by itself.
    fn next(&mut self, context: &mut ReceiveContext<'_>, cancel: CancelCheck<'_>) -> Result<Event>;

    /// Stops the running statement and waits until the server confirms. Gives the connection up
    /// after [`STOP_TIMEOUT`], or when the check says [`Verdict::Abandon`].
    fn stop(&mut self, cancel: CancelCheck<'_>);

    /// Whether a transaction that the user began is open.
    fn is_in_transaction(&self) -> bool {
        false
    }

    /// The rows that the last statement inserted, updated, deleted or merged; None if it did
    /// something else.
    fn rows_changed(&self) -> Option<u64> {
        None
    }

    /// The highest of `$1, $2 …` in a statement, or the number of `?`; 0 without any.
    fn parameters_in(&self, sql: &str) -> usize;

    /// Divides a statement into parts that other processes read.
    ///
    /// # Errors
    /// When the statement does not plan, or its parts can't be read by others.
    fn plan_parts(
        &mut self,
        sql: &str,
        query: &QueryOptions,
        plan: &PlanOptions,
        cancel: CancelCheck<'_>,
    ) -> Result<PlannedParts>;

    /// Divides a statement into parts that this process reads, over connections that it holds.
    ///
    /// # Errors
    /// When the statement does not plan, or other connections can't be made.
    fn hold_parts(
        &mut self,
        sql: &str,
        query: &QueryOptions,
        hold: &HoldOptions,
        cancel: CancelCheck<'_>,
    ) -> Result<HeldParts> {
        let _ = (sql, query, hold, cancel);
        Err(Error::usage("the parts of this source are read by their descriptors"))
    }

    /// Begins to read a part: returns the statement to start next, which ends what was begun.
    ///
    /// # Errors
    /// When the part can't be read here.
    fn begin_part(&mut self, part: &PartDescriptor, cancel: CancelCheck<'_>) -> Result<String>;

    /// Begins or ends a transaction.
    ///
    /// # Errors
    /// When the server refuses, or has no transactions.
    fn transaction(&mut self, step: Transaction, cancel: CancelCheck<'_>) -> Result<()> {
        let _ = (step, cancel);
        Err(Error::usage("a Dray server has no transactions: it only reads"))
    }

    /// Runs a statement of the program's own and returns its rows as text.
    ///
    /// # Errors
    /// When it fails, or the server has no such answers.
    fn ask(&mut self, sql: &str, cancel: CancelCheck<'_>) -> Result<TextRows> {
        let _ = (sql, cancel);
        Err(Error::usage("a Dray server gives no rows as text"))
    }

    /// Writes data into a table.
    ///
    /// # Errors
    /// Those of [`Connection::write`](crate::Connection::write).
    fn write(&mut self, job: WriteJob<'_>, watch: &mut Watch) -> Result<WriteStats> {
        let _ = (job, watch);
        Err(Error::usage("a Dray server only reads: it serves files, and has no tables")
            .with_hint("dray export writes files; PostgreSQL, MySQL and MariaDB take rows"))
    }
}

/// Holds the snapshot of a plan until it is dropped, which waits for the server.
pub(crate) trait Holder: Debug + Send {}

/// A statement as parts, and what holds their snapshot, if they need one.
#[derive(Debug)]
pub(crate) struct PlannedParts {
    pub(crate) parts: Vec<PartDescriptor>,
    /// The columns, with strings of the query's layout.
    pub(crate) schema: SchemaRef,
    /// Why there is only one part.
    pub(crate) reason: Option<String>,
    pub(crate) holder: Option<Box<dyn Holder>>,
}

/// A statement as parts, and connections that see one snapshot, over any of which each part is
/// read.
#[derive(Debug)]
pub(crate) struct HeldParts {
    pub(crate) connections: Vec<Box<dyn Source>>,
    /// A statement for each part.
    pub(crate) statements: Vec<String>,
    /// The columns, with strings of the query's layout.
    pub(crate) schema: SchemaRef,
    /// What is expected of all parts together.
    pub(crate) estimate: Estimate,
    /// Why there is only one part.
    pub(crate) reason: Option<String>,
}

/// The row of parameters in a descriptor or a query; None without any.
pub(crate) fn decode_parameters(parameters: &[u8]) -> Result<Option<RecordBatch>> {
    let Some((schema, chunk)) = Query::read_parameters(parameters)? else { return Ok(None) };
    let decoder = Decoder::new(schema, StringLayout::default());
    Ok(Some(decoder.read(&chunk, &Query::PARAMETER_LIMITS)?.1))
}

/// Rows as text, None for NULL.
pub(crate) type TextRows = Vec<Vec<Option<String>>>;

/// What a source fills while it receives a result.
#[derive(Debug)]
pub(crate) struct ReceiveContext<'a> {
    /// The memory that batches are decoded into.
    pub(crate) memory: &'a mut Arena,
    /// How columns were encoded; sources add to it.
    pub(crate) profile: &'a mut Profile,
    /// What pages are checked against, if the statement may have pages.
    pub(crate) layout: Option<&'a Arc<Layout>>,
}

/// A step of a result.
#[derive(Debug)]
pub(crate) enum Event {
    /// The statement runs.
    Started(Start),
    /// Rows.
    Batch(ReceivedBatch),
    /// Rows as objects.
    Page(ReceivedPage),
    /// Rows that the server's scans have read so far.
    Progress { rows_read: u64 },
    /// The server's account of its encoding.
    Report(Report),
    /// The result is complete. `server` is the server's account of its time, if it gives one.
    Finished { server: Option<Finished> },
}

/// What is known of a result before its first row.
#[derive(Debug, Clone)]
pub(crate) struct Start {
    pub(crate) schema: SchemaRef,
    pub(crate) estimate: Estimate,
    pub(crate) compression: CompressionChoice,
    pub(crate) checksums: bool,
    /// Planning at the server.
    pub(crate) plan: Duration,
}

/// Some rows, and what receiving them cost.
#[derive(Debug)]
pub(crate) struct ReceivedBatch {
    pub(crate) batch: RecordBatch,
    /// Bytes received, with those of state frames since the batch before.
    pub(crate) wire_bytes: u64,
    /// Bytes of Arrow data.
    pub(crate) decoded_bytes: u64,
    /// When all of it had arrived at the reader's thread.
    pub(crate) arrived: Instant,
    /// Waiting for the server and reading from the socket, in the reader's thread.
    pub(crate) receive: Duration,
    /// Parsing rows while they came, in the reader's thread. Zero for chunks.
    pub(crate) parse: Duration,
    /// Decoding, in whatever thread.
    pub(crate) decode: Duration,
}

/// A page, and what receiving it cost, as of a batch.
#[derive(Debug)]
pub(crate) struct ReceivedPage {
    pub(crate) page: VerifiedPage,
    pub(crate) wire_bytes: u64,
    pub(crate) arrived: Instant,
    pub(crate) receive: Duration,
    /// Checking it.
    pub(crate) decode: Duration,
}

/// When a server must have stopped a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StopDeadline(pub(crate) Instant);

impl Default for StopDeadline {
    fn default() -> Self {
        Self(Instant::now() + STOP_TIMEOUT)
    }
}

impl StopDeadline {
    /// # Errors
    /// Connection, once the deadline has passed or nobody waits any longer.
    pub(crate) fn check(&self, verdict: Verdict) -> Result<()> {
        match verdict {
            Verdict::Abandon => {
                Err(Error::new(ErrorKind::Connection, "the server was not waited for"))
            }
            _ if Instant::now() < self.0 => Ok(()),
            _ => Err(Error::new(ErrorKind::Connection, "the server did not stop in time")),
        }
    }
}

/// The error of a statement that was cancelled from this end.
pub(crate) fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the statement was cancelled")
}

/// The error of a server that breaks the order of messages.
pub(crate) fn out_of_turn() -> Error {
    Error::new(ErrorKind::Protocol, "the server's answer is out of turn")
}
