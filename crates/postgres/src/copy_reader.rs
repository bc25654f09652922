//! The data of `COPY … (FORMAT binary)` that a driver receives: bytes in, columns out.
//!
//! A driver's open connection has its own transaction and temporary tables, and receives the data
//! of a COPY itself. The server is asked about types through the driver, too.

use std::collections::HashSet;

use dray_format::{BatchBuilder, BuiltBatch, Schema};
use dray_pgtypes::{Column, Format, Options as TypeOptions};

use crate::catalog::{self, Catalog};
use crate::error::{Error, ErrorKind, LIMIT_EXCEEDED, Result};
use crate::session::{Options, has_text, push_row, value_error};
use crate::sql::reads_only;

/// The first bytes of a COPY in binary (PostgreSQL's manual, page COPY).
const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";
/// The signature, the flags, and the length of the header's extension.
const HEADER_BYTES: usize = SIGNATURE.len() + 8;
/// The trailer, in the place of a row's number of columns.
const TRAILER: [u8; 2] = (-1i16).to_be_bytes();

/// The columns of a statement as a driver describes them.
#[derive(Debug)]
pub struct Description {
    /// Name, oid of the type, and type modifier (`atttypmod`).
    columns: Vec<(String, u32, i32)>,
    catalog: Catalog,
    server_version: u32,
}

impl Description {
    /// Describes columns of a server of this major version.
    pub fn new(columns: Vec<(String, u32, i32)>, server_version: u32) -> Self {
        Self { columns, catalog: Catalog::default(), server_version }
    }

    /// Whether a statement can be described by running it without fetching rows, since it only
    /// reads. `escapes` as for [`enclosable`](crate::enclosable).
    pub fn is_possible(sql: &str, escapes: bool) -> bool {
        reads_only(sql, escapes)
    }

    /// The statement that asks the server about unknown types, if there are any. Its answer goes to
    /// [`Self::learn`].
    pub fn question(&self) -> Option<String> {
        let missing: HashSet<u32> = self
            .columns
            .iter()
            .map(|(_, oid, _)| *oid)
            .filter(|oid| self.catalog.misses(*oid))
            .collect();
        (!missing.is_empty()).then(|| catalog::query(&missing, self.server_version))
    }

    /// Learns from the answer to [`Self::question`]: rows of text.
    ///
    /// # Errors
    /// When it is no such answer.
    pub fn learn(&mut self, rows: Vec<Vec<Option<String>>>) -> Result<()> {
        let rows: Option<Vec<_>> = rows.into_iter().map(|row| row.try_into().ok()).collect();
        match rows.is_some_and(|rows| self.catalog.learn(&rows)) {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::Protocol,
                "the server's description of types can't be understood",
            )),
        }
    }

    fn columns(&self, options: &TypeOptions) -> Vec<Column> {
        let column = |(name, oid, typmod): &(String, u32, i32)| {
            Column::new(name, &self.catalog.pg_type(*oid, *typmod), options)
        };
        self.columns.iter().map(column).collect()
    }

    /// Whether some columns are converted to text, which may contain floats. Then
    /// `extra_float_digits` decides on their digits.
    pub fn has_text(&self, options: &TypeOptions) -> bool {
        has_text(&self.columns(options))
    }

    /// The COPY of a statement. Some columns are converted to text.
    pub fn copy_statement(&self, statement: &str, options: &TypeOptions) -> String {
        let columns = self.columns(options);
        if !has_text(&columns) {
            return format!("COPY ({statement}\n) TO STDOUT (FORMAT binary)");
        }
        let casts = columns.iter().enumerate().map(|(i, column)| match column.format() {
            Format::Binary => format!("c{i}"),
            // Uses the type's output function, since a cast may give another text. A composite of
            // NULLs is not NULL itself.
            Format::Text => {
                format!(
                    "CASE WHEN c{i} IS NOT DISTINCT FROM NULL THEN NULL \
                     ELSE pg_catalog.format('%s', c{i}) END"
                )
            }
        });
        let casts = casts.collect::<Vec<_>>().join(", ");
        let names = (0..columns.len()).map(|i| format!("c{i}")).collect::<Vec<_>>().join(", ");
        format!(
            "COPY (SELECT {casts} FROM ({statement}\n) AS q ({names})) TO STDOUT (FORMAT binary)"
        )
    }
}

/// Parses the data of a COPY. The data may be cut anywhere.
#[derive(Debug)]
pub struct CopyReader {
    columns: Vec<Column>,
    builder: BatchBuilder,
    options: Options,
    rows_before: u64,
    /// The beginning of a row or of the header.
    rest: Vec<u8>,
    in_rows: bool,
    ended: bool,
}

