//! The rows of a statement, as batches of columns.

use std::io::{Read, Write};

use bytes::Bytes;
use dray_format::{BatchBuilder, BuiltBatch, ColumnProfile, Profile};
use dray_pgtypes::{Column, Format};
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;

use super::messages::{MessageStream, server_error};
use super::prepare::Columns;
use super::tag::miscount;
use super::{BOUND, Options, STEP_MISSING, Session, State, invalid, value_error};
use crate::error::{CancelCheck, Error, ErrorKind, LIMIT_EXCEEDED, OUT_OF_RANGE, Result};

/// Copies the bytes of a column to where they stay; None if there is no memory.
pub type CopyBytes<'a> = &'a mut dyn FnMut(&[u8]) -> Option<Bytes>;

/// A statement whose rows arrive.
#[derive(Debug)]
pub(super) struct Rows {
    columns: Columns,
    builder: BatchBuilder,
    options: Options,
    /// Rows of earlier batches.
    rows_before: u64,
    /// Bytes of each column's values as Arrow data. The bytes received are not counted by column:
    /// that would take a twentieth of the time of parsing.
    decoded: Vec<u64>,
    bind: BindReport,
}

/// Why [`Rows::fill`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filled {
    /// A batch is full.
    Batch,
    /// Something else than a row comes next.
    End,
}

/// Whether the server has reported the statement as bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BindReport {
    Received,
    Pending,
}

impl Rows {
    /// The rows of a statement that has just started.
    pub(super) fn new(
        columns: Columns,
        builder: BatchBuilder,
        options: Options,
        bind: BindReport,
    ) -> Self {
        let decoded = vec![0; columns.columns.len()];
        Self { columns, builder, options, rows_before: 0, decoded, bind }
    }

    /// The contradiction between the rows that arrived and the statement's tag, if there is one.
    fn miscount(&self, tag: &str) -> Option<String> {
        // CREATE TABLE AS has the tag of a SELECT and returns no rows.
        let rows = self.rows_before + self.builder.rows() as u64;
        self.columns.returns_rows.then(|| miscount(tag, rows))?
    }

    /// Reads rows until a batch is full or something else arrives.
    fn fill<S: Read + Write>(
        &mut self,
        messages: &mut MessageStream<S>,
        bytes: &mut u64,
        check: CancelCheck<'_>,
    ) -> Result<Filled> {
        if self.bind == BindReport::Pending {
            match messages.next_tag(check)? {
                BOUND => messages.message(check)?,
                // The error says why it could not be bound.
                b'E' => return Ok(Filled::End),
                _ => return Err(messages.out_of_order(STEP_MISSING)),
            };
            self.bind = BindReport::Received;
        }
        loop {
            let header = messages.peek(check)?;
            match header.tag {
                b'D' if self.columns.returns_rows => {}
                b'D' => return Err(messages.out_of_order("rows of a statement that has none")),
                _ if header.is_async() => {
                    messages.message_or_async(check)?;
                    continue;
                }
                _ => return Ok(Filled::End),
            }
            if header.body_bytes > self.options.row_bytes_max {
                let what = format!(
                    "row {} has {} bytes, over row_bytes_max of {}",
                    self.rows_before + self.builder.rows() as u64 + 1,
                    header.body_bytes,
                    self.options.row_bytes_max
                );
                let error = Error::new(ErrorKind::Limit, what).with_sqlstate(LIMIT_EXCEEDED);
                return Err(error.with_hint("raise row_bytes_max"));
            }
            *bytes += header.body_bytes as u64;
            let body = messages.body(header, check)?;
            if !push_row(&self.columns.columns, &mut self.builder, body, self.rows_before)? {
                return Err(messages.out_of_order("a row that does not fit its description"));
            }
            let rows = self.builder.rows();
            if rows >= self.options.batch_rows
                || rows.is_multiple_of(64) && self.builder.bytes() >= self.options.batch_bytes
                || header.body_bytes >= self.options.batch_bytes / 64
                    && self.builder.bytes() >= self.options.batch_bytes
            {
                return Ok(Filled::Batch);
            }
        }
    }

    /// Takes the rows read so far.
    fn take(&mut self, copy: Option<CopyBytes<'_>>) -> Result<BuiltBatch> {
        self.rows_before += self.builder.rows() as u64;
        let built = match copy {
            Some(copy) => self.builder.finish_copied(copy),
            None => self.builder.finish(),
        };
        let built = built.map_err(value_error)?;
        let batch = built.batch();
        // An empty batch is not handed out.
        for (decoded, column) in
            self.decoded.iter_mut().zip(&batch.columns).filter(|_| batch.rows > 0)
        {
            *decoded += column.plain_bytes(0, batch.rows);
        }
        Ok(built)
    }

