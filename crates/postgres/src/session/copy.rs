//! A COPY of the extension: its start, its data, and its end.

use std::io::{Read, Write};

use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{ErrorResponseBody, Message};
use postgres_protocol::message::frontend;

use super::messages::server_error;
use super::parameter::{Parameter, run};
use super::tag::miscount;
use super::{STEP_MISSING, Session, State, invalid};
use crate::error::{CancelCheck, Error, ErrorKind, Result};
use crate::sql;
use crate::version::{OWN_LIBRARY, other_library};

/// The SQLSTATE of a statement that was given too few or too many values.
const WRONG_COUNT: &str = "08P01";
/// The text before the statement in a COPY.
const COPY: &str = "COPY (";
/// The statement that loads the extension's library and makes it refuse another version. To refuse,
/// it asks for a setting that does not exist, so that the COPY sent along does not run. Behind a
/// pooler, where each statement loads the library, it also gives floats in text all their digits.
fn loading() -> String {
    format!(
        "SELECT CASE WHEN pg_catalog.starts_with(pg_catalog.dray_load(), '{OWN_LIBRARY}') \
             THEN pg_catalog.set_config('extra_float_digits', '3', true) \
             ELSE pg_catalog.current_setting(\
                 pg_catalog.concat('{OTHER_LIBRARY}', pg_catalog.dray_load())) END"
    )
}

/// The beginning of that setting's name; the library's version follows.
const OTHER_LIBRARY: &str = "dray.library is ";

/// Whether the server process has the extension's library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Library {
    Loaded,
    ToLoad,
}

/// How a COPY of the extension began.
#[derive(Debug)]
pub enum CopyStart {
    /// Its data arrives.
    Started,
    /// The statement does not fit between parentheses.
    NotEnclosable,
    /// The extension refused the statement before anything ran.
    Refused(Error),
    /// The extension can't be loaded: it is missing, not allowed, or made for another server.
    NotLoadable(Error),
}

impl<S: Read + Write> Session<S> {
    /// Starts `COPY (statement) TO STDOUT (options)` of the extension; [`Self::read_copy`] reads
    /// its data.
    ///
    /// # Errors
    /// When it fails before there is data, or the connection breaks.
    pub fn start_copy(
        &mut self,
        statement: &str,
        parameters: &[Parameter],
        copy_options: &str,
        check: CancelCheck<'_>,
    ) -> Result<CopyStart> {
        self.check_readable(statement)?;
        self.invalidate_cache(statement);
        let Some(enclosable) = sql::enclosable(statement, self.escapes()) else {
            return Ok(CopyStart::NotEnclosable);
        };
        let copy = format!("{COPY}{enclosable}\n) TO STDOUT ({copy_options})");
        let mut loaded = self.extension_loaded;
        if !loaded && self.status == b'T' {
            if let Some(error) = self.load_within(check)? {
                return Ok(CopyStart::NotLoadable(error));
            }
            loaded = true;
        }
        (self.statement, self.sent_before) = (enclosable.to_owned(), COPY.len());
        let library = if loaded { Library::Loaded } else { Library::ToLoad };
        if let Err(error) = self.write_copy(&copy, parameters, library) {
            self.messages.out().clear();
            return Err(error);
        }
        self.messages.send(check)?;
        // Without parameters the text is sent in one message, without steps.
        let statements = if parameters.is_empty() { 0 } else { 1 + u8::from(!loaded) };
        let (mut parsed, mut bound) = (0, 0);
        loop {
            match self.messages.message(check)? {
                Message::ParseComplete => parsed += 1,
                Message::BindComplete => bound += 1,
                Message::RowDescription(_) | Message::DataRow(_) => {}
                Message::CommandComplete(_) => {
                    loaded = true;
                    self.note_loaded();
                }
                Message::CopyOutResponse(_) if (parsed, bound) == (statements, statements) => break,
                Message::CopyOutResponse(_) => {
                    return Err(self.messages.out_of_order(STEP_MISSING));
                }
                Message::ErrorResponse(error) => {
                    let is_refused = is_refusal(&error);
                    let mut error = server_error(error.fields(), &self.statement, self.sent_before);
                    if error.sqlstate() == Some(WRONG_COUNT) {
                        error = Error::new(ErrorKind::Usage, error.message());
                    }
                    let outcome = match self.is_in_transaction() {
                        false if !loaded && is_of_library(&error) => {
                            Ok(CopyStart::NotLoadable(not_loaded(error)))
                        }
                        false if is_refused || !loaded && !is_of_statement(&error) => {
                            Ok(CopyStart::Refused(error))
                        }
                        _ => Err(error),
                    };
                    return self.wait_ready(outcome, check);
                }
                _ => return Err(self.messages.out_of_order("not the beginning of a copy")),
            }
        }
        self.state = State::Copy { left: 0 };
        Ok(CopyStart::Started)
    }

    /// Loads the library within the user's transaction, which survives a failure. Returns why it
    /// failed.
    fn load_within(&mut self, check: CancelCheck<'_>) -> Result<Option<Error>> {
        match self.ask(&format!("SAVEPOINT dray; {}; RELEASE SAVEPOINT dray", loading()), check) {
            Ok(_) => {
                self.note_loaded();
                Ok(None)
            }
            Err(error) if !is_of_statement(&error) && !self.is_broken() => {
                self.ask("ROLLBACK TO SAVEPOINT dray; RELEASE SAVEPOINT dray", check)?;
                Ok(Some(not_loaded(error)))
            }
            Err(error) => Err(error),
        }
    }

    /// Notes that the library is loaded. It stays loaded in its process.
    fn note_loaded(&mut self) {
        self.extension_loaded = self.same_process;
    }

