//! Python values as those that objects of pages have. A value is converted wholly before anything
//! is written, so that a wrong one changes nothing.

use arrow::datatypes::{ArrowPrimitiveType, Float16Type, i256};
use dray_format::{Type, Unit};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDate, PyDateTime, PyDelta, PyDict, PyFloat, PyInt, PyMapping,
    PyMemoryView, PySet, PyString, PyTime, PyTuple, PyTzInfoAccess,
};

use crate::edit::ObjectEditor;
use crate::error::{is, type_name, usage};
use crate::object::{Class, Items, Kind, Object, Value};
use crate::parameters::{
    EPOCH_ORDINAL, decimal_parts, delta_nanoseconds, is_decimal, is_missing, is_uuid, since_epoch,
    time_microseconds,
};

/// The widest number in bytes.
const NUMBER_BYTES_MAX: usize = 32;
const DAY_MILLISECONDS: i64 = 86_400_000;
const DAY_NANOSECONDS: i128 = 86_400_000_000_000;
/// Decimals of more digits are not computed.
const DIGITS_MAX: usize = 80;
/// More than a decimal of 76 digits with a scale of -128 has.
const INTEGER_BITS_MAX: u64 = 700;

/// A value as objects have it.
#[derive(Debug)]
pub(crate) enum New {
    Missing,
    Bool(bool),
    /// A value of so many bytes.
    Number([u8; NUMBER_BYTES_MAX], usize),
    /// A string, or a binary value.
    Bytes(Vec<u8>),
    /// The fields of a struct.
    Struct(Vec<New>),
    /// The items of a list.
    List(Vec<New>),
}

impl New {
    fn number<const N: usize>(bytes: [u8; N]) -> Self {
        let mut number = [0; NUMBER_BYTES_MAX];
        number[..N].copy_from_slice(&bytes);
        Self::Number(number, N)
    }
}

/// Why a value is none of its type.
pub(crate) enum Refused {
    /// The path to the value, and what is wrong with it.
    Value(String, String),
    /// A method of the value raised this.
    Raised(PyErr),
}

type Result<T, E = Refused> = std::result::Result<T, E>;

impl From<PyErr> for Refused {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

fn refuse<T>(what: impl Into<String>) -> Result<T> {
    Err(Refused::Value(String::new(), what.into()))
}

impl Refused {
    /// The refusal of what a value of this name, or this item (`[3]`), has within it.
    fn within(self, name: &str) -> Self {
        match self {
            Self::Value(path, what) if !name.is_empty() => {
                let point = if path.is_empty() || path.starts_with('[') { "" } else { "." };
                Self::Value(format!("{name}{point}{path}"), what)
            }
            refused => refused,
        }
    }

