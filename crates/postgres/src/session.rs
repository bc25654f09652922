//! A session: statements one after the other, and their results as columns.
//!
//! ```text
//!   stock server        parse, describe ──▶ types ──▶ bind, execute ──▶ rows ──▶ BatchBuilder
//!                       prepare.rs          catalog.rs                  rows.rs
//!   with the extension  COPY (…) TO STDOUT (FORMAT dray) ──▶ frames of spec/protocol.md
//!                       copy.rs                              the caller reads them
//! ```
//!
//! A stock server sends a result as `DataRow` messages, not as `COPY … (FORMAT binary)`. A binary
//! row has the same bytes in both and costs the server the same. But the types of a `DataRow` are
//! learned in the same transaction, its statement may have parameters and be any that returns rows,
//! and a column may come as text where that costs the server less.

mod ask;
mod cache;
mod copy;
mod copy_in;
mod messages;
mod parameter;
mod prepare;
mod rows;
mod settings;
mod tag;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use dray_format::{BatchBuilder, Profile, Schema};
use dray_pgtypes::Options as TypeOptions;
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;

use self::cache::StatementCache;
pub use self::copy::CopyStart;
use self::messages::{MessageStream, server_error};
pub use self::parameter::Parameter;
pub(crate) use self::prepare::has_text;
pub use self::rows::CopyBytes;
use self::rows::Rows;
pub(crate) use self::rows::push_row;
pub use self::tag::miscount;
use crate::catalog::Catalog;
use crate::error::{CancelCheck, Error, ErrorKind, LIMIT_EXCEEDED, Result};
use crate::scan::{NotSplittable, TableScan, attribute_names, preserves_session};
use crate::sql;

/// The default of [`Options::batch_rows`].
const BATCH_ROWS: usize = 65_536;
/// Tags of the messages that report a finished step of a statement.
const PARSED: u8 = b'1';
const BOUND: u8 = b'2';
const CLOSED: u8 = b'3';
/// The error of a missing step: a message was lost, so what follows may be the result of the
/// statement before.
const STEP_MISSING: &str = "a statement was not parsed or bound";

/// How a statement's rows become batches.
#[derive(Debug, Clone)]
pub struct Options {
    /// What columns of types that Arrow lacks become.
    pub types: TypeOptions,
    /// A batch ends with this many rows.
    pub batch_rows: usize,
    /// A batch ends when its values have this many bytes.
    pub batch_bytes: usize,
    /// The largest row to accept.
    pub row_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            types: TypeOptions::default(),
            batch_rows: BATCH_ROWS,
            batch_bytes: 64 << 20,
            row_bytes_max: 256 << 20,
        }
    }
}

impl Options {
    /// A builder of rows. A row may become larger than it was sent: an array of NULL composites
    /// does.
    pub(crate) fn builder(&self, schema: Arc<Schema>) -> Result<BatchBuilder> {
        const GROWTH_MAX: usize = 4;
        let mut builder = BatchBuilder::new(schema).map_err(value_error)?;
        // The size of a batch is checked with every 64th row, and with each large one.
        builder.set_bytes_max(
            self.row_bytes_max.saturating_mul(GROWTH_MAX),
            self.batch_bytes.saturating_mul(2),
        );
        Ok(builder)
    }
}

/// What the session is doing.
#[derive(Debug)]
enum State {
    Idle,
    /// A statement whose rows are read here.
    Rows(Box<Rows>),
    /// A COPY whose data the caller reads.
    Copy {
        /// Bytes left of the current message.
        left: usize,
    },
    /// A COPY whose data the caller sends.
    CopyIn,
    /// A statement whose result can't be read. It must be cancelled and drained.
    Unreadable,
}

/// A session with a server, once the user is logged in.
#[derive(Debug)]
pub struct Session<S> {
    messages: MessageStream<S>,
    catalog: Catalog,
    cache: StatementCache,
    server_version: u32,
    /// Every statement runs in the server process of the login: no pooler is in between.
    same_process: bool,
    /// The extension's library is loaded in that process.
    extension_loaded: bool,
    /// The server's process was asked to keep the memory of wide rows.
    keeps_memory: bool,
    /// Floats in text have all their digits, unless the user sets it otherwise.
    full_float_digits: bool,
    state: State,
    /// The text of the running statement, for the positions of errors.
    statement: String,
    /// Characters that were sent before that text.
    sent_before: usize,
    /// Where the shares of the data begin that a COPY sends: rows of the COPY and of the data.
    copy_rows: Vec<(u64, u64)>,
    /// The tag of the last statement that ended.
    tag: String,
    /// Bytes of rows, of all statements.
    bytes: u64,
    /// How the columns of the last statement came.
    profile: Profile,
    /// The transaction status of the last ReadyForQuery: idle, in a transaction, or in a failed
    /// one.
    status: u8,
}

