//! Rows of parameters that are bound to a statement. It runs once for each row.

use std::sync::Arc;

use adbc_core::error::Result;
use arrow::array::{ArrayRef, NullArray, RecordBatch, RecordBatchIterator, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatchReader;

use crate::error::bad_data;

/// Rows of parameters, read as they are needed.
pub(crate) struct ParameterRows {
    batches: Box<dyn RecordBatchReader + Send>,
    batch: Option<RecordBatch>,
    next_row: usize,
}

impl ParameterRows {
    pub(crate) fn new(batches: Box<dyn RecordBatchReader + Send>) -> Self {
        Self { batches, batch: None, next_row: 0 }
    }

    /// The rows of one batch.
    pub(crate) fn of_batch(batch: RecordBatch) -> Self {
        let schema = batch.schema();
        Self::new(Box::new(RecordBatchIterator::new([Ok(batch)], schema)))
    }

    /// All rows as they came, if none was read yet.
    pub(crate) fn into_reader(self) -> Box<dyn RecordBatchReader + Send> {
        self.batches
    }

    /// The next row, as a batch; None after the last. It stays the next one.
    ///
    /// # Errors
    /// When reading the rows fails.
    pub(crate) fn peek(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = &self.batch
                && self.next_row < batch.num_rows()
            {
                return Ok(Some(batch.slice(self.next_row, 1)));
            }
            self.batch = self.batches.next().transpose().map_err(|error| bad_data(&error))?;
            self.next_row = 0;
            if self.batch.is_none() {
                return Ok(None);
            }
        }
    }

    /// The next row, as a batch; None after the last.
    ///
    /// # Errors
    /// When reading the rows fails.
    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>> {
        let row = self.peek()?;
        self.next_row += 1;
        Ok(row)
    }
}

/// A row of `count` parameters that are NULL, for a statement that is only described; None without
/// parameters.
///
/// # Errors
/// When Arrow can't make the batch.
pub(crate) fn nulls(count: usize) -> Result<Option<RecordBatch>> {
    if count == 0 {
        return Ok(None);
    }
    let null: ArrayRef = Arc::new(NullArray::new(1));
    let columns = vec![null; count];
    let row: std::result::Result<_, ArrowError> = RecordBatch::try_new_with_options(
        Arc::new(schema(count)),
        columns,
        &RecordBatchOptions::new().with_row_count(Some(1)),
    );
    row.map(Some).map_err(|error| bad_data(&error))
}

/// The schema of `count` parameters without names, whose types the statement does not tell.
pub(crate) fn schema(count: usize) -> Schema {
    Schema::new(vec![Field::new("", DataType::Null, true); count])
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::Int64Type;

    #[test]
    fn rows_come_one_by_one() {
        let batch = |values: Vec<i64>| {
            let column: ArrayRef = Arc::new(Int64Array::from(values));
            RecordBatch::try_from_iter([("a", column)]).unwrap()
        };
        let batches = [batch(vec![1, 2]), batch(vec![]), batch(vec![3])];
        let schema = batches[0].schema();
        let mut rows =
            ParameterRows::new(Box::new(RecordBatchIterator::new(batches.map(Ok), schema)));
        let value = |row: Option<RecordBatch>| {
            row.map(|row| (row.num_rows(), row.column(0).as_primitive::<Int64Type>().value(0)))
        };
        assert_eq!(value(rows.peek().unwrap()), Some((1, 1)));
        for expected in [Some((1, 1)), Some((1, 2)), Some((1, 3)), None, None] {
            assert_eq!(value(rows.next().unwrap()), expected);
        }
    }

    #[test]
    fn unbound_parameters_are_null() {
        assert!(nulls(0).unwrap().is_none());
        let row = nulls(2).unwrap().unwrap();
        assert_eq!((row.num_columns(), row.num_rows()), (2, 1));
    }
}
