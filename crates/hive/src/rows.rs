//! Rows of a result, which come as columns: a list of values, and a bitmap of those that are NULL.
//!
//! ```text
//!   TRowSet { columns: [TColumn] } ─▶ Values: as they come ─▶ arrays of Arrow
//! ```

use std::io::{Read, Write};
use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, NullArray,
    PrimitiveArray, RecordBatch, RecordBatchOptions, StringArray, TimestampMicrosecondArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::SchemaRef;

use crate::column::{Column, Decode};
use crate::error::{Error, Result};
use crate::text::{date, decimal, timestamp, timestamp_utc};
use crate::thrift::{Kind, Reader};

/// What a result's rows look like.
#[derive(Debug)]
pub(crate) struct Types<'a> {
    pub(crate) schema: &'a SchemaRef,
    pub(crate) columns: &'a [Column],
    /// The rows that came before.
    pub(crate) rows_before: u64,
}

/// The values of a column as they come.
#[derive(Debug)]
enum Values {
    Bool(Vec<bool>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    Double(Vec<f64>),
    Bytes(Strings),
}

/// Strings, one after the other, and where each begins and ends.
#[derive(Debug)]
struct Strings {
    offsets: Vec<i32>,
    data: Vec<u8>,
}

impl Strings {
    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.offsets.windows(2).map(|ends| &self.data[ends[0] as usize..ends[1] as usize])
    }
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Self::Bool(values) => values.len(),
            Self::I8(values) => values.len(),
            Self::I16(values) => values.len(),
            Self::I32(values) => values.len(),
            Self::I64(values) => values.len(),
            Self::Double(values) => values.len(),
            Self::Bytes(strings) => strings.offsets.len() - 1,
        }
    }
}

/// Reads the struct `TRowSet`, all of it. The rows are None if it has no columns, as after the last
/// row of some servers, and an error if a value does not fit.
///
/// # Errors
/// If its columns are not those of `types`, or have not one value for each row.
pub(crate) fn read_row_set<S: Read + Write>(
    reader: &mut Reader<'_, S>,
    types: &Types<'_>,
) -> Result<Result<Option<RecordBatch>>> {
    let (mut arrays, mut unfit): (Vec<ArrayRef>, _) = (Vec::new(), None);
    let mut rows = None;
    while let Some((kind, field)) = reader.field()? {
        match (kind, field) {
            (Kind::List, 2) => {
                if reader.list(Kind::Struct)? > 0 {
                    return Err(Error::protocol("rows came one by one"));
                }
            }
            (Kind::List, 3) => {
                let count = reader.list(Kind::Struct)?;
                if count == 0 {
                    continue;
                }
                if count != types.columns.len() || rows.is_some() {
                    let announced = types.columns.len();
                    let what = format!("rows of {count} columns, and {announced} were announced");
                    return Err(Error::protocol(what));
                }
                for column in types.columns {
                    let (values, nulls) = read_column(reader, column)?;
                    let expected = *rows.get_or_insert(values.len());
                    if values.len() != expected {
                        let name = column.field.name();
                        let found = values.len();
                        let what =
                            format!("column {name:?} has {found} values, others have {expected}");
                        return Err(Error::protocol(what));
                    }
                    match array(column, values, nulls, types.rows_before) {
                        Ok(array) => arrays.push(array),
                        Err(error @ Error::Value { .. }) => unfit = unfit.or(Some(error)),
                        Err(error) => return Err(error),
                    }
                }
            }
            (Kind::Binary, 4) => {
                let bytes = reader.length()?;
                if bytes > 0 {
                    return Err(Error::protocol("rows came in a form of Hive's own"));
                }
            }
            _ => reader.skip(kind)?,
        }
    }
    if let Some(error) = unfit {
        return Ok(Err(error));
    }
    let Some(rows) = rows else { return Ok(Ok(None)) };
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(types.schema.clone(), arrays, &options)
        .map(|batch| Ok(Some(batch)))
        .map_err(Error::protocol)
}

/// Reads the union `TColumn`.
fn read_column<S: Read + Write>(
    reader: &mut Reader<'_, S>,
    column: &Column,
) -> Result<(Values, Option<NullBuffer>)> {
    let other =
        |what: &str| Error::protocol(format!("column {:?} came as {what}", column.field.name()));
    let Some((Kind::Struct, variant)) = reader.field()? else { return Err(other("nothing")) };
    let (mut values, mut nulls) = (None, None);
    while let Some((kind, field)) = reader.field()? {
        match (kind, field) {
            (Kind::List, 1) if values.is_none() => values = Some(read_values(reader, variant)?),
            (Kind::Binary, 2) if nulls.is_none() => {
                let mut bytes = Vec::new();
                let length = reader.length()?;
                reader.copy(length, &mut bytes)?;
                nulls = Some(bytes);
            }
            _ => return Err(other("another struct")),
        }
    }
    let (Some(values), Some(nulls), None) = (values, nulls, reader.field()?) else {
        return Err(other("another struct"));
    };
    let nulls =
        null_buffer(nulls, values.len()).ok_or_else(|| other("fewer values than its NULLs"))?;
    Ok((values, nulls))
}