impl<S: Read + Write> Session<S> {
    /// A session over a socket on which the server has just become ready. `reported` are the
    /// settings that it has reported, `server_version` is its major version.
    pub fn new(stream: S, server_version: u32, reported: &BTreeMap<String, String>) -> Self {
        let mut messages = MessageStream::new(stream);
        reported.iter().for_each(|(name, value)| messages.settings().report(name, value));
        Self {
            messages,
            catalog: Catalog::default(),
            cache: StatementCache::default(),
            server_version,
            same_process: false,
            extension_loaded: false,
            keeps_memory: false,
            full_float_digits: false,
            state: State::Idle,
            statement: String::new(),
            sent_before: 0,
            copy_rows: Vec::new(),
            tag: String::new(),
            bytes: 0,
            profile: Profile::default(),
            status: b'I',
        }
    }

    /// The connection's stream.
    pub fn stream(&self) -> &S {
        self.messages.stream()
    }

    /// Whether a statement can be started.
    pub fn is_usable(&self) -> bool {
        !self.messages.is_broken() && matches!(self.state, State::Idle)
    }

    /// Whether a statement is running.
    pub fn is_running(&self) -> bool {
        !self.messages.is_broken() && !matches!(self.state, State::Idle)
    }

    /// Sets whether backslashes escape in plain strings. A pooler need not report it.
    pub fn set_escapes(&mut self, escapes: bool) {
        self.messages.settings().report_escapes(escapes);
    }

    /// Notes that `extra_float_digits` is set for the whole session. Without that, it is set in
    /// each transaction that needs it.
    pub fn set_full_float_digits(&mut self) {
        self.full_float_digits = true;
    }

    /// Notes that every statement runs in the server process with this number. Statements that are
    /// run again may then be prepared there.
    pub fn set_process(&mut self, process_id: i32) {
        self.same_process = true;
        self.cache.allow_names(process_id);
    }

    /// Whether backslashes escape in plain strings: `standard_conforming_strings` is off.
    fn escapes(&self) -> bool {
        self.messages.escapes().unwrap_or_default()
    }

    /// Whether the connection broke.
    pub fn is_broken(&self) -> bool {
        self.messages.is_broken()
    }

    /// Whether a transaction that the user began is open.
    pub fn is_in_transaction(&self) -> bool {
        self.status != b'I'
    }

    /// Whether a transaction that the user began has failed, so that it can only be rolled back.
    pub fn has_failed_transaction(&self) -> bool {
        self.status == b'E'
    }

    /// The rows that the last statement of the user's inserted, updated, deleted or merged; None if
    /// it did something else.
    pub fn rows_changed(&self) -> Option<u64> {
        tag::rows_changed(&self.tag)
    }

