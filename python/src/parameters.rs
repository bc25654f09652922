//! Python values as the parameters of a statement: a batch of one row, in which each column has the
//! type that holds its value exactly.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Decimal256Array,
    DurationMicrosecondArray, FixedSizeBinaryArray, Float64Array, Int64Array, ListArray, NullArray,
    RecordBatch, RecordBatchOptions, StringArray, Time64MicrosecondArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
    TimestampSecondArray, UInt64Array, new_null_array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{CastOptions, cast_with_options, concat};
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Decimal256Type, DecimalType,
    Field, Schema, i256,
};
use arrow::error::ArrowError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDate, PyDateTime, PyDelta, PyDeltaAccess, PyFloat, PyInt,
    PyList, PyMapping, PySet, PyString, PyTime, PyTimeAccess, PyTuple, PyType, PyTzInfo,
    PyTzInfoAccess,
};

use crate::capsule::import_array;
use crate::error::{is, type_name, usage};

/// The ordinal of 1970-01-01 in Python, where 0001-01-01 has ordinal 1.
pub(crate) const EPOCH_ORDINAL: i32 = 719_163;
const DAY_SECONDS: i128 = 86_400;
/// Integers of more bits have more than 76 digits, which no decimal type holds.
const DECIMAL_BITS: u64 = 253;