/// The validity of `len` rows. A bit is 1 where the value is NULL, the first row's is the lowest of
/// the first byte. Bytes at the end that are 0 may be missing. None if more rows are NULL.
fn null_buffer(mut nulls: Vec<u8>, len: usize) -> Option<Option<NullBuffer>> {
    let is_beyond =
        |i: usize, byte: u8| (0..8).any(|bit| byte >> bit & 1 == 1 && i * 8 + bit >= len);
    if nulls.iter().enumerate().skip(len / 8).any(|(i, byte)| is_beyond(i, *byte)) {
        return None;
    }
    if nulls.iter().all(|byte| *byte == 0) {
        return Some(None);
    }
    nulls.resize(len.div_ceil(8), 0);
    nulls.iter_mut().for_each(|byte| *byte = !*byte);
    Some(Some(NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(nulls), 0, len))))
}

/// Reads a list of the values that belong to a variant of `TColumn`.
fn read_values<S: Read + Write>(reader: &mut Reader<'_, S>, variant: i16) -> Result<Values> {
    Ok(match variant {
        1 => {
            let mut values = Vec::new();
            for _ in 0..reader.list(Kind::Bool)? {
                values.push(reader.bool()?);
            }
            Values::Bool(values)
        }
        2 => Values::I8(fixed(reader, Kind::I8, i8::from_be_bytes)?),
        3 => Values::I16(fixed(reader, Kind::I16, i16::from_be_bytes)?),
        4 => Values::I32(fixed(reader, Kind::I32, i32::from_be_bytes)?),
        5 => Values::I64(fixed(reader, Kind::I64, i64::from_be_bytes)?),
        6 => Values::Double(fixed(reader, Kind::Double, f64::from_be_bytes)?),
        7 | 8 => {
            let mut strings = Strings { offsets: vec![0], data: Vec::new() };
            for _ in 0..reader.list(Kind::Binary)? {
                let length = reader.length()?;
                reader.copy(length, &mut strings.data)?;
                let end = i32::try_from(strings.data.len());
                let end = end.map_err(|_| Error::Limit("strings are over 2 GiB".to_owned()))?;
                strings.offsets.push(end);
            }
            Values::Bytes(strings)
        }
        _ => return Err(Error::protocol(format!("a column of the kind {variant}"))),
    })
}

/// Reads a list of values of fixed width. The vector grows with what has come.
fn fixed<S: Read + Write, T, const N: usize>(
    reader: &mut Reader<'_, S>,
    kind: Kind,
    value: impl Fn([u8; N]) -> T,
) -> Result<Vec<T>> {
    let count = reader.list(kind)?;
    let mut values = Vec::new();
    for _ in 0..count {
        values.push(value(reader.array()?));
    }
    Ok(values)
}

