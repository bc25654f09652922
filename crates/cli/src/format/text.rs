//! Values as text. Handles values that Arrow's formatting can't print or prints wrong: dates, times
//! and timestamps beyond chrono's range, UTC offsets that are not whole minutes, durations, and
//! decimals.
//!
//! Other values have Arrow's format: ISO 8601, with fractions of a second in groups of three
//! digits.

use std::fmt::{self, Write};

use arrow::array::cast::AsArray;
use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrowPrimitiveType, PrimitiveArray};
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Field, Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow::error::ArrowError;
use arrow::util::display::{
    ArrayFormatter, ArrayFormatterFactory, DisplayIndex, FormatOptions, FormatResult,
};
use chrono::{DateTime, Offset, TimeZone};
use dray_client::calendar;

const DAY_SECONDS: i64 = 24 * 3600;
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// A formatter for an array's values, including nested ones. NULL becomes `null`.
pub(super) fn formatter<'a>(
    array: &'a dyn Array,
    null: &'a str,
) -> Result<ArrayFormatter<'a>, ArrowError> {
    let options = FormatOptions::new()
        .with_null(null)
        .with_display_error(false)
        .with_formatter_factory(Some(&Exact));
    match Exact.create_array_formatter(array, &options, None)? {
        Some(formatter) => Ok(formatter),
        None => ArrayFormatter::try_new(array, &options),
    }
}

/// Whether this module formats the values of a type, not Arrow.
pub(super) fn is_printed_here(data_type: &DataType) -> bool {
    use DataType::*;
    let is_time =
        matches!(data_type, Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..) | Duration(_));
    is_time || data_type.is_decimal()
}

#[derive(Debug)]
struct Exact;

impl ArrayFormatterFactory for Exact {
    fn create_array_formatter<'a>(
        &self,
        array: &'a dyn Array,
        options: &FormatOptions<'a>,
        _: Option<&'a Field>,
    ) -> Result<Option<ArrayFormatter<'a>>, ArrowError> {
        let display = display(array, options.null());
        Ok(display.map(|display| ArrayFormatter::new(display, false)))
    }
}

/// The formatter for an array whose type [`is_printed_here`]; None for other types.
fn display<'a>(array: &'a dyn Array, null: &'a str) -> Option<Box<dyn DisplayIndex + 'a>> {
    macro_rules! values {
        ($type:ty, $print:expr) => {
            values::<$type, _>(array, null, $print)
        };
    }
    macro_rules! each_unit {
        (
            $unit:expr, $second:ty, $milli:ty, $micro:ty, $nano:ty,
            |$value:ident, $per_second:ident, $out:ident| $print:expr
        ) => {{
            macro_rules! of_unit {
                ($type:ty, $many:expr) => {
                    values!($type, move |$value, $out| {
                        let $per_second: i64 = $many;
                        $print
                    })
                };
            }
            match $unit {
                TimeUnit::Second => of_unit!($second, 1),
                TimeUnit::Millisecond => of_unit!($milli, 1_000),
                TimeUnit::Microsecond => of_unit!($micro, 1_000_000),
                TimeUnit::Nanosecond => of_unit!($nano, NANOS_PER_SECOND),
            }
        }};
    }
    Some(match array.data_type() {
        DataType::Date32 => values!(Date32Type, |days, out| put_date(i64::from(days), out)),
        DataType::Date64 => {
            values!(Date64Type, |millis, out| put_instant(millis, 1_000, None, out))
        }
        DataType::Time32(TimeUnit::Second) => {
            values!(Time32SecondType, |time, out| put_time(time.into(), 1, out))
        }
        DataType::Time32(_) => {
            values!(Time32MillisecondType, |time, out| put_time(time.into(), 1_000, out))
        }
        DataType::Time64(TimeUnit::Nanosecond) => {
            values!(Time64NanosecondType, |time, out| put_time(time, NANOS_PER_SECOND, out))
        }
        DataType::Time64(_) => {
            values!(Time64MicrosecondType, |time, out| put_time(time, 1_000_000, out))
        }
        DataType::Timestamp(unit, zone) => {
            let zone = zone.as_deref().map(Zone::new);
            each_unit!(
                unit,
                TimestampSecondType,
                TimestampMillisecondType,
                TimestampMicrosecondType,
                TimestampNanosecondType,
                |ticks, per_second, out| put_instant(ticks, per_second, zone, out)
            )
        }
        DataType::Duration(unit) => each_unit!(
            unit,
            DurationSecondType,
            DurationMillisecondType,
            DurationMicrosecondType,
            DurationNanosecondType,
            |ticks, per_second, out| put_duration(ticks, per_second, out)
        ),
        DataType::Decimal32(_, scale) => {
            values!(Decimal32Type, |value, out| put_decimal(value, *scale, out))
        }
        DataType::Decimal64(_, scale) => {
            values!(Decimal64Type, |value, out| put_decimal(value, *scale, out))
        }
        DataType::Decimal128(_, scale) => {
            values!(Decimal128Type, |value, out| put_decimal(value, *scale, out))
        }
        DataType::Decimal256(_, scale) => {
            values!(Decimal256Type, |value, out| put_decimal(value, *scale, out))
        }
        _ => return None,
    })
}

