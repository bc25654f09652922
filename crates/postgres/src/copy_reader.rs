//! `COPY … (FORMAT binary)` that somebody else receives: bytes in, columns out.
//!
//! A driver's open connection has its own transaction and temporary tables, and its own way to a
//! COPY's data. What is needed of the types is asked through the driver, too.

use std::collections::HashSet;

use dray_format::{BatchBuilder, Built, Schema};
use dray_pgtypes::{Column, Format, Options as TypeOptions};

use crate::catalog::{self, Catalog};
use crate::error::{Error, ErrorKind, LIMIT_EXCEEDED, Result};
use crate::session::{Options, has_text, push_row, value_error};
use crate::sql::reads_only;

/// What a COPY in binary begins with (PostgreSQL's manual, page COPY).
const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";
/// The signature, flags, and the length of the header's extension.
const HEADER_BYTES: usize = SIGNATURE.len() + 8;
/// What stands in a row's place after the last one.
const TRAILER: [u8; 2] = (-1i16).to_be_bytes();

/// Columns of a statement, as its driver describes them.
#[derive(Debug)]
pub struct Description {
    /// Name, type and what the column declares (`atttypmod`).
    columns: Vec<(String, u32, i32)>,
    catalog: Catalog,
    server_version: u32,
}

impl Description {
    /// A description of these columns on a server of this major version.
    pub fn new(columns: Vec<(String, u32, i32)>, server_version: u32) -> Self {
        Self { columns, catalog: Catalog::default(), server_version }
    }

    /// Whether a statement can be described by running it for no rows: it only reads. `escapes` as
    /// for [`enclosable`](crate::enclosable).
    pub fn is_possible(sql: &str, escapes: bool) -> bool {
        reads_only(sql, escapes)
    }

    /// What is to be asked of the server, if anything: all of its answer goes to [`Self::learn`].
    pub fn question(&self) -> Option<String> {
        let missing: HashSet<u32> = self
            .columns
            .iter()
            .map(|(_, oid, _)| *oid)
            .filter(|oid| self.catalog.misses(*oid))
            .collect();
        (!missing.is_empty()).then(|| catalog::query(&missing, self.server_version))
    }

    /// Takes in the answer: rows of text.
    ///
    /// # Errors
    /// When it is not an answer.
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

    /// Whether some of the columns are made text, in which there may be floats: the session's
    /// `extra_float_digits` says how many digits they have.
    pub fn has_text(&self, options: &TypeOptions) -> bool {
        has_text(&self.columns(options))
    }

    /// The COPY that makes these columns of a statement: some have to be made text.
    pub fn copy_statement(&self, statement: &str, options: &TypeOptions) -> String {
        let columns = self.columns(options);
        if !has_text(&columns) {
            return format!("COPY ({statement}\n) TO STDOUT (FORMAT binary)");
        }
        let casts = columns.iter().enumerate().map(|(i, column)| match column.format() {
            Format::Binary => format!("c{i}"),
            // The type's output function: a cast may write other text. A composite of NULLs is not
            // NULL itself.
            Format::Text => {
                format!("CASE WHEN c{i} IS NOT DISTINCT FROM NULL THEN NULL ELSE pg_catalog.format('%s', c{i}) END")
            }
        });
        let casts = casts.collect::<Vec<_>>().join(", ");
        let names = (0..columns.len()).map(|i| format!("c{i}")).collect::<Vec<_>>().join(", ");
        format!(
            "COPY (SELECT {casts} FROM ({statement}\n) AS q ({names})) TO STDOUT (FORMAT binary)"
        )
    }
}

/// Takes in a COPY's data, however it is cut.
#[derive(Debug)]
pub struct CopyReader {
    columns: Vec<Column>,
    builder: BatchBuilder,
    options: Options,
    rows_before: u64,
    /// The beginning of a row, or of the header, whose rest is still to come.
    rest: Vec<u8>,
    in_rows: bool,
    ended: bool,
}

impl CopyReader {
    /// A reader of what [`Description::copy_statement`] makes.
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

    /// Takes in data, and hands full batches to `full`.
    ///
    /// # Errors
    /// When a value has no place in its column, or the data is not a COPY's.
    pub fn push(&mut self, data: &[u8], full: &mut dyn FnMut(Built)) -> Result<()> {
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
    /// When the data has ended too soon.
    pub fn finish(mut self) -> Result<Built> {
        if !self.ended || !self.rest.is_empty() {
            return Err(Error::new(ErrorKind::Protocol, "the data of the COPY ended too soon"));
        }
        self.builder.finish().map_err(value_error)
    }

    fn row(&self) -> u64 {
        self.rows_before + self.builder.rows() as u64 + 1
    }

    /// Uses whole rows, and says how many bytes they have.
    fn consume(&mut self, data: &[u8], full: &mut dyn FnMut(Built)) -> Result<usize> {
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
            // Adding up all columns takes its time: only now and then, and when the row is large.
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

/// The length of a COPY's header, once it is all there.
fn header_bytes(data: &[u8]) -> Result<Option<usize>> {
    let refused = || Error::new(ErrorKind::Protocol, "this is not the data of a COPY in binary");
    if !data.iter().zip(SIGNATURE).all(|(found, expected)| found == expected) {
        return Err(refused());
    }
    let Some(header) = data.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let extension = u32::from_be_bytes([header[15], header[16], header[17], header[18]]) as usize;
    // No extension is defined, and a large one would only be waited for.
    if extension > 1 << 16 || header[11..15] != [0; 4] {
        return Err(refused());
    }
    Ok((data.len() >= HEADER_BYTES + extension).then_some(HEADER_BYTES + extension))
}

/// The length of the row that the data begins with, or of the trailer, once it is all there. What
/// is not a row has no length that makes sense; [`push_row`] then says so.
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
