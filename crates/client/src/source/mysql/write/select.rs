//! Which Arrow types become values of which of MySQL's types (`spec/types.md` section 6).

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::*;
use dray_mysql::BoundType;
use dray_mysqltypes::TYPE_KEY;
use dray_pgcopy::{Error, Reason, json};

use super::column::{Column, Kind};
use super::values::{
    Booleans, INEXACT, Nested, Nothing, Numbers, OUT_OF_RANGE, Strings, TOO_FINE, Values,
    check_json_numbers, push_date, push_datetime, push_decimal, push_float, push_integer,
    push_time,
};

const DAY_MILLISECONDS: i64 = 86_400_000;
const DAY_MICROSECONDS: i64 = 86_400_000_000;
/// A precision that cuts no digits.
const ALL_DIGITS: u8 = u8::MAX;
/// `longtext`, which is what MariaDB's type `json` is.
const LONGTEXT: Kind = Kind::Text(0xffff_ffff);

type Written = Result<(), Reason>;
/// Writes a whole number.
type WriteInteger = Box<dyn Fn(i128, &mut Vec<u8>) -> Written>;
/// Checks a string or bytes.
type Check<'a> = Box<dyn Fn(&[u8]) -> Written + 'a>;
type Selected<'a> = Result<Box<dyn Values + 'a>, Error>;

/// The same data without its encoding: dictionaries, runs, and floats of 16 bits.
///
/// # Errors
/// When values are lost.
pub(super) fn decoded(field: &Field, array: &ArrayRef) -> Result<ArrayRef, Error> {
    use DataType::*;
    let plain = match array.data_type() {
        Dictionary(_, values) => &**values,
        RunEndEncoded(_, values) => values.data_type(),
        Float16 => &Float32,
        _ => return Ok(array.clone()),
    };
    let undecodable = |why: &str| Error::Type {
        column: field.name().clone(),
        what: format!("Arrow's {} can't be decoded: {why}", array.data_type()),
        hint: String::new(),
    };
    let decoded = cast(array, plain).map_err(|error| undecodable(&error.to_string()))?;
    match decoded.len() == array.len() {
        true => Ok(decoded),
        false => Err(undecodable("values are lost")),
    }
}

/// How a column's values are sent.
pub(super) fn bound_type(field: &Field, column: &Column) -> BoundType {
    match (&column.kind, plain_type(field.data_type())) {
        (Kind::Bit(_), _) => BoundType::Bytes,
        (_, data_type) if is_bytes(data_type) => BoundType::Bytes,
        _ => BoundType::Text,
    }
}

/// Whether the server has to be told that a column's values are text in UTF-8: it takes what comes
/// for bytes of the column's own character set.
pub(super) fn needs_conversion(field: &Field, column: &Column) -> bool {
    match column.kind {
        Kind::Json | Kind::Uuid | Kind::Other => bound_type(field, column) == BoundType::Text,
        Kind::Char(_) | Kind::Varchar(_) | Kind::Text(_) | Kind::Enum(_) | Kind::Set(_) => {
            !column.is_utf8()
        }
        _ => false,
    }
}

fn plain_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => values,
        DataType::RunEndEncoded(_, values) => values.data_type(),
        plain => plain,
    }
}

fn is_bytes(data_type: &DataType) -> bool {
    use DataType::*;
    matches!(data_type, Binary | LargeBinary | BinaryView | FixedSizeBinary(_))
}