    /// The exception for a value that was assigned to what is called so.
    pub(crate) fn raise(self, py: Python<'_>, name: &str) -> PyErr {
        match self.within(name) {
            Self::Value(path, what) if path.is_empty() => usage(py, &what, None),
            Self::Value(path, what) => usage(py, &format!("{path}: {what}"), None),
            Self::Raised(error) => error,
        }
    }
}

/// The value of a kind.
pub(crate) fn value_for(kind: &Kind, nullable: bool, value: &Bound<'_, PyAny>) -> Result<New> {
    let new = match kind {
        _ if value.is_none() => New::Missing,
        Kind::Struct(_) | Kind::List(_) if is_absent(value)? => New::Missing,
        Kind::Value(of) => scalar(of, value)?,
        Kind::Struct(class) => object_for(class, value)?,
        Kind::List(items) => match (items.size, items_for(items, value)?) {
            (Some(size), news) if size != news.len() => {
                return refuse(format!("{} items, expected {size}", news.len()));
            }
            (_, news) => New::List(news),
        },
    };
    let is_null = || matches!(kind, Kind::Value(Value { data_type: Type::Null, .. }));
    match new {
        New::Missing if !nullable && !is_null() => refuse("it may not be missing"),
        new => Ok(new),
    }
}

/// The fields of an object or a struct.
pub(crate) fn object_for(class: &Class, value: &Bound<'_, PyAny>) -> Result<New> {
    let py = value.py();
    let Some(dict) = as_dict(value)? else {
        return refuse(format!("{}, expected a dict", a_type(value)));
    };
    let mut known = 0;
    let fields = class.fields.iter().map(|member| {
        let given = dict.get_item(&member.name)?;
        known += usize::from(given.is_some());
        let given = given.unwrap_or_else(|| py.None().into_bound(py));
        value_for(&member.kind, member.nullable, &given)
            .map_err(|error| error.within(member.name(py)))
    });
    let fields = fields.collect::<Result<_>>()?;
    if known < dict.len() {
        let unknown = dict.keys().iter().find(|key| !class.has(key));
        let names = class.fields.iter().map(|member| member.name(py)).collect::<Vec<_>>();
        let unknown =
            unknown.map_or(Ok(String::new()), |name| name.repr().map(|n| n.to_string()))?;
        return refuse(format!("there is no field {unknown}, but {}", names.join(", ")));
    }
    Ok(New::Struct(fields))
}

/// The items of a list, or the pairs of a map.
pub(crate) fn items_for(items: &Items, value: &Bound<'_, PyAny>) -> Result<Vec<New>> {
    let pairs;
    let value = match as_dict(value)? {
        Some(dict) if items.pairs => {
            pairs = dict.items().into_any();
            &pairs
        }
        None if !is::<PyString>(value) && !is::<PyBytes>(value) && !is::<PySet>(value) => value,
        _ => return refuse(format!("{}, expected a list", a_type(value))),
    };
    let Ok(iterator) = value.try_iter() else {
        return refuse(format!("{}, expected a list", a_type(value)));
    };
    let news = iterator
        .enumerate()
        .map(|(i, item)| item_for(items, &item?).map_err(|error| error.within(&format!("[{i}]"))));
    news.collect()
}

/// An item of a list, or a pair of a map.
pub(crate) fn item_for(items: &Items, value: &Bound<'_, PyAny>) -> Result<New> {
    match &items.item {
        Kind::Struct(class) if items.pairs => {
            let (Ok(pair), [key, of]) = (value.cast::<PyTuple>(), class.fields.as_slice()) else {
                return refuse(format!("{}, expected a tuple of key and value", a_type(value)));
            };
            if pair.len() != 2 {
                return refuse(format!("a tuple of {}, expected key and value", pair.len()));
            }
            let field = |i: usize, name: &str| {
                let member = if i == 0 { key } else { of };
                let new = value_for(&member.kind, member.nullable, &pair.get_item(i)?);
                new.map_err(|error| error.within(name))
            };
            Ok(New::Struct(vec![field(0, "key")?, field(1, "value")?]))
        }
        kind => value_for(kind, items.nullable, value),
    }
}

/// Whether a value is a missing one of pandas, or a scalar of pyarrow without a value.
fn is_absent(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    // A field of an object may have any name.
    if is::<PyDict>(value) || is::<Object>(value) || is::<ObjectEditor>(value) {
        return Ok(false);
    }
    let is_valid = || value.getattr("is_valid")?.extract::<bool>();
    Ok(is_missing(value) || (value.hasattr("as_py")? && !is_valid()?))
}

/// The dict that a mapping is.
fn as_dict<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
    let py = value.py();
    if let Ok(dict) = value.cast::<PyDict>() {
        Ok(Some(dict.clone()))
    } else if let Ok(object) = value.cast::<Object>() {
        object.get().plain(py).map(Some)
    } else if let Ok(object) = value.cast::<ObjectEditor>() {
        object.get().dict(py).map(Some)
    } else if value.cast::<PyMapping>().is_ok() && !is_absent(value)? {
        let dict = PyDict::new(py);
        dict.update(value.cast::<PyMapping>()?)?;
        Ok(Some(dict))
    } else {
        Ok(None)
    }
}

