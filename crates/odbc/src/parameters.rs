//! The values of a statement's parameters, as a driver takes them.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, RecordBatch};
use arrow_buffer::MutableBuffer;
use arrow_schema::{DataType, TimeUnit};
use dray_bridge::{Failure, FailureKind};
use dray_format::calendar;
use odbc_sys::{CDataType, SqlDataType};

use crate::odbc::Parameter;

/// Longer values are bound as long ones.
const SHORT_LENGTH_MAX: usize = 4000;
/// `feature_not_supported`, `datetime_field_overflow`.
const UNSUPPORTED: &str = "0A000";
const TIME: &str = "22008";
const DAY_SECONDS: i64 = 86_400;

/// The values in the one row of a batch.
pub(crate) fn parameters(batch: &RecordBatch) -> Result<Vec<Parameter>, Failure> {
    let parameters = (1_usize..).zip(batch.columns());
    parameters.map(|(number, column)| parameter(number, column)).collect()
}

fn parameter(number: usize, column: &ArrayRef) -> Result<Parameter, Failure> {
    if column.is_null(0) || *column.data_type() == DataType::Null {
        return Ok(null());
    }
    Ok(match column.data_type() {
        DataType::Boolean => {
            let value = [u8::from(column.as_boolean().value(0))];
            fixed(CDataType::Bit, SqlDataType::EXT_BIT, 1, &value)
        }
        DataType::Int8 => integer(first::<Int8Type>(column).into()),
        DataType::Int16 => integer(first::<Int16Type>(column).into()),
        DataType::Int32 => integer(first::<Int32Type>(column).into()),
        DataType::Int64 => integer(first::<Int64Type>(column)),
        DataType::UInt8 => integer(first::<UInt8Type>(column).into()),
        DataType::UInt16 => integer(first::<UInt16Type>(column).into()),
        DataType::UInt32 => integer(first::<UInt32Type>(column).into()),
        DataType::UInt64 => {
            let value = first::<UInt64Type>(column);
            match i64::try_from(value) {
                Ok(value) => integer(value),
                Err(_) => decimal(&value.to_string(), 20, 0),
            }
        }
        DataType::Float32 => {
            let value = first::<Float32Type>(column).to_ne_bytes();
            fixed(CDataType::Float, SqlDataType::REAL, 7, &value)
        }
        DataType::Float64 => {
            let value = first::<Float64Type>(column).to_ne_bytes();
            fixed(CDataType::Double, SqlDataType::DOUBLE, 15, &value)
        }
        DataType::Decimal128(precision, scale) => {
            let text = column.as_primitive::<Decimal128Type>().value_as_string(0);
            decimal(&text, *precision, *scale)
        }
        DataType::Decimal256(precision, scale) => {
            let text = column.as_primitive::<Decimal256Type>().value_as_string(0);
            decimal(&text, *precision, *scale)
        }
        DataType::Utf8 => text(column.as_string::<i32>().value(0)),
        DataType::LargeUtf8 => text(column.as_string::<i64>().value(0)),
        DataType::Utf8View => text(column.as_string_view().value(0)),
        DataType::Binary => binary(column.as_binary::<i32>().value(0)),
        DataType::LargeBinary => binary(column.as_binary::<i64>().value(0)),
        DataType::BinaryView => binary(column.as_binary_view().value(0)),
        DataType::FixedSizeBinary(_) => binary(column.as_fixed_size_binary().value(0)),
        DataType::Date32 => {
            let value = date(first::<Date32Type>(column).into()).ok_or_else(|| year(number))?;
            fixed(CDataType::TypeDate, SqlDataType::DATE, 10, &value)
        }
        DataType::Timestamp(unit, None) => {
            let (value, digits) = match unit {
                TimeUnit::Second => (first::<TimestampSecondType>(column), 0),
                TimeUnit::Millisecond => (first::<TimestampMillisecondType>(column), 3),
                TimeUnit::Microsecond => (first::<TimestampMicrosecondType>(column), 6),
                TimeUnit::Nanosecond => (first::<TimestampNanosecondType>(column), 9),
            };
            timestamp(value, digits).ok_or_else(|| year(number))?
        }
        other => {
            let what = format!(
                "the parameter {number} has the type {other}, which is not passed on to ODBC \
                 drivers: pass it as text and cast it"
            );
            return Err(Failure::new(FailureKind::Query, UNSUPPORTED, what));
        }
    })
}

