//! Rows of parameters that are bound to a statement. It runs once for each row.

use std::sync::Arc;

use adbc_core::error::Result;
use arrow::array::{
    Array, ArrayRef, NullArray, RecordBatch, RecordBatchIterator, RecordBatchOptions,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatchReader;

use dray_client::{ParameterTyping, SourceKind};

use crate::error::bad_data;

/// Rows of parameters, read as they are needed.
pub(crate) struct ParameterRows {
    batches: Box<dyn RecordBatchReader + Send>,
    batch: Option<RecordBatch>,
    next_row: usize,
    /// Of several rows for PostgreSQL: the columns in which integers of 64 bits become shorter
    /// ones, once they are known.
    narrow: Option<Option<Vec<bool>>>,
}

impl ParameterRows {
    /// The rows of a stream, for this kind of server.
    pub(crate) fn new(batches: Box<dyn RecordBatchReader + Send>, kind: SourceKind) -> Self {
        let narrow = (kind == SourceKind::Postgres).then_some(None);
        Self { batches, batch: None, next_row: 0, narrow }
    }

    /// The rows of one batch, for this kind of server.
    pub(crate) fn of_batch(batch: RecordBatch, kind: SourceKind) -> Self {
        let (schema, is_single) = (batch.schema(), batch.num_rows() <= 1);
        let mut rows = Self::new(Box::new(RecordBatchIterator::new([Ok(batch)], schema)), kind);
        rows.narrow = rows.narrow.filter(|_| !is_single);
        rows
    }

    /// How a PostgreSQL server is told the types. A single row is sent as literals would be.
    /// Several rows need one type each column, or their results would differ in types.
    pub(crate) fn typing(&self) -> ParameterTyping {
        match self.narrow {
            Some(_) => ParameterTyping::Columns,
            None => ParameterTyping::Values,
        }
    }

    /// The batch with integers of 64 bits as `integer`, in columns in which the first batch fits
    /// it. One by one they would be sent so, too: many functions take no `bigint`.
    fn narrowed(&mut self, batch: RecordBatch) -> std::result::Result<RecordBatch, ArrowError> {
        let Some(first) = &mut self.narrow else { return Ok(batch) };
        let fits = batch.columns().iter().map(|column| fits_integer(column.as_ref()));
        let fits: Vec<bool> = fits.collect::<std::result::Result<_, ArrowError>>()?;
        let first = first.get_or_insert_with(|| fits.clone());
        let (mut fields, mut columns) = (Vec::new(), Vec::new());
        for (i, (field, column)) in batch.schema().fields().iter().zip(batch.columns()).enumerate()
        {
            let narrow = fits[i] && first.get(i).copied().unwrap_or_default();
            let column = if narrow { cast(column, &DataType::Int32)? } else { column.clone() };
            fields.push(field.as_ref().clone().with_data_type(column.data_type().clone()));
            columns.push(column);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
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
            let batch = self.batches.next().transpose();
            let batch = batch.and_then(|batch| batch.map(|it| self.narrowed(it)).transpose());
            self.batch = batch.map_err(|error| bad_data(&error))?;
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

/// Whether a column of 64-bit integers has only values of 32 bits.
fn fits_integer(column: &dyn Array) -> std::result::Result<bool, ArrowError> {
    match column.data_type() {
        DataType::Int64 | DataType::UInt32 => {
            let shorter = cast(column, &DataType::Int32)?;
            // What does not fit becomes NULL.
            Ok(shorter.null_count() == column.null_count())
        }
        _ => Ok(false),
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
        let mut rows = ParameterRows::new(
            Box::new(RecordBatchIterator::new(batches.map(Ok), schema)),
            SourceKind::Dray,
        );
        let value = |row: Option<RecordBatch>| {
            row.map(|row| (row.num_rows(), row.column(0).as_primitive::<Int64Type>().value(0)))
        };
        assert_eq!(value(rows.peek().unwrap()), Some((1, 1)));
        for expected in [Some((1, 1)), Some((1, 2)), Some((1, 3)), None, None] {
            assert_eq!(value(rows.next().unwrap()), expected);
        }
    }

    #[test]
    fn integers_are_as_short_as_the_first_batch() {
        let batch = |values: Vec<Option<i64>>| {
            let column: ArrayRef = Arc::new(Int64Array::from(values));
            RecordBatch::try_from_iter([("a", column)]).unwrap()
        };
        let types = |kind, batches: Vec<RecordBatch>| {
            let schema = batches[0].schema();
            let batches = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
            let mut rows = ParameterRows::new(Box::new(batches), kind);
            std::iter::from_fn(|| rows.next().unwrap())
                .map(|row| row.column(0).data_type().clone())
                .collect::<Vec<_>>()
        };
        let (short, long) = (batch(vec![Some(1), None]), batch(vec![Some(1), Some(1 << 40)]));
        let (int32, int64) = (DataType::Int32, DataType::Int64);
        let all = |of: &DataType| vec![of.clone(); 2];
        assert_eq!(
            types(SourceKind::Postgres, vec![short.clone(), long.clone(), short.clone()]),
            [all(&int32), all(&int64), all(&int32)].concat()
        );
        let both = types(SourceKind::Postgres, vec![long, short.clone()]);
        assert_eq!(both, [all(&int64), all(&int64)].concat());
        assert_eq!(types(SourceKind::Dray, vec![short.clone()]), all(&int64));
        let typing = |batch| ParameterRows::of_batch(batch, SourceKind::Postgres).typing();
        assert_eq!(typing(short.slice(0, 1)), ParameterTyping::Values);
        assert_eq!(typing(short), ParameterTyping::Columns);
    }

    #[test]
    fn unbound_parameters_are_null() {
        assert!(nulls(0).unwrap().is_none());
        let row = nulls(2).unwrap().unwrap();
        assert_eq!((row.num_columns(), row.num_rows()), (2, 1));
    }
}
