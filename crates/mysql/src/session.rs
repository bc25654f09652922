//! A session: statements one after the other, and their results as columns.
//!
//! ```text
//!   prepare ──▶ execute ──▶ definitions ──▶ rows, binary ──┬──▶ BatchBuilder
//!   start.rs                                               │
//!   query (statements that can't be prepared) ▶ rows, text ┘
//! ```
//!
//! The server says nothing by itself, and each of its packets has a meaning only by those before
//! it. [`Next`] is what comes next, so that a result can be drained wherever its reading ended.

mod ask;
mod cache;
mod effect;
mod insert;
mod load;
mod next;
mod parameter;
mod rows;
mod settings;
mod start;
#[cfg(test)]
mod tests;

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use dray_format::{BatchBuilder, Profile, Schema};
use dray_mysqltypes::Options as TypeOptions;
use mysql_common::constants::{Command, StatusFlags};

use self::cache::StatementCache;
pub use self::insert::{Bound, BoundType};
pub use self::load::{FILE_NAME, Taken};
use self::next::{Event, Next};
pub use self::parameter::{Parameter, write_string};
pub use self::rows::CopyBytes;
use self::rows::Rows;
use self::settings::Settings;
use crate::answer::Done;
use crate::error::{CancelCheck, Error, ErrorKind, LIMIT_EXCEEDED, Result};
use crate::packets::PacketStream;
use crate::server::Server;
use crate::sql;

/// The default of [`Options::batch_rows`].
const BATCH_ROWS: usize = 65_536;
/// Passed over while a result is drained; what matters is shorter.
const DRAINED_BYTES_MAX: usize = 1 << 20;
/// Does nothing.
const NOTHING: &str = "DO 0";

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
    /// A builder of rows. Values of fixed width may become larger than they were sent as text.
    fn builder(&self, schema: Arc<Schema>) -> Result<BatchBuilder> {
        const GROWTH_MAX: usize = 16;
        let mut builder = BatchBuilder::new(schema).map_err(value_error)?;
        // The size of a batch is checked with every 64th row, and with each large one.
        builder.set_bytes_max(
            self.row_bytes_max.saturating_mul(GROWTH_MAX),
            self.batch_bytes.saturating_mul(2),
        );
        Ok(builder)
    }
}

/// A session with a server, once the user is logged in.
#[derive(Debug)]
pub struct Session<S> {
    packets: PacketStream<S>,
    server: Server,
    settings: Settings,
    cache: StatementCache,
    /// What the server sends next.
    next: Next,
    /// The statement whose rows are read.
    rows: Option<Box<Rows>>,
    /// The status of the last OK.
    status: u16,
    /// The rows that the last statement changed; None if it is no change.
    rows_changed: Option<u64>,
    /// Bytes of rows, of all statements.
    bytes: u64,
    /// How the columns of the last statement came.
    profile: Profile,
}

impl<S: Read + Write> Session<S> {
    /// A session over a socket on which the server waits for its first command. Its settings are
    /// those of [`Self::set_up`].
    pub fn new(stream: S, server: Server) -> Self {
        Self::over(PacketStream::new(stream), server)
    }

    pub(crate) fn over(packets: PacketStream<S>, server: Server) -> Self {
        Self {
            packets,
            settings: Settings::new(server.tracks()),
            server,
            cache: StatementCache::default(),
            next: Next::Nothing,
            rows: None,
            status: StatusFlags::SERVER_STATUS_AUTOCOMMIT.bits(),
            rows_changed: None,
            bytes: 0,
            profile: Profile::default(),
        }
    }

    /// Sets what results depend on: text comes as UTF-8, and a TIMESTAMP in UTC.
    ///
    /// # Errors
    /// When the server refuses one of the settings, or the connection breaks.
    pub fn set_up(&mut self, check: CancelCheck<'_>) -> Result<()> {
        self.ask(&settings::set_up(&self.server), check)?;
        self.settings = Settings::new(self.server.tracks());
        Ok(())
    }

    /// What the server said at login.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The socket.
    pub fn stream(&self) -> &S {
        self.packets.stream()
    }

    /// Whether a statement can be started.
    pub fn is_usable(&self) -> bool {
        !self.packets.is_broken() && self.next == Next::Nothing
    }

    /// Whether a statement is running.
    pub fn is_running(&self) -> bool {
        !self.packets.is_broken() && self.next != Next::Nothing
    }

    /// Whether the connection broke.
    pub fn is_broken(&self) -> bool {
        self.packets.is_broken()
    }

    /// Gives the connection up.
    pub fn break_off(&mut self) {
        self.packets.break_off();
    }

    /// Whether a transaction that the user began is open.
    pub fn is_in_transaction(&self) -> bool {
        self.status & StatusFlags::SERVER_STATUS_IN_TRANS.bits() != 0
    }

    /// Whether each statement outside of a transaction is one of its own.
    pub fn is_autocommit(&self) -> bool {
        self.status & StatusFlags::SERVER_STATUS_AUTOCOMMIT.bits() != 0
    }

    /// Whether backslashes escape in strings.
    pub fn escapes(&self) -> bool {
        self.status & StatusFlags::SERVER_STATUS_NO_BACKSLASH_ESCAPES.bits() == 0
    }