/// The values of an array without encoding, for a column of the table.
///
/// # Errors
/// When the types don't match.
pub(super) fn select<'a>(
    field: &'a Field,
    array: &'a ArrayRef,
    column: &'a Column,
) -> Selected<'a> {
    use DataType::*;
    let kind = &column.kind;
    let mismatch = |hint: &str| Error::Type {
        column: field.name().clone(),
        what: format!("Arrow's {} can't be written as {}", field.data_type(), column.declared),
        hint: hint.to_owned(),
    };
    macro_rules! integers {
        ($type:ty) => {
            integer(kind).map(|write| {
                let write = move |value, out: &mut Vec<u8>| write(i128::from(value), out);
                Box::new(Numbers { array: array.as_primitive::<$type>(), write }) as Box<dyn Values>
            })
        };
    }
    macro_rules! decimals {
        ($type:ty, $precision:expr, $scale:expr) => {
            decimal::<$type>(array, *$precision, *$scale, kind)
        };
    }
    macro_rules! strings {
        ($array:expr) => {
            text(kind, is_own_text(field, column))
                .map(|check| Box::new(Strings { array: $array, check }) as Box<dyn Values>)
        };
    }
    macro_rules! bytes {
        ($array:expr) => {
            bytes(kind).map(|check| Box::new(Strings { array: $array, check }) as Box<dyn Values>)
        };
    }
    let selected = match array.data_type() {
        Null => Some(Box::new(Nothing) as Box<dyn Values>),
        Boolean if matches!(kind, Kind::Integer { .. } | Kind::Bit(_)) => {
            integer(kind).map(|write| {
                Box::new(Booleans { array: array.as_boolean(), write }) as Box<dyn Values>
            })
        }
        Int8 => integers!(Int8Type),
        Int16 => integers!(Int16Type),
        Int32 => integers!(Int32Type),
        Int64 => integers!(Int64Type),
        UInt8 => integers!(UInt8Type),
        UInt16 => integers!(UInt16Type),
        UInt32 => integers!(UInt32Type),
        UInt64 => integers!(UInt64Type),
        Float32 => float(kind, array.as_primitive::<Float32Type>()),
        Float64 => float(kind, array.as_primitive::<Float64Type>()),
        Decimal32(precision, scale) => decimals!(Decimal32Type, precision, scale),
        Decimal64(precision, scale) => decimals!(Decimal64Type, precision, scale),
        Decimal128(precision, scale) => decimals!(Decimal128Type, precision, scale),
        Decimal256(_, scale) => digits::<Decimal256Type>(array, *scale, kind),
        Utf8 => strings!(array.as_string::<i32>()),
        LargeUtf8 => strings!(array.as_string::<i64>()),
        Utf8View => strings!(array.as_string_view()),
        Binary => bytes!(array.as_binary::<i32>()),
        LargeBinary => bytes!(array.as_binary::<i64>()),
        BinaryView => bytes!(array.as_binary_view()),
        FixedSizeBinary(_) => bytes!(array.as_fixed_size_binary()),
        Timestamp(_, zone) => match (kind, zone) {
            (Kind::DateTime(_), Some(_)) | (Kind::Timestamp(_), None) => {
                return Err(mismatch(
                    "give the timestamps a zone for a column of type timestamp, and none for \
                     datetime",
                ));
            }
            _ => temporal(array, kind),
        },
        Date32 | Date64 | Time32(_) | Time64(_) | Duration(_) => temporal(array, kind),
        List(_) | LargeList(_) | ListView(_) | LargeListView(_) | FixedSizeList(..) | Struct(_)
        | Map(..)
            if *kind == Kind::Json || *kind == LONGTEXT =>
        {
            if let Some(why) = json::no_json(array.data_type()) {
                return Err(mismatch(why));
            }
            let check: fn(&[u8]) -> Written = match kind {
                Kind::Json => check_json_numbers,
                _ => |_| Ok(()),
            };
            Some(Box::new(Nested { array, field, check }) as Box<dyn Values>)
        }
        nested if nested.is_nested() => {
            return Err(mismatch("nested data is written as json or longtext"));
        }
        _ => None,
    };
    selected.ok_or_else(|| mismatch("cast it first, or give the column another type"))
}

/// Whether strings are the text of the column's own type, as reading has made them.
fn is_own_text(field: &Field, column: &Column) -> bool {
    field.metadata().get(TYPE_KEY).is_some_and(|named| *named == column.declared)
}