/// A value that is neither a struct nor a list.
fn scalar(of: &Value, value: &Bound<'_, PyAny>) -> Result<New> {
    match plain(of, value) {
        Err(Refused::Value(..)) if is_missing(value) => Ok(New::Missing),
        // Scalars of pyarrow and of NumPy know a value of Python.
        Err(Refused::Value(..)) if value.hasattr("as_py")? => {
            value_for_scalar(of, &value.call_method0("as_py")?)
        }
        Err(Refused::Value(..)) if value.hasattr("dtype")? && value.hasattr("item")? => {
            numpy(of, value)
        }
        new => new,
    }
}

fn value_for_scalar(of: &Value, value: &Bound<'_, PyAny>) -> Result<New> {
    if value.is_none() { Ok(New::Missing) } else { plain(of, value) }
}

/// A scalar of NumPy, or an array of no dimensions.
fn numpy(of: &Value, value: &Bound<'_, PyAny>) -> Result<New> {
    if !value.hasattr("ndim")? || value.getattr("ndim")?.extract::<usize>()? > 0 {
        return refuse(format!("{}, expected a single value", a_type(value)));
    }
    let dtype = value.getattr("dtype")?;
    match &*dtype.getattr("kind")?.extract::<String>()? {
        // `item()` makes times of nanoseconds bare numbers.
        "M" => numpy_time(of, value, &dtype, true),
        "m" => numpy_time(of, value, &dtype, false),
        _ => value_for_scalar(of, &value.call_method0("item")?),
    }
}

/// A datetime64 or a timedelta64.
fn numpy_time(
    of: &Value,
    value: &Bound<'_, PyAny>,
    dtype: &Bound<'_, PyAny>,
    is_date: bool,
) -> Result<New> {
    let number: i64 = value.call_method1("astype", ("int64",))?.call_method0("item")?.extract()?;
    if number == i64::MIN {
        return Ok(New::Missing);
    }
    let data = PyModule::import(value.py(), "numpy")?.call_method1("datetime_data", (dtype,))?;
    let (unit, count): (String, i128) = data.extract()?;
    // Nanoseconds, or parts of one.
    let (each, parts) = match unit.as_str() {
        "Y" | "M" if is_date && i32::try_from(number).is_ok() => {
            let days = value.call_method1("astype", ("datetime64[D]",))?;
            return numpy_time(of, &days, &days.getattr("dtype")?, true);
        }
        "W" => (7 * DAY_NANOSECONDS, 1),
        "D" => (DAY_NANOSECONDS, 1),
        "h" => (3_600_000_000_000, 1),
        "m" => (60_000_000_000, 1),
        "s" => (1_000_000_000, 1),
        "ms" => (1_000_000, 1),
        "us" => (1_000, 1),
        "ns" => (1, 1),
        "ps" => (1, 1_000),
        "fs" => (1, 1_000_000),
        "as" => (1, 1_000_000_000),
        _ => return refuse(format!("a time in {unit}, which have no fixed length")),
    };
    let Some(total) = i128::from(number).checked_mul(count * each) else {
        return out_of_range(of, value);
    };
    let data_type = of.field.data_type();
    let whole = |part: i128| match total % (part * parts) {
        0 => Ok(total / (part * parts)),
        _ => refuse(format!("{} is more precise than {data_type}", shown(value))),
    };
    match &of.data_type {
        Type::Timestamp { zone: Some(_), .. } if is_date => {
            refuse("a datetime without a zone, expected one with it")
        }
        Type::Timestamp { unit, .. } if is_date => in_units(of, value, whole(1)?, *unit),
        Type::Duration(unit) if !is_date => in_units(of, value, whole(1)?, *unit),
        Type::Date32 | Type::Date64 if is_date => {
            let days = whole(DAY_NANOSECONDS)?;
            let milliseconds = i64::try_from(days * i128::from(DAY_MILLISECONDS));
            match (&of.data_type, i32::try_from(days), milliseconds) {
                (Type::Date32, Ok(days), _) => Ok(New::number(days.to_le_bytes())),
                (Type::Date64, _, Ok(number)) => Ok(New::number(number.to_le_bytes())),
                _ => out_of_range(of, value),
            }
        }
        _ => refuse(format!("{}, expected a value for {data_type}", a_type(value))),
    }
}

