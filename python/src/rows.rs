//! Rows as Python tuples. Values are converted column by column: one match on the type, then one
//! loop over the values.

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, GenericByteArray, GenericByteViewArray,
    PrimitiveArray, RecordBatch,
};
use arrow::compute::cast;
use arrow::datatypes::{
    ByteArrayType, ByteViewType, DataType, Date32Type, Date64Type, Decimal32Type, Decimal64Type,
    Decimal128Type, Decimal256Type, DecimalType, Field, Float16Type, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, IntervalDayTimeType, IntervalMonthDayNanoType,
    IntervalUnit, IntervalYearMonthType, TimeUnit, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use pyo3::prelude::*;
use pyo3::types::{
    PyBytes, PyDate, PyDateTime, PyDelta, PyDict, PyList, PyString, PyTime, PyTuple, PyTzInfo,
};
use pyo3::{BoundObject, PyTypeInfo, intern};

use crate::error::usage;
use crate::parameters::EPOCH_ORDINAL;

const DAY_SECONDS: i64 = 86_400;

/// The Python values of a column, one for each row.
pub(crate) type Values<'py> = PyResult<Vec<Bound<'py, PyAny>>>;

/// The rows of a batch as a list of tuples.
pub(crate) fn rows<'py>(py: Python<'py>, batch: &RecordBatch) -> PyResult<Bound<'py, PyList>> {
    let schema = batch.schema();
    let columns = batch.columns().iter().zip(schema.fields()).map(|(array, field)| {
        let values = values(py, array, field)?;
        debug_assert_eq!(values.len(), batch.num_rows());
        Ok(values.into_iter())
    });
    let mut columns = columns.collect::<PyResult<Vec<_>>>()?;
    let rows =
        (0..batch.num_rows()).map(|_| PyTuple::new(py, columns.iter_mut().map(Iterator::next)));
    PyList::new(py, rows.collect::<PyResult<Vec<_>>>()?)
}

/// The value of an array of one.
pub(crate) fn value_of<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    field: &Field,
) -> PyResult<Bound<'py, PyAny>> {
    debug_assert_eq!(array.len(), 1);
    Ok(values(py, array, field)?.remove(0))
}

/// The values of an array with this field.
pub(crate) fn values<'py>(py: Python<'py>, array: &ArrayRef, field: &Field) -> Values<'py> {
    macro_rules! primitive {
        ($type:ty) => {
            each(py, array.as_primitive::<$type>().iter(), |value| any(py, value))
        };
    }
    match array.data_type() {
        DataType::Null => Ok(vec![py.None().into_bound(py); array.len()]),
        DataType::Boolean => each(py, array.as_boolean().iter(), |value| any(py, value)),
        DataType::Int8 => primitive!(Int8Type),
        DataType::Int16 => primitive!(Int16Type),
        DataType::Int32 => primitive!(Int32Type),
        DataType::Int64 => primitive!(Int64Type),
        DataType::UInt8 => primitive!(UInt8Type),
        DataType::UInt16 => primitive!(UInt16Type),
        DataType::UInt32 => primitive!(UInt32Type),
        DataType::UInt64 => primitive!(UInt64Type),
        DataType::Float16 => {
            each(py, array.as_primitive::<Float16Type>().iter(), |value| any(py, value.to_f32()))
        }
        DataType::Float32 => primitive!(Float32Type),
        DataType::Float64 => primitive!(Float64Type),
        DataType::Decimal32(..) => decimals(py, array.as_primitive::<Decimal32Type>()),
        DataType::Decimal64(..) => decimals(py, array.as_primitive::<Decimal64Type>()),
        DataType::Decimal128(..) => decimals(py, array.as_primitive::<Decimal128Type>()),
        DataType::Decimal256(..) => decimals(py, array.as_primitive::<Decimal256Type>()),
        DataType::Date32 => dates(py, array.as_primitive::<Date32Type>(), i64::from, field),
        DataType::Date64 => dates(
            py,
            array.as_primitive::<Date64Type>(),
            |ms| ms.div_euclid(DAY_SECONDS * 1000),
            field,
        ),
        DataType::Time32(unit) | DataType::Time64(unit) => times(py, array, *unit, field),
        DataType::Timestamp(unit, zone) => timestamps(py, array, *unit, zone.as_deref(), field),
        DataType::Duration(unit) => each(py, numbers(array, field)?.into_iter(), |value| {
            Ok(delta(py, value, *unit, field)?.into_any())
        }),
        DataType::Interval(unit) => intervals(py, array, *unit),
        DataType::Utf8 => strings(py, array.as_string::<i32>()),
        DataType::LargeUtf8 => strings(py, array.as_string::<i64>()),
        DataType::Utf8View => string_views(py, array.as_string_view()),
        DataType::Binary => bytes(py, array.as_binary::<i32>()),
        DataType::LargeBinary => bytes(py, array.as_binary::<i64>()),
        DataType::BinaryView => byte_views(py, array.as_binary_view()),
        DataType::FixedSizeBinary(_) => fixed_bytes(py, array, field),
        DataType::List(item) => {
            let list = array.as_list::<i32>();
            let ends = list.offsets();
            nested(py, array, list.values(), item, |row| {
                (ends[row] as usize, ends[row + 1] as usize)
            })
        }
        DataType::FixedSizeList(item, size) => {
            let size = usize::try_from(*size).unwrap_or(0);
            let list = array.as_fixed_size_list();
            nested(py, array, list.values(), item, |row| (row * size, (row + 1) * size))
        }
        DataType::Struct(fields) => structs(py, array, fields),
        DataType::Map(..) => {
            let map = array.as_map();
            let ends = map.offsets();
            let pairs: ArrayRef = std::sync::Arc::new(map.entries().clone());
            let pairs_of = |array: &ArrayRef| pairs_as_tuples(py, array);
            nested_with(
                py,
                array,
                &pairs,
                |row| (ends[row] as usize, ends[row + 1] as usize),
                pairs_of,
            )
        }
        DataType::Dictionary(_, value) => match cast(array, value) {
            Ok(plain) => values(py, &plain, field),
            Err(error) => Err(usage(py, &format!("column {:?}: {error}", field.name()), None)),
        },
        other => {
            Err(usage(py, &format!("column {:?}: no Python value for {other}", field.name()), None))
        }
    }
}