    /// The number of `?` in a statement; None if the statement has no end.
    pub fn parameters_in(&self, statement: &str) -> Option<usize> {
        sql::parameters_in(statement, self.escapes())
    }

    /// The rows that the last statement inserted, updated or deleted; None if it did something
    /// else. Rows that an UPDATE leaves as they were do not count.
    pub fn rows_changed(&self) -> Option<u64> {
        self.rows_changed
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
        self.packets.waited()
    }

    /// Drains the running statement, which was cancelled. [`Self::settle`] must follow before
    /// another statement runs.
    ///
    /// # Errors
    /// When the connection breaks, or the check ends the wait.
    pub fn drain(&mut self, check: CancelCheck<'_>) -> Result<()> {
        self.rows = None;
        self.drain_results(check).map(drop)
    }

    /// Runs a statement that does nothing, between two others. A `KILL QUERY` that came after the
    /// end of its statement ends this one instead of the user's next; no other may be sent
    /// meanwhile. Then it is known whether a transaction is open, which errors do not tell.
    ///
    /// # Errors
    /// When a statement runs, the connection breaks, or the check ends the wait.
    pub fn settle(&mut self, check: CancelCheck<'_>) -> Result<()> {
        self.check_idle()?;
        for _ in 0..2 {
            self.command(Command::COM_QUERY, NOTHING.as_bytes(), Next::Result, check)?;
            if !self.drain_results(check)? {
                break;
            }
        }
        Ok(())
    }

    /// Whether a statement does nothing but read the errors and warnings of the one before. No
    /// other may run in between.
    pub fn is_diagnostic(&self, statement: &str) -> bool {
        effect::is_diagnostic(statement)
    }

    /// Whether a statement reads what the one before has left: errors, warnings, numbers of rows.
    pub fn reads_what_is_left(&self, statement: &str) -> bool {
        effect::reads_what_is_left(statement)
    }

    /// Reads all that comes, and returns whether a cancel ended it.
    fn drain_results(&mut self, check: CancelCheck<'_>) -> Result<bool> {
        let mut interrupted = false;
        while self.next != Next::Nothing {
            if self.next == Next::File {
                self.end_file(check)?;
            }
            // While rows keep coming, reading has no pause in which to check.
            check()?;
            let Some(payload) = self.packets.skip(DRAINED_BYTES_MAX, check)? else {
                match self.next {
                    Next::Rows => continue,
                    _ => return Err(self.packets.out_of_order("a packet is too large")),
                }
            };
            let event = self.next.advance(payload, &self.server);
            match self.checked(event)? {
                Event::Failed(error) => interrupted = self.failed(error).is_interrupted(),
                Event::Done(done) => self.note(done),
                Event::Prepared(prepared) => self.cache.forget(prepared.id),
                Event::Columns(_) | Event::Definition | Event::Row | Event::File { .. } => {}
            }
        }
        Ok(interrupted)
    }

    /// Says goodbye to the server, if no statement runs.
    pub fn close(&mut self) {
        if self.next == Next::Nothing {
            self.packets.say_goodbye();
        }
    }

    /// Sends a command.
    fn command(
        &mut self,
        command: Command,
        argument: &[u8],
        next: Next,
        check: CancelCheck<'_>,
    ) -> Result<()> {
        self.cache.close_forgotten(&mut self.packets, check)?;
        let mut payload = Vec::with_capacity(1 + argument.len());
        payload.push(command as u8);
        payload.extend(argument);
        self.next = next;
        self.packets.command(&payload, check)
    }

    /// Reads the next packet, which is no row.
    fn event(&mut self, check: CancelCheck<'_>) -> Result<Event> {
        let payload = self.packets.next(crate::packets::ANSWER_BYTES_MAX, check)?;
        let event = self.next.advance(payload, &self.server);
        self.checked(event)
    }

    /// Gives the connection up if a packet was not understood, or says that it ends.
    fn checked(&mut self, event: Result<Event>) -> Result<Event> {
        match &event {
            Ok(Event::Failed(error)) if error.kind() != ErrorKind::Connection => {}
            Ok(Event::Failed(_)) | Err(_) => self.packets.break_off(),
            Ok(_) => {}
        }
        event
    }

    /// Notes that a statement has failed while it ran.
    fn failed(&mut self, error: Error) -> Error {
        self.settings.doubt();
        error
    }

    /// Notes what the server says at the end of a result.
    fn note(&mut self, done: Done) {
        self.status = done.status;
        if done.changes.has_any {
            self.cache.forget_all();
        }
        self.settings.note(done.changes.values);
    }

    fn check_idle(&self) -> Result<()> {
        match (self.packets.is_broken(), self.next) {
            (true, _) => Err(Error::usage("the connection is broken; connect again")),
            (false, Next::Nothing) => Ok(()),
            _ => Err(Error::usage(
                "a statement is still running on this connection; \
                 read its result to the end or cancel it",
            )),
        }
    }
}

fn value_error(error: dray_format::Error) -> Error {
    Error::new(ErrorKind::Limit, error.to_string()).with_sqlstate(LIMIT_EXCEEDED)
}