/// Writes whole numbers.
fn integer(kind: &Kind) -> Option<WriteInteger> {
    let in_range = |is_in_range: bool| if is_in_range { Ok(()) } else { Err(OUT_OF_RANGE) };
    Some(match *kind {
        Kind::Integer { min, max } => Box::new(move |value, out| {
            push_integer(value, out);
            in_range((min..=max).contains(&value))
        }),
        Kind::Decimal { precision, scale, unsigned } => Box::new(move |value, out| {
            let start = out.len();
            push_integer(value, out);
            check_digits(&out[start..], precision, scale, unsigned)
        }),
        Kind::Float { bytes, rounds: false } => Box::new(move |value, out| {
            let float = if bytes == 4 { f64::from(value as f32) } else { value as f64 };
            push_float(float, out)?;
            if float as i128 == value { Ok(()) } else { Err(INEXACT) }
        }),
        // Two digits would be those of a year from 1970 to 2069.
        Kind::Year => Box::new(move |value, out| {
            out.extend_from_slice(format!("{value:04}").as_bytes());
            in_range(value == 0 || (1901..=2155).contains(&value))
        }),
        Kind::Bit(bits) => Box::new(move |value, out| {
            let bytes = bits.div_ceil(8).min(8) as usize;
            out.extend_from_slice(&value.to_be_bytes()[16 - bytes..]);
            in_range(value >= 0 && value >> bits == 0)
        }),
        _ => return None,
    })
}

fn float<'a, T: ArrowPrimitiveType>(
    kind: &Kind,
    array: &'a arrow::array::PrimitiveArray<T>,
) -> Option<Box<dyn Values + 'a>>
where
    T::Native: Into<f64>,
{
    let Kind::Float { bytes, rounds: false } = *kind else { return None };
    let write = move |value: T::Native, out: &mut Vec<u8>| {
        let value: f64 = value.into();
        let fits = bytes == 8 || f64::from(value as f32) == value;
        push_float(value, out)?;
        if fits { Ok(()) } else { Err(INEXACT) }
    };
    Some(Box::new(Numbers { array, write }))
}

/// Decimals of up to 128 bits.
fn decimal<'a, T: DecimalType>(
    array: &'a ArrayRef,
    precision: u8,
    scale: i8,
    kind: &Kind,
) -> Option<Box<dyn Values + 'a>>
where
    T::Native: Into<i128>,
{
    let (Kind::Decimal { precision: digits_max, scale: scale_max, unsigned: false }, Ok(own)) =
        (kind, u8::try_from(scale))
    else {
        return digits::<T>(array, scale, kind);
    };
    // Whether all values of the type fit.
    let (digits_max, scale_max) = (i64::from(*digits_max), i64::from(*scale_max));
    let (precision, scale_of) = (i64::from(precision), i64::from(scale));
    if scale_of > scale_max || precision - scale_of > digits_max - scale_max {
        return digits::<T>(array, scale, kind);
    }
    let write = move |value: T::Native, out: &mut Vec<u8>| {
        push_decimal(value.into(), own.into(), out);
        Ok(())
    };
    Some(Box::new(Numbers { array: array.as_primitive::<T>(), write }))
}

/// Decimals whose digits have to be counted.
fn digits<'a, T: DecimalType>(
    array: &'a ArrayRef,
    scale: i8,
    kind: &Kind,
) -> Option<Box<dyn Values + 'a>> {
    let kind = match kind {
        Kind::Decimal { .. } | Kind::Integer { .. } => kind.clone(),
        _ => return None,
    };
    let write = move |value: T::Native, out: &mut Vec<u8>| {
        let text = T::format_decimal(value, ALL_DIGITS, scale);
        let start = out.len();
        match kind {
            Kind::Decimal { precision, scale, unsigned } => {
                out.extend_from_slice(text.as_bytes());
                check_digits(&out[start..], precision, scale, unsigned)
            }
            Kind::Integer { min, max } => {
                let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
                if fraction.bytes().any(|digit| digit != b'0') {
                    return Err("it is no whole number");
                }
                let value = whole.parse().map_err(|_| OUT_OF_RANGE)?;
                push_integer(value, out);
                if (min..=max).contains(&value) { Ok(()) } else { Err(OUT_OF_RANGE) }
            }
            _ => Ok(()),
        }
    };
    Some(Box::new(Numbers { array: array.as_primitive::<T>(), write }))
}

