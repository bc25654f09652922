//! A COPY of the extension: how it begins, its data, and how it ends.

use std::io::{Read, Write};

use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;

use super::{Session, State, invalid};
use crate::error::{Error, ErrorKind, Result};
use crate::parameter::{Parameter, run};
use crate::sql;
use crate::wire::{Patience, server_error};

/// The SQLSTATE of a number of values that is not the statement's number of parameters.
const WRONG_COUNT: &str = "08P01";
/// What is sent before the statement in a COPY.
const COPY: &str = "COPY (";
/// Loads the extension's library; where each statement has to, behind a pooler, its floats in text have all their digits.
const LOAD: &str = "SELECT pg_catalog.dray_load(), pg_catalog.set_config('extra_float_digits', '3', true)";

/// How a COPY of the extension began.
#[derive(Debug)]
pub enum CopyStart {
    /// Its data comes.
    Started,
    /// The statement can't be put between parentheses.
    NotEnclosable,
    /// The server refused it before anything ran: COPY does not take it, or the extension is not there.
    Refused(Error),
}

impl<S: Read + Write> Session<S> {
    /// Loads the extension into the server's process, where that stays the same: no pooler is between.
    ///
    /// # Errors
    /// When it can't be loaded.
    pub fn load_extension(&mut self, patience: Patience<'_>) -> Result<()> {
        self.ask(LOAD, patience)?;
        self.loaded = true;
        Ok(())
    }

    /// Starts `COPY (statement) TO STDOUT (options)` of the extension; [`Self::read_copy`] reads its data.
    ///
    /// # Errors
    /// When it fails before there is data, or the connection breaks.
    pub fn start_copy(
        &mut self,
        statement: &str,
        parameters: &[Parameter],
        copy_options: &str,
        patience: Patience<'_>,
    ) -> Result<CopyStart> {
        self.check_sendable(statement)?;
        self.mind(statement);
        let Some(enclosable) = sql::enclosable(statement, self.escapes()) else { return Ok(CopyStart::NotEnclosable) };
        let copy = format!("{COPY}{enclosable}\n) TO STDOUT ({copy_options})");
        (self.statement, self.before) = (enclosable.to_owned(), COPY.len());
        if let Err(error) = self.write_copy(&copy, parameters) {
            self.wire.out().clear();
            return Err(error);
        }
        self.wire.send()?;
        let mut loaded = self.loaded;
        loop {
            match self.wire.message(patience)? {
                Message::ParseComplete | Message::BindComplete => {}
                Message::RowDescription(_) | Message::DataRow(_) => {}
                Message::CommandComplete(_) => loaded = true,
                Message::CopyOutResponse(_) => break,
                Message::ErrorResponse(error) => {
                    let mut error = server_error(error.fields(), &self.statement, self.before);
                    if error.sqlstate() == WRONG_COUNT {
                        error = Error::new(ErrorKind::Usage, error.message());
                    }
                    // Nothing has run: COPY refuses some statements, and the extension may be gone.
                    let refused = error.sqlstate() == "0A000" || !loaded && is_missing(error.sqlstate());
                    return match refused && !self.is_in_transaction() {
                        true => self.wait_ready(Ok(CopyStart::Refused(error)), patience),
                        false => self.wait_ready(Err(error), patience),
                    };
                }
                _ => return Err(self.wire.out_of_order("not the beginning of a copy")),
            }
        }
        self.state = State::Copy { left: 0 };
        Ok(CopyStart::Started)
    }

    /// Loading the library and the COPY are one: a pooler may give what comes next to another backend. A process that has it
    /// loaded keeps it.
    fn write_copy(&mut self, copy: &str, parameters: &[Parameter]) -> Result<()> {
        let load = !self.loaded;
        let out = self.wire.out();
        if parameters.is_empty() {
            if !load {
                return frontend::query(copy, out).map_err(invalid);
            }
            self.before += LOAD.len() + 2;
            return frontend::query(&format!("{LOAD}; {copy}"), out).map_err(invalid);
        }
        if load {
            run(LOAD, [], &[], out)?;
        }
        run(copy, parameters.iter().map(Parameter::oid_for_copy), parameters, out)?;
        frontend::sync(out);
        Ok(())
    }

    /// Fills `room` with the data of the COPY, whatever messages it comes in.
    ///
    /// # Errors
    /// When the statement fails, its data ends before, or the connection breaks.
    pub fn read_copy(&mut self, mut room: &mut [u8], patience: Patience<'_>) -> Result<()> {
        while !room.is_empty() {
            let State::Copy { left } = &mut self.state else {
                return Err(Error::new(ErrorKind::Protocol, "no copy runs"));
            };
            if *left > 0 {
                let count = room.len().min(*left);
                let (part, rest) = room.split_at_mut(count);
                self.wire.read_exact(part, patience)?;
                (*left, room) = (*left - count, rest);
                continue;
            }
            let header = self.wire.peek(patience)?;
            if header.tag == b'd' {
                self.wire.enter();
                *left = header.body_bytes;
                continue;
            }
            // A notice, a notification or a setting.
            if matches!(header.tag, b'N' | b'A' | b'S') {
                self.wire.body(header, patience)?;
                continue;
            }
            match self.wire.message(patience)? {
                Message::ErrorResponse(error) => {
                    let error = Err(server_error(error.fields(), &self.statement, self.before));
                    self.state = State::Idle;
                    return self.wait_ready(error, patience);
                }
                Message::CopyDone => return Err(self.wire.out_of_order("the copy ended before its last frame")),
                _ => return Err(self.wire.out_of_order("not data of a copy")),
            }
        }
        Ok(())
    }

    /// Ends a COPY of which all data was read.
    ///
    /// # Errors
    /// When there is more, the statement fails at its very end, or the connection breaks.
    pub fn finish_copy(&mut self, patience: Patience<'_>) -> Result<()> {
        if !matches!(self.state, State::Copy { left: 0 }) {
            return Err(self.wire.out_of_order("data after the last frame"));
        }
        loop {
            match self.wire.message(patience)? {
                Message::CopyDone => {}
                Message::CommandComplete(body) => {
                    self.tag = body.tag().unwrap_or_default().to_owned();
                    self.state = State::Idle;
                    return self.wait_ready(Ok(()), patience);
                }
                Message::ErrorResponse(error) => {
                    let error = Err(server_error(error.fields(), &self.statement, self.before));
                    self.state = State::Idle;
                    return self.wait_ready(error, patience);
                }
                _ => return Err(self.wire.out_of_order("data after the last frame")),
            }
        }
    }
}

/// Whether an error says that a function, its schema or its library is not there or not allowed.
fn is_missing(sqlstate: &str) -> bool {
    matches!(sqlstate, "3F000" | "42883" | "42501" | "58P01")
}
