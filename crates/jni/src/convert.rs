//! Batches with the types that Spark has. No value is changed: one that does not fit is an error.

use std::sync::Arc;

use arrow::array::types::{
    ArrowPrimitiveType, DurationNanosecondType, IntervalMonthDayNanoType, Time64NanosecondType,
    TimestampNanosecondType,
};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, MapArray, PrimitiveArray, RecordBatch,
    RecordBatchOptions, StringBuilder, StructArray,
};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, IntervalUnit, SchemaRef, TimeUnit};
use arrow::util::display::FormatOptions;

use crate::errors::Failure;
use crate::spark_types::is_uuid;

/// The characters of a UUID.
const UUID_CHARACTERS: usize = 36;
const NANOSECONDS_PER_MICROSECOND: i64 = 1000;

/// The rows in the columns of `schema`, which [`spark_schema`](crate::spark_types::spark_schema)
/// made of the batch's.
///
/// # Errors
/// When a value has no place in Spark's type of its column.
pub(crate) fn convert_batch(
    batch: &RecordBatch,
    schema: &SchemaRef,
) -> Result<RecordBatch, Failure> {
    let from = batch.schema();
    let fields = from.fields().iter().zip(schema.fields());
    let columns = batch.columns().iter().zip(fields);
    let columns = columns
        .map(|(column, (from, to))| convert(column, from, to, from.name()))
        .collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

fn convert(array: &ArrayRef, from: &Field, to: &Field, path: &str) -> Result<ArrayRef, Failure> {
    if is_uuid(from) {
        return Ok(uuids(array));
    }
    match (from.data_type(), to.data_type()) {
        (DataType::Interval(IntervalUnit::DayTime | IntervalUnit::MonthDayNano), to) => {
            let array = cast(array, to, path)?;
            whole_microseconds::<IntervalMonthDayNanoType>(&array, path, |value| {
                value.nanoseconds
            })?;
            Ok(array)
        }
        (DataType::Time64(TimeUnit::Nanosecond), _) => {
            whole_microseconds::<Time64NanosecondType>(array, path, |value| value)?;
            Ok(array.clone())
        }
        // Java's importer does not look at offsets, which only bits have.
        (DataType::Boolean, _) if array.offset() != 0 => {
            let bits = array.as_boolean().values();
            let bits = BooleanBuffer::new(bits.sliced(), 0, bits.len());
            Ok(Arc::new(BooleanArray::new(bits, array.nulls().cloned())))
        }
        (from, to) if from == to && !from.is_nested() => Ok(array.clone()),
        (DataType::Timestamp(TimeUnit::Nanosecond, _), to) => {
            whole_microseconds::<TimestampNanosecondType>(array, path, |value| value)?;
            cast(array, to, path)
        }
        (DataType::Duration(TimeUnit::Nanosecond), to) => {
            whole_microseconds::<DurationNanosecondType>(array, path, |value| value)?;
            cast(array, to, path)
        }
        (DataType::Dictionary(_, values), _) => {
            let array = cast(array, values, path)?;
            convert(&array, &Field::new(from.name(), (**values).clone(), true), to, path)
        }
        (DataType::RunEndEncoded(_, values), _) => {
            convert(&cast(array, values.data_type(), path)?, values, to, path)
        }
        (
            DataType::List(from)
            | DataType::LargeList(from)
            | DataType::ListView(from)
            | DataType::LargeListView(from)
            | DataType::FixedSizeList(from, _),
            DataType::List(to),
        ) => {
            let lists = cast(array, &DataType::List(from.clone()), path)?;
            let (_, offsets, values, nulls) = lists.as_list::<i32>().clone().into_parts();
            let values = convert(&values, from, to, &format!("{path}.{}", from.name()))?;
            Ok(Arc::new(ListArray::try_new(to.clone(), offsets, values, nulls)?))
        }
        (DataType::Struct(_), DataType::Struct(_)) => structs(array.as_struct(), to, path),
        (DataType::Map(from, _), DataType::Map(to, sorted)) => {
            let (_, offsets, entries, nulls, _) = array.as_map().clone().into_parts();
            let entries: ArrayRef = Arc::new(entries);
            let entries = convert(&entries, from, to, &format!("{path}.{}", from.name()))?;
            let entries = entries.as_struct().clone();
            Ok(Arc::new(MapArray::try_new(to.clone(), offsets, entries, nulls, *sorted)?))
        }
        (_, to) => cast(array, to, path),
    }
}

fn structs(array: &StructArray, to: &Field, path: &str) -> Result<ArrayRef, Failure> {
    let DataType::Struct(to) = to.data_type() else {
        return Err(Failure::usage(format!("column {path} is no struct")));
    };
    let (from, columns, nulls) = array.clone().into_parts();
    let columns = columns
        .iter()
        .zip(from.iter().zip(to.iter()))
        .map(|(column, (from, to))| convert(column, from, to, &format!("{path}.{}", from.name())));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(StructArray::try_new_with_length(to.clone(), columns, nulls, array.len())?))
}

fn cast(array: &ArrayRef, to: &DataType, path: &str) -> Result<ArrayRef, Failure> {
    if array.data_type() == to {
        return Ok(array.clone());
    }
    let options = CastOptions { safe: false, format_options: FormatOptions::default() };
    cast_with_options(array, to, &options).map_err(|cause| {
        Failure::out_of_range(format!("column {path} has a value that Spark can't hold: {cause}"))
    })
}

/// Refuses what Spark, which counts microseconds, would cut off.
fn whole_microseconds<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    path: &str,
    nanoseconds: fn(T::Native) -> i64,
) -> Result<(), Failure> {
    let array: &PrimitiveArray<T> = array.as_primitive();
    let cut = array
        .iter()
        .flatten()
        .map(nanoseconds)
        .find(|value| value % NANOSECONDS_PER_MICROSECOND != 0);
    match cut {
        None => Ok(()),
        Some(value) => Err(Failure::out_of_range(format!(
            "column {path} has a value of {value} ns, Spark counts microseconds (read it by option \
             query, rounded)"
        ))),
    }
}

/// UUIDs as PostgreSQL prints them.
fn uuids(array: &ArrayRef) -> ArrayRef {
    let array = array.as_fixed_size_binary();
    let mut strings =
        StringBuilder::with_capacity(array.len(), array.len().saturating_mul(UUID_CHARACTERS));
    let mut text = String::with_capacity(UUID_CHARACTERS);
    for uuid in array {
        let Some(uuid) = uuid else {
            strings.append_null();
            continue;
        };
        text.clear();
        for (i, byte) in uuid.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            for digit in [byte >> 4, byte & 15] {
                text.push(char::from_digit(u32::from(digit), 16).unwrap_or_default());
            }
        }
        strings.append_value(&text);
    }
    Arc::new(strings.finish())
}

#[cfg(test)]
mod tests;