/// Converts each item to a Python value, and a missing item to None.
fn each<'py, T>(
    py: Python<'py>,
    items: impl Iterator<Item = Option<T>>,
    mut value: impl FnMut(T) -> PyResult<Bound<'py, PyAny>>,
) -> Values<'py> {
    items.map(|item| item.map_or_else(|| Ok(py.None().into_bound(py)), &mut value)).collect()
}

pub(crate) fn any<'py, T: IntoPyObject<'py>>(
    py: Python<'py>,
    value: T,
) -> PyResult<Bound<'py, PyAny>> {
    let object = value.into_pyobject(py).map_err(Into::into)?;
    Ok(object.into_any().into_bound())
}

fn strings<'py, T>(py: Python<'py>, array: &GenericByteArray<T>) -> Values<'py>
where
    T: ByteArrayType<Native = str>,
{
    each(py, array.iter(), |text| Ok(PyString::new(py, text).into_any()))
}

fn string_views<'py, T: ByteViewType<Native = str>>(
    py: Python<'py>,
    array: &GenericByteViewArray<T>,
) -> Values<'py> {
    each(py, array.iter(), |text| Ok(PyString::new(py, text).into_any()))
}

fn bytes<'py, T>(py: Python<'py>, array: &GenericByteArray<T>) -> Values<'py>
where
    T: ByteArrayType<Native = [u8]>,
{
    each(py, array.iter(), |bytes| Ok(PyBytes::new(py, bytes).into_any()))
}

fn byte_views<'py, T: ByteViewType<Native = [u8]>>(
    py: Python<'py>,
    array: &GenericByteViewArray<T>,
) -> Values<'py> {
    each(py, array.iter(), |bytes| Ok(PyBytes::new(py, bytes).into_any()))
}

/// Values of fixed width as bytes, or as UUIDs if the column has that extension type.
fn fixed_bytes<'py>(py: Python<'py>, array: &ArrayRef, field: &Field) -> Values<'py> {
    let array = array.as_fixed_size_binary();
    if field.extension_type_name() != Some("arrow.uuid") {
        return each(py, array.iter(), |bytes| Ok(PyBytes::new(py, bytes).into_any()));
    }
    let uuid = PyModule::import(py, "uuid")?.getattr("UUID")?;
    each(py, array.iter(), |bytes| uuid.call1((py.None(), PyBytes::new(py, bytes))))
}

fn decimals<'py, T: DecimalType + ArrowPrimitiveType>(
    py: Python<'py>,
    array: &PrimitiveArray<T>,
) -> Values<'py> {
    let decimal = PyModule::import(py, "decimal")?.getattr("Decimal")?;
    let values =
        (0..array.len()).map(|row| array.is_valid(row).then(|| array.value_as_string(row)));
    each(py, values, |text| decimal.call1((text,)))
}