fn plain(of: &Value, value: &Bound<'_, PyAny>) -> Result<New> {
    let expected = || {
        let data_type = of.field.data_type();
        refuse(format!("{}, expected a value for {data_type}", a_type(value)))
    };
    macro_rules! integer {
        ($number:ty) => {
            match value.extract::<$number>() {
                _ if !is::<PyInt>(value) || is::<PyBool>(value) => expected(),
                Ok(number) => Ok(New::number(number.to_le_bytes())),
                Err(_) => out_of_range(of, value),
            }
        };
    }
    match &of.data_type {
        Type::Boolean if is::<PyBool>(value) => Ok(New::Bool(value.extract()?)),
        Type::Int8 => integer!(i8),
        Type::Int16 => integer!(i16),
        Type::Int32 => integer!(i32),
        Type::Int64 => integer!(i64),
        Type::UInt8 => integer!(u8),
        Type::UInt16 => integer!(u16),
        Type::UInt32 => integer!(u32),
        Type::UInt64 => integer!(u64),
        Type::Float16 | Type::Float32 | Type::Float64
            if is::<PyFloat>(value) || is_integer(value) =>
        {
            float(of, value)
        }
        Type::Decimal32 { precision, scale }
        | Type::Decimal64 { precision, scale }
        | Type::Decimal128 { precision, scale }
        | Type::Decimal256 { precision, scale }
            if is_integer(value) || is_decimal(value)? =>
        {
            decimal(of, value, usize::from(*precision), i32::from(*scale))
        }
        Type::Date32 | Type::Date64 if is::<PyDate>(value) && !is::<PyDateTime>(value) => {
            let ordinal: i32 = value.call_method0("toordinal")?.extract()?;
            let days = ordinal - EPOCH_ORDINAL;
            Ok(match of.data_type {
                Type::Date32 => New::number(days.to_le_bytes()),
                _ => New::number((i64::from(days) * DAY_MILLISECONDS).to_le_bytes()),
            })
        }
        Type::Time32(unit) | Type::Time64(unit) => {
            let Ok(time) = value.cast::<PyTime>() else { return expected() };
            if time.get_tzinfo().is_some() {
                return refuse("a time with a zone, expected one without");
            }
            in_units(of, value, i128::from(time_microseconds(time)) * 1000, *unit)
        }
        Type::Timestamp { unit, zone } if !is_missing(value) => {
            let Ok(datetime) = value.cast::<PyDateTime>() else { return expected() };
            match (since_epoch(datetime)?, zone) {
                ((true, _), None) => refuse("a datetime with a zone, expected one without"),
                ((false, _), Some(_)) => refuse("a datetime without a zone, expected one with it"),
                ((_, nanoseconds), _) => in_units(of, value, nanoseconds, *unit),
            }
        }
        Type::Duration(unit) if !is_missing(value) => {
            let Ok(delta) = value.cast::<PyDelta>() else { return expected() };
            in_units(of, value, delta_nanoseconds(delta)?, *unit)
        }
        Type::IntervalMonths | Type::IntervalDayTime | Type::IntervalMonthDayNano
            if is::<PyTuple>(value) =>
        {
            interval(of, value)
        }
        Type::Utf8 => match value.cast::<PyString>().map(|text| text.to_str()) {
            Ok(Ok(text)) => Ok(New::Bytes(text.as_bytes().to_vec())),
            Ok(Err(_)) => refuse("a str with half of a surrogate pair, which UTF-8 does not hold"),
            Err(_) => expected(),
        },
        Type::Binary => bytes(value)?.map_or_else(expected, |bytes| Ok(New::Bytes(bytes))),
        Type::FixedBinary(width) => {
            let uuid = of.field.extension_type_name() == Some("arrow.uuid") && is_uuid(value)?;
            let given = if uuid { bytes(&value.getattr("bytes")?)? } else { bytes(value)? };
            match given {
                Some(bytes) if bytes.len() == *width as usize => Ok(New::Bytes(bytes)),
                Some(bytes) => refuse(format!("{} bytes, expected {width}", bytes.len())),
                None => expected(),
            }
        }
        _ => expected(),
    }
}

