//! `COPY … FROM STDIN`: its start, its data, and its end.
//!
//! The server says nothing while the data is fine. It may send notices, and the error that ends the
//! statement, at any time: both are looked for before each message and while the socket takes
//! nothing. A server that waits until its notices are read would take no data.

use std::io::{Read, Write};

use dray_net::Readable;
use dray_pgtypes::PgType;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{ErrorResponseBody, Message};
use postgres_protocol::message::frontend;

use super::messages::server_error;
use super::prepare::{MONEY_SCALE, holds_money};
use super::{Session, State, invalid};
use crate::catalog;
use crate::error::{CancelCheck, Error, ErrorKind, Result};

/// The largest message of data. A server collects a whole message before it looks at it.
const DATA_BYTES_MAX: usize = 1 << 20;
/// The bytes of a message's tag and length.
const HEADER_BYTES: usize = 5;

impl<S: Read + Write + Readable> Session<S> {
    /// Starts a `COPY … FROM STDIN`. [`Self::send_copy`] sends its data; [`Self::end_copy_in`] or
    /// [`Self::fail_copy_in`] ends it.
    ///
    /// # Errors
    /// When the server refuses the statement, or the connection breaks.
    pub fn start_copy_in(&mut self, statement: &str, check: CancelCheck<'_>) -> Result<()> {
        self.check_readable(statement)?;
        (self.statement, self.sent_before) = (statement.to_owned(), 0);
        self.copy_rows.clear();
        frontend::query(statement, self.messages.out()).map_err(invalid)?;
        self.messages.send(check)?;
        match self.messages.message(check)? {
            Message::CopyInResponse(_) => {
                self.state = State::CopyIn;
                Ok(())
            }
            Message::ErrorResponse(error) => {
                let error = server_error(error.fields(), &self.statement, self.sent_before);
                self.wait_ready(Err(error), check)
            }
            _ => Err(self.messages.out_of_order("not the beginning of a copy")),
        }
    }

    /// Notes which rows of the data follow, if a COPY has only a share of them: after `sent` rows
    /// of the COPY those that come after `before` rows of the data. Errors name rows of the data.
    pub fn note_copy_rows(&mut self, sent: u64, before: u64) {
        let is_next = match self.copy_rows.last() {
            Some((row, there)) => before.checked_sub(*there) == sent.checked_sub(*row),
            None => before == sent,
        };
        if !is_next {
            self.copy_rows.push((sent, before));
        }
    }

    /// Sends data of the COPY.
    ///
    /// # Errors
    /// When the server has ended the statement, or the connection breaks.
    pub fn send_copy(&mut self, data: &[u8], check: CancelCheck<'_>) -> Result<()> {
        for data in data.chunks(DATA_BYTES_MAX) {
            self.check_copying()?;
            self.receive_arrived(check)?;
            let out = self.messages.out();
            out.reserve(HEADER_BYTES + data.len());
            out.extend_from_slice(b"d");
            // The length counts itself; a chunk is far below 2^32.
            out.extend_from_slice(&(data.len() as u32 + 4).to_be_bytes());
            out.extend_from_slice(data);
            if let Err(error) = self.messages.send_and_read(check) {
                return Err(self.last_words(error, check));
            }
        }
        Ok(())
    }

    /// Ends the COPY, and returns the number of rows that the server has counted.
    ///
    /// # Errors
    /// When the statement fails, or the connection breaks.
    pub fn end_copy_in(&mut self, check: CancelCheck<'_>) -> Result<u64> {
        self.check_copying()?;
        frontend::copy_done(self.messages.out());
        if let Err(error) = self.messages.send_and_read(check) {
            return Err(self.last_words(error, check));
        }
        match self.messages.message(check)? {
            Message::CommandComplete(body) => {
                self.tag = body.tag().unwrap_or_default().to_owned();
                self.state = State::Idle;
                let rows = self.tag.strip_prefix("COPY ").and_then(|rows| rows.parse().ok());
                let Some(rows) = rows else {
                    return Err(self.messages.out_of_order("a copy without a count"));
                };
                self.wait_ready(Ok(rows), check)
            }
            Message::ErrorResponse(error) => self.failed(&error, check),
            _ => Err(self.messages.out_of_order("not the end of a copy")),
        }
    }

    /// Gives the COPY up, so that nothing of it stays.
    ///
    /// # Errors
    /// When the connection breaks. The failure of the statement is none.
    pub fn fail_copy_in(&mut self, why: &str, check: CancelCheck<'_>) -> Result<()> {
        self.check_copying()?;
        frontend::copy_fail(&why.replace('\0', ""), self.messages.out()).map_err(invalid)?;
        self.messages.send_and_read(check)?;
        match self.messages.message(check)? {
            Message::ErrorResponse(error) => match self.failed::<()>(&error, check) {
                Err(error) if self.messages.is_broken() => Err(error),
                _ => Ok(()),
            },
            _ => Err(self.messages.out_of_order("not the end of a copy")),
        }
    }