fn dates<'py, T: ArrowPrimitiveType>(
    py: Python<'py>,
    array: &PrimitiveArray<T>,
    days: impl Fn(T::Native) -> i64,
    field: &Field,
) -> Values<'py> {
    let from_ordinal = PyDate::type_object(py).getattr(intern!(py, "fromordinal"))?;
    each(py, array.iter(), |value| {
        let ordinal = days(value).saturating_add(i64::from(EPOCH_ORDINAL));
        from_ordinal.call1((ordinal,)).map_err(|_| out_of_range(py, field, "date"))
    })
}

/// The values of a column of times, timestamps or durations as 64-bit integers.
fn numbers(array: &ArrayRef, field: &Field) -> PyResult<Vec<Option<i64>>> {
    let wide = cast(array, &DataType::Int64);
    let wide = wide.map_err(|error| {
        Python::attach(|py| usage(py, &format!("column {:?}: {error}", field.name()), None))
    })?;
    Ok(wide.as_primitive::<Int64Type>().iter().collect())
}

/// Splits a value into whole seconds and the remaining microseconds, 0 to 999,999. Fails if the
/// value has nanoseconds, which Python's types don't hold.
fn split(py: Python<'_>, value: i64, unit: TimeUnit, field: &Field) -> PyResult<(i64, i32)> {
    let units = match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    };
    let (seconds, part) = (value.div_euclid(units), value.rem_euclid(units));
    let nanoseconds = part * (1_000_000_000 / units);
    if nanoseconds % 1000 != 0 {
        let message = format!(
            "column {:?} has nanoseconds, which Python's datetime does not hold",
            field.name()
        );
        return Err(usage(
            py,
            &message,
            Some("read the result as Arrow, or cast the column to microseconds in SQL"),
        ));
    }
    // Below a million.
    Ok((seconds, i32::try_from(nanoseconds / 1000).unwrap_or(0)))
}

fn delta<'py>(
    py: Python<'py>,
    value: i64,
    unit: TimeUnit,
    field: &Field,
) -> PyResult<Bound<'py, PyDelta>> {
    let (seconds, microseconds) = split(py, value, unit, field)?;
    let (days, seconds) = (seconds.div_euclid(DAY_SECONDS), seconds.rem_euclid(DAY_SECONDS));
    let (Ok(days), Ok(seconds)) = (i32::try_from(days), i32::try_from(seconds)) else {
        return Err(out_of_range(py, field, "timedelta"));
    };
    PyDelta::new(py, days, seconds, microseconds, false)
        .map_err(|_| out_of_range(py, field, "timedelta"))
}

fn times<'py>(py: Python<'py>, array: &ArrayRef, unit: TimeUnit, field: &Field) -> Values<'py> {
    each(py, numbers(array, field)?.into_iter(), |value| {
        let (seconds, microseconds) = split(py, value, unit, field)?;
        let part = |value: i64| u8::try_from(value).map_err(|_| out_of_range(py, field, "time"));
        let (hour, minute, second) =
            (part(seconds.div_euclid(3600))?, part(seconds / 60 % 60)?, part(seconds % 60)?);
        // Fails for 24:00:00, which SQL allows and Python does not.
        let time = PyTime::new(py, hour, minute, second, microseconds.unsigned_abs(), None);
        Ok(time.map_err(|_| out_of_range(py, field, "time"))?.into_any())
    })
}

fn timestamps<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    unit: TimeUnit,
    zone: Option<&str>,
    field: &Field,
) -> Values<'py> {
    let utc = PyTzInfo::utc(py)?;
    let epoch = PyDateTime::new(py, 1970, 1, 1, 0, 0, 0, 0, zone.map(|_| &*utc))?;
    let zone = zone
        .filter(|zone| !matches!(*zone, "UTC" | "Z" | "+00:00"))
        .map(|zone| known_zone(py, zone, field))
        .transpose()?;
    each(py, numbers(array, field)?.into_iter(), |value| {
        let instant = epoch
            .add(delta(py, value, unit, field)?)
            .map_err(|_| out_of_range(py, field, "datetime"))?;
        match &zone {
            Some(zone) => instant
                .call_method1(intern!(py, "astimezone"), (zone,))
                .map_err(|_| out_of_range(py, field, "datetime in its zone")),
            None => Ok(instant),
        }
    })
}

/// The time zone of a column. Fails with a hint if Python does not know the zone.
fn known_zone<'py>(py: Python<'py>, zone: &str, field: &Field) -> PyResult<Bound<'py, PyAny>> {
    time_zone(py, zone).map_err(|cause| {
        let message = format!(
            "column {:?} has the time zone {zone:?}, which Python does not know",
            field.name()
        );
        let error = usage(
            py,
            &message,
            Some("pip install tzdata, read the result as Arrow, or cast the column in SQL"),
        );
        error.set_cause(py, Some(cause));
        error
    })
}

