//! Missing values: a reserved value of the domain (the paper's MonetDB++), a bitmap with dense
//! values, or a bitmap with the missing values left out (its PostgreSQL++).

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Int32Array, RecordBatch};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;

use crate::Result;
use crate::codec::{AnyCodec, Codec, Compressed, Input};
use crate::column::{
    ColumnBuilder, ColumnView, ValueBuffer, Values, array, fill_missing, present_values, text,
};
use crate::compressors::Compressor;
use crate::data::Random;
use crate::dray::Dray;
use crate::row_major::ColumnMajor;

/// Percentages of missing values in the generated columns.
pub const SHARES: [u64; 5] = [0, 1, 16, 50, 99];
const SEED: u64 = 20170828;

/// A codec for columns with a bitmap each, if a value is missing.
struct Bitmaps {
    schema: SchemaRef,
    left_out: bool,
}

impl Codec for Bitmaps {
    fn encode(&self, rows: &RecordBatch) -> Result<Vec<Bytes>> {
        let count = rows.num_rows();
        let mut out = Vec::with_capacity(count * rows.num_columns() * 6);
        out.extend_from_slice(&u32::try_from(count)?.to_le_bytes());
        for column in ColumnView::of(rows)? {
            out.push(u8::from(column.nulls.is_some()));
            if let Some(nulls) = column.nulls {
                out.extend_from_slice(
                    nulls.inner().sliced().as_slice().get(..count.div_ceil(8)).unwrap_or_default(),
                );
            }
            match column.values {
                Values::Int32(values) => {
                    self.put(values, column.nulls, |value| value.to_le_bytes(), &mut out)
                }
                Values::Int64(values) => {
                    self.put(values, column.nulls, |value| value.to_le_bytes(), &mut out)
                }
                Values::Decimal(values) => {
                    self.put(values, column.nulls, |value| (value as i64).to_le_bytes(), &mut out);
                }
                Values::Text(strings) => {
                    for row in 0..count {
                        let valid = column.is_valid(row);
                        if valid || !self.left_out {
                            out.extend_from_slice(if valid { text(strings, row) } else { b"" });
                            out.push(0);
                        }
                    }
                }
            }
        }
        Ok(vec![out.into()])
    }

    fn decode(&self, message: Bytes) -> Result<RecordBatch> {
        let mut input = Input(&message);
        let rows = input.u32()?;
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        for field in self.schema.fields() {
            let nulls = match input.array()? {
                [0] => None,
                _ => {
                    let bits = Buffer::from(input.take(rows.div_ceil(8))?);
                    Some(NullBuffer::new(BooleanBuffer::new(bits, 0, rows)))
                }
            };
            let values = match field.data_type() {
                DataType::Int32 | DataType::Date32 => ValueBuffer::Int32(self.take(
                    &mut input,
                    rows,
                    nulls.as_ref(),
                    i32::from_le_bytes,
                )?),
                DataType::Int64 => ValueBuffer::Int64(self.take(
                    &mut input,
                    rows,
                    nulls.as_ref(),
                    i64::from_le_bytes,
                )?),
                DataType::Decimal128(..) => {
                    let wide = |raw| i128::from(i64::from_le_bytes(raw));
                    ValueBuffer::Decimal(self.take(&mut input, rows, nulls.as_ref(), wide)?)
                }
                _ => {
                    let mut column = ColumnBuilder::new(field, rows)?;
                    for row in 0..rows {
                        let sent = !self.left_out
                            || nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                        column.push_text(if sent { input.terminated()? } else { b"" });
                    }
                    column.values
                }
            };
            arrays.push(array(values, nulls, field.data_type())?);
        }
        Ok(RecordBatch::try_new(self.schema.clone(), arrays)?)
    }
}

impl Bitmaps {
    fn put<T: Copy + Default, const N: usize>(
        &self,
        values: &[T],
        nulls: Option<&NullBuffer>,
        bytes: impl Fn(T) -> [u8; N],
        out: &mut Vec<u8>,
    ) {
        match nulls {
            None => out.extend(values.iter().flat_map(|value| bytes(*value))),
            Some(nulls) => {
                let values = if self.left_out {
                    present_values(values, nulls)
                } else {
                    fill_missing(values, nulls, T::default())
                };
                out.extend(values.into_iter().flat_map(bytes));
            }
        }
    }

    fn take<T: Copy + Default, const N: usize>(
        &self,
        input: &mut Input<'_>,
        rows: usize,
        nulls: Option<&NullBuffer>,
        value: impl Fn([u8; N]) -> T,
    ) -> Result<Vec<T>> {
        match nulls.filter(|_| self.left_out) {
            None => {
                Ok(input.take(rows * N)?.as_chunks::<N>().0.iter().map(|raw| value(*raw)).collect())
            }
            Some(nulls) => {
                let sent = input.take((rows - nulls.null_count()) * N)?.as_chunks::<N>().0;
                let mut values = vec![T::default(); rows];
                nulls.valid_indices().zip(sent).for_each(|(i, raw)| values[i] = value(*raw));
                Ok(values)
            }
        }
    }
}

/// Two integer columns of lineitem, with many and with few distinct values, of which `share`
/// percent at random are missing.
///
/// # Errors
/// If lineitem lacks one of the columns.
pub fn with_missing(lineitem: &RecordBatch, share: u64) -> Result<RecordBatch> {
    let mut random = Random(SEED + share);
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for name in ["l_partkey", "l_linenumber"] {
        let column = lineitem
            .column_by_name(name)
            .ok_or("lineitem lacks a column")?
            .as_primitive::<Int32Type>();
        let values =
            column.values().iter().map(|value| (random.below(100) >= share).then_some(*value));
        arrays.push(Arc::new(values.collect::<Int32Array>()));
        fields.push(Field::new(name, DataType::Int32, true));
    }
    Ok(RecordBatch::try_new(Schema::new(fields).into(), arrays)?)
}

/// Every representation, plain and under Snappy, and Dray's.
///
/// # Errors
/// If Dray does not support the schema.
pub fn cases(schema: &SchemaRef) -> Result<Vec<(String, AnyCodec)>> {
    let mut cases: Vec<(String, AnyCodec)> = Vec::new();
    for name in ["Reserved value", "Bitmap, dense", "Bitmap, left out"] {
        let codec = || -> AnyCodec {
            match name {
                "Reserved value" => Box::new(ColumnMajor::new(schema)),
                _ => Box::new(Bitmaps { schema: schema.clone(), left_out: name.ends_with("out") }),
            }
        };
        let compressed = Compressed { inner: codec(), compressor: Compressor::Snappy };
        cases.push((name.into(), codec()));
        cases.push((format!("{name} +C"), Box::new(compressed)));
    }
    for (name, compression) in [
        ("Dray none", dray_format::Compression::None),
        ("Dray compact", dray_format::Compression::Compact),
        ("Dray light", dray_format::Compression::Light),
    ] {
        cases.push((name.into(), Box::new(Dray::new(schema, compression)?)));
    }
    Ok(cases)
}