    /// Describes the types of columns, by oid and type modifier.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn types(&mut self, columns: &[(u32, i32)], check: CancelCheck<'_>) -> Result<Vec<PgType>> {
        let misses = |(oid, _): &&(u32, i32)| self.catalog.misses(*oid);
        let missing = columns.iter().filter(misses).map(|(oid, _)| *oid).collect();
        let missing: std::collections::HashSet<u32> = missing;
        if !missing.is_empty() {
            let rows = self.ask(&catalog::query(&missing, self.server_version), check)?;
            let rows: Option<Vec<_>> = rows.into_iter().map(|row| row.try_into().ok()).collect();
            if !rows.is_some_and(|rows| self.catalog.learn(&rows)) {
                return Err(self.messages.out_of_order("not a description of types"));
            }
        }
        Ok(columns.iter().map(|(oid, typmod)| self.catalog.pg_type(*oid, *typmod)).collect())
    }

    /// The digits of `money` after the point by the session's `lc_monetary`, if these types hold
    /// it.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn money_scale(&mut self, types: &[PgType], check: CancelCheck<'_>) -> Result<Option<u8>> {
        if !types.iter().any(holds_money) {
            return Ok(None);
        }
        let rows = self.ask(MONEY_SCALE, check)?;
        Ok(rows.into_iter().flatten().flatten().next().and_then(|scale| scale.parse().ok()))
    }

    /// Runs a statement without rows that may change what later ones mean.
    ///
    /// # Errors
    /// When it fails, or the connection breaks.
    pub fn change(&mut self, statement: &str, check: CancelCheck<'_>) -> Result<()> {
        self.invalidate_cache(statement);
        self.ask(statement, check).map(drop)
    }

    fn check_copying(&self) -> Result<()> {
        match self.state {
            State::CopyIn if !self.messages.is_broken() => Ok(()),
            _ => Err(Error::new(ErrorKind::Usage, "no COPY takes data")),
        }
    }

    /// Looks at what the server has sent meanwhile.
    fn receive_arrived(&mut self, check: CancelCheck<'_>) -> Result<()> {
        while self.messages.has_arrived()? {
            match self.messages.message_or_async(check)? {
                None => {}
                Some(Message::ErrorResponse(error)) => return self.failed(&error, check),
                Some(_) => return Err(self.messages.out_of_order("not a word about the copy")),
            }
        }
        Ok(())
    }

    /// What the server said before it closed the connection, instead of `error`.
    fn last_words(&mut self, error: Error, check: CancelCheck<'_>) -> Error {
        loop {
            match self.messages.message_or_async(check) {
                Ok(Some(Message::ErrorResponse(said))) => return self.copy_error(&said),
                Ok(_) => {}
                Err(_) => return error,
            }
        }
    }

    fn failed<T>(&mut self, error: &ErrorResponseBody, check: CancelCheck<'_>) -> Result<T> {
        let error = self.copy_error(error);
        self.state = State::Idle;
        self.wait_ready(Err(error), check)
    }

    /// The server's error, with the row and column that its context names.
    fn copy_error(&self, body: &ErrorResponseBody) -> Error {
        let (mut fields, mut place) = (body.fields(), None);
        while let Ok(Some(field)) = fields.next() {
            if field.type_() == b'W' {
                let context = String::from_utf8_lossy(field.value_bytes());
                place = place_of(&context, &self.copy_rows);
            }
        }
        let error = server_error(body.fields(), &self.statement, self.sent_before);
        match place {
            Some(place) => error.at_place(&place),
            None => error,
        }
    }
}

/// The place in a context like `COPY t, line 3, column a: "x"`. Lines are rows; `copy_rows` says
/// which ones of the data ([`Session::note_copy_rows`]).
fn place_of(context: &str, copy_rows: &[(u64, u64)]) -> Option<String> {
    let line = context.lines().rfind(|line| line.starts_with("COPY "))?;
    let (_, after) = line.rsplit_once(", line ")?;
    let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    let (row, rest) = after.split_at(digits);
    let row: u64 = row.parse().ok()?;
    let share = copy_rows.iter().rfind(|(sent, _)| *sent < row);
    let row = share.map_or(row, |(sent, before)| row - sent + before);
    let column = rest.strip_prefix(", column ").map(|rest| {
        let end = rest.find(": ").or_else(|| rest.find(", null input")).unwrap_or(rest.len());
        format!(", column {:?}", &rest[..end])
    });
    Some(format!("at row {row}{}", column.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::place_of;

    #[test]
    fn places_in_contexts() {
        for (context, place) in [
            ("COPY t, line 3, column a: \"x\"", Some("at row 3, column \"a\"")),
            ("COPY t, line 3", Some("at row 3")),
            ("COPY t, line 3, column b c, null input", Some("at row 3, column \"b c\"")),
            ("PL/pgSQL function f() line 2\nCOPY t, line 7: \"1\"", Some("at row 7")),
            ("COPY t", None),
            ("", None),
        ] {
            assert_eq!(place_of(context, &[]).as_deref(), place, "{context}");
        }
        // Rows 1 to 10 of the COPY are rows 1 to 10, and those that follow begin with row 101.
        for (line, row) in [(10, 10), (11, 101), (12, 102)] {
            let place = place_of(&format!("COPY t, line {line}"), &[(10, 100)]);
            assert_eq!(place, Some(format!("at row {row}")));
        }
    }
}
