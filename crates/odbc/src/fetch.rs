//! Fetches the rows of a result.
//!
//! Columns whose values have a limit are fetched in blocks of rows. A result with a column that has
//! none is fetched row by row: no driver need be able to read the rest of a value in a block. If a
//! value is longer than a driver announced, its rest is read too, or the statement fails.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};
use dray_bridge::program::{Output, cut};
use dray_bridge::{Failure, FailureKind, Query};
use odbc_sys::CDataType;

use crate::builder::Builder;
use crate::column::Column;
use crate::failure::{too_long, wrong_length};
use crate::odbc::{Buffer, Cell, Statement};

/// The room for a block of rows, in bytes.
const BLOCK_BYTES: usize = 4 << 20;
/// The most rows of a block.
const BLOCK_ROWS_MAX: usize = 8192;

/// Of which columns a driver can read values piece by piece: `SQL_GETDATA_EXTENSIONS`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extensions(pub(crate) u32);

impl Extensions {
    /// Also before one that is bound.
    fn any_column(self) -> bool {
        self.0 & 1 != 0
    }

    /// Also of one that is bound.
    fn bound(self) -> bool {
        self.0 & 8 != 0
    }
}

/// The rows of a result that are being fetched.
pub(crate) struct Rows<'r, 'c> {
    statement: &'r mut Statement<'c>,
    columns: &'r [Column],
    schema: SchemaRef,
    builders: Vec<Builder>,
    query: &'r Query,
    /// The columns that a fetch does not fill.
    unbound: Vec<bool>,
    block_rows: usize,
    /// The row of a block whose values are read piece by piece.
    position: usize,
    rows: usize,
    bytes: u64,
    /// Of the rows that were fetched.
    sizes: RowSizes,
}

pub(crate) fn schema(columns: &[Column]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(Column::field).collect::<Vec<_>>()))
}

impl<'r, 'c> Rows<'r, 'c> {
    /// Of a statement that was run, and has these columns.
    pub(crate) fn new(
        statement: &'r mut Statement<'c>,
        columns: &'r [Column],
        query: &'r Query,
        extensions: Extensions,
    ) -> Result<Self, Failure> {
        let first_long = columns.iter().position(|column| column.is_long);
        let row_bytes =
            columns.iter().map(|column| column.width + size_of::<isize>()).sum::<usize>();
        let wanted = match first_long {
            Some(_) => 1,
            None => (BLOCK_BYTES / row_bytes.max(1)).min(BLOCK_ROWS_MAX).min(query.batch_rows),
        };
        let block_rows = statement.set_rows(wanted.max(1))?;
        let is_unbound = |(index, column): (usize, &Column)| match first_long {
            Some(_) if extensions.bound() => false,
            Some(_) if extensions.any_column() => column.is_long,
            // Values are read in the order of their columns, after all that are bound.
            Some(first) => index >= first,
            None => false,
        };
        let unbound: Vec<bool> = columns.iter().enumerate().map(is_unbound).collect();
        let buffer = |column: &Column| Buffer::new(column.c_type, column.width, block_rows);
        let is_bound = |index| unbound.get(index) == Some(&false);
        statement.bind(columns.iter().map(buffer).collect(), is_bound)?;
        let builders = columns.iter().map(Builder::new).collect::<Result<_, _>>()?;
        let schema = schema(columns);
        Ok(Self {
            statement,
            columns,
            schema,
            builders,
            query,
            unbound,
            block_rows,
            position: 0,
            rows: 0,
            bytes: 0,
            sizes: RowSizes { bytes: Vec::new(), bytes_max: query.row_bytes },
        })
    }

    /// Passes all rows on.
    pub(crate) fn pass_on(mut self, output: &mut Output<'_>) -> Result<(), Failure> {
        while let Some(rows) = self.statement.fetch()? {
            self.position = 0;
            self.sizes.begin(rows);
            for index in 0..self.columns.len() {
                self.append(index, rows)?;
            }
            self.rows += rows;
            let is_full = self.rows + self.block_rows > self.query.batch_rows;
            if is_full || self.bytes >= self.query.batch_bytes {
                self.send(output)?;
            } else if output.is_cancelled() {
                return Err(Failure::new(FailureKind::Cancelled, "57014", "it was cancelled"));
            }
        }
        match self.rows {
            0 => Ok(()),
            _ => self.send(output),
        }
    }