    /// Writes the COPY. Loading the library goes into the same message: a pooler may run the next
    /// one in another process.
    fn write_copy(&mut self, copy: &str, parameters: &[Parameter], library: Library) -> Result<()> {
        let out = self.messages.out();
        if parameters.is_empty() {
            if library == Library::Loaded {
                return frontend::query(copy, out).map_err(invalid);
            }
            let load = loading();
            self.sent_before += load.len() + 2;
            return frontend::query(&format!("{load}; {copy}"), out).map_err(invalid);
        }
        if library == Library::ToLoad {
            run(&loading(), [], &[], out)?;
        }
        run(copy, parameters.iter().map(Parameter::oid_for_copy), parameters, out)?;
        frontend::sync(out);
        Ok(())
    }

    /// Fills `to` with the data of the COPY, across messages.
    ///
    /// # Errors
    /// When the statement fails, its data ends too soon, or the connection breaks.
    pub fn read_copy(&mut self, mut to: &mut [u8], check: CancelCheck<'_>) -> Result<()> {
        while !to.is_empty() {
            let State::Copy { left } = &mut self.state else {
                return Err(Error::new(ErrorKind::Protocol, "no copy runs"));
            };
            if *left > 0 {
                let count = to.len().min(*left);
                let (part, rest) = to.split_at_mut(count);
                self.messages.read_exact(part, check)?;
                (*left, to) = (*left - count, rest);
                continue;
            }
            let header = self.messages.peek(check)?;
            if header.tag == b'd' {
                self.messages.enter();
                *left = header.body_bytes;
                continue;
            }
            if header.is_async() {
                self.messages.message_or_async(check)?;
                continue;
            }
            match self.messages.message(check)? {
                Message::ErrorResponse(error) => {
                    let error =
                        Err(server_error(error.fields(), &self.statement, self.sent_before));
                    self.state = State::Idle;
                    return self.wait_ready(error, check);
                }
                Message::CopyDone => {
                    return Err(self.messages.out_of_order("the copy ended before its last frame"));
                }
                _ => return Err(self.messages.out_of_order("not data of a copy")),
            }
        }
        Ok(())
    }

    /// Ends a COPY whose data, of `rows` rows, was read to its end.
    ///
    /// # Errors
    /// When there is more data, the server's count differs, the statement fails at its end, or the
    /// connection breaks.
    pub fn finish_copy(&mut self, rows: u64, check: CancelCheck<'_>) -> Result<()> {
        if !matches!(self.state, State::Copy { left: 0 }) {
            return Err(self.messages.out_of_order("data after the last frame"));
        }
        let mut is_done = false;
        loop {
            match self.messages.message(check)? {
                Message::CopyDone if !is_done => is_done = true,
                Message::CommandComplete(body) if is_done => {
                    self.tag = body.tag().unwrap_or_default().to_owned();
                    if let Some(miscount) = miscount(&self.tag, rows) {
                        return Err(self.messages.out_of_order(&miscount));
                    }
                    self.state = State::Idle;
                    self.wait_ready(Ok(()), check)?;
                    return self.check_settings();
                }
                Message::ErrorResponse(error) => {
                    let error =
                        Err(server_error(error.fields(), &self.statement, self.sent_before));
                    self.state = State::Idle;
                    return self.wait_ready(error, check);
                }
                _ => return Err(self.messages.out_of_order("data after the last frame")),
            }
        }
    }
}

/// Whether a failure before the library was loaded says that it can't be used: the function is
/// missing or not allowed, its file can't be read or is no library, or it has another version.
fn is_of_library(error: &Error) -> bool {
    let sqlstate = error.sqlstate().unwrap_or_default();
    matches!(sqlstate, "42501" | "42704" | "42809" | "42883")
        || ["58", "XX"].iter().any(|class| sqlstate.starts_with(class))
}

/// Whether a failure before the library was loaded would come again without it: somebody ended the
/// statement, the transaction had failed before, or the text can't be read. That of a whole message
/// is read first.
fn is_of_statement(error: &Error) -> bool {
    let sqlstate = error.sqlstate().unwrap_or_default();
    sqlstate.is_empty()
        || sqlstate == "42601"
        || ["22", "25", "54", "57"].iter().any(|class| sqlstate.starts_with(class))
}

/// Why the library was not loaded; explains a wrong version.
fn not_loaded(error: Error) -> Error {
    let message = error.message();
    let named =
        message.split_once(OTHER_LIBRARY).map(|(_, rest)| rest.split('"').next().unwrap_or(rest));
    match named.and_then(other_library) {
        Some(refusal) => Error::new(ErrorKind::Usage, refusal),
        None => error,
    }
}

/// Whether the extension, or COPY in a server without it, refuses the statement before anything
/// runs. A user's function may raise the same SQLSTATE while the statement is planned, so the
/// source file decides, which no SQL can set.
fn is_refusal(error: &ErrorResponseBody) -> bool {
    const REFUSALS: [(&[u8], &[u8]); 4] = [
        (b"copy_query.c", b"0A000"),
        (b"copy_hook.c", b"0A000"),
        // Too many types in the columns.
        (b"describe_type.c", b"54000"),
        // COPY does not know the format.
        (b"copy.c", b"22023"),
    ];
    let (mut fields, mut file, mut sqlstate) = (error.fields(), Vec::new(), Vec::new());
    while let Ok(Some(field)) = fields.next() {
        match field.type_() {
            b'F' => file = field.value_bytes().to_vec(),
            b'C' => sqlstate = field.value_bytes().to_vec(),
            _ => {}
        }
    }
    REFUSALS.contains(&(&file, &sqlstate))
}
