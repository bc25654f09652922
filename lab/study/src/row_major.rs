//! Table 4: the same values row by row and column by column, in the paper's binary format: dates
//! are days, strings end with a zero byte, and a reserved value of the type stands for a missing
//! one.

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use bytes::Bytes;

use crate::Result;
use crate::codec::{AnyCodec, Codec, Compressed, Input};
use crate::column::{
    ColumnBuilder, ColumnView, MISSING_I32, MISSING_I64, MISSING_TEXT, ValueBuffer, Values, array,
    batch, fill_missing, text, validity,
};
use crate::compressors::COMPRESSORS;

/// A codec that stores rows one after another.
pub struct RowMajor(SchemaRef);

/// A codec that stores columns one after another. The length in bytes precedes a text column.
pub struct ColumnMajor(SchemaRef);

impl RowMajor {
    /// A codec for this schema.
    pub fn new(schema: &SchemaRef) -> Self {
        Self(schema.clone())
    }
}

impl ColumnMajor {
    /// A codec for this schema.
    pub fn new(schema: &SchemaRef) -> Self {
        Self(schema.clone())
    }
}

impl Codec for RowMajor {
    fn encode(&self, rows: &RecordBatch) -> Result<Vec<Bytes>> {
        let columns = ColumnView::of(rows)?;
        let mut out = Vec::with_capacity(rows.num_rows() * columns.len() * 6);
        out.extend_from_slice(&u32::try_from(rows.num_rows())?.to_le_bytes());
        for row in 0..rows.num_rows() {
            for column in &columns {
                let valid = column.is_valid(row);
                match column.values {
                    Values::Int32(values) => {
                        let value = if valid { values[row] } else { MISSING_I32 };
                        out.extend_from_slice(&value.to_le_bytes());
                    }
                    Values::Int64(values) => {
                        let value = if valid { values[row] } else { MISSING_I64 };
                        out.extend_from_slice(&value.to_le_bytes());
                    }
                    Values::Decimal(values) => {
                        let value = if valid { values[row] as i64 } else { MISSING_I64 };
                        out.extend_from_slice(&value.to_le_bytes());
                    }
                    Values::Text(strings) => {
                        out.extend_from_slice(if valid {
                            text(strings, row)
                        } else {
                            MISSING_TEXT
                        });
                        out.push(0);
                    }
                }
            }
        }
        Ok(vec![out.into()])
    }

    fn decode(&self, message: Bytes) -> Result<RecordBatch> {
        let mut input = Input(&message);
        let rows = input.u32()?;
        let fields = self.0.fields();
        let mut columns = fields
            .iter()
            .map(|field| ColumnBuilder::new(field, rows))
            .collect::<Result<Vec<_>>>()?;
        for _ in 0..rows {
            for column in &mut columns {
                match &column.values {
                    ValueBuffer::Int32(_) => match i32::from_le_bytes(input.array()?) {
                        MISSING_I32 => column.push_missing(),
                        value => column.push_integer(i64::from(value)),
                    },
                    ValueBuffer::Int64(_) | ValueBuffer::Decimal(_) => {
                        match i64::from_le_bytes(input.array()?) {
                            MISSING_I64 => column.push_missing(),
                            value => column.push_integer(value),
                        }
                    }
                    ValueBuffer::Text(..) => match input.terminated()? {
                        MISSING_TEXT => column.push_missing(),
                        value => column.push_text(value),
                    },
                }
            }
        }
        batch(&self.0, columns)
    }
}