fn values<'a, T, P>(array: &'a dyn Array, null: &'a str, print: P) -> Box<dyn DisplayIndex + 'a>
where
    T: ArrowPrimitiveType,
    P: Fn(T::Native, &mut dyn Write) -> fmt::Result + 'a,
{
    Box::new(Values::<T, P> { array: array.as_primitive(), null, print })
}

/// An array, and the function that prints one of its values.
struct Values<'a, T: ArrowPrimitiveType, P> {
    array: &'a PrimitiveArray<T>,
    null: &'a str,
    print: P,
}

impl<T: ArrowPrimitiveType, P: Fn(T::Native, &mut dyn Write) -> fmt::Result> DisplayIndex
    for Values<'_, T, P>
{
    fn write(&self, row: usize, out: &mut dyn Write) -> FormatResult {
        match self.array.is_null(row) {
            true => out.write_str(self.null)?,
            false => (self.print)(self.array.value(row), out)?,
        }
        Ok(())
    }
}

/// The time zone in which a column's instants are printed.
#[derive(Debug, Clone, Copy)]
struct Zone(Option<Tz>);

impl Zone {
    /// An unknown zone becomes UTC, which shows the same instants.
    fn new(name: &str) -> Self {
        Self(name.parse().ok())
    }

    /// The zone's offset from UTC in seconds; 0 if it is unknown, or not in whole minutes, which
    /// ISO 8601 requires.
    fn offset(self, seconds: i64) -> i64 {
        let offset = self.0.zip(DateTime::from_timestamp(seconds, 0)).map(|(zone, instant)| {
            let offset = zone.offset_from_utc_datetime(&instant.naive_utc()).fix();
            i64::from(offset.local_minus_utc())
        });
        offset.filter(|offset| offset % 60 == 0).unwrap_or(0)
    }
}

