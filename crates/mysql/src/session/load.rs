//! `LOAD DATA LOCAL INFILE`: rows that the server asks for, as if they were a file of the client's.
//!
//! ```text
//!   client   LOAD DATA LOCAL …              rows, rows, …, the end
//!   server                      its name ▲                        OK, error
//! ```
//!
//! A server may answer any statement by asking for any file. This client opens none: it sends rows
//! only for a statement of [`Session::start_load`], and ends the file at once for others.

use std::io::{Read, Write};

use mysql_common::constants::Command;

use super::Session;
use super::next::{Event, Next};
use crate::error::{CancelCheck, Error, ErrorKind, Result};

/// The name of the file in a statement of [`Session::start_load`].
pub const FILE_NAME: &str = "dray";
/// The server or somebody in between does not take files: ER_NOT_ALLOWED_COMMAND, MySQL's
/// ER_CLIENT_LOCAL_FILES_DISABLED, MariaDB's ER_LOAD_INFILE_CAPABILITY_DISABLED.
const DISABLED: [u16; 3] = [1148, 3948, 4166];

/// What a server says of the rows that it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// The rows that it has inserted.
    pub rows: u64,
    /// Its warnings, at most 65,535.
    pub warnings: u16,
}

impl<S: Read + Write> Session<S> {
    /// Starts a `LOAD DATA LOCAL INFILE` of [`FILE_NAME`]. Returns whether the server takes files:
    /// if so, it waits for [`Self::send_load`] and [`Self::end_load`].
    ///
    /// # Errors
    /// When the statement fails, or the connection breaks.
    pub fn start_load(&mut self, statement: &str, check: CancelCheck<'_>) -> Result<bool> {
        self.check_idle()?;
        self.command(Command::COM_QUERY, statement.as_bytes(), Next::Result, check)?;
        match self.event(check)? {
            Event::File { is_ours: true } => Ok(true),
            Event::Failed(error) if error.code().is_some_and(|code| DISABLED.contains(&code)) => {
                Ok(false)
            }
            Event::Failed(error) => Err(self.failed(error)),
            Event::File { is_ours: false } => {
                Err(self.packets.out_of_order("it asks for another file than that of the rows"))
            }
            _ => Err(self.packets.out_of_order("it does not ask for the rows")),
        }
    }

    /// Whether the server waits for rows.
    pub fn is_loading(&self) -> bool {
        !self.packets.is_broken() && self.next == Next::File
    }

    /// Sends a part of the rows, no larger than the server's `max_allowed_packet`.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn send_load(&mut self, part: &[u8], check: CancelCheck<'_>) -> Result<()> {
        debug_assert!(self.is_loading() && !part.is_empty(), "an empty part would end the file");
        self.packets.send(part, check)
    }

    /// Ends the rows, and waits until the server has inserted them.
    ///
    /// # Errors
    /// When the statement fails, or the connection breaks.
    pub fn end_load(&mut self, check: CancelCheck<'_>) -> Result<Taken> {
        self.end_file(check)?;
        self.taken(check)
    }

    /// Reads what the server says of rows.
    pub(super) fn taken(&mut self, check: CancelCheck<'_>) -> Result<Taken> {
        match self.event(check)? {
            Event::Done(done) if self.next == Next::Nothing => {
                let taken = Taken { rows: done.rows_changed, warnings: done.warnings };
                self.note(done);
                Ok(taken)
            }
            Event::Failed(error) => Err(self.failed(error)),
            _ => Err(self.packets.out_of_order("not the number of rows")),
        }
    }

    /// The first warning of the last statement, as an error; None if the server keeps none.
    ///
    /// # Errors
    /// When the server can't be asked.
    pub fn first_warning(&mut self, check: CancelCheck<'_>) -> Result<Option<Error>> {
        let rows = self.ask("SHOW WARNINGS LIMIT 1", check)?;
        let Some([_, Some(code), Some(message)]) = rows.first().map(Vec::as_slice) else {
            return Ok(None);
        };
        let code = code.parse().unwrap_or_default();
        let error = Error::new(ErrorKind::Server, message);
        Ok(Some(error.with_code(code).with_sqlstate(sqlstate(code))))
    }

    /// Tells the server that the file it asked for has ended.
    pub(super) fn end_file(&mut self, check: CancelCheck<'_>) -> Result<()> {
        self.next = Next::Result;
        self.packets.send(&[], check)
    }

    /// The error of a statement that made the server ask for a file, once it was told that the file
    /// is empty.
    ///
    /// # Errors
    /// When the connection breaks.
    pub(super) fn refuse_file(&mut self, check: CancelCheck<'_>) -> Result<Error> {
        self.drain_results(check)?;
        let what = "the server asks for a file of this client's, and has got an empty one";
        Ok(Error::usage(what)
            .with_hint("LOAD DATA LOCAL sends no files of this client's; write sends rows"))
    }
}

/// The SQLSTATE that the server gives an error of this number: warnings come without.
fn sqlstate(code: u16) -> &'static str {
    match code {
        // NULL, a key twice, a foreign key, a check of MySQL's, one of MariaDB's.
        1048 | 1263 | 1062 | 1452 | 3819 | 4025 => "23000",
        1264 => "22003",
        1292 | 1366 => "22007",
        1406 => "22001",
        1265 => "01000",
        _ => "HY000",
    }
}