    /// Appends the values of a column in the rows that were fetched.
    fn append(&mut self, index: usize, rows: usize) -> Result<(), Failure> {
        let Some((column, builder)) = self.columns.get(index).zip(self.builders.get_mut(index))
        else {
            return Err(no_column(index));
        };
        let is_unbound = self.unbound.get(index) == Some(&true);
        let sizes = &mut self.sizes;
        if is_unbound && column.is_long {
            let value = long_value(self.statement, index, column, sizes, 0)?;
            self.bytes += append_long(builder, column, value, sizes, 0)?;
            return Ok(());
        }
        if is_unbound {
            self.statement.fill(index)?;
        }
        for row in 0..rows {
            let buffer = self.statement.buffers().get(index).ok_or_else(|| no_column(index))?;
            match buffer.cell(row).map_err(|length| wrong_length(&column.name, length))? {
                Cell::Null => builder.append_null(),
                Cell::Bytes(bytes) => {
                    self.bytes += sizes.add(row, column, builder.append(bytes)?)?;
                }
                Cell::Long => {
                    if self.position != row {
                        let moved = self.statement.position(row);
                        moved.map_err(|cause| longer(column, cause.into()))?;
                        self.position = row;
                    }
                    let value = long_value(self.statement, index, column, sizes, row);
                    let value = value.map_err(|cause| longer(column, cause))?;
                    self.bytes += append_long(builder, column, value, sizes, row)?;
                }
            }
        }
        Ok(())
    }

    /// Sends the batch so far, in parts if values are longer than the driver announced.
    fn send(&mut self, output: &mut Output<'_>) -> Result<(), Failure> {
        let query = self.query;
        cut(&self.take()?, query, &mut |part| output.batch(part))
    }

    /// The batch so far.
    fn take(&mut self) -> Result<RecordBatch, Failure> {
        let columns = self.builders.iter_mut().map(Builder::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options);
        (self.rows, self.bytes) = (0, 0);
        batch.map_err(|cause| Failure::new(FailureKind::Internal, "", cause.to_string()))
    }
}

/// How many bytes the rows of a fetch have in the columns so far.
struct RowSizes {
    bytes: Vec<u64>,
    bytes_max: u64,
}

impl RowSizes {
    fn begin(&mut self, rows: usize) {
        self.bytes.clear();
        self.bytes.resize(rows, 0);
    }

    fn of(&self, row: usize) -> u64 {
        self.bytes.get(row).copied().unwrap_or_default()
    }

    /// Counts the bytes of a value, which it returns.
    fn add(&mut self, row: usize, column: &Column, bytes: usize) -> Result<u64, Failure> {
        let (earlier, added) = (self.of(row), bytes as u64);
        let sum = earlier.saturating_add(added);
        if sum > self.bytes_max {
            return Err(too_long(&column.name, bytes, earlier, self.bytes_max));
        }
        if let Some(size) = self.bytes.get_mut(row) {
            *size = sum;
        }
        Ok(added)
    }
}

/// The bridge has lost a column: that must not look like a column without values.
fn no_column(index: usize) -> Failure {
    Failure::new(FailureKind::Internal, "", format!("there is no column {index}"))
}

fn long_value(
    statement: &mut Statement<'_>,
    index: usize,
    column: &Column,
    sizes: &RowSizes,
    row: usize,
) -> Result<Option<Vec<u8>>, Failure> {
    let earlier = sizes.of(row);
    let left = sizes.bytes_max.saturating_sub(earlier);
    let max = usize::try_from(left).unwrap_or(usize::MAX);
    // ASCII has twice as many bytes in UTF-16.
    let max = if column.c_type == CDataType::WChar { max.saturating_mul(2) } else { max };
    match statement.long_value(index, column.c_type, max)? {
        None => Ok(None),
        Some(Ok(value)) => Ok(Some(value)),
        Some(Err(bytes)) => Err(too_long(&column.name, bytes, earlier, sizes.bytes_max)),
    }
}

fn append_long(
    builder: &mut Builder,
    column: &Column,
    value: Option<Vec<u8>>,
    sizes: &mut RowSizes,
    row: usize,
) -> Result<u64, Failure> {
    let Some(value) = value else {
        builder.append_null();
        return Ok(0);
    };
    if column.c_type == CDataType::WChar && value.len() % 2 != 0 {
        return Err(wrong_length(&column.name, value.len() as isize));
    }
    sizes.add(row, column, builder.append(&value)?)
}

/// The rest of a value that is longer than its driver announced can't be read.
fn longer(column: &Column, cause: Failure) -> Failure {
    if cause.kind == FailureKind::Limit {
        return cause;
    }
    let message = format!(
        "the column {:?} has a value that is longer than its driver announced, and the driver \
         can't read the rest ({}): cast it to a longer type, or see the driver's options",
        column.name, cause.message
    );
    Failure { message, ..cause }
}
