//! Values of a fixed number of bytes: integers, floats, booleans, dates and times.

use std::ops::Range;

use arrow::array::{Array, ArrowPrimitiveType, BooleanArray, PrimitiveArray};

use crate::error::Reason;
use crate::values::{LENGTH_BYTES, RowError, Scratch, Values, put, put_null};

/// Values that `convert` makes `N` bytes of.
pub(crate) struct Fixed<T: ArrowPrimitiveType, const N: usize, F> {
    pub(crate) array: PrimitiveArray<T>,
    pub(crate) oid: u32,
    pub(crate) convert: F,
}

impl<T, const N: usize, F> Values for Fixed<T, N, F>
where
    T: ArrowPrimitiveType,
    F: Fn(T::Native) -> Result<[u8; N], Reason> + Send,
{
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn oid(&self) -> u32 {
        self.oid
    }

    fn append(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
        out.extend_from_slice(&(self.convert)(self.array.value(row))?);
        Ok(())
    }

    fn measure(
        &self,
        rows: Range<usize>,
        sizes: &mut [usize],
        _: &mut Scratch,
    ) -> Result<(), RowError> {
        let values = &self.array.values()[rows.clone()];
        match self.array.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => {
                for ((i, value), size) in values.iter().enumerate().zip(sizes) {
                    (self.convert)(*value).map_err(|reason| (rows.start + i, reason))?;
                    *size += LENGTH_BYTES + N;
                }
            }
            Some(nulls) => {
                for ((row, value), size) in rows.zip(values).zip(sizes) {
                    *size += LENGTH_BYTES;
                    if nulls.is_valid(row) {
                        (self.convert)(*value).map_err(|reason| (row, reason))?;
                        *size += N;
                    }
                }
            }
        }
        Ok(())
    }

    fn fill(&self, rows: Range<usize>, cursors: &mut [usize], out: &mut [u8], _: &Scratch) {
        let values = &self.array.values()[rows.clone()];
        // `measure` has found no value that can't be converted.
        let bytes = |value| (self.convert)(value).unwrap_or([0; N]);
        match self.array.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => {
                for (value, cursor) in values.iter().zip(cursors) {
                    put(out, cursor, &bytes(*value));
                }
            }
            Some(nulls) => {
                for ((row, value), cursor) in rows.zip(values).zip(cursors) {
                    match nulls.is_valid(row) {
                        true => put(out, cursor, &bytes(*value)),
                        false => put_null(out, cursor),
                    }
                }
            }
        }
    }
}

pub(crate) struct Booleans(pub(crate) BooleanArray);

impl Values for Booleans {
    fn is_null(&self, row: usize) -> bool {
        self.0.is_null(row)
    }

    fn oid(&self) -> u32 {
        16
    }

    fn append(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
        out.push(u8::from(self.0.value(row)));
        Ok(())
    }
}

/// A column without any value.
pub(crate) struct Nothing;

impl Values for Nothing {
    fn is_null(&self, _: usize) -> bool {
        true
    }

    fn oid(&self) -> u32 {
        0
    }

    fn append(&self, _: usize, _: &mut Vec<u8>) -> Result<(), Reason> {
        Ok(())
    }
}