impl CopyReader {
    /// Parses the data of [`Description::copy_statement`].
    ///
    /// # Errors
    /// When a column is of a type that can't be built.
    pub fn new(description: &Description, options: Options) -> Result<Self> {
        let columns = description.columns(&options.types);
        let schema =
            Schema { fields: columns.iter().map(|column| column.field().clone()).collect() };
        let builder = options.builder(schema.into())?;
        Ok(Self {
            columns,
            builder,
            options,
            rows_before: 0,
            rest: Vec::new(),
            in_rows: false,
            ended: false,
        })
    }

    /// The columns.
    pub fn schema(&self) -> &Schema {
        self.builder.schema()
    }

    /// Parses the next data, and passes full batches to `full`.
    ///
    /// # Errors
    /// When a value does not fit its column, or the data is not a COPY's.
    pub fn push(&mut self, data: &[u8], full: &mut dyn FnMut(BuiltBatch)) -> Result<()> {
        if self.rest.is_empty() {
            let used = self.consume(data, full)?;
            self.rest.extend_from_slice(&data[used..]);
        } else {
            let mut rest = std::mem::take(&mut self.rest);
            rest.extend_from_slice(data);
            let used = self.consume(&rest, full)?;
            rest.drain(..used);
            self.rest = rest;
        }
        if self.rest.len() > self.options.row_bytes_max {
            let what = format!(
                "row {} has more than row_bytes_max of {}",
                self.row(),
                self.options.row_bytes_max
            );
            let error = Error::new(ErrorKind::Limit, what).with_sqlstate(LIMIT_EXCEEDED);
            return Err(error.with_hint("raise row_bytes_max"));
        }
        Ok(())
    }

    /// The last rows, after all data.
    ///
    /// # Errors
    /// When the data ended too soon.
    pub fn finish(mut self) -> Result<BuiltBatch> {
        if !self.ended || !self.rest.is_empty() {
            return Err(Error::new(ErrorKind::Protocol, "the data of the COPY ended too soon"));
        }
        self.builder.finish().map_err(value_error)
    }

    fn row(&self) -> u64 {
        self.rows_before + self.builder.rows() as u64 + 1
    }

    /// Parses the complete rows, and returns their number of bytes.
    fn consume(&mut self, data: &[u8], full: &mut dyn FnMut(BuiltBatch)) -> Result<usize> {
        let mut used = 0;
        if !self.in_rows {
            match header_bytes(data)? {
                Some(bytes) => (used, self.in_rows) = (bytes, true),
                None => return Ok(0),
            }
        }
        while let Some(bytes) = row_bytes(&data[used..], self.columns.len()) {
            let row = &data[used..used + bytes];
            used += bytes;
            if self.ended {
                return Err(Error::new(ErrorKind::Protocol, "the COPY goes on after its end"));
            }
            if row == TRAILER {
                self.ended = true;
                continue;
            }
            if !push_row(&self.columns, &mut self.builder, row, self.rows_before)? {
                let what = format!(
                    "row {} of the COPY does not have {} columns",
                    self.row(),
                    self.columns.len()
                );
                return Err(Error::new(ErrorKind::Protocol, what));
            }
            let rows = self.builder.rows();
            // Adding up all columns takes time, so the size is checked now and then, and after a
            // large row.
            let is_due = rows.is_multiple_of(64) || bytes >= self.options.batch_bytes / 64;
            if rows >= self.options.batch_rows
                || is_due && self.builder.bytes() >= self.options.batch_bytes
            {
                self.rows_before += rows as u64;
                full(self.builder.finish().map_err(value_error)?);
            }
        }
        Ok(used)
    }
}

/// The length of a COPY's header; None if it is incomplete.
fn header_bytes(data: &[u8]) -> Result<Option<usize>> {
    let refused = || Error::new(ErrorKind::Protocol, "this is not the data of a COPY in binary");
    if !data.iter().zip(SIGNATURE).all(|(found, expected)| found == expected) {
        return Err(refused());
    }
    let Some(header) = data.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let extension = u32::from_be_bytes([header[15], header[16], header[17], header[18]]) as usize;
    // No extension is defined, so a large one is refused instead of waited for.
    if extension > 1 << 16 || header[11..15] != [0; 4] {
        return Err(refused());
    }
    Ok((data.len() >= HEADER_BYTES + extension).then_some(HEADER_BYTES + extension))
}

/// The length of the first row, or of the trailer; None if it is incomplete. For other data the
/// length is arbitrary, and [`push_row`] refuses it.
fn row_bytes(data: &[u8], columns: usize) -> Option<usize> {
    let count = i16::from_be_bytes(*data.first_chunk()?);
    if usize::try_from(count) != Ok(columns) {
        return Some(2);
    }
    let mut at = 2;
    for _ in 0..columns {
        let length = i32::from_be_bytes(*data.get(at..)?.first_chunk()?);
        at += 4 + usize::try_from(length).unwrap_or(0);
    }
    (data.len() >= at).then_some(at)
}
