//! The session's own statements, whose rows it reads as text.

use std::io::{Read, Write};

use mysql_common::constants::Command;

use super::Session;
use super::next::{Event, Next};
use crate::error::{CancelCheck, Error, ErrorKind, LIMIT_EXCEEDED, Result};
use crate::fields::{Fields, malformed};
use crate::packets::ANSWER_BYTES_MAX;

/// The most memory that the rows of an answer may take, about: half a million columns of tables.
const ROWS_BYTES_MAX: usize = 256 << 20;

/// The rows of an answer: a value for each column, None for NULL.
type TextRows = Vec<Vec<Option<String>>>;

impl<S: Read + Write> Session<S> {
    /// Runs a statement and returns its rows as text.
    ///
    /// # Errors
    /// When it fails, its rows are too large, or the connection breaks.
    pub fn ask(&mut self, statement: &str, check: CancelCheck<'_>) -> Result<TextRows> {
        self.check_idle()?;
        if self.expect_changes(statement) {
            self.settings.doubt();
        }
        self.command(Command::COM_QUERY, statement.as_bytes(), Next::Result, check)?;
        let (mut rows, mut columns, mut bytes) = (Vec::new(), 0, 0);
        while self.next != Next::Nothing {
            let payload = self.packets.next(ANSWER_BYTES_MAX, check)?;
            let event = match self.next.advance(payload, &self.server) {
                Ok(Event::Row) => text_row(payload, columns).and_then(|row| {
                    bytes += payload.len() + size_of_val(&*row);
                    rows.push(row);
                    match bytes > ROWS_BYTES_MAX {
                        true => Err(too_large()),
                        false => Ok(Event::Row),
                    }
                }),
                event => event,
            };
            match self.checked(event)? {
                Event::Failed(error) => return Err(self.failed(error)),
                Event::Done(done) => self.note(done),
                Event::Columns(count) => columns = count,
                Event::File { .. } => return Err(self.refuse_file(check)?),
                Event::Prepared(_) | Event::Definition | Event::Row => {}
            }
        }
        Ok(rows)
    }
}

fn too_large() -> Error {
    let mib = ROWS_BYTES_MAX >> 20;
    let what = format!("an answer that is kept in memory is over the limit of {mib} MiB");
    Error::new(ErrorKind::Limit, what).with_sqlstate(LIMIT_EXCEEDED)
}

fn text_row(payload: &[u8], columns: u32) -> Result<Vec<Option<String>>> {
    let mut fields = Fields::new(payload);
    let mut row = Vec::new();
    for _ in 0..columns {
        let value = fields.nullable_string("value")?;
        row.push(value.map(|value| String::from_utf8_lossy(value).into_owned()));
    }
    match fields.is_empty() {
        true => Ok(row),
        false => Err(malformed("a row with more values than columns")),
    }
}
