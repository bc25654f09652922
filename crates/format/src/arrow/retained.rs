//! The memory that record batches retain while columns share their buffers.

use std::collections::HashMap;
use std::slice;

use arrow_array::{Array, ArrayRef, RecordBatch, make_array};
use arrow_data::ArrayData;
use arrow_data::transform::MutableArrayData;

use super::import::{column_from_arrow, plain_type};
use crate::column::{Batch, Column, Values};
use crate::error::{Error, ErrorKind, Result};

/// Batches may retain this many times the bytes of their rows: builders of arrays often double
/// their memory.
const RETAINED_FACTOR: usize = 2;

/// The allocations that record batches retain, each counted once.
///
/// A batch may retain much more than its rows: it may be a slice of a larger batch, and all columns
/// of an IPC message share one allocation, also with columns that were projected away.
#[derive(Debug)]
pub struct RetainedMemory {
    /// Bytes by address.
    allocations: HashMap<usize, usize>,
    retained_bytes: usize,
    row_bytes: usize,
    surplus_bytes_max: usize,
}

impl RetainedMemory {
    /// No batches yet. They may retain twice the bytes of their rows and `surplus_bytes_max` more.
    pub fn new(surplus_bytes_max: usize) -> Self {
        Self { allocations: HashMap::new(), retained_bytes: 0, row_bytes: 0, surplus_bytes_max }
    }

    /// Adds a batch that was made from `arrays`, and returns how many bytes it retains that the
    /// batches before it do not. If all together would retain too much, the columns of `batch` are
    /// replaced by copies.
    ///
    /// # Errors
    /// Those of [`column_from_arrow`].
    pub fn add(&mut self, arrays: &RecordBatch, batch: &mut Batch) -> Result<usize> {
        let row_bytes = batch.plain_bytes(0, batch.rows) as usize;
        let (mut retained_bytes, mut before) = (0, Vec::new());
        for (array, column) in arrays.columns().iter().zip(&batch.columns) {
            self.count(&array.to_data(), column, &mut retained_bytes, &mut before);
        }
        let allowed = RETAINED_FACTOR
            .saturating_mul(self.row_bytes + row_bytes)
            .saturating_add(self.surplus_bytes_max);
        if self.retained_bytes + retained_bytes > allowed {
            for (address, bytes) in before.into_iter().rev() {
                self.allocations.insert(address, bytes);
            }
            for (array, column) in arrays.columns().iter().zip(&mut batch.columns) {
                if plain_type(array.data_type()).is_none() {
                    *column = column_from_arrow(&copied(array)?)?;
                }
            }
            retained_bytes = row_bytes;
        }
        self.retained_bytes += retained_bytes;
        self.row_bytes += row_bytes;
        Ok(retained_bytes)
    }

    /// Counts the allocations of an array, of which `column` was made. `before` gets the size that
    /// was known of each until now.
    fn count(
        &mut self,
        data: &ArrayData,
        column: &Column,
        retained_bytes: &mut usize,
        before: &mut Vec<(usize, usize)>,
    ) {
        if plain_type(data.data_type()).is_some() {
            // It was rewritten, and shares nothing.
            *retained_bytes += column.plain_bytes(0, column.rows) as usize;
            return;
        }
        let validity = data.nulls().map(|nulls| nulls.buffer());
        for buffer in data.buffers().iter().chain(validity) {
            let known = self.allocations.entry(buffer.data_ptr().as_ptr() as usize).or_default();
            // Of a foreign allocation only the part that the array uses is known.
            let more = buffer.capacity().saturating_sub(*known);
            before.push((buffer.data_ptr().as_ptr() as usize, *known));
            *known += more;
            *retained_bytes += more;
        }
        for (child, column) in data.child_data().iter().zip(children(column)) {
            self.count(child, column, retained_bytes, before);
        }
    }
}

fn children(column: &Column) -> &[Column] {
    match &column.values {
        Values::List { child, .. } | Values::FixedList { child, .. } => slice::from_ref(&**child),
        Values::Dictionary { entries, .. } => slice::from_ref(&**entries),
        Values::Struct(children) => children,
        _ => &[],
    }
}

fn copied(array: &ArrayRef) -> Result<ArrayRef> {
    let data = array.to_data();
    let mut copy = MutableArrayData::new(vec![&data], false, data.len());
    let refused =
        |error| Error::new(ErrorKind::Limit, format!("can't copy {} rows: {error}", data.len()));
    copy.try_extend(0, 0, data.len()).map_err(refused)?;
    Ok(make_array(copy.freeze()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::sync::Arc;

    use arrow_array::{Int64Array, RecordBatch, StringArray, StringViewArray};

    use super::RetainedMemory;
    use crate::arrow::{
        StringLayout, batch_from_arrow, batch_to_arrow, schema_from_arrow, schema_to_arrow,
    };

    const ROWS: usize = 10_000;

    fn table() -> RecordBatch {
        let numbers = Int64Array::from_iter_values(0..ROWS as i64);
        let strings =
            StringArray::from_iter_values((0..ROWS).map(|row| format!("string {row:05}")));
        RecordBatch::try_from_iter([("n", Arc::new(numbers) as _), ("s", Arc::new(strings) as _)])
            .unwrap()
    }

    #[test]
    fn slices_share_what_they_retain() {
        let table = table();
        let mut retained = RetainedMemory::new(1 << 20);
        let mut bytes = Vec::new();
        for from in (0..ROWS).step_by(1000) {
            let slice = table.slice(from, 1000);
            let mut batch = batch_from_arrow(&slice).unwrap();
            bytes.push(retained.add(&slice, &mut batch).unwrap());
            assert_eq!(batch.columns, batch_from_arrow(&slice).unwrap().columns);
        }
        // 8 bytes of a number, 4 of an offset, 12 of a string.
        assert!(bytes[0] >= ROWS * 24);
        assert_eq!(bytes[1..], [0; 9]);
    }

    #[test]
    fn batches_that_retain_too_much_are_copied() {
        let mut retained = RetainedMemory::new(1000);
        for _ in 0..3 {
            let slice = table().slice(5, 10);
            let mut batch = batch_from_arrow(&slice).unwrap();
            assert!(retained.add(&slice, &mut batch).unwrap() < 500);
            let schema = schema_from_arrow(&slice.schema()).unwrap();
            let arrow_schema = Arc::new(schema_to_arrow(&schema, StringLayout::default()));
            assert_eq!(batch_to_arrow(batch, &arrow_schema).unwrap(), slice);
        }
    }

    #[test]
    fn rewritten_columns_are_their_own() {
        let views = StringViewArray::from_iter_values(
            (0..ROWS).map(|row| format!("a longer string {row}")),
        );
        let table = RecordBatch::try_from_iter([("s", Arc::new(views) as _)]).unwrap();
        let slice = table.slice(0, 10);
        let mut batch = batch_from_arrow(&slice).unwrap();
        assert!(RetainedMemory::new(0).add(&slice, &mut batch).unwrap() < 500);
    }
}
