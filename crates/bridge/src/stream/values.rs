//! What Arrow's decoder does not check.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Time32MillisecondType,
    Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, make_array};
use arrow_schema::{ArrowError, DataType, Schema, TimeUnit};

use super::StreamError;

const DAY_SECONDS: i64 = 86_400;

/// Only types that a server can send on. Run ends, list views and unions are refused: a few bytes
/// of them can stand for much memory.
pub(super) fn check_types(schema: &Schema) -> Result<(), StreamError> {
    schema.fields().iter().try_for_each(|field| {
        check_type(field.data_type()).map_err(|data_type| {
            StreamError::new(format!("the column {:?} of type {data_type}", field.name()))
        })
    })
}

/// The type within a type that is not allowed.
fn check_type(data_type: &DataType) -> Result<(), &DataType> {
    match data_type {
        DataType::RunEndEncoded(..)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::Union(..) => Err(data_type),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => check_type(item.data_type()),
        DataType::Struct(fields) => {
            fields.iter().try_for_each(|field| check_type(field.data_type()))
        }
        DataType::Dictionary(_, value) => check_type(value),
        _ => Ok(()),
    }
}

/// Decimals have no more digits than their type, times are within a day, and views are not to more
/// bytes than `bytes_max`.
pub(super) fn check(array: &ArrayRef, bytes_max: usize) -> Result<(), StreamError> {
    match array.data_type() {
        DataType::Decimal32(precision, _) => {
            valid(array.as_primitive::<Decimal32Type>().validate_decimal_precision(*precision))?;
        }
        DataType::Decimal64(precision, _) => {
            valid(array.as_primitive::<Decimal64Type>().validate_decimal_precision(*precision))?;
        }
        DataType::Decimal128(precision, _) => {
            valid(array.as_primitive::<Decimal128Type>().validate_decimal_precision(*precision))?;
        }
        DataType::Decimal256(precision, _) => {
            valid(array.as_primitive::<Decimal256Type>().validate_decimal_precision(*precision))?;
        }
        DataType::Time32(TimeUnit::Second) => time::<Time32SecondType>(array, 1)?,
        DataType::Time32(_) => time::<Time32MillisecondType>(array, 1_000)?,
        DataType::Time64(TimeUnit::Microsecond) => time::<Time64MicrosecondType>(array, 1_000_000)?,
        DataType::Time64(_) => time::<Time64NanosecondType>(array, 1_000_000_000)?,
        DataType::Utf8View => views(array.as_string_view().views(), bytes_max)?,
        DataType::BinaryView => views(array.as_binary_view().views(), bytes_max)?,
        _ => {}
    }
    let data = array.to_data();
    data.child_data().iter().try_for_each(|child| match child.data_type() {
        data_type if needs_check(data_type) => check(&make_array(child.clone()), bytes_max),
        _ => Ok(()),
    })
}

fn needs_check(data_type: &DataType) -> bool {
    !data_type.is_integer() && !data_type.is_floating() && *data_type != DataType::Utf8
}

fn valid(checked: Result<(), ArrowError>) -> Result<(), StreamError> {
    checked.map_err(|cause| StreamError::new(cause.to_string()))
}

fn time<T: ArrowPrimitiveType<Native: Into<i64>>>(
    array: &ArrayRef,
    per_second: i64,
) -> Result<(), StreamError> {
    let day = DAY_SECONDS * per_second;
    let is_time = |time: T::Native| (0..day).contains(&time.into());
    match array.as_primitive::<T>().iter().flatten().all(is_time) {
        true => Ok(()),
        false => Err(StreamError::new("a time that is not within a day")),
    }
}

/// Many views may be to the same bytes. The low half of a word is a view's length.
fn views(views: &[u128], bytes_max: usize) -> Result<(), StreamError> {
    let bytes = views.iter().map(|view| view & u128::from(u32::MAX)).sum::<u128>();
    match usize::try_from(bytes) {
        Ok(bytes) if bytes <= bytes_max => Ok(()),
        _ => Err(StreamError::new(format!("a column of {bytes} bytes"))),
    }
}