/// A batch of one row with a column for each value. `params` is a sequence.
///
/// # Errors
/// A `UsageError` if `params` is not a sequence, or if a value has no type here.
pub(crate) fn parameters(params: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let py = params.py();
    let not_a_sequence = is::<PyString>(params)
        || is::<PyBytes>(params)
        || is::<PySet>(params)
        || params.cast::<PyMapping>().is_ok() && !is::<PyList>(params);
    if not_a_sequence {
        let message =
            format!("params is a {}, expected a list or tuple of values", type_name(params));
        return Err(usage(
            py,
            &message,
            Some("the first value is $1, the second $2; of MySQL they are ?"),
        ));
    }
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (index, value) in params.try_iter()?.enumerate() {
        let name = format!("${}", index + 1);
        let (array, extension) = parameter(&value?, &name)?;
        let mut field = Field::new(name, array.data_type().clone(), true);
        if let Some(extension) = extension {
            field = field.with_metadata(HashMap::from([(
                "ARROW:extension:name".to_owned(),
                extension.to_owned(),
            )]));
        }
        fields.push(field);
        columns.push(array);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
        .map_err(|error| usage(py, &error.to_string(), None))
}

/// An array of one value, and the name of its Arrow extension type, if it has one.
fn parameter(value: &Bound<'_, PyAny>, name: &str) -> PyResult<(ArrayRef, Option<&'static str>)> {
    if is_uuid(value)? {
        let bytes = value.getattr("bytes")?;
        let array = FixedSizeBinaryArray::try_from_iter(std::iter::once(
            bytes.cast::<PyBytes>()?.as_bytes(),
        ));
        return Ok((
            Arc::new(array.map_err(|error| refuse(value, name, &error.to_string()))?),
            Some("arrow.uuid"),
        ));
    }
    Ok((plain(value, name)?, None))
}

fn plain(value: &Bound<'_, PyAny>, name: &str) -> PyResult<ArrayRef> {
    Ok(if value.is_none() || is_missing(value) {
        Arc::new(NullArray::new(1))
    } else if is::<PyBool>(value) {
        Arc::new(BooleanArray::from(vec![value.extract::<bool>()?]))
    } else if is::<PyInt>(value) {
        integer(value, name)?
    } else if is::<PyFloat>(value) {
        Arc::new(Float64Array::from(vec![value.extract::<f64>()?]))
    } else if is::<PyString>(value) {
        Arc::new(StringArray::from(vec![value.cast::<PyString>()?.to_cow()?.as_ref()]))
    } else if is::<PyBytes>(value) || is::<PyByteArray>(value) {
        Arc::new(BinaryArray::from(vec![value.extract::<Vec<u8>>()?.as_slice()]))
    } else if is::<PyDateTime>(value) {
        timestamp(value, name)?
    } else if is::<PyDate>(value) {
        let ordinal: i32 = value.call_method0("toordinal")?.extract()?;
        Arc::new(Date32Array::from(vec![ordinal - EPOCH_ORDINAL]))
    } else if is::<PyTime>(value) {
        time(value, name)?
    } else if is::<PyDelta>(value) {
        Arc::new(DurationMicrosecondArray::from(vec![delta_microseconds(value, name)?]))
    } else if is_decimal(value)? {
        decimal(value, name)?
    } else if is::<PyList>(value) || is::<PyTuple>(value) {
        list(value, name)?
    } else if value.hasattr("__arrow_c_array__")? {
        as_list(import_array(value)?)
    } else if value.hasattr("as_py")? && value.hasattr("type")? {
        pyarrow_scalar(value)?
    } else if value.hasattr("dtype")? && value.hasattr("tolist")? {
        numpy(value, name)?
    } else {
        return Err(refuse(
            value,
            name,
            "expected a number, string, bytes, date or time, UUID, list or None",
        ));
    })
}

fn integer(value: &Bound<'_, PyAny>, name: &str) -> PyResult<ArrayRef> {
    if let Ok(value) = value.extract::<i64>() {
        return Ok(Arc::new(Int64Array::from(vec![value])));
    }
    if let Ok(value) = value.extract::<u64>() {
        return Ok(Arc::new(UInt64Array::from(vec![value])));
    }
    if value.call_method0("bit_length")?.extract::<u64>()? > DECIMAL_BITS {
        return Err(refuse(value, name, "no type holds an integer of more than 76 digits"));
    }
    decimal_of_digits(value.str()?.to_cow()?.as_ref(), 0).map_err(|what| refuse(value, name, &what))
}

fn decimal(value: &Bound<'_, PyAny>, name: &str) -> PyResult<ArrayRef> {
    let Some((negative, digits, exponent)) = decimal_parts(value)? else {
        return Err(refuse(value, name, "only finite decimals can be sent"));
    };
    let max = usize::from(DECIMAL256_MAX_PRECISION);
    let zeros = usize::try_from(exponent).unwrap_or(0);
    let scale = usize::try_from(exponent.saturating_neg()).unwrap_or(0);
    if digits.len().saturating_add(zeros) > max || scale > max {
        return Err(refuse(value, name, "no type holds a decimal of more than 76 digits"));
    }
    let mut text = if negative { "-".to_owned() } else { String::new() };
    text.extend(digits.iter().map(|digit| char::from(b'0' + digit)));
    text.extend(std::iter::repeat_n('0', zeros));
    decimal_of_digits(&text, scale).map_err(|what| refuse(value, name, &what))
}

/// Whether a `Decimal` is negative, its digits and its exponent; none if it is not finite.
pub(crate) fn decimal_parts(value: &Bound<'_, PyAny>) -> PyResult<Option<(bool, Vec<u8>, i32)>> {
    let (sign, digits, exponent): (u8, Vec<u8>, Bound<'_, PyAny>) =
        value.call_method0("as_tuple")?.extract()?;
    Ok(exponent.extract().ok().map(|exponent| (sign == 1, digits, exponent)))
}

/// Whether a value is a `decimal.Decimal`.
pub(crate) fn is_decimal(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    value.is_instance(DECIMAL.import(value.py(), "decimal", "Decimal")?)
}

/// Whether a value is a `uuid.UUID`.
pub(crate) fn is_uuid(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    static UUID: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    value.is_instance(UUID.import(value.py(), "uuid", "UUID")?)
}

/// Whether a value is pandas' `NaT` or `NA`, or what NumPy masks: `masked`, or an array of no
/// dimensions.
pub(crate) fn is_missing(value: &Bound<'_, PyAny>) -> bool {
    let is_masked = || -> PyResult<bool> {
        let dimensions: usize = value.getattr("ndim")?.extract()?;
        Ok(dimensions == 0 && value.getattr("mask")?.is_truthy()?)
    };
    match type_name(value).rsplit('.').next() {
        Some("NaTType" | "NAType" | "MaskedConstant") => true,
        Some("MaskedArray") => is_masked().unwrap_or(false),
        _ => false,
    }
}

/// A decimal of these digits, the last `scale` of which come after the point.
fn decimal_of_digits(text: &str, scale: usize) -> Result<ArrayRef, String> {
    let digits = text.trim_start_matches('-').trim_start_matches('0').len().max(scale).max(1);
    let precision = u8::try_from(digits).unwrap_or(u8::MAX);
    let scale = i8::try_from(scale).unwrap_or(i8::MAX);
    let array: Result<ArrayRef, ArrowError> = if precision <= DECIMAL128_MAX_PRECISION {
        let value = i128::from_str(text).map_err(|error| error.to_string())?;
        Decimal128Array::from(vec![value])
            .with_precision_and_scale(precision, scale)
            .map(|array| Arc::new(array) as _)
    } else {
        let value =
            i256::from_string(text).ok_or("no type holds a decimal of more than 76 digits")?;
        Decimal256Type::validate_decimal_precision(value, precision, scale)
            .and_then(|()| {
                Decimal256Array::from(vec![value]).with_precision_and_scale(precision, scale)
            })
            .map(|array| Arc::new(array) as _)
    };
    array.map_err(|error| error.to_string())
}

fn timestamp(value: &Bound<'_, PyAny>, name: &str) -> PyResult<ArrayRef> {
    let (aware, nanoseconds) = since_epoch(value.cast::<PyDateTime>()?)?;
    let zone = aware.then_some("UTC");
    let (unit, part) = if nanoseconds % 1000 == 0 { ("micro", 1000) } else { ("nano", 1) };
    let number = i64::try_from(nanoseconds / part);
    let number = number
        .map_err(|_| refuse(value, name, &format!("its {unit}seconds do not fit 64 bits")))?;
    Ok(match part {
        1 => Arc::new(TimestampNanosecondArray::from(vec![number]).with_timezone_opt(zone)),
        _ => Arc::new(TimestampMicrosecondArray::from(vec![number]).with_timezone_opt(zone)),
    })
}

/// Whether a datetime has a zone, and the nanoseconds from 1970 to it: in UTC if it has one.
pub(crate) fn since_epoch(value: &Bound<'_, PyDateTime>) -> PyResult<(bool, i128)> {
    let py = value.py();
    let aware = value.get_tzinfo().is_some() && !value.call_method0("utcoffset")?.is_none();
    let utc = PyTzInfo::utc(py)?;
    let epoch = PyDateTime::new(py, 1970, 1, 1, 0, 0, 0, 0, aware.then_some(&*utc))?;
    let since = value.call_method1("__sub__", (epoch,))?;
    Ok((aware, delta_nanoseconds(since.cast::<PyDelta>()?)?))
}

fn time(value: &Bound<'_, PyAny>, name: &str) -> PyResult<ArrayRef> {
    let time = value.cast::<PyTime>()?;
    if time.get_tzinfo().is_some() {
        return Err(refuse(
            value,
            name,
            "a time with a zone has no type here; use a datetime, or drop its tzinfo",
        ));
    }
    Ok(Arc::new(Time64MicrosecondArray::from(vec![time_microseconds(time)])))
}

/// The microseconds from midnight to a time of day.
pub(crate) fn time_microseconds(time: &Bound<'_, PyTime>) -> i64 {
    let seconds = (i64::from(time.get_hour()) * 60 + i64::from(time.get_minute())) * 60
        + i64::from(time.get_second());
    seconds * 1_000_000 + i64::from(time.get_microsecond())
}

fn delta_microseconds(value: &Bound<'_, PyAny>, name: &str) -> PyResult<i64> {
    let nanoseconds = delta_nanoseconds(value.cast::<PyDelta>()?)?;
    if nanoseconds % 1000 != 0 {
        let what = "its nanoseconds would be lost; round it to microseconds";
        return Err(refuse(value, name, what));
    }
    i64::try_from(nanoseconds / 1000)
        .map_err(|_| refuse(value, name, "its microseconds do not fit 64 bits"))
}

/// The nanoseconds of a timedelta. One of pandas has more than microseconds.
pub(crate) fn delta_nanoseconds(delta: &Bound<'_, PyDelta>) -> PyResult<i128> {
    let nanoseconds = match delta.is_exact_instance_of::<PyDelta>() {
        true => 0,
        false => delta
            .getattr("nanoseconds")
            .map_or(Ok(0), |nanoseconds| nanoseconds.extract::<i64>())?,
    };
    let seconds = i128::from(delta.get_days()) * DAY_SECONDS + i128::from(delta.get_seconds());
    let microseconds = seconds * 1_000_000 + i128::from(delta.get_microseconds());
    Ok(microseconds * 1000 + i128::from(nanoseconds))
}

fn list(value: &Bound<'_, PyAny>, name: &str) -> PyResult<ArrayRef> {
    let items = value.try_iter()?.map(|item| parameter(&item?, name).map(|(array, _)| array));
    let items = items.collect::<PyResult<Vec<_>>>()?;
    let types = items.iter().map(|item| item.data_type());
    let united = types.cloned().try_fold(DataType::Null, |known, other| {
        unite(&known, &other)
            .ok_or_else(|| format!("its items have different types, {known} and {other}"))
    });
    let united = united.map_err(|what| refuse(value, name, &what))?;
    let exactly = CastOptions { safe: false, ..CastOptions::default() };
    let items = items.iter().map(|item| match item.data_type() {
        data_type if *data_type == united => Ok(item.clone()),
        DataType::Null => Ok(new_null_array(&united, 1)),
        _ => cast_with_options(item, &united, &exactly),
    });
    let items = items
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| refuse(value, name, &error.to_string()))?;
    let items: Vec<_> = items.iter().map(|item| item.as_ref()).collect();
    let values = match items.is_empty() {
        true => new_null_array(&DataType::Null, 0),
        false => concat(&items).map_err(|error| refuse(value, name, &error.to_string()))?,
    };
    Ok(as_list(values))
}

/// A type that holds the values of both types exactly, if one exists.
fn unite(one: &DataType, other: &DataType) -> Option<DataType> {
    use DataType::{Decimal128, Decimal256, List, Null, Timestamp};
    match (one, other) {
        _ if one == other => Some(one.clone()),
        (Null, known) | (known, Null) => Some(known.clone()),
        (List(one), List(other)) => {
            let item = unite(one.data_type(), other.data_type())?;
            Some(List(Arc::new(Field::new_list_field(item, true))))
        }
        (Timestamp(one, zone), Timestamp(other, other_zone)) if zone == other_zone => {
            Some(Timestamp(*one.max(other), zone.clone()))
        }
        _ => {
            let ((one_whole, one_scale), (whole, scale)) =
                (exact_digits(one)?, exact_digits(other)?);
            let scale = one_scale.max(scale);
            let precision = one_whole.max(whole).checked_add(scale).filter(|digits| *digits > 0)?;
            match precision {
                digits if digits <= DECIMAL128_MAX_PRECISION => {
                    Some(Decimal128(digits, i8::try_from(scale).ok()?))
                }
                digits if digits <= DECIMAL256_MAX_PRECISION => {
                    Some(Decimal256(digits, i8::try_from(scale).ok()?))
                }
                _ => None,
            }
        }
    }
}

/// The digits before and after the point of an exact numeric type; None for other types.
fn exact_digits(data_type: &DataType) -> Option<(u8, u8)> {
    match *data_type {
        DataType::Int64 => Some((19, 0)),
        DataType::UInt64 => Some((20, 0)),
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            let scale = u8::try_from(scale).ok()?;
            Some((precision.checked_sub(scale)?, scale))
        }
        _ => None,
    }
}

