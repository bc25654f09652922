//! Dates and times, in text and by their parts.

use std::io::Write;

use dray_format::{ColumnBuilder, calendar};

use crate::column::{Column, Decode};
use crate::error::{Error, ErrorKind, Result};

const SECOND: i64 = 1_000_000;
const DAY_SECONDS: i64 = 86_400;
/// The hours of the longest time, 838:59:59.
const TIME_HOURS_MAX: u32 = 838;
/// `9999-12-31 23:59:59.999999`.
const TEXT_BYTES_MAX: usize = 26;

/// A date and a time as a server holds it. The calendar may not have the date: year, month and day
/// may be 0, and each month may have 31 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct DateTime {
    year: u16,
    month: u8,
    day: u8,
    time: TimeOfDay,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct TimeOfDay {
    hour: u8,
    minute: u8,
    second: u8,
    microsecond: u32,
}

/// A time between two moments, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) i64);

impl DateTime {
    /// Reads `2024-02-29`.
    #[inline]
    pub(crate) fn of_date(text: &[u8]) -> Option<Self> {
        let [y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1] = *text else { return None };
        let year = u16::from(pair(y0, y1)?) * 100 + u16::from(pair(y2, y3)?);
        let (month, day) = (pair(m0, m1)?, pair(d0, d1)?);
        Self { year, month, day, time: TimeOfDay::default() }.checked()
    }

    /// Reads `2024-02-29 12:34:56`, and up to six digits of a second after it.
    #[inline]
    pub(crate) fn of_datetime(text: &[u8]) -> Option<Self> {
        let (date, time) = text.split_at_checked(10)?;
        let ([b' ', h0, h1, rest @ ..], date) = (time, Self::of_date(date)?) else { return None };
        let (minute, second, microsecond) = minutes(rest)?;
        let time = TimeOfDay { hour: pair(*h0, *h1)?, minute, second, microsecond };
        Self { time, ..date }.checked()
    }

    /// Reads the 0, 4, 7 or 11 bytes of the binary protocol.
    #[inline]
    pub(crate) fn of_parts(parts: &[u8]) -> Option<Self> {
        if parts.is_empty() {
            return Some(Self::default());
        }
        let (&[y0, y1, month, day], rest) = parts.split_first_chunk::<4>()?;
        let time = TimeOfDay::of_parts(rest)?;
        Self { year: u16::from_le_bytes([y0, y1]), month, day, time }.checked()
    }

    fn checked(self) -> Option<Self> {
        let is_valid = self.year <= 9999
            && self.month <= 12
            && self.day <= 31
            && self.time.hour < 24
            && self.time.is_valid();
        is_valid.then_some(self)
    }

    pub(crate) fn is_midnight(&self) -> bool {
        self.time == TimeOfDay::default()
    }

    /// The days since 1970-01-01, if the calendar has the date.
    #[inline]
    fn days(&self) -> Option<i32> {
        calendar::days(self.year.into(), self.month, self.day)
    }

    fn write_date(&self, out: &mut Vec<u8>) {
        // Writing to a vector never fails, here and below.
        let _ = write!(out, "{:04}-{:02}-{:02}", self.year, self.month, self.day);
    }

    /// Appends the server's text: with `decimals` digits of a second, or with more if they are not
    /// zeros.
    fn write(&self, out: &mut Vec<u8>, decimals: u8) {
        self.write_date(out);
        let TimeOfDay { hour, minute, second, microsecond } = self.time;
        let _ = write!(out, " {hour:02}:{minute:02}:{second:02}");
        let bytes_min = out.len() + usize::from(decimals) + usize::from(decimals > 0);
        let _ = write!(out, ".{microsecond:06}");
        while out.len() > bytes_min && out.ends_with(b"0") {
            out.pop();
        }
        if out.len() > bytes_min && out.ends_with(b".") {
            out.pop();
        }
    }
}

impl TimeOfDay {
    /// Reads the 0, 3 or 7 bytes of the binary protocol.
    #[inline]
    fn of_parts(parts: &[u8]) -> Option<Self> {
        match *parts {
            [] => Some(Self::default()),
            [hour, minute, second] => Some(Self { hour, minute, second, microsecond: 0 }),
            [hour, minute, second, a, b, c, d] => {
                Some(Self { hour, minute, second, microsecond: u32::from_le_bytes([a, b, c, d]) })
            }
            _ => None,
        }
    }

    fn is_valid(&self) -> bool {
        self.minute < 60 && self.second < 60 && self.microsecond < 1_000_000
    }

    fn microseconds_after(&self, hours: u32) -> i64 {
        let minutes = i64::from(hours) * 60 + i64::from(self.minute);
        (minutes * 60 + i64::from(self.second)) * SECOND + i64::from(self.microsecond)
    }
}

