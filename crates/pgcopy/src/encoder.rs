//! Batches as blocks of a COPY's data.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, RecordBatch, new_empty_array};
use arrow::datatypes::SchemaRef;
use dray_pgtypes::PgType;

use crate::error::{Error, Mismatch, Reason, Result};
use crate::select::Request;
use crate::text;
use crate::values::{Scratch, TOO_LONG, VALUE_BYTES_MAX, Values};

/// The beginning of the data in binary: a signature, no flags, no extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// The end: a row of -1 columns.
const TRAILER: [u8; 2] = (-1i16).to_be_bytes();
/// The bytes of a row's number of columns.
const COUNT_BYTES: usize = 2;
/// A block ends once it has this many bytes.
const BLOCK_BYTES: usize = 64 << 10;
/// The most rows of a block.
const BLOCK_ROWS: usize = 1024;

/// The format of a COPY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `FORMAT binary`.
    Binary,
    /// `FORMAT text`, if a type has no binary form here.
    Text,
}

/// A column of the table.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its type.
    pub pg_type: PgType,
    /// The type as it was declared: `numeric(10,2)`.
    pub declared: String,
}

/// Turns batches of one schema into the data of a COPY.
#[derive(Debug)]
pub struct Encoder {
    schema: SchemaRef,
    targets: Vec<Target>,
    money_scale: Option<u8>,
    format: Format,
    /// Rows of the blocks so far.
    rows: u64,
    /// Rows that a block may begin with.
    block_rows: usize,
}

impl Encoder {
    /// An encoder of batches with this schema, whose columns go to these columns of a table, one to
    /// one. `money_scale` is the number of digits of `money` after the point.
    ///
    /// # Errors
    /// When the types of a column don't match.
    pub fn new(schema: SchemaRef, targets: Vec<Target>, money_scale: Option<u8>) -> Result<Self> {
        let mut encoder = Self {
            schema,
            targets,
            money_scale,
            format: Format::Binary,
            rows: 0,
            block_rows: BLOCK_ROWS,
        };
        for i in 0..encoder.targets.len() {
            let empty = new_empty_array(encoder.schema.field(i).data_type());
            if encoder.select(i, &empty)?.is_text_only() {
                encoder.format = Format::Text;
            }
        }
        Ok(encoder)
    }

    /// The format that the statement has to name.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Rows of the blocks so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// What comes before all rows.
    pub fn header(&self) -> &'static [u8] {
        if self.format == Format::Binary { HEADER } else { b"" }
    }

    /// What comes after all rows.
    pub fn trailer(&self) -> &'static [u8] {
        if self.format == Format::Binary { &TRAILER } else { b"" }
    }

    fn select(&self, column: usize, array: &ArrayRef) -> Result<Box<dyn Values>> {
        let field = self.schema.field(column);
        let Target { pg_type, .. } = &self.targets[column];
        let request = Request { field, array, pg_type, money_scale: self.money_scale };
        request.select().map_err(|Mismatch { what, hint }| Error::Type {
            column: field.name().clone(),
            what,
            hint,
        })
    }

    /// The blocks of a batch, which follows `rows_before` rows of the data. Errors name rows by
    /// that.
    ///
    /// # Errors
    /// When the batch has another schema.
    pub fn batch<'a>(&'a mut self, batch: &'a RecordBatch, rows_before: u64) -> Result<Blocks<'a>> {
        let expected = self.schema.fields().iter().map(|field| field.data_type());
        if !expected.eq(batch.columns().iter().map(|column| column.data_type())) {
            return Err(Error::Data(
                "a batch has other types than the schema before it".to_owned(),
            ));
        }
        let columns = batch.columns().iter().enumerate();
        let columns = columns
            .map(|(i, array)| Ok((self.select(i, array)?, Scratch::default())))
            .collect::<Result<_>>()?;
        Ok(Blocks { encoder: self, batch, columns, rows_before, row: 0, sizes: Vec::new() })
    }

    #[cold]
    fn value_error(
        &self,
        column: usize,
        array: &ArrayRef,
        row: usize,
        before: u64,
        reason: Reason,
    ) -> Error {
        let field = self.schema.field(column);
        let declared = &self.targets[column].declared;
        Error::of_value(field, (array.as_ref(), row, before), declared, reason)
    }
}

