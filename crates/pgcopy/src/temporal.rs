//! Dates, times and intervals.

use arrow::array::PrimitiveArray;
use arrow::datatypes::{ArrowPrimitiveType, IntervalMonthDayNano, TimeUnit};

use crate::error::Reason;
use crate::fixed::Fixed;
use crate::number::OUT_OF_RANGE;
use crate::values::Values;

/// PostgreSQL counts from 2000-01-01, Arrow from 1970-01-01.
pub(crate) const EPOCH_DAYS: i64 = 10_957;
pub(crate) const DAY_MICROSECONDS: i64 = 86_400_000_000;
pub(crate) const EPOCH_MICROSECONDS: i64 = EPOCH_DAYS * DAY_MICROSECONDS;
const DAY_MILLISECONDS: i64 = 86_400_000;
/// The first day, 4714-11-24 BC, and the day after the last, 5874898-01-01, from 2000-01-01.
const DAYS: std::ops::Range<i64> = -2_451_545..2_145_031_949;
/// `MIN_TIMESTAMP` and `END_TIMESTAMP`.
const MICROSECONDS: std::ops::Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;
/// `typmod` of an interval: its fields in the upper half, its precision in the lower one.
const ALL_FIELDS: i32 = 0x7FFF;
const FULL_PRECISION: i32 = 0xFFFF;

const NANOSECONDS: Reason = "it has nanoseconds, and the column has microseconds";
const TOO_FINE: Reason = "it has more digits after the second than the column";
const TIME_OF_DAY: Reason = "it has a time of day";

/// The microseconds that a column of this precision counts in.
pub(crate) fn step(typmod: i32) -> i64 {
    match u32::try_from(typmod) {
        Ok(precision @ 0..=5) => 10i64.pow(6 - precision),
        _ => 1,
    }
}

/// The microseconds that an interval column counts in; None if it holds only some fields.
pub(crate) fn interval_step(typmod: i32) -> Option<i64> {
    match typmod {
        ..0 => Some(1),
        _ if typmod >> 16 & 0x7FFF != ALL_FIELDS => None,
        _ if typmod & FULL_PRECISION == FULL_PRECISION => Some(1),
        _ => Some(step(typmod & FULL_PRECISION)),
    }
}

/// Microseconds of a count of units.
#[inline]
fn microseconds(value: i64, unit: TimeUnit) -> Result<i64, Reason> {
    match unit {
        TimeUnit::Second => value.checked_mul(1_000_000).ok_or(OUT_OF_RANGE),
        TimeUnit::Millisecond => value.checked_mul(1_000).ok_or(OUT_OF_RANGE),
        TimeUnit::Microsecond => Ok(value),
        TimeUnit::Nanosecond if value % 1_000 == 0 => Ok(value / 1_000),
        TimeUnit::Nanosecond => Err(NANOSECONDS),
    }
}

#[inline]
fn stepped(value: i64, step: i64) -> Result<i64, Reason> {
    if step == 1 || value % step == 0 { Ok(value) } else { Err(TOO_FINE) }
}

/// Days since 1970.
pub(crate) fn days<T: ArrowPrimitiveType<Native = i32>>(
    array: PrimitiveArray<T>,
) -> Box<dyn Values> {
    Box::new(Fixed { array, oid: 1082, convert: |days: i32| day(days.into()) })
}

/// Milliseconds since 1970, which must be whole days.
pub(crate) fn midnights<T: ArrowPrimitiveType<Native = i64>>(
    array: PrimitiveArray<T>,
) -> Box<dyn Values> {
    let convert = |milliseconds: i64| match milliseconds % DAY_MILLISECONDS {
        0 => day(milliseconds / DAY_MILLISECONDS),
        _ => Err(TIME_OF_DAY),
    };
    Box::new(Fixed { array, oid: 1082, convert })
}

#[inline]
fn day(days: i64) -> Result<[u8; 4], Reason> {
    let days = days - EPOCH_DAYS;
    match i32::try_from(days) {
        Ok(sent) if DAYS.contains(&days) => Ok(sent.to_be_bytes()),
        _ => Err(OUT_OF_RANGE),
    }
}

/// Timestamps, with and without a zone.
pub(crate) fn timestamps<T: ArrowPrimitiveType<Native = i64>>(
    array: PrimitiveArray<T>,
    unit: TimeUnit,
    oid: u32,
    typmod: i32,
) -> Box<dyn Values> {
    let step = step(typmod);
    let convert = move |value: i64| {
        let value = microseconds(value, unit)?.checked_sub(EPOCH_MICROSECONDS);
        let value = stepped(value.ok_or(OUT_OF_RANGE)?, step)?;
        if MICROSECONDS.contains(&value) { Ok(value.to_be_bytes()) } else { Err(OUT_OF_RANGE) }
    };
    Box::new(Fixed { array, oid, convert })
}