/// Checks that `decimal(precision,scale)` holds a number in decimal digits.
fn check_digits(text: &[u8], precision: u32, scale: u32, unsigned: bool) -> Written {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let mut parts = digits.splitn(2, |byte| *byte == b'.');
    let whole = parts.next().unwrap_or_default().iter().skip_while(|digit| **digit == b'0').count();
    let fraction = parts.next().unwrap_or_default();
    let zeros = fraction.iter().rev().take_while(|digit| **digit == b'0').count();
    if whole > precision.saturating_sub(scale) as usize || fraction.len() - zeros > scale as usize {
        return Err("it has more digits than the column");
    }
    match unsigned && is_negative && digits.iter().any(|digit| matches!(digit, b'1'..=b'9')) {
        true => Err(OUT_OF_RANGE),
        false => Ok(()),
    }
}

/// Checks strings.
fn text(kind: &Kind, is_own_text: bool) -> Option<Check<'_>> {
    const TOO_LONG: Reason = "it has too many characters";
    let characters = |text: &[u8]| text.iter().filter(|byte| **byte & 0xC0 != 0x80).count();
    Some(match kind {
        Kind::Char(max) => Box::new(move |text| {
            if text.ends_with(b" ") {
                return Err("the column drops blanks at the end");
            }
            if text.len() <= *max || characters(text) <= *max { Ok(()) } else { Err(TOO_LONG) }
        }),
        Kind::Varchar(max) => Box::new(move |text| {
            if text.len() <= *max || characters(text) <= *max { Ok(()) } else { Err(TOO_LONG) }
        }),
        Kind::Text(max) => {
            Box::new(
                move |text| {
                    if text.len() as u64 <= *max { Ok(()) } else { Err("it has too many bytes") }
                },
            )
        }
        // The server would take a number for a label's position, and `A` for `a`.
        Kind::Enum(labels) => Box::new(move |text| {
            let is_label = labels.iter().any(|label| label.as_bytes() == text);
            if is_label { Ok(()) } else { Err("it is none of the column's values") }
        }),
        Kind::Set(labels) => Box::new(move |text| {
            let mut left = labels.iter();
            let is_subset = text.is_empty()
                || text
                    .split(|byte| *byte == b',')
                    .all(|item| left.any(|label| label.as_bytes() == item));
            match is_subset {
                true => Ok(()),
                false => Err("it is no list of the column's values in their order"),
            }
        }),
        // MariaDB's is longtext.
        Kind::Json => Box::new(check_json_numbers),
        Kind::Uuid | Kind::Other => Box::new(|_| Ok(())),
        Kind::Date | Kind::DateTime(_) | Kind::Timestamp(_) if is_own_text => Box::new(|_| Ok(())),
        _ => return None,
    })
}

/// Checks bytes.
fn bytes(kind: &Kind) -> Option<Check<'static>> {
    Some(match *kind {
        Kind::Binary(length) => Box::new(move |bytes| match bytes.len() == length {
            true => Ok(()),
            false => Err("the column holds values of its whole length only"),
        }),
        Kind::Bytes(max) => {
            Box::new(
                move |bytes| {
                    if bytes.len() as u64 <= max { Ok(()) } else { Err("it has too many bytes") }
                },
            )
        }
        Kind::Uuid => {
            Box::new(|bytes| if bytes.len() == 16 { Ok(()) } else { Err("a UUID has 16 bytes") })
        }
        Kind::Geometry | Kind::Other => Box::new(|_| Ok(())),
        _ => return None,
    })
}