impl Codec for ColumnMajor {
    fn encode(&self, rows: &RecordBatch) -> Result<Vec<Bytes>> {
        let columns = ColumnView::of(rows)?;
        let mut out = Vec::with_capacity(rows.num_rows() * columns.len() * 6);
        out.extend_from_slice(&u32::try_from(rows.num_rows())?.to_le_bytes());
        for column in &columns {
            match column.values {
                Values::Int32(values) => {
                    put_fixed(&mut out, values, column, MISSING_I32, |value| value.to_le_bytes())
                }
                Values::Int64(values) => {
                    put_fixed(&mut out, values, column, MISSING_I64, |value| value.to_le_bytes())
                }
                Values::Decimal(values) => {
                    let missing = i128::from(MISSING_I64);
                    put_fixed(&mut out, values, column, missing, |value| {
                        (value as i64).to_le_bytes()
                    });
                }
                Values::Text(strings) => {
                    let at = out.len();
                    out.extend_from_slice(&[0; 4]);
                    for row in 0..rows.num_rows() {
                        out.extend_from_slice(if column.is_valid(row) {
                            text(strings, row)
                        } else {
                            MISSING_TEXT
                        });
                        out.push(0);
                    }
                    let bytes = u32::try_from(out.len() - at - 4)?;
                    out[at..at + 4].copy_from_slice(&bytes.to_le_bytes());
                }
            }
        }
        Ok(vec![out.into()])
    }

    fn decode(&self, message: Bytes) -> Result<RecordBatch> {
        let mut input = Input(&message);
        let rows = input.u32()?;
        let mut arrays = Vec::with_capacity(self.0.fields().len());
        for field in self.0.fields() {
            let data_type = field.data_type();
            arrays.push(match data_type {
                DataType::Int32 | DataType::Date32 => {
                    let values: Vec<_> = fixed(&mut input, rows)?
                        .iter()
                        .map(|raw| i32::from_le_bytes(*raw))
                        .collect();
                    let nulls = validity(&values, MISSING_I32);
                    array(ValueBuffer::Int32(values), nulls, data_type)?
                }
                DataType::Int64 => {
                    let values: Vec<_> = fixed(&mut input, rows)?
                        .iter()
                        .map(|raw| i64::from_le_bytes(*raw))
                        .collect();
                    let nulls = validity(&values, MISSING_I64);
                    array(ValueBuffer::Int64(values), nulls, data_type)?
                }
                DataType::Decimal128(..) => {
                    let raw = fixed(&mut input, rows)?;
                    let values: Vec<_> =
                        raw.iter().map(|raw| i128::from(i64::from_le_bytes(*raw))).collect();
                    let nulls = validity(&values, i128::from(MISSING_I64));
                    array(ValueBuffer::Decimal(values), nulls, data_type)?
                }
                _ => {
                    let bytes = input.u32()?;
                    let mut strings = Input(input.take(bytes)?);
                    let mut column = ColumnBuilder::new(field, rows)?;
                    for _ in 0..rows {
                        match strings.terminated()? {
                            MISSING_TEXT => column.push_missing(),
                            value => column.push_text(value),
                        }
                    }
                    column.finish()?
                }
            });
        }
        Ok(RecordBatch::try_new(self.0.clone(), arrays)?)
    }
}

fn put_fixed<T: Copy, const N: usize>(
    out: &mut Vec<u8>,
    values: &[T],
    column: &ColumnView<'_>,
    missing: T,
    bytes: impl Fn(T) -> [u8; N],
) {
    match column.nulls {
        None => out.extend(values.iter().flat_map(|value| bytes(*value))),
        Some(nulls) => out.extend(fill_missing(values, nulls, missing).into_iter().flat_map(bytes)),
    }
}

fn fixed<'a, const N: usize>(input: &mut Input<'a>, rows: usize) -> Result<&'a [[u8; N]]> {
    Ok(input.take(rows * N)?.as_chunks::<N>().0)
}

/// Both orders under each compressor. All rows are one message.
pub fn cases(schema: &SchemaRef) -> Vec<(String, AnyCodec)> {
    let mut cases: Vec<(String, AnyCodec)> = Vec::new();
    for order in ["Column", "Row"] {
        let plain = || match order {
            "Row" => Box::new(RowMajor::new(schema)) as AnyCodec,
            _ => Box::new(ColumnMajor::new(schema)),
        };
        cases.push((format!("None, {order}"), plain()));
        for (name, compressor) in COMPRESSORS {
            cases.push((
                format!("{name}, {order}"),
                Box::new(Compressed { inner: plain(), compressor }),
            ));
        }
    }
    cases
}