/// Times of day.
pub(crate) fn times<T: ArrowPrimitiveType>(
    array: PrimitiveArray<T>,
    unit: TimeUnit,
    typmod: i32,
) -> Box<dyn Values>
where
    T::Native: Into<i64>,
{
    let step = step(typmod);
    let convert = move |value: T::Native| {
        let value = stepped(microseconds(value.into(), unit)?, step)?;
        match (0..DAY_MICROSECONDS).contains(&value) {
            true => Ok(value.to_be_bytes()),
            false => Err(OUT_OF_RANGE),
        }
    };
    Box::new(Fixed { array, oid: 1083, convert })
}

/// Microseconds, days and months as `interval_recv` reads them.
#[inline]
fn interval(microseconds: i64, days: i32, months: i32, step: i64) -> Result<[u8; 16], Reason> {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&stepped(microseconds, step)?.to_be_bytes());
    bytes[8..12].copy_from_slice(&days.to_be_bytes());
    bytes[12..].copy_from_slice(&months.to_be_bytes());
    Ok(bytes)
}

/// Durations.
pub(crate) fn durations<T: ArrowPrimitiveType<Native = i64>>(
    array: PrimitiveArray<T>,
    unit: TimeUnit,
    step: i64,
) -> Box<dyn Values> {
    let convert = move |value| interval(microseconds(value, unit)?, 0, 0, step);
    Box::new(Fixed { array, oid: 1186, convert })
}

/// Intervals of months.
pub(crate) fn months<T: ArrowPrimitiveType<Native = i32>>(
    array: PrimitiveArray<T>,
    step: i64,
) -> Box<dyn Values> {
    Box::new(Fixed { array, oid: 1186, convert: move |months| interval(0, 0, months, step) })
}

/// Intervals of days and milliseconds.
pub(crate) fn days_and_times<T>(array: PrimitiveArray<T>, step: i64) -> Box<dyn Values>
where
    T: ArrowPrimitiveType<Native = arrow::datatypes::IntervalDayTime>,
{
    let convert = move |value: arrow::datatypes::IntervalDayTime| {
        interval(i64::from(value.milliseconds) * 1_000, value.days, 0, step)
    };
    Box::new(Fixed { array, oid: 1186, convert })
}

/// Intervals of months, days and nanoseconds.
pub(crate) fn intervals<T>(array: PrimitiveArray<T>, step: i64) -> Box<dyn Values>
where
    T: ArrowPrimitiveType<Native = IntervalMonthDayNano>,
{
    let convert = move |value: IntervalMonthDayNano| {
        let time = microseconds(value.nanoseconds, TimeUnit::Nanosecond)?;
        interval(time, value.days, value.months, step)
    };
    Box::new(Fixed { array, oid: 1186, convert })
}

/// A time of day with a zone, as `timetz_out` writes it: `04:05:06.789-08`.
pub(crate) fn zoned_time(text: &[u8], step: i64, out: &mut Vec<u8>) -> Result<(), Reason> {
    const WRONG: Reason = "it is no time with a zone, as in 04:05:06.789-08";
    let sign = text.iter().position(|byte| matches!(byte, b'+' | b'-')).ok_or(WRONG)?;
    let (time, zone) = text.split_at(sign);
    let (time, fraction) = match time.iter().position(|byte| *byte == b'.') {
        Some(point) => (&time[..point], &time[point + 1..]),
        None => (time, &[][..]),
    };
    let [hours, minutes, seconds] = sexagesimal(time, 3).ok_or(WRONG)?;
    if fraction.len() > 6 || fraction.iter().any(|digit| !digit.is_ascii_digit()) {
        return Err(WRONG);
    }
    let fraction = (0..6)
        .fold(0, |sum, i| sum * 10 + i64::from(fraction.get(i).map_or(0, |digit| digit - b'0')));
    let time = (hours * 3_600 + minutes * 60 + seconds) * 1_000_000 + fraction;
    if time > DAY_MICROSECONDS {
        return Err(OUT_OF_RANGE);
    }
    let [hours, minutes, seconds] = sexagesimal(&zone[1..], 1).ok_or(WRONG)?;
    let east = hours * 3_600 + minutes * 60 + seconds;
    // Seconds west of Greenwich.
    let west = if zone[0] == b'-' { east } else { -east };
    let west = i32::try_from(west).map_err(|_| OUT_OF_RANGE)?;
    out.extend_from_slice(&stepped(time, step)?.to_be_bytes());
    out.extend_from_slice(&west.to_be_bytes());
    Ok(())
}

/// Up to three numbers of two digits with colons between them, and at least `min`.
fn sexagesimal(text: &[u8], min: usize) -> Option<[i64; 3]> {
    let mut numbers = [0; 3];
    let parts: Vec<&[u8]> = text.split(|byte| *byte == b':').collect();
    if !(min..=3).contains(&parts.len()) {
        return None;
    }
    for (i, (number, part)) in numbers.iter_mut().zip(parts).enumerate() {
        let [high @ b'0'..=b'9', low @ b'0'..=b'9'] = part else { return None };
        *number = i64::from(high - b'0') * 10 + i64::from(low - b'0');
        if i > 0 && *number >= 60 {
            return None;
        }
    }
    Some(numbers)
}