    /// The format and the bytes of each column, over all batches.
    fn profile(&self) -> Profile {
        let columns =
            self.columns.columns.iter().zip(&self.decoded).map(|(column, decoded)| ColumnProfile {
                body_bytes: 0,
                decoded_bytes: *decoded,
                decode_ns: 0,
                encodings: match column.format() {
                    Format::Binary => vec!["binary"],
                    Format::Text => vec!["text"],
                },
            });
        Profile { columns: columns.collect() }
    }
}

impl<S: Read + Write> Session<S> {
    /// The next rows; None after the last, when the statement has ended. `copy` places the bytes of
    /// columns.
    ///
    /// # Errors
    /// When the statement fails, a value does not fit its column, or the connection breaks. If the
    /// statement still runs then ([`Self::is_running`]), it must be cancelled and drained.
    pub fn next_batch(
        &mut self,
        copy: Option<CopyBytes<'_>>,
        check: CancelCheck<'_>,
    ) -> Result<Option<BuiltBatch>> {
        let State::Rows(rows) = &mut self.state else { return Ok(None) };
        if rows.fill(&mut self.messages, &mut self.bytes, check)? == Filled::Batch {
            return rows.take(copy).map(Some);
        }
        let ended = match self.messages.message(check)? {
            Message::CommandComplete(body) => {
                self.tag = body.tag().unwrap_or_default().to_owned();
                if let Some(miscount) = rows.miscount(&self.tag) {
                    return Err(self.messages.out_of_order(&miscount));
                }
                Ok(())
            }
            Message::EmptyQueryResponse => Ok(()),
            Message::ErrorResponse(error) => {
                Err(server_error(error.fields(), &self.statement, self.sent_before))
            }
            Message::CopyInResponse(_) => {
                frontend::copy_fail("not supported here", self.messages.out()).map_err(invalid)?;
                frontend::sync(self.messages.out());
                self.messages.send(check)?;
                Err(copy_refused())
            }
            Message::CopyOutResponse(_) => {
                self.state = State::Unreadable;
                return Err(copy_refused());
            }
            _ => return Err(self.messages.out_of_order("neither a row nor the end")),
        };
        let State::Rows(mut rows) = std::mem::replace(&mut self.state, State::Idle) else {
            return Ok(None);
        };
        self.wait_ready(ended, check)?;
        if !rows.columns.columns.is_empty() {
            self.check_settings()?;
        }
        let last = rows.take(copy)?;
        self.profile = rows.profile();
        Ok((last.batch().rows > 0).then_some(last))
    }
}

/// Appends a row: the number of columns, and for each a length, -1 for NULL, and the value. Returns
/// false if the bytes are no such row.
#[inline]
pub(crate) fn push_row(
    columns: &[Column],
    builder: &mut BatchBuilder,
    body: &[u8],
    rows_before: u64,
) -> Result<bool> {
    let Some((count, mut rest)) = body.split_first_chunk::<2>() else { return Ok(false) };
    if usize::from(u16::from_be_bytes(*count)) != columns.len() {
        return Ok(false);
    }
    let row = rows_before + builder.rows() as u64 + 1;
    for (column, builder) in columns.iter().zip(builder.columns()) {
        let Some((length, after)) = rest.split_first_chunk::<4>() else { return Ok(false) };
        let value = match i32::from_be_bytes(*length) {
            -1 => {
                rest = after;
                None
            }
            bytes => {
                let split =
                    usize::try_from(bytes).ok().and_then(|bytes| after.split_at_checked(bytes));
                let Some((value, after)) = split else { return Ok(false) };
                rest = after;
                Some(value)
            }
        };
        if let Err(error) = column.push(builder, value) {
            return Err(row_error(error, column, row));
        }
    }
    builder.close_row().map_err(value_error)?;
    Ok(rest.is_empty())
}

#[cold]
fn row_error(error: dray_pgtypes::Error, column: &Column, row: u64) -> Error {
    // The extension gives the same SQLSTATEs.
    let (kind, sqlstate) = match &error {
        dray_pgtypes::Error::Unrepresentable(_) => (ErrorKind::Value, OUT_OF_RANGE),
        dray_pgtypes::Error::Malformed(_) => (ErrorKind::Protocol, ""),
        dray_pgtypes::Error::Format(_) => (ErrorKind::Limit, LIMIT_EXCEEDED),
    };
    Error::new(kind, format!("column {:?}, row {row}: {error}", column.field().name))
        .with_sqlstate(sqlstate)
}

fn copy_refused() -> Error {
    Error::new(ErrorKind::Usage, "COPY has no rows of its own").with_hint("run the query itself")
}