/// Dates and times.
fn temporal<'a>(array: &'a ArrayRef, kind: &Kind) -> Option<Box<dyn Values + 'a>> {
    use DataType::*;
    macro_rules! numbers {
        ($type:ty, $write:expr) => {
            Box::new(Numbers { array: array.as_primitive::<$type>(), write: $write })
        };
    }
    // Microseconds in the digits that the column has.
    let stepped = |digits: u32| {
        let step = 10i64.pow(6 - digits.min(6));
        move |value: i64, unit: TimeUnit| {
            match unit {
                TimeUnit::Second => value.checked_mul(1_000_000).ok_or(OUT_OF_RANGE),
                TimeUnit::Millisecond => value.checked_mul(1_000).ok_or(OUT_OF_RANGE),
                TimeUnit::Microsecond => Ok(value),
                TimeUnit::Nanosecond if value % 1_000 == 0 => Ok(value / 1_000),
                TimeUnit::Nanosecond => Err("it has nanoseconds, and the column has microseconds"),
            }
            .and_then(|value| if value % step == 0 { Ok(value) } else { Err(TOO_FINE) })
        }
    };
    macro_rules! moments {
        ($unit:expr, $digits:expr, $push:expr, $seconds:ty, $millis:ty, $micros:ty, $nanos:ty) => {{
            let (stepped, unit) = (stepped($digits), *$unit);
            let write = move |value: i64, out: &mut Vec<u8>| $push(stepped(value, unit)?, out);
            match unit {
                TimeUnit::Second => numbers!($seconds, write) as Box<dyn Values>,
                TimeUnit::Millisecond => numbers!($millis, write),
                TimeUnit::Microsecond => numbers!($micros, write),
                TimeUnit::Nanosecond => numbers!($nanos, write),
            }
        }};
    }
    let time_of_day = |value: i64, out: &mut Vec<u8>| match (0..DAY_MICROSECONDS).contains(&value) {
        true => push_time(value, out),
        false => Err(OUT_OF_RANGE),
    };
    Some(match (array.data_type(), kind) {
        (Date32, Kind::Date) => {
            numbers!(Date32Type, |days: i32, out: &mut Vec<u8>| push_date(days.into(), out))
        }
        (Date64, Kind::Date) => numbers!(Date64Type, |value: i64, out: &mut Vec<u8>| {
            match value % DAY_MILLISECONDS {
                0 => push_date(value / DAY_MILLISECONDS, out),
                _ => Err("it has a time of day"),
            }
        }),
        (Timestamp(unit, _), Kind::DateTime(digits) | Kind::Timestamp(digits)) => moments!(
            unit,
            *digits,
            push_datetime,
            TimestampSecondType,
            TimestampMillisecondType,
            TimestampMicrosecondType,
            TimestampNanosecondType
        ),
        (Duration(unit), Kind::Time(digits)) => moments!(
            unit,
            *digits,
            push_time,
            DurationSecondType,
            DurationMillisecondType,
            DurationMicrosecondType,
            DurationNanosecondType
        ),
        (Time32(unit), Kind::Time(digits)) => {
            let (stepped, unit) = (stepped(*digits), *unit);
            let write =
                move |value: i32, out: &mut Vec<u8>| time_of_day(stepped(value.into(), unit)?, out);
            match unit {
                TimeUnit::Second => numbers!(Time32SecondType, write),
                _ => numbers!(Time32MillisecondType, write),
            }
        }
        (Time64(unit), Kind::Time(digits)) => {
            let (stepped, unit) = (stepped(*digits), *unit);
            let write =
                move |value: i64, out: &mut Vec<u8>| time_of_day(stepped(value, unit)?, out);
            match unit {
                TimeUnit::Nanosecond => numbers!(Time64NanosecondType, write),
                _ => numbers!(Time64MicrosecondType, write),
            }
        }
        _ => return None,
    })
}