/// The blocks of a batch.
pub struct Blocks<'a> {
    encoder: &'a mut Encoder,
    batch: &'a RecordBatch,
    columns: Vec<(Box<dyn Values>, Scratch)>,
    /// Rows of the data before the batch.
    rows_before: u64,
    /// The next row.
    row: usize,
    /// Of the rows of a block: first their bytes, then where their next value goes.
    sizes: Vec<usize>,
}

impl std::fmt::Debug for Blocks<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blocks").field("row", &self.row).finish_non_exhaustive()
    }
}

impl Blocks<'_> {
    /// Rows of the blocks so far, with those of earlier batches.
    pub fn rows(&self) -> u64 {
        self.encoder.rows
    }

    /// Replaces `out` by the next block; false at the end of the batch.
    ///
    /// # Errors
    /// When a value does not fit its column.
    pub fn next_block(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        out.clear();
        let left = self.batch.num_rows() - self.row;
        if left == 0 {
            return Ok(false);
        }
        let rows = self.row..self.row + left.min(self.encoder.block_rows);
        let next = match self.encoder.format {
            Format::Binary => self.fill(rows, out)?,
            Format::Text => self.write_text(rows, out)?,
        };
        self.encoder.rows += (next - self.row) as u64;
        self.row = next;
        Ok(true)
    }

    /// Fills a block with the first of these rows, and returns the one after them.
    fn fill(&mut self, rows: Range<usize>, out: &mut Vec<u8>) -> Result<usize> {
        self.sizes.clear();
        self.sizes.resize(rows.len(), COUNT_BYTES);
        for (i, (values, scratch)) in self.columns.iter_mut().enumerate() {
            let measured = values.measure(rows.clone(), &mut self.sizes, scratch);
            measured.map_err(|(row, reason)| {
                self.encoder.value_error(i, self.batch.column(i), row, self.rows_before, reason)
            })?;
        }
        // Where each row begins.
        let (mut bytes, mut count) = (0, 0);
        for size in &mut self.sizes {
            if bytes >= BLOCK_BYTES {
                break;
            }
            bytes += std::mem::replace(size, bytes);
            count += 1;
        }
        self.sizes.truncate(count);
        // What was measured and left over is measured again.
        self.encoder.block_rows = (BLOCK_BYTES * count / bytes.max(1)).clamp(1, BLOCK_ROWS);
        let rows = rows.start..rows.start + count;
        out.resize(bytes, 0);
        // The server has checked that the number of columns fits.
        let columns = (self.columns.len() as u16).to_be_bytes();
        for cursor in &mut self.sizes {
            out[*cursor..*cursor + COUNT_BYTES].copy_from_slice(&columns);
            *cursor += COUNT_BYTES;
        }
        for (values, scratch) in &mut self.columns {
            values.fill(rows.clone(), &mut self.sizes, out, scratch);
        }
        debug_assert_eq!(self.sizes.last(), Some(&bytes), "the last row ends the block");
        Ok(rows.end)
    }

    fn write_text(&mut self, rows: Range<usize>, out: &mut Vec<u8>) -> Result<usize> {
        let mut value = Vec::new();
        for row in rows.clone() {
            for (i, (values, _)) in self.columns.iter().enumerate() {
                if i > 0 {
                    out.push(b'\t');
                }
                if values.is_null(row) {
                    out.extend_from_slice(b"\\N");
                    continue;
                }
                value.clear();
                let mut written = values.append_text(row, &mut value);
                if value.len() > VALUE_BYTES_MAX {
                    written = Err(TOO_LONG);
                }
                written.map_err(|reason| {
                    self.encoder.value_error(i, self.batch.column(i), row, self.rows_before, reason)
                })?;
                text::escape(&value, out);
            }
            out.push(b'\n');
            if out.len() >= BLOCK_BYTES {
                return Ok(row + 1);
            }
        }
        Ok(rows.end)
    }
}