    /// [`enclosable`](crate::enclosable) by the session's rules for strings.
    pub fn enclosable<'a>(&self, statement: &'a str) -> Option<&'a str> {
        sql::enclosable(statement, self.escapes())
    }

    /// Reads a statement as a [`TableScan`].
    ///
    /// # Errors
    /// When it is not one.
    pub fn table_scan(&self, statement: &str) -> Result<TableScan, NotSplittable> {
        TableScan::parse(statement, self.escapes())
    }

    /// Reads a statement as a [`TableScan`] that aggregates.
    ///
    /// # Errors
    /// When it is not one.
    pub fn aggregate_scan(&self, statement: &str) -> Result<TableScan, NotSplittable> {
        TableScan::parse_aggregate(statement, self.escapes())
    }

    /// Whether a statement surely leaves the session as it was: its settings, role, and
    /// transaction. Only the server knows whether [`Self::attribute_names`] are functions.
    pub fn is_preserved_by(&self, statement: &str) -> bool {
        preserves_session(statement, self.escapes())
    }

    /// Whether a query only reads, by its words.
    pub fn only_reads(&self, statement: &str) -> bool {
        sql::reads_only(statement, self.escapes())
    }

    /// The highest of `$1, $2 …` in a statement; None if the statement has no end.
    pub fn parameters_in(&self, statement: &str) -> Option<usize> {
        sql::parameters_in(statement, self.escapes())
    }

    /// Names after a dot in a statement, which may be functions.
    pub fn attribute_names(&self, statement: &str) -> BTreeSet<String> {
        attribute_names(statement, self.escapes())
    }

    /// Gives the connection up.
    pub fn break_off(&mut self) {
        self.messages.break_off();
    }

    /// The tag of the last statement that ended: `SELECT 5`.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// The bytes of rows received by all statements so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How the columns came, of the statement whose rows have just ended.
    pub fn take_profile(&mut self) -> Profile {
        std::mem::take(&mut self.profile)
    }

    /// The time spent waiting for the server and reading from the socket so far.
    pub fn waited(&self) -> Duration {
        self.messages.waited()
    }

    /// Drains the running statement, which was cancelled or has other columns than expected.
    ///
    /// # Errors
    /// When the connection breaks, or the check ends the wait.
    pub fn drain(&mut self, check: CancelCheck<'_>) -> Result<()> {
        let mut scratch = vec![0; 64 << 10];
        if matches!(self.state, State::CopyIn) {
            frontend::copy_fail("cancelled", self.messages.out()).map_err(invalid)?;
            self.messages.send(check)?;
        }
        if let State::Copy { mut left } = self.state {
            while left > 0 {
                let count = left.min(scratch.len());
                self.messages.read_exact(&mut scratch[..count], check)?;
                left -= count;
            }
        }
        self.state = State::Idle;
        // A changed type may be the reason for the cancel.
        self.catalog.forget();
        self.cache.clear();
        loop {
            // While rows keep coming, reading has no pause in which to check.
            check()?;
            let header = self.messages.peek(check)?;
            if header.is_async() {
                self.messages.message_or_async(check)?;
                continue;
            }
            self.messages.enter();
            let mut left = header.body_bytes;
            while left > 0 {
                let count = left.min(scratch.len());
                self.messages.read_exact(&mut scratch[..count], check)?;
                left -= count;
            }
            if header.tag == b'Z' {
                self.note_status(scratch[0]);
                return Ok(());
            }
        }
    }

    /// Reads on until the server is ready for the next statement, and returns the outcome of the
    /// last one. After a success nothing else may come of that one.
    fn wait_ready<T>(&mut self, outcome: Result<T>, check: CancelCheck<'_>) -> Result<T> {
        if self.messages.is_broken() {
            return outcome;
        }
        let mut outcome = outcome;
        loop {
            let message = match self.messages.message(check) {
                Ok(message) => message,
                // The server has said why before it closed the connection.
                Err(_) if outcome.is_err() && self.messages.is_broken() => return outcome,
                Err(error) => return Err(error),
            };
            match message {
                Message::ReadyForQuery(body) => {
                    self.note_status(body.status());
                    return outcome;
                }
                // A deferred constraint, for example, fails only when the statement commits.
                Message::ErrorResponse(error) if outcome.is_ok() => {
                    outcome = Err(server_error(error.fields(), &self.statement, self.sent_before));
                }
                _ if outcome.is_ok() => {
                    return Err(self.messages.out_of_order("more after the statement's end"));
                }
                _ => {}
            }
        }
    }

    /// Notes the transaction status of a ReadyForQuery.
    fn note_status(&mut self, status: u8) {
        self.status = status;
        if !self.is_in_transaction() {
            self.cache.end_transaction();
        }
    }

    /// Checks that the settings by which the statement's result was read did not change meanwhile.
    fn check_settings(&mut self) -> Result<()> {
        self.messages.settings().changed_since_begin().map_or(Ok(()), Err)
    }

    /// Checks that a statement of the user's can run and its rows can be read.
    fn check_readable(&mut self, statement: &str) -> Result<()> {
        self.check_sendable(statement)?;
        // The statement's own characters depend on a setting, too.
        if let Some(error) = self.messages.settings().unreadable()
            && !(statement.is_ascii() && sql::sets(statement))
        {
            return Err(error);
        }
        // A setting that set_config() makes for one statement applies to its rows and is never
        // reported.
        if sql::mentions(statement, "client_encoding")
            && sql::mentions(statement, "set_config")
            && sql::is_query(statement)
        {
            let what = "a statement that has rows can't set client_encoding, in which they come";
            return Err(Error::new(ErrorKind::Usage, what)
                .with_hint("SET client_encoding TO 'UTF8' is a statement of its own"));
        }
        self.messages.settings().begin();
        self.tag.clear();
        Ok(())
    }

    /// Checks that a statement can be sent, before any of it is in a message.
    fn check_sendable(&self, statement: &str) -> Result<()> {
        self.check_idle()?;
        match statement.contains('\0') {
            true => Err(Error::new(
                ErrorKind::Usage,
                "the statement has a NUL character, which PostgreSQL does not take",
            )),
            false => Ok(()),
        }
    }

    fn check_idle(&self) -> Result<()> {
        match (self.messages.is_broken(), &self.state) {
            (true, _) => {
                Err(Error::new(ErrorKind::Usage, "the connection is broken; connect again"))
            }
            (false, State::Idle) => Ok(()),
            _ => {
                let what = "a statement is still running on this connection; \
                            read its result to the end or cancel it";
                Err(Error::new(ErrorKind::Usage, what))
            }
        }
    }

    /// Says goodbye to the server, if no statement runs.
    pub fn close(&mut self) {
        if matches!(self.state, State::Idle) {
            self.messages.say_goodbye();
        }
    }
}

/// The error of a statement or value that has a NUL or is too long.
fn invalid(cause: std::io::Error) -> Error {
    Error::new(ErrorKind::Usage, "the statement can't be sent").with_cause(cause)
}

pub(crate) fn value_error(error: dray_format::Error) -> Error {
    Error::new(ErrorKind::Limit, error.to_string()).with_sqlstate(LIMIT_EXCEEDED)
}