fn is_integer(value: &Bound<'_, PyAny>) -> bool {
    is::<PyInt>(value) && !is::<PyBool>(value)
}

/// A float rounds to its type's precision, an integer must be exact.
fn float(of: &Value, value: &Bound<'_, PyAny>) -> Result<New> {
    let Ok(wide) = value.extract::<f64>() else { return out_of_range(of, value) };
    let (new, held) = match of.data_type {
        Type::Float16 => {
            let half = <Float16Type as ArrowPrimitiveType>::Native::from_f64(wide);
            (New::number(half.to_le_bytes()), half.to_f64())
        }
        Type::Float32 => {
            let single = wide as f32;
            (New::number(single.to_le_bytes()), f64::from(single))
        }
        _ => (New::number(wide.to_le_bytes()), wide),
    };
    if held.is_finite() != wide.is_finite() || (held == 0.0) != (wide == 0.0) {
        return out_of_range(of, value);
    }
    if is::<PyInt>(value) && !value.eq(held)? {
        return refuse(format!("{} has more digits than a float holds", shown(value)));
    }
    Ok(new)
}

fn decimal(of: &Value, value: &Bound<'_, PyAny>, precision: usize, scale: i32) -> Result<New> {
    let (negative, mut digits, exponent) = if is::<PyInt>(value) {
        match integer_parts(value)? {
            Some((negative, digits)) => (negative, digits, 0),
            None => return out_of_range(of, value),
        }
    } else {
        match decimal_parts(value)? {
            Some(parts) => parts,
            None => return refuse(format!("{} is not finite", shown(value))),
        }
    };
    if digits.iter().any(|digit| *digit > 9) {
        return refuse(format!("{} has digits beyond 9", a_type(value)));
    }
    // The last digit's place, counted from that of the type's last digit.
    let mut places = i64::from(exponent) + i64::from(scale);
    while places < 0 && digits.last() == Some(&0) {
        digits.pop();
        places += 1;
    }
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    digits.drain(..zeros);
    if digits.is_empty() {
        places = 0;
    }
    if places < 0 {
        let data_type = of.field.data_type();
        return refuse(format!("{} has more digits than {data_type} holds", shown(value)));
    }
    let places = usize::try_from(places).unwrap_or(usize::MAX);
    if digits.len().saturating_add(places) > precision.min(DIGITS_MAX) {
        return out_of_range(of, value);
    }
    let mut text = if negative { "-0".to_owned() } else { "0".to_owned() };
    text.extend(digits.iter().map(|digit| char::from(b'0' + digit)));
    text.extend(std::iter::repeat_n('0', places));
    match (i256::from_string(&text), of.data_type.width()) {
        (Some(unscaled), Some(width)) => Ok(New::Number(unscaled.to_le_bytes(), width)),
        _ => out_of_range(of, value),
    }
}

/// Whether an integer is negative, and its digits; none if no decimal has so many. A subclass may
/// show itself in another way, so that `int` is asked.
fn integer_parts(value: &Bound<'_, PyAny>) -> PyResult<Option<(bool, Vec<u8>)>> {
    let int = value.py().get_type::<PyInt>();
    if int.call_method1("bit_length", (value,))?.extract::<u64>()? > INTEGER_BITS_MAX {
        return Ok(None);
    }
    let text: String = int.call_method1("__repr__", (value,))?.extract()?;
    let digits = text.trim_start_matches('-').bytes().map(|byte| byte.wrapping_sub(b'0'));
    Ok(Some((text.starts_with('-'), digits.collect())))
}