/// A list column with one value, the list of all `values`.
fn as_list(values: ArrayRef) -> ArrayRef {
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    Arc::new(ListArray::new(field, OffsetBuffer::from_lengths([values.len()]), values, None))
}

fn pyarrow_scalar(value: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let pyarrow = PyModule::import(value.py(), "pyarrow")?;
    let array = pyarrow.getattr("array")?.call1((vec![value], value.getattr("type")?))?;
    import_array(&array)
}

fn numpy(value: &Bound<'_, PyAny>, name: &str) -> PyResult<ArrayRef> {
    if value.getattr("ndim")?.extract::<usize>()? > 0 {
        return list(value, name);
    }
    let kind: String = value.getattr("dtype")?.getattr("kind")?.extract()?;
    if kind != "M" {
        let item = value.call_method0("item")?;
        // `item()` turns a timedelta64 of nanoseconds or months into a bare number, and leaves a
        // longdouble as it is. Both would lose their meaning.
        return match kind != "m" || is::<PyDelta>(&item) || item.is_none() {
            true if !item.get_type().is(value.get_type()) => plain(&item, name),
            _ => Err(refuse(value, name, "it would lose digits; convert it to another type")),
        };
    }
    let unit = PyModule::import(value.py(), "numpy")?
        .call_method1("datetime_data", (value.getattr("dtype")?,))?;
    let (unit, count): (String, i64) = unit.extract()?;
    let number: i64 = value.call_method1("astype", ("int64",))?.call_method0("item")?.extract()?;
    if number == i64::MIN {
        return Ok(Arc::new(NullArray::new(1)));
    }
    Ok(match (unit.as_str(), count) {
        ("D", 1) => match i32::try_from(number) {
            Ok(days) => Arc::new(Date32Array::from(vec![days])),
            Err(_) => return Err(refuse(value, name, "its days do not fit 32 bits")),
        },
        ("s", 1) => Arc::new(TimestampSecondArray::from(vec![number])),
        ("ms", 1) => Arc::new(TimestampMillisecondArray::from(vec![number])),
        ("us", 1) => Arc::new(TimestampMicrosecondArray::from(vec![number])),
        ("ns", 1) => Arc::new(TimestampNanosecondArray::from(vec![number])),
        _ => return Err(refuse(value, name, "expected datetime64 in D, s, ms, us or ns")),
    })
}

fn refuse(value: &Bound<'_, PyAny>, name: &str, what: &str) -> PyErr {
    usage(
        value.py(),
        &format!("parameter {name} is a {} that can't be sent: {what}", type_name(value)),
        None,
    )
}