/// Parses a name such as `Europe/Vienna`, or an offset such as `+01:00`.
fn time_zone<'py>(py: Python<'py>, zone: &str) -> PyResult<Bound<'py, PyAny>> {
    let offset = zone
        .strip_prefix('+')
        .map(|rest| (1, rest))
        .or(zone.strip_prefix('-').map(|rest| (-1, rest)));
    let minutes = offset.and_then(|(sign, rest)| {
        let (hours, minutes) = rest.split_once(':').or_else(|| rest.split_at_checked(2))?;
        let minutes = if minutes.is_empty() { 0 } else { minutes.parse::<u16>().ok()? };
        Some(sign * (i32::from(hours.parse::<u16>().ok()?) * 60 + i32::from(minutes)))
    });
    match minutes {
        Some(minutes) => {
            Ok(PyTzInfo::fixed_offset(py, PyDelta::new(py, 0, minutes * 60, 0, true)?)?.into_any())
        }
        None => Ok(PyTzInfo::timezone(py, zone)?.into_any()),
    }
}

fn intervals<'py>(py: Python<'py>, array: &ArrayRef, unit: IntervalUnit) -> Values<'py> {
    let interval = PyModule::import(py, "dray._interval")?.getattr("Interval")?;
    match unit {
        IntervalUnit::YearMonth => {
            each(py, array.as_primitive::<IntervalYearMonthType>().iter(), |months| {
                interval.call1((months, 0, 0))
            })
        }
        IntervalUnit::DayTime => {
            each(py, array.as_primitive::<IntervalDayTimeType>().iter(), |value| {
                interval.call1((0, value.days, i64::from(value.milliseconds) * 1_000_000))
            })
        }
        IntervalUnit::MonthDayNano => {
            each(py, array.as_primitive::<IntervalMonthDayNanoType>().iter(), |value| {
                interval.call1((value.months, value.days, value.nanoseconds))
            })
        }
    }
}

fn nested<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    items: &ArrayRef,
    item: &Field,
    range: impl Fn(usize) -> (usize, usize),
) -> Values<'py> {
    nested_with(py, array, items, range, |part| values(py, part, item))
}

/// A list for each row, of the items in the row's range. `range` gives the first item of a row and
/// the one after its last; `convert` runs once, for the items of all rows.
fn nested_with<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    items: &ArrayRef,
    range: impl Fn(usize) -> (usize, usize),
    convert: impl Fn(&ArrayRef) -> Values<'py>,
) -> Values<'py> {
    let Some(last) = array.len().checked_sub(1) else { return Ok(Vec::new()) };
    let (start, end) = (range(0).0, range(last).1);
    let objects = convert(&items.slice(start, end - start))?;
    debug_assert_eq!(objects.len(), end - start);
    let rows = (0..array.len()).map(|row| match array.is_valid(row) {
        true => {
            let (from, to) = range(row);
            Ok(PyList::new(py, &objects[from - start..to - start])?.into_any())
        }
        false => Ok(py.None().into_bound(py)),
    });
    rows.collect()
}

fn structs<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    fields: &arrow::datatypes::Fields,
) -> Values<'py> {
    let columns = array.as_struct().columns().iter().zip(fields).map(|(column, field)| {
        Ok((PyString::intern(py, field.name()), values(py, column, field)?.into_iter()))
    });
    let mut columns = columns.collect::<PyResult<Vec<_>>>()?;
    let rows = (0..array.len()).map(|row| {
        let dict = PyDict::new(py);
        for (name, values) in &mut columns {
            dict.set_item(&*name, values.next())?;
        }
        Ok(if array.is_valid(row) { dict.into_any() } else { py.None().into_bound(py) })
    });
    rows.collect()
}

/// The entries of maps as pairs rather than dicts, because Arrow's keys need not be hashable.
fn pairs_as_tuples<'py>(py: Python<'py>, entries: &ArrayRef) -> Values<'py> {
    let entries = entries.as_struct();
    let fields = entries.fields();
    let mut columns =
        entries.columns().iter().zip(fields).map(|(column, field)| values(py, column, field));
    let (Some(keys), Some(items)) = (columns.next(), columns.next()) else { return Ok(Vec::new()) };
    let pairs = keys?.into_iter().zip(items?).map(|pair| Ok(pair.into_pyobject(py)?.into_any()));
    pairs.collect()
}

fn out_of_range(py: Python<'_>, field: &Field, what: &str) -> PyErr {
    let message =
        format!("column {:?} has a value beyond the range of Python's {what}", field.name());
    usage(py, &message, Some("read the result as Arrow, or cast the column to text in SQL"))
}
