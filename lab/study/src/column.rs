//! Columns for the study's own formats: borrowed slices to encode, and vectors to decode into.
//!
//! All these formats store decimals of at most 18 digits as 64-bit integers, as databases do.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Date32Array, Decimal128Array, Int32Array, Int64Array, RecordBatch, StringArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, SchemaRef};

use crate::Result;

/// The reserved value for a missing 32-bit integer, as in MonetDB.
pub const MISSING_I32: i32 = i32::MIN;
/// The reserved value for a missing 64-bit integer.
pub const MISSING_I64: i64 = i64::MIN;
/// The reserved value for missing text: no UTF-8 string begins with this byte.
pub const MISSING_TEXT: &[u8] = &[0x80];

/// The values of a column.
pub enum Values<'a> {
    /// 32-bit integers and dates.
    Int32(&'a [i32]),
    /// 64-bit integers.
    Int64(&'a [i64]),
    /// Decimals, of which the low 64 bits are encoded.
    Decimal(&'a [i128]),
    /// Strings.
    Text(&'a StringArray),
}

/// A borrowed column to encode.
pub struct ColumnView<'a> {
    /// The values. Those at missing positions are unspecified.
    pub values: Values<'a>,
    /// Validity of each value; `None` if no value is missing.
    pub nulls: Option<&'a NullBuffer>,
}

impl<'a> ColumnView<'a> {
    /// The columns of a batch.
    ///
    /// # Errors
    /// If the study does not support a column's type.
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

    /// Whether the value of `row` is not missing.
    pub fn is_valid(&self, row: usize) -> bool {
        self.nulls.is_none_or(|nulls| nulls.is_valid(row))
    }
}

/// The bytes of the string in `row`.
pub fn text(strings: &StringArray, row: usize) -> &[u8] {
    let (from, to) =
        (strings.value_offsets()[row] as usize, strings.value_offsets()[row + 1] as usize);
    &strings.value_data()[from..to]
}

/// Decoded values.
pub enum ValueBuffer {
    /// 32-bit integers and dates.
    Int32(Vec<i32>),
    /// 64-bit integers.
    Int64(Vec<i64>),
    /// Decimals.
    Decimal(Vec<i128>),
    /// Strings: offsets, beginning with 0, and bytes.
    Text(Vec<i32>, Vec<u8>),
}

/// A column that is being decoded.
pub struct ColumnBuilder {
    /// The values so far, with a placeholder for each missing one.
    pub values: ValueBuffer,
    /// Validity of each value; empty until the first missing one.
    valid: Vec<bool>,
    data_type: DataType,
}

impl ColumnBuilder {
    /// An empty column of a field's type, with capacity for `rows` values.
    ///
    /// # Errors
    /// If the study does not support the type.
    pub fn new(field: &Field, rows: usize) -> Result<Self> {
        let values = match field.data_type() {
            DataType::Int32 | DataType::Date32 => ValueBuffer::Int32(Vec::with_capacity(rows)),
            DataType::Int64 => ValueBuffer::Int64(Vec::with_capacity(rows)),
            DataType::Decimal128(..) => ValueBuffer::Decimal(Vec::with_capacity(rows)),
            DataType::Utf8 => {
                let mut offsets = Vec::with_capacity(rows + 1);
                offsets.push(0);
                ValueBuffer::Text(offsets, Vec::with_capacity(rows * 8))
            }
            other => return Err(format!("columns of type {other} are not in the study").into()),
        };
        Ok(Self { values, valid: Vec::new(), data_type: field.data_type().clone() })
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        match &self.values {
            ValueBuffer::Int32(values) => values.len(),
            ValueBuffer::Int64(values) => values.len(),
            ValueBuffer::Decimal(values) => values.len(),
            ValueBuffer::Text(offsets, _) => offsets.len() - 1,
        }
    }

    /// Appends a missing value.
    pub fn push_missing(&mut self) {
        self.valid.resize(self.len(), true);
        self.valid.push(false);
        match &mut self.values {
            ValueBuffer::Int32(values) => values.push(0),
            ValueBuffer::Int64(values) => values.push(0),
            ValueBuffer::Decimal(values) => values.push(0),
            ValueBuffer::Text(offsets, data) => offsets.push(data.len() as i32),
        }
    }

    /// Appends an integer, which must fit the column's type.
    pub fn push_integer(&mut self, value: i64) {
        match &mut self.values {
            ValueBuffer::Int32(values) => values.push(value as i32),
            ValueBuffer::Int64(values) => values.push(value),
            ValueBuffer::Decimal(values) => values.push(i128::from(value)),
            ValueBuffer::Text(..) => {}
        }
    }

    /// Appends a string.
    pub fn push_text(&mut self, value: &[u8]) {
        if let ValueBuffer::Text(offsets, data) = &mut self.values {
            data.extend_from_slice(value);
            offsets.push(data.len() as i32);
        }
    }

    /// The column as an Arrow array.
    ///
    /// # Errors
    /// If text is not UTF-8.
    pub fn finish(mut self) -> Result<ArrayRef> {
        let rows = self.len();
        self.valid.resize(if self.valid.is_empty() { 0 } else { rows }, true);
        let nulls = (!self.valid.is_empty()).then(|| NullBuffer::from(self.valid));
        array(self.values, nulls, &self.data_type)
    }
}

/// An Arrow array of decoded values.
///
/// # Errors
/// If text is not UTF-8.
pub fn array(
    values: ValueBuffer,
    nulls: Option<NullBuffer>,
    data_type: &DataType,
) -> Result<ArrayRef> {
    Ok(match (values, data_type) {
        (ValueBuffer::Int32(values), DataType::Date32) => {
            Arc::new(Date32Array::new(values.into(), nulls))
        }
        (ValueBuffer::Int32(values), _) => Arc::new(Int32Array::new(values.into(), nulls)),
        (ValueBuffer::Int64(values), _) => Arc::new(Int64Array::new(values.into(), nulls)),
        (ValueBuffer::Decimal(values), data_type) => {
            Arc::new(Decimal128Array::new(values.into(), nulls).with_data_type(data_type.clone()))
        }
        (ValueBuffer::Text(offsets, data), _) => {
            let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
            Arc::new(StringArray::try_new(offsets, Buffer::from(data), nulls)?)
        }
    })
}

/// A record batch of decoded columns.
///
/// # Errors
/// If the columns do not match the schema, or text is not UTF-8.
pub fn batch(schema: &SchemaRef, columns: Vec<ColumnBuilder>) -> Result<RecordBatch> {
    let arrays = columns.into_iter().map(ColumnBuilder::finish).collect::<Result<Vec<_>>>()?;
    Ok(RecordBatch::try_new(schema.clone(), arrays)?)
}

/// Validity of values where `reserved` stands for a missing one; `None` if none is missing.
pub fn validity<T: PartialEq + Copy>(values: &[T], reserved: T) -> Option<NullBuffer> {
    let missing = values.iter().filter(|value| **value == reserved).count();
    (missing > 0).then(|| {
        NullBuffer::new(BooleanBuffer::collect_bool(values.len(), |i| values[i] != reserved))
    })
}

/// The values, with `missing` at each missing position.
pub fn fill_missing<T: Copy>(values: &[T], nulls: &NullBuffer, missing: T) -> Vec<T> {
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

/// The values without the missing ones.
pub fn present_values<T: Copy>(values: &[T], nulls: &NullBuffer) -> Vec<T> {
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
