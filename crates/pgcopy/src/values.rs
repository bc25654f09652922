//! What every kind of column can do.

use std::ops::Range;

use crate::error::Reason;
use crate::text;

/// The bytes of a field's length, which precede its value.
pub(crate) const LENGTH_BYTES: usize = 4;
/// The length that stands for NULL.
pub(crate) const NULL: [u8; LENGTH_BYTES] = (-1i32).to_be_bytes();
/// Why a value is too long.
pub(crate) const TOO_LONG: Reason = "it has more than 1 GiB";
/// The largest value of a server (`MaxAllocSize`).
pub(crate) const VALUE_BYTES_MAX: usize = 0x3FFF_FFFF;

/// The row within a batch that does not fit, and why.
pub(crate) type RowError = (usize, Reason);

/// Values that were encoded when they were measured.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    bytes: Vec<u8>,
    /// Where each value ends; None for NULL.
    ends: Vec<Option<usize>>,
}

/// A column of Arrow data that is written as one type of PostgreSQL.
pub(crate) trait Values: Send {
    /// Whether a value is NULL.
    fn is_null(&self, row: usize) -> bool;

    /// The oid of the type, or of a domain's base type.
    fn oid(&self) -> u32;

    /// Whether the type has no binary form here.
    fn is_text_only(&self) -> bool {
        false
    }

    /// Appends a value that is not NULL as the type's receive function reads it.
    ///
    /// # Errors
    /// Why it does not fit.
    fn append(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Reason>;

    /// Appends a value that is not NULL as the type's input function reads it.
    ///
    /// # Errors
    /// Why it does not fit.
    fn append_text(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
        let mut sent = Vec::new();
        self.append(row, &mut sent)?;
        text::append(self.oid(), &sent, out)
    }

    /// Adds the bytes of each value, with its length, to the sizes of the rows, and checks that all
    /// fit.
    ///
    /// # Errors
    /// The first row that does not fit.
    fn measure(
        &self,
        rows: Range<usize>,
        sizes: &mut [usize],
        scratch: &mut Scratch,
    ) -> Result<(), RowError> {
        scratch.bytes.clear();
        scratch.ends.clear();
        for (row, size) in rows.zip(sizes) {
            *size += LENGTH_BYTES;
            if self.is_null(row) {
                scratch.ends.push(None);
                continue;
            }
            let start = scratch.bytes.len();
            self.append(row, &mut scratch.bytes).map_err(|reason| (row, reason))?;
            let bytes = scratch.bytes.len() - start;
            if bytes > VALUE_BYTES_MAX {
                return Err((row, TOO_LONG));
            }
            *size += bytes;
            scratch.ends.push(Some(scratch.bytes.len()));
        }
        Ok(())
    }

    /// Writes the values that were just measured, or the first of them, at the cursors, and moves
    /// these behind them.
    fn fill(&self, rows: Range<usize>, cursors: &mut [usize], out: &mut [u8], scratch: &Scratch) {
        let mut start = 0;
        for ((_, end), cursor) in rows.zip(&scratch.ends).zip(cursors) {
            match *end {
                Some(end) => {
                    put(out, cursor, &scratch.bytes[start..end]);
                    start = end;
                }
                None => put_null(out, cursor),
            }
        }
    }
}

/// Writes a value with its length.
#[inline]
pub(crate) fn put(out: &mut [u8], cursor: &mut usize, value: &[u8]) {
    let field = &mut out[*cursor..*cursor + LENGTH_BYTES + value.len()];
    // `measure` has checked the length.
    field[..LENGTH_BYTES].copy_from_slice(&(value.len() as u32).to_be_bytes());
    field[LENGTH_BYTES..].copy_from_slice(value);
    *cursor += field.len();
}

#[inline]
pub(crate) fn put_null(out: &mut [u8], cursor: &mut usize) {
    out[*cursor..*cursor + LENGTH_BYTES].copy_from_slice(&NULL);
    *cursor += LENGTH_BYTES;
}

/// Appends a nested value with its length, or NULL.
pub(crate) fn append_field(
    values: &dyn Values,
    row: usize,
    out: &mut Vec<u8>,
) -> Result<(), Reason> {
    if values.is_null(row) {
        out.extend_from_slice(&NULL);
        return Ok(());
    }
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    values.append(row, out)?;
    close_field(start, out)
}

/// Writes the length of the field that begins at `start`.
pub(crate) fn close_field(start: usize, out: &mut [u8]) -> Result<(), Reason> {
    let bytes = out.len() - start - LENGTH_BYTES;
    if bytes > VALUE_BYTES_MAX {
        return Err(TOO_LONG);
    }
    out[start..start + LENGTH_BYTES].copy_from_slice(&(bytes as u32).to_be_bytes());
    Ok(())
}