/// A time of so many nanoseconds as a number of units.
fn in_units(of: &Value, value: &Bound<'_, PyAny>, nanoseconds: i128, unit: Unit) -> Result<New> {
    let unit = match unit {
        Unit::Second => 1_000_000_000,
        Unit::Millisecond => 1_000_000,
        Unit::Microsecond => 1_000,
        Unit::Nanosecond => 1,
    };
    if nanoseconds % unit != 0 {
        let data_type = of.field.data_type();
        return refuse(format!("{} is more precise than {data_type}", shown(value)));
    }
    let Ok(number) = i64::try_from(nanoseconds / unit) else { return out_of_range(of, value) };
    match (of.data_type.width(), i32::try_from(number)) {
        (Some(4), Ok(number)) => Ok(New::number(number.to_le_bytes())),
        (Some(4), Err(_)) => out_of_range(of, value),
        _ => Ok(New::number(number.to_le_bytes())),
    }
}

/// A tuple of months, days and nanoseconds, such as `dray.Interval`.
fn interval(of: &Value, value: &Bound<'_, PyAny>) -> Result<New> {
    let Ok((months, days, nanoseconds)) = value.extract::<(i32, i32, i64)>() else {
        return refuse("a tuple that is not months, days and nanoseconds in 32, 32 and 64 bits");
    };
    let milliseconds = i32::try_from(nanoseconds / 1_000_000);
    let mut bytes = [0; 16];
    match (&of.data_type, milliseconds) {
        (Type::IntervalMonths, _) if days == 0 && nanoseconds == 0 => {
            return Ok(New::number(months.to_le_bytes()));
        }
        (Type::IntervalDayTime, Ok(milliseconds))
            if months == 0 && nanoseconds % 1_000_000 == 0 =>
        {
            bytes[..4].copy_from_slice(&days.to_le_bytes());
            bytes[4..8].copy_from_slice(&milliseconds.to_le_bytes());
            return Ok(New::Number(widened(bytes), 8));
        }
        (Type::IntervalMonthDayNano, _) => {
            bytes[..4].copy_from_slice(&months.to_le_bytes());
            bytes[4..8].copy_from_slice(&days.to_le_bytes());
            bytes[8..].copy_from_slice(&nanoseconds.to_le_bytes());
            return Ok(New::Number(widened(bytes), 16));
        }
        _ => {}
    }
    refuse(format!("{} is not one of {}", shown(value), of.field.data_type()))
}

fn widened(bytes: [u8; 16]) -> [u8; NUMBER_BYTES_MAX] {
    let mut wide = [0; NUMBER_BYTES_MAX];
    wide[..16].copy_from_slice(&bytes);
    wide
}

fn bytes(value: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    Ok(if let Ok(bytes) = value.cast::<PyBytes>() {
        Some(bytes.as_bytes().to_vec())
    } else if let Ok(bytes) = value.cast::<PyByteArray>() {
        Some(bytes.to_vec())
    } else if is::<PyMemoryView>(value) {
        Some(value.call_method0("tobytes")?.extract()?)
    } else {
        None
    })
}

fn out_of_range<T>(of: &Value, value: &Bound<'_, PyAny>) -> Result<T> {
    refuse(format!("{} is out of the range of {}", shown(value), of.field.data_type()))
}

/// A value, for errors. Python does not show integers of very many digits.
fn shown(value: &Bound<'_, PyAny>) -> String {
    value.str().map_or_else(|_| format!("a value {}", a_type(value)), |text| text.to_string())
}

/// The type of a value, for errors.
fn a_type(value: &Bound<'_, PyAny>) -> String {
    format!("of type {}", type_name(value))
}
