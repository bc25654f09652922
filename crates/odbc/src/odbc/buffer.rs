//! The memory that a driver writes a column's values into.

use arrow_buffer::MutableBuffer;
use odbc_sys::{CDataType, NO_TOTAL, NULL_DATA, Pointer};

/// Lengths and counts of ODBC have the width of pointers, and Arrow's buffers know 64 bits.
const _: () = assert!(size_of::<isize>() == size_of::<i64>());
/// What a length is before the driver writes one.
const UNWRITTEN: isize = isize::MIN;

/// Room for the values of a column in several rows.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) c_type: CDataType,
    /// The bytes of a value, with the zero that ends a text.
    width: usize,
    rows: usize,
    // Drivers keep pointers into these two, so they never grow.
    values: MutableBuffer,
    lengths: MutableBuffer,
}

/// A value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cell<'a> {
    Null,
    Bytes(&'a [u8]),
    /// It has more bytes than the buffer has room for.
    Long,
}

impl Buffer {
    /// Room for `rows` values of at most `width` bytes.
    pub(crate) fn new(c_type: CDataType, width: usize, rows: usize) -> Self {
        let values = MutableBuffer::from_len_zeroed(width.saturating_mul(rows));
        let lengths = MutableBuffer::from_len_zeroed(size_of::<isize>().saturating_mul(rows));
        Self { c_type, width, rows, values, lengths }
    }

    /// The bytes of the zero that ends a value of this type.
    pub(super) fn terminator_bytes(c_type: CDataType) -> usize {
        match c_type {
            CDataType::WChar => 2,
            CDataType::Char => 1,
            _ => 0,
        }
    }

    fn has_any_length(&self) -> bool {
        matches!(self.c_type, CDataType::WChar | CDataType::Char | CDataType::Binary)
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Where the driver writes values, and their lengths.
    pub(super) fn pointers(&mut self) -> (Pointer, *mut isize) {
        (self.values.as_mut_ptr().cast(), self.lengths.as_mut_ptr().cast())
    }

    /// Forgets all lengths, so that one that the driver does not write is noticed.
    pub(super) fn forget(&mut self) {
        self.lengths.typed_data_mut::<i64>().fill(UNWRITTEN as i64);
    }

    /// The value in a row.
    ///
    /// # Errors
    /// The length that the driver gave, if there can be no such.
    pub(crate) fn cell(&self, row: usize) -> Result<Cell<'_>, isize> {
        let length = self.lengths.typed_data::<i64>().get(row).map_or(UNWRITTEN, |l| *l as isize);
        let start = row.saturating_mul(self.width);
        let bytes = start
            .checked_add(self.width)
            .and_then(|end| self.values.as_slice().get(start..end))
            .ok_or(length)?;
        if length == NULL_DATA {
            return Ok(Cell::Null);
        }
        if !self.has_any_length() {
            // Drivers may give any length of such a value. MariaDB's gives bits none.
            let is_value = length >= 0 || length == UNWRITTEN;
            return if is_value { Ok(Cell::Bytes(bytes)) } else { Err(length) };
        }
        if length == NO_TOTAL {
            return Ok(Cell::Long);
        }
        let is_odd = self.c_type == CDataType::WChar && length % 2 != 0;
        let count = usize::try_from(length).ok().filter(|_| !is_odd).ok_or(length)?;
        let room = self.width.saturating_sub(Self::terminator_bytes(self.c_type));
        match bytes.get(..count) {
            Some(value) if count <= room => Ok(Cell::Bytes(value)),
            _ => Ok(Cell::Long),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(c_type: CDataType, length: isize) -> Buffer {
        let mut buffer = Buffer::new(c_type, 8, 2);
        buffer.forget();
        buffer.values.as_slice_mut()[8..].copy_from_slice(b"abcdefgh");
        buffer.lengths.typed_data_mut::<i64>()[1] = length as i64;
        buffer
    }

    #[test]
    fn lengths_are_not_trusted() {
        for (c_type, length, cell) in [
            (CDataType::Char, 3, Ok(Cell::Bytes(&b"abc"[..]))),
            (CDataType::Char, 0, Ok(Cell::Bytes(b""))),
            (CDataType::Char, 7, Ok(Cell::Bytes(b"abcdefg"))),
            (CDataType::Char, 8, Ok(Cell::Long)),
            (CDataType::Binary, 8, Ok(Cell::Bytes(b"abcdefgh"))),
            (CDataType::Binary, 9, Ok(Cell::Long)),
            (CDataType::WChar, 6, Ok(Cell::Bytes(b"abcdef"))),
            (CDataType::WChar, 5, Err(5)),
            (CDataType::WChar, isize::MAX - 1, Ok(Cell::Long)),
            (CDataType::WChar, NO_TOTAL, Ok(Cell::Long)),
            (CDataType::WChar, NULL_DATA, Ok(Cell::Null)),
            (CDataType::WChar, -2, Err(-2)),
            (CDataType::WChar, UNWRITTEN, Err(UNWRITTEN)),
            (CDataType::SBigInt, NO_TOTAL, Err(NO_TOTAL)),
            (CDataType::SBigInt, UNWRITTEN, Ok(Cell::Bytes(b"abcdefgh"))),
            (CDataType::SBigInt, 0, Ok(Cell::Bytes(b"abcdefgh"))),
            (CDataType::SBigInt, isize::MAX, Ok(Cell::Bytes(b"abcdefgh"))),
            (CDataType::SBigInt, NULL_DATA, Ok(Cell::Null)),
        ] {
            assert_eq!(buffer(c_type, length).cell(1), cell, "{c_type:?} {length}");
        }
        assert_eq!(buffer(CDataType::Char, 1).cell(0), Err(UNWRITTEN));
        assert_eq!(buffer(CDataType::Char, 1).cell(2), Err(UNWRITTEN));
    }
}