fn first<T: ArrowPrimitiveType>(column: &ArrayRef) -> T::Native {
    column.as_primitive::<T>().value(0)
}

fn null() -> Parameter {
    let (c_type, sql_type) = (CDataType::Char, SqlDataType::VARCHAR);
    Parameter { c_type, sql_type, size: 1, digits: 0, value: None }
}

fn fixed(c_type: CDataType, sql_type: SqlDataType, size: usize, value: &[u8]) -> Parameter {
    let mut bytes = MutableBuffer::new(value.len());
    bytes.extend_from_slice(value);
    Parameter { c_type, sql_type, size, digits: 0, value: Some(bytes) }
}

fn integer(value: i64) -> Parameter {
    fixed(CDataType::SBigInt, SqlDataType::EXT_BIG_INT, 19, &value.to_ne_bytes())
}

fn decimal(text: &str, precision: u8, scale: i8) -> Parameter {
    // A scale below 0 makes a whole number with zeros at its end.
    let zeros = usize::from(scale.min(0).unsigned_abs());
    let size = usize::from(precision) + zeros;
    let parameter = fixed(CDataType::Char, SqlDataType::DECIMAL, size, text.as_bytes());
    Parameter { digits: scale.max(0).into(), ..parameter }
}

fn text(value: &str) -> Parameter {
    let units: Vec<u8> = value.encode_utf16().flat_map(u16::to_ne_bytes).collect();
    let size = (units.len() / 2).max(1);
    let sql_type = match size {
        ..=SHORT_LENGTH_MAX => SqlDataType::EXT_W_VARCHAR,
        _ => SqlDataType::EXT_W_LONG_VARCHAR,
    };
    fixed(CDataType::WChar, sql_type, size, &units)
}

fn binary(value: &[u8]) -> Parameter {
    let size = value.len().max(1);
    let sql_type = match size {
        ..=SHORT_LENGTH_MAX => SqlDataType::EXT_VAR_BINARY,
        _ => SqlDataType::EXT_LONG_VAR_BINARY,
    };
    fixed(CDataType::Binary, sql_type, size, value)
}

/// A `SQL_DATE_STRUCT`; None if the year does not fit it.
fn date(days: i64) -> Option<Vec<u8>> {
    let (year, month, day) = calendar::date(days);
    let mut bytes = i16::try_from(year).ok()?.to_ne_bytes().to_vec();
    for part in [month, day] {
        bytes.extend_from_slice(&u16::try_from(part).ok()?.to_ne_bytes());
    }
    Some(bytes)
}

/// A `SQL_TIMESTAMP_STRUCT`, from a time in units of 10^-digits seconds.
fn timestamp(value: i64, digits: u32) -> Option<Parameter> {
    let per_second = 10_i64.pow(digits);
    let (seconds, fraction) = (value.div_euclid(per_second), value.rem_euclid(per_second));
    let (days, second) = (seconds.div_euclid(DAY_SECONDS), seconds.rem_euclid(DAY_SECONDS));
    let mut bytes = date(days)?;
    for part in [second / 3600, second / 60 % 60, second % 60] {
        bytes.extend_from_slice(&u16::try_from(part).ok()?.to_ne_bytes());
    }
    let nanoseconds = u32::try_from(fraction * (1_000_000_000 / per_second)).ok()?;
    bytes.extend_from_slice(&nanoseconds.to_ne_bytes());
    let size = if digits == 0 { 19 } else { 20 + digits as usize };
    let parameter = fixed(CDataType::TypeTimestamp, SqlDataType::TIMESTAMP, size, &bytes);
    Some(Parameter { digits: i16::try_from(digits).ok()?, ..parameter })
}

fn year(number: usize) -> Failure {
    let what = format!("the parameter {number} has a year that ODBC drivers do not take");
    Failure::new(FailureKind::Query, TIME, what)
}