/// The values as the column's type has them.
fn array(
    column: &Column,
    values: Values,
    nulls: Option<NullBuffer>,
    rows_before: u64,
) -> Result<ArrayRef> {
    let rows = Rows { column, nulls, rows_before };
    Ok(match (column.decode, values) {
        (Decode::Null, values) => {
            if rows.nulls.as_ref().map_or(0, NullBuffer::null_count) < values.len() {
                return Err(Error::protocol("a column of NULLs has other values"));
            }
            Arc::new(NullArray::new(values.len()))
        }
        (Decode::Bool, Values::Bool(values)) => {
            Arc::new(BooleanArray::new(BooleanBuffer::from(values), rows.nulls))
        }
        (Decode::I8, Values::I8(values)) => primitive::<Int8Type>(values, rows.nulls),
        (Decode::I16, Values::I16(values)) => primitive::<Int16Type>(values, rows.nulls),
        (Decode::I32, Values::I32(values)) => primitive::<Int32Type>(values, rows.nulls),
        (Decode::I64, Values::I64(values)) => primitive::<Int64Type>(values, rows.nulls),
        (Decode::Double, Values::Double(values)) => primitive::<Float64Type>(values, rows.nulls),
        (Decode::Float, Values::Double(values)) => Arc::new(rows.floats(&values)?),
        (Decode::Binary, Values::Bytes(Strings { offsets, data })) => {
            let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
            let array = BinaryArray::try_new(offsets, Buffer::from_vec(data), rows.nulls);
            Arc::new(array.map_err(Error::protocol)?)
        }
        (Decode::Text, Values::Bytes(strings)) => Arc::new(rows.text(strings)?),
        (Decode::Decimal { precision, scale }, Values::Bytes(strings)) => {
            let what = format!("is no decimal({precision},{scale})");
            let values =
                rows.parsed(&strings, &what, "cast it to another, or to STRING", |text| {
                    decimal(text, precision, scale)
                })?;
            let array = Decimal128Array::new(ScalarBuffer::from(values), rows.nulls);
            let array = array.with_precision_and_scale(precision, scale.cast_signed());
            Arc::new(array.map_err(Error::protocol)?)
        }
        (Decode::Date, Values::Bytes(strings)) => {
            let values = rows.parsed(&strings, "is no date", "cast it to STRING", date)?;
            Arc::new(Date32Array::new(ScalarBuffer::from(values), rows.nulls))
        }
        (Decode::Timestamp, Values::Bytes(strings)) => {
            let what = "is no timestamp in microseconds";
            let values = rows.parsed(&strings, what, "cast it to STRING", timestamp)?;
            Arc::new(TimestampMicrosecondArray::new(ScalarBuffer::from(values), rows.nulls))
        }
        (Decode::TimestampUtc, Values::Bytes(strings)) => {
            let what = "is no timestamp in microseconds and in UTC";
            let values = rows.parsed(&strings, what, "cast it to STRING", timestamp_utc)?;
            let array = TimestampMicrosecondArray::new(ScalarBuffer::from(values), rows.nulls);
            Arc::new(array.with_timezone("UTC"))
        }
        (decode, _) => {
            let name = column.field.name();
            return Err(Error::protocol(format!("column {name:?} did not come as {decode:?}")));
        }
    })
}

fn primitive<T: ArrowPrimitiveType>(values: Vec<T::Native>, nulls: Option<NullBuffer>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(values), nulls))
}

/// Which rows of a column have a value.
struct Rows<'a> {
    column: &'a Column,
    nulls: Option<NullBuffer>,
    rows_before: u64,
}

impl Rows<'_> {
    fn is_null(&self, i: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(i))
    }

    fn unfit(&self, i: usize, value: &[u8], what: &str, hint: &'static str) -> Error {
        self.column.unfit(self.rows_before.saturating_add(i as u64 + 1), value, what, hint)
    }

    /// What `parse` makes of each text; 0 where the value is NULL.
    fn parsed<T: Default + Clone>(
        &self,
        strings: &Strings,
        what: &str,
        hint: &'static str,
        parse: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<Vec<T>> {
        let mut values = Vec::with_capacity(strings.offsets.len() - 1);
        for (i, text) in strings.iter().enumerate() {
            values.push(match parse(text) {
                Some(value) => value,
                None if self.is_null(i) => T::default(),
                None => return Err(self.unfit(i, text, what, hint)),
            });
        }
        Ok(values)
    }

    fn floats(self, values: &[f64]) -> Result<Float32Array> {
        let mut floats = Vec::with_capacity(values.len());
        for (i, value) in values.iter().enumerate() {
            // The server made a double of a float, or of its text; either way this is the float.
            let float = *value as f32;
            if float.is_infinite() && value.is_finite() && !self.is_null(i) {
                let text = value.to_string();
                return Err(self.unfit(i, text.as_bytes(), "is no float", "cast it to DOUBLE"));
            }
            floats.push(float);
        }
        Ok(Float32Array::new(ScalarBuffer::from(floats), self.nulls))
    }

    fn text(self, strings: Strings) -> Result<StringArray> {
        if std::str::from_utf8(&strings.data).is_err() || !self.are_whole(&strings) {
            let i = strings.iter().position(|text| std::str::from_utf8(text).is_err());
            let text = i.and_then(|i| strings.iter().nth(i)).unwrap_or_default();
            let i = i.unwrap_or_default();
            return Err(self.unfit(i, text, "is not UTF-8", "cast it to BINARY"));
        }
        let offsets = OffsetBuffer::new(ScalarBuffer::from(strings.offsets));
        let data = Buffer::from_vec(strings.data);
        StringArray::try_new(offsets, data, self.nulls).map_err(Error::protocol)
    }

    /// Whether no string ends within a character.
    fn are_whole(&self, strings: &Strings) -> bool {
        strings.iter().all(|text| text.first().is_none_or(|byte| byte & 0xc0 != 0x80))
    }
}