/// `2024-01-31T12:30:00.123`, followed by `Z` or `+01:00` if there is a zone.
fn put_instant(
    ticks: i64,
    per_second: i64,
    zone: Option<Zone>,
    out: &mut dyn Write,
) -> fmt::Result {
    let seconds = ticks.div_euclid(per_second);
    let nanos = ticks.rem_euclid(per_second) * (NANOS_PER_SECOND / per_second);
    let offset = zone.map(|zone| zone.offset(seconds));
    // This can't overflow: the offset is 0 beyond chrono's range of years.
    let local = seconds + offset.unwrap_or(0);
    put_date(local.div_euclid(DAY_SECONDS), out)?;
    out.write_char('T')?;
    put_clock(local.rem_euclid(DAY_SECONDS).unsigned_abs(), nanos.unsigned_abs(), out)?;
    match offset {
        None => Ok(()),
        Some(0) => out.write_char('Z'),
        Some(offset) => {
            let sign = if offset < 0 { '-' } else { '+' };
            let minutes = offset.abs() / 60;
            write!(out, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
        }
    }
}

/// `2024-01-31`. Years with more than four digits, or before 0, have a sign.
fn put_date(days: i64, out: &mut dyn Write) -> fmt::Result {
    let (year, month, day) = calendar::date(days);
    match year {
        0..=9999 => write!(out, "{year:04}-{month:02}-{day:02}"),
        _ => write!(out, "{year:+05}-{month:02}-{day:02}"),
    }
}

/// `12:30:00.5`. A time outside a day has more hours, or a sign.
fn put_time(ticks: i64, per_second: i64, out: &mut dyn Write) -> fmt::Result {
    if ticks < 0 {
        out.write_char('-')?;
    }
    let (seconds, nanos) = split(ticks, per_second);
    put_clock(seconds, nanos, out)
}

fn put_clock(seconds: u64, nanos: u64, out: &mut dyn Write) -> fmt::Result {
    write!(out, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
    match nanos {
        0 => Ok(()),
        _ if nanos.is_multiple_of(1_000_000) => write!(out, ".{:03}", nanos / 1_000_000),
        _ if nanos.is_multiple_of(1_000) => write!(out, ".{:06}", nanos / 1_000),
        _ => write!(out, ".{nanos:09}"),
    }
}

/// `PT3600.5S`, `P0D`
fn put_duration(ticks: i64, per_second: i64, out: &mut dyn Write) -> fmt::Result {
    if ticks == 0 {
        return out.write_str("P0D");
    }
    let (seconds, mut nanos) = split(ticks, per_second);
    let sign = if ticks < 0 { "-" } else { "" };
    write!(out, "{sign}PT{seconds}")?;
    if nanos > 0 {
        let mut digits = 9;
        while nanos % 10 == 0 {
            (nanos, digits) = (nanos / 10, digits - 1);
        }
        write!(out, ".{nanos:0digits$}")?;
    }
    out.write_char('S')
}

/// The absolute value as whole seconds and nanoseconds.
fn split(ticks: i64, per_second: i64) -> (u64, u64) {
    let (ticks, per_second) = (ticks.unsigned_abs(), per_second.unsigned_abs());
    (ticks / per_second, ticks % per_second * (NANOS_PER_SECOND.unsigned_abs() / per_second))
}

/// Prints all digits, even if a value exceeds its type's precision.
fn put_decimal(value: impl fmt::Display, scale: i8, out: &mut dyn Write) -> fmt::Result {
    let mut text = Digits { bytes: [0; DIGITS_MAX], length: 0 };
    write!(text, "{value}")?;
    let text = std::str::from_utf8(text.bytes.get(..text.length).unwrap_or_default())
        .map_err(|_| fmt::Error)?;
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let places = usize::from(scale.unsigned_abs());
    out.write_str(sign)?;
    match digits.len().checked_sub(places) {
        _ if scale == 0 || scale < 0 && digits == "0" => out.write_str(digits),
        _ if scale < 0 => write!(out, "{digits}{:0<places$}", ""),
        None | Some(0) => write!(out, "0.{digits:0>places$}"),
        Some(whole) => {
            let (whole, fraction) = digits.split_at(whole);
            write!(out, "{whole}.{fraction}")
        }
    }
}

/// At least the 78 digits of a 256-bit number and its sign.
const DIGITS_MAX: usize = 80;

/// Text on the stack, to avoid an allocation for each decimal.
struct Digits {
    bytes: [u8; DIGITS_MAX],
    length: usize,
}

impl Write for Digits {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        let place = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
