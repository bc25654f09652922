//! The rows of a statement, as batches of columns.

use std::io::{Read, Write};

use bytes::Bytes;
use dray_format::{BatchBuilder, BuiltBatch, ColumnProfile, Profile};
use dray_mysqltypes::{Column, push_binary_row, push_text_row};

use super::next::{Event, Next};
use super::settings::zone_set_within;
use super::{Options, Session, value_error};
use crate::answer::END;
use crate::error::{CancelCheck, Error, ErrorKind, LIMIT_EXCEEDED, OUT_OF_RANGE, Result};
use crate::packets::{ERROR, PacketStream};
use crate::server::Server;

/// Copies the bytes of a column to where they stay; None if there is no memory.
pub type CopyBytes<'a> = &'a mut dyn FnMut(&[u8]) -> Option<Bytes>;

/// How values come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Binary,
    Text,
}

/// A statement whose rows arrive.
#[derive(Debug)]
pub(super) struct Rows {
    columns: Vec<Column>,
    format: Format,
    /// A column of TIMESTAMP, and how often the time zone was set before the first row.
    zone: Option<(String, u64)>,
    builder: BatchBuilder,
    options: Options,
    /// Rows of earlier batches.
    rows_before: u64,
    /// Bytes of each column's values as Arrow data.
    decoded: Vec<u64>,
}

/// Why [`Rows::fill`] returned.
enum Filled {
    /// A batch is full.
    Batch,
    /// The rows have ended.
    End(Result<Event>),
}

impl Rows {
    /// The rows of a statement that has just started.
    pub(super) fn new(
        columns: Vec<Column>,
        format: Format,
        zone: Option<(String, u64)>,
        builder: BatchBuilder,
        options: Options,
    ) -> Self {
        let decoded = vec![0; columns.len()];
        Self { columns, format, zone, builder, options, rows_before: 0, decoded }
    }

    /// Reads rows until a batch is full or they end.
    fn fill<S: Read + Write>(
        &mut self,
        packets: &mut PacketStream<S>,
        next: &mut Next,
        server: &Server,
        bytes: &mut u64,
        check: CancelCheck<'_>,
    ) -> Result<Filled> {
        loop {
            let payload = match packets.next(self.options.row_bytes_max, check) {
                Ok(payload) => payload,
                Err(error) => return Err(self.row_refused(error)),
            };
            if let None | Some(&(ERROR | END)) = payload.first() {
                match next.advance(payload, server) {
                    Ok(Event::Row) => {}
                    end => return Ok(Filled::End(end)),
                }
            }
            let row_bytes = payload.len();
            *bytes += row_bytes as u64;
            let pushed = match self.format {
                Format::Binary => push_binary_row(&self.columns, &mut self.builder, payload),
                Format::Text => push_text_row(&self.columns, &mut self.builder, payload),
            };
            if let Err(error) = pushed {
                return Err(type_error(error.after_rows(self.rows_before)));
            }
            let rows = self.builder.rows();
            if rows >= self.options.batch_rows
                || rows.is_multiple_of(64) && self.builder.bytes() >= self.options.batch_bytes
                || row_bytes >= self.options.batch_bytes / 64
                    && self.builder.bytes() >= self.options.batch_bytes
            {
                return Ok(Filled::Batch);
            }
        }
    }

    /// The error of a row that can't be read.
    #[cold]
    fn row_refused(&self, error: Error) -> Error {
        let row = self.rows_before + self.builder.rows() as u64 + 1;
        match error.kind() {
            ErrorKind::Limit => error.after(&format!("row {row}")).with_hint("raise row_bytes_max"),
            _ => error,
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
        let format = match self.format {
            Format::Binary => "binary",
            Format::Text => "text",
        };
        let columns = self.decoded.iter().map(|decoded| ColumnProfile {
            body_bytes: 0,
            decoded_bytes: *decoded,
            decode_ns: 0,
            encodings: vec![format],
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
        let Self { rows: Some(rows), packets, next, server, bytes, .. } = self else {
            return self.check_idle().map(|()| None);
        };
        let end = match rows.fill(packets, next, server, bytes, check)? {
            Filled::Batch => return rows.take(copy).map(Some),
            Filled::End(end) => end,
        };
        match self.checked(end)? {
            Event::Done(done) => self.note(done),
            Event::Failed(error) => {
                self.rows = None;
                return Err(self.failed(error));
            }
            _ => return Err(self.packets.out_of_order("neither a row nor the end")),
        }
        let Some(mut rows) = self.rows.take() else { return Ok(None) };
        self.finish_results(check)?;
        // A procedure may have set it before it returned the rows.
        if let Some((column, changes)) = &rows.zone
            && *changes != self.settings.zone_changes()
        {
            return Err(zone_set_within(column));
        }
        let last = rows.take(copy)?;
        self.profile = rows.profile();
        Ok((last.batch().rows > 0).then_some(last))
    }

    /// Reads what a procedure returns after its rows.
    fn finish_results(&mut self, check: CancelCheck<'_>) -> Result<()> {
        while self.next == Next::Result {
            match self.event(check)? {
                Event::Done(done) => self.note(done),
                Event::Failed(error) => return Err(self.failed(error)),
                _ => {
                    self.drain_results(check)?;
                    let what = "the statement returns rows more than once";
                    return Err(Error::usage(what)
                        .with_hint("only the first rows of a procedure can be read"));
                }
            }
        }
        Ok(())
    }
}

/// An error of a column or value.
#[cold]
pub(super) fn type_error(error: dray_mysqltypes::Error) -> Error {
    use dray_mysqltypes::ErrorKind as Kind;
    let (kind, sqlstate) = match error.kind() {
        Kind::Unrepresentable => (ErrorKind::Value, OUT_OF_RANGE),
        Kind::Malformed => (ErrorKind::Protocol, ""),
        Kind::Unsupported => (ErrorKind::Usage, ""),
        Kind::Limit => (ErrorKind::Limit, LIMIT_EXCEEDED),
    };
    Error::new(kind, error.to_string()).with_sqlstate(sqlstate)
}
