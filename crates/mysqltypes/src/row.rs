//! Rows of both protocols.

use dray_format::BatchBuilder;

use crate::column::Column;
use crate::error::{Error, Result};
use crate::reader::Reader;
use crate::{binary, text};

/// Appends a row of the text protocol (`Protocol::ResultsetRow`).
///
/// # Errors
/// When the bytes are no such row, a column's type can't represent a value, or memory is short. The
/// error names column and row; rows are counted from the batch's first. The batch is unusable then.
pub fn push_text_row(columns: &[Column], builder: &mut BatchBuilder, row: &[u8]) -> Result<()> {
    let mut reader = Reader(row);
    let number = builder.rows() as u64 + 1;
    for (column, builder) in columns.iter().zip(builder.columns()) {
        let pushed = match reader.value() {
            Ok(Some(value)) => text::push(column, builder, value),
            Ok(None) => builder.push_null().map_err(Error::from),
            Err(error) => Err(error),
        };
        pushed.map_err(|error| at(error, column, number))?;
    }
    close(builder, &reader, number)
}

/// Appends a row of the binary protocol (`Protocol::BinaryResultsetRow`).
///
/// # Errors
/// Those of [`push_text_row`].
pub fn push_binary_row(columns: &[Column], builder: &mut BatchBuilder, row: &[u8]) -> Result<()> {
    /// The first bits of the bitmap are reserved.
    const OFFSET: usize = 2;
    let number = builder.rows() as u64 + 1;
    let head = |row| {
        let mut reader = Reader(row);
        match reader.byte()? {
            0 => Ok((reader.take((columns.len() + OFFSET).div_ceil(8))?, reader)),
            other => Err(Error::malformed(format!("{other:#04x} at the start of a row"))),
        }
    };
    let (nulls, mut reader) = head(row).map_err(|error: Error| error.of_row(number))?;
    for ((i, column), builder) in (OFFSET..).zip(columns).zip(builder.columns()) {
        let pushed = match nulls[i / 8] >> (i % 8) & 1 {
            0 => binary::push(column, builder, &mut reader),
            _ => builder.push_null().map_err(Error::from),
        };
        pushed.map_err(|error| at(error, column, number))?;
    }
    close(builder, &reader, number)
}

fn close(builder: &mut BatchBuilder, rest: &Reader<'_>, row: u64) -> Result<()> {
    rest.end("a row").map_err(|error| error.of_row(row))?;
    Ok(builder.close_row()?)
}

#[cold]
fn at(error: Error, column: &Column, row: u64) -> Error {
    error.of_column(&column.field().name).of_row(row)
}
