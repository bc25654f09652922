//! A column as the study's own formats see it: slices to write from, and vectors to read into.
//!
//! Decimals of at most 18 digits are integers of 64 bits in all of them, as databases keep them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Date32Array, Decimal128Array, Int32Array, Int64Array, RecordBatch, StringArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, SchemaRef};

use crate::Result;

/// The value that stands for a missing one, as in MonetDB.
pub const MISSING_I32: i32 = i32::MIN;
/// As [`MISSING_I32`], for 64 bits.
pub const MISSING_I64: i64 = i64::MIN;
/// As [`MISSING_I32`], for text: no UTF-8 string begins with this byte.
pub const MISSING_TEXT: &[u8] = &[0x80];

/// The values of a column.
pub enum Values<'a> {
    /// Integers and dates.
    Int32(&'a [i32]),
    /// Long integers.
    Int64(&'a [i64]),
    /// Decimals; what is sent of them are 64 bits.
    Decimal(&'a [i128]),
    /// Strings.
    Text(&'a StringArray),
}

/// A column to write from.
pub struct Cells<'a> {
    /// The values; what lies under a missing one means nothing.
    pub values: Values<'a>,
    /// Which are there; none if all are.
    pub nulls: Option<&'a NullBuffer>,
}

impl<'a> Cells<'a> {
    /// The columns of a batch.
    ///
    /// # Errors
    /// When a column has a type that the study does not know.
    pub fn of(rows: &'a RecordBatch) -> Result<Vec<Self>> {
        rows.columns().iter().map(Self::of_array).collect()
    }

    fn of_array(array: &'a ArrayRef) -> Result<Self> {
        let values = match array.data_type() {
            DataType::Int32 => Values::Int32(array.as_primitive::<Int32Type>().values()),
            DataType::Date32 => Values::Int32(array.as_primitive::<Date32Type>().values()),
            DataType::Int64 => Values::Int64(array.as_primitive::<Int64Type>().values()),
            DataType::Decimal128(precision, _) if *precision <= 18 => {
                Values::Decimal(array.as_primitive::<Decimal128Type>().values())
            }
            DataType::Utf8 => Values::Text(array.as_string()),
            other => return Err(format!("columns of type {other} are not in the study").into()),
        };
        Ok(Self { values, nulls: array.nulls().filter(|nulls| nulls.null_count() > 0) })
    }

    /// Whether value `row` is there.
    pub fn is_valid(&self, row: usize) -> bool {
        self.nulls.is_none_or(|nulls| nulls.is_valid(row))
    }
}

/// Bytes of text `row`.
pub fn text(strings: &StringArray, row: usize) -> &[u8] {
    let (from, to) =
        (strings.value_offsets()[row] as usize, strings.value_offsets()[row + 1] as usize);
    &strings.value_data()[from..to]
}

/// Values being read.
pub enum Growing {
    /// Integers and dates.
    Int32(Vec<i32>),
    /// Long integers.
    Int64(Vec<i64>),
    /// Decimals.
    Decimal(Vec<i128>),
    /// Strings: offsets, of which the first is there already, and bytes.
    Text(Vec<i32>, Vec<u8>),
}

/// A column to read into.
pub struct Column {
    /// The values so far; a missing one has a value, too.
    pub values: Growing,
    /// Which are there. Empty as long as all are.
    valid: Vec<bool>,
    data_type: DataType,
}

impl Column {
    /// A column of a schema's field, with room.
    ///
    /// # Errors
    /// As [`Cells::of`].
    pub fn new(field: &Field, rows: usize) -> Result<Self> {
        let values = match field.data_type() {
            DataType::Int32 | DataType::Date32 => Growing::Int32(Vec::with_capacity(rows)),
            DataType::Int64 => Growing::Int64(Vec::with_capacity(rows)),
            DataType::Decimal128(..) => Growing::Decimal(Vec::with_capacity(rows)),
            DataType::Utf8 => {
                let mut offsets = Vec::with_capacity(rows + 1);
                offsets.push(0);
                Growing::Text(offsets, Vec::with_capacity(rows * 8))
            }
            other => return Err(format!("columns of type {other} are not in the study").into()),
        };
        Ok(Self { values, valid: Vec::new(), data_type: field.data_type().clone() })
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        match &self.values {
            Growing::Int32(values) => values.len(),
            Growing::Int64(values) => values.len(),
            Growing::Decimal(values) => values.len(),
            Growing::Text(offsets, _) => offsets.len() - 1,
        }
    }

    /// A missing value.
    pub fn push_missing(&mut self) {
        self.valid.resize(self.len(), true);
        self.valid.push(false);
        match &mut self.values {
            Growing::Int32(values) => values.push(0),
            Growing::Int64(values) => values.push(0),
            Growing::Decimal(values) => values.push(0),
            Growing::Text(offsets, data) => offsets.push(data.len() as i32),
        }
    }

    /// An integer, which fits the column.
    pub fn push_integer(&mut self, value: i64) {
        match &mut self.values {
            Growing::Int32(values) => values.push(value as i32),
            Growing::Int64(values) => values.push(value),
            Growing::Decimal(values) => values.push(i128::from(value)),
            Growing::Text(..) => {}
        }
    }

    /// A text.
    pub fn push_text(&mut self, value: &[u8]) {
        if let Growing::Text(offsets, data) = &mut self.values {
            data.extend_from_slice(value);
            offsets.push(data.len() as i32);
        }
    }

    /// The column as Arrow's; text is checked to be UTF-8.
    ///
    /// # Errors
    /// When it is not.
    pub fn finish(mut self) -> Result<ArrayRef> {
        let rows = self.len();
        self.valid.resize(if self.valid.is_empty() { 0 } else { rows }, true);
        let nulls = (!self.valid.is_empty()).then(|| NullBuffer::from(self.valid));
        array(self.values, nulls, &self.data_type)
    }
}

/// An array of values that were read, of this type.
///
/// # Errors
/// When text is not UTF-8.
pub fn array(values: Growing, nulls: Option<NullBuffer>, data_type: &DataType) -> Result<ArrayRef> {
    Ok(match (values, data_type) {
        (Growing::Int32(values), DataType::Date32) => {
            Arc::new(Date32Array::new(values.into(), nulls))
        }
        (Growing::Int32(values), _) => Arc::new(Int32Array::new(values.into(), nulls)),
        (Growing::Int64(values), _) => Arc::new(Int64Array::new(values.into(), nulls)),
        (Growing::Decimal(values), data_type) => {
            Arc::new(Decimal128Array::new(values.into(), nulls).with_data_type(data_type.clone()))
        }
        (Growing::Text(offsets, data), _) => {
            let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
            Arc::new(StringArray::try_new(offsets, Buffer::from(data), nulls)?)
        }
    })
}

/// The batch of columns that were read.
///
/// # Errors
/// When they do not fit the schema, or text is not UTF-8.
pub fn batch(schema: &SchemaRef, columns: Vec<Column>) -> Result<RecordBatch> {
    let arrays = columns.into_iter().map(Column::finish).collect::<Result<Vec<_>>>()?;
    Ok(RecordBatch::try_new(schema.clone(), arrays)?)
}

/// Which values are not the reserved one; none if no value is.
pub fn not_reserved<T: PartialEq + Copy>(values: &[T], reserved: T) -> Option<NullBuffer> {
    let missing = values.iter().filter(|value| **value == reserved).count();
    (missing > 0).then(|| {
        NullBuffer::new(BooleanBuffer::collect_bool(values.len(), |i| values[i] != reserved))
    })
}

/// The values, with `missing` in place of those that are not there.
pub fn filled<T: Copy>(values: &[T], nulls: &NullBuffer, missing: T) -> Vec<T> {
    let mut out = Vec::with_capacity(values.len());
    for (valid, block) in nulls.inner().bit_chunks().iter_padded().zip(values.chunks(64)) {
        out.extend(
            block
                .iter()
                .enumerate()
                .map(|(i, value)| if valid >> i & 1 == 1 { *value } else { missing }),
        );
    }
    out
}

/// The values that are there.
pub fn present<T: Copy>(values: &[T], nulls: &NullBuffer) -> Vec<T> {
    let mut out = Vec::with_capacity(values.len() - nulls.null_count());
    for (mut valid, block) in nulls.inner().bit_chunks().iter_padded().zip(values.chunks(64)) {
        if valid == u64::MAX {
            out.extend_from_slice(block);
            continue;
        }
        while valid != 0 {
            out.push(block[valid.trailing_zeros() as usize]);
            valid &= valid - 1;
        }
    }
    out
}