impl Time {
    /// Reads `-838:59:59`, and up to six digits of a second after it.
    #[inline]
    pub(crate) fn of_text(text: &[u8]) -> Option<Self> {
        let (is_negative, text) = match text {
            [b'-', text @ ..] => (true, text),
            text => (false, text),
        };
        let (hours, rest) = match *text {
            [h0, h1, b':', ..] => (pair(h0, h1)?.into(), &text[2..]),
            [h0, h1, h2, b':', ..] => {
                (u32::from(pair(b'0', h0)?) * 100 + u32::from(pair(h1, h2)?), &text[3..])
            }
            _ => return None,
        };
        let (minute, second, microsecond) = minutes(rest)?;
        Self::of(is_negative, hours, TimeOfDay { hour: 0, minute, second, microsecond })
    }

    /// Reads the 0, 8 or 12 bytes of the binary protocol.
    #[inline]
    pub(crate) fn of_parts(parts: &[u8]) -> Option<Self> {
        if parts.is_empty() {
            return Some(Self(0));
        }
        let (&[sign @ 0..=1, d0, d1, d2, d3], rest) = parts.split_first_chunk::<5>()? else {
            return None;
        };
        let time = TimeOfDay::of_parts(rest).filter(|time| !rest.is_empty() && time.hour < 24)?;
        let days = u32::from_le_bytes([d0, d1, d2, d3]);
        let hours = days.checked_mul(24)?.checked_add(time.hour.into())?;
        Self::of(sign == 1, hours, time)
    }

    fn of(is_negative: bool, hours: u32, time: TimeOfDay) -> Option<Self> {
        if hours > TIME_HOURS_MAX || !time.is_valid() {
            return None;
        }
        let microseconds = time.microseconds_after(hours);
        Some(Self(if is_negative { -microseconds } else { microseconds }))
    }
}

/// Appends a date.
#[inline]
pub(crate) fn push_date(
    column: &Column,
    builder: &mut ColumnBuilder,
    date: DateTime,
) -> Result<()> {
    if column.decode == Decode::DateText {
        return Ok(builder.push_written(TEXT_BYTES_MAX, |out| date.write_date(out))?);
    }
    match date.days() {
        Some(days) => Ok(builder.push_fixed(days.to_le_bytes())?),
        None => push_missing(column, builder, |out| date.write_date(out)),
    }
}

/// Appends a date and its time.
#[inline]
pub(crate) fn push_datetime(
    column: &Column,
    builder: &mut ColumnBuilder,
    datetime: DateTime,
) -> Result<()> {
    if let Decode::DateTimeText(decimals) = column.decode {
        return Ok(builder.push_written(TEXT_BYTES_MAX, |out| datetime.write(out, decimals))?);
    }
    let Some(days) = datetime.days() else {
        return push_missing(column, builder, |out| datetime.write(out, 0));
    };
    let time = datetime.time.microseconds_after(datetime.time.hour.into());
    let microseconds = i64::from(days) * DAY_SECONDS * SECOND + time;
    Ok(builder.push_fixed(microseconds.to_le_bytes())?)
}

/// Handles a date that the calendar does not have: NULL or an error.
#[cold]
fn push_missing(
    column: &Column,
    builder: &mut ColumnBuilder,
    write: impl FnOnce(&mut Vec<u8>),
) -> Result<()> {
    if column.null_zero_dates {
        return Ok(builder.push_null()?);
    }
    let mut text = Vec::new();
    write(&mut text);
    let what = format!(
        "the calendar has no {}; choose nonfinite=null or nonfinite=text",
        String::from_utf8_lossy(&text)
    );
    Err(Error::new(ErrorKind::Unrepresentable, what))
}

/// The number of two digits.
#[inline]
fn pair(tens: u8, ones: u8) -> Option<u8> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens < 10 && ones < 10).then(|| tens * 10 + ones)
}

/// Reads `:34:56.789` as minutes, seconds and microseconds.
#[inline]
fn minutes(text: &[u8]) -> Option<(u8, u8, u32)> {
    let [b':', m0, m1, b':', s0, s1, fraction @ ..] = text else { return None };
    let microseconds = match fraction {
        [] => 0,
        [b'.', digits @ ..] if matches!(digits.len(), 1..=6) => {
            let mut sum = 0;
            for i in 0..6 {
                sum = sum * 10 + u32::from(pair(b'0', digits.get(i).copied().unwrap_or(b'0'))?);
            }
            sum
        }
        _ => return None,
    };
    Some((pair(*m0, *m1)?, pair(*s0, *s1)?, microseconds))
}
