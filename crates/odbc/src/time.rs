//! Dates and times in the structures of C, and as text.

use arrow_schema::TimeUnit;
use dray_format::calendar;

const DAY_SECONDS: i64 = 86_400;

/// The days since 1970 of a `SQL_DATE_STRUCT`; None if there is no such date.
pub(crate) fn date(bytes: &[u8]) -> Option<i32> {
    let (year, rest) = bytes.split_first_chunk()?;
    let (month, rest) = rest.split_first_chunk()?;
    let (day, _) = rest.split_first_chunk()?;
    let month = u8::try_from(u16::from_ne_bytes(*month)).ok()?;
    let day = u8::try_from(u16::from_ne_bytes(*day)).ok()?;
    calendar::days(i16::from_ne_bytes(*year).into(), month, day)
}

/// The time since 1970 of a `SQL_TIMESTAMP_STRUCT`; None if there is no such time, or the unit does
/// not hold it.
pub(crate) fn timestamp(bytes: &[u8], unit: TimeUnit) -> Option<i64> {
    let days = i64::from(date(bytes)?);
    let word = |at: usize| {
        let word = bytes.get(at..at + 2)?.try_into().ok()?;
        Some(u32::from(u16::from_ne_bytes(word)))
    };
    let nanoseconds = u32::from_ne_bytes(bytes.get(12..16)?.try_into().ok()?);
    let time = of_day(word(6)?, word(8)?, word(10)?, nanoseconds, unit)?;
    since_epoch(days, time, unit)
}

/// The days since 1970 of a text such as `2024-02-29`; None if there is no such date.
pub(crate) fn date_of_text(text: &[u8]) -> Option<i32> {
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text.trim_ascii() else { return None };
    let year = i32::from(two(y1, y2)?) * 100 + i32::from(two(y3, y4)?);
    calendar::days(year, two(m1, m2)?, two(d1, d2)?)
}

/// The time since 1970 of a text such as `2024-02-29 12:34:56.789`; None if there is no such time,
/// or the unit does not hold it.
pub(crate) fn timestamp_of_text(text: &[u8], unit: TimeUnit) -> Option<i64> {
    let (date, rest) = text.trim_ascii().split_at_checked(10)?;
    since_epoch(date_of_text(date)?.into(), time(rest.strip_prefix(b" ")?, unit)?, unit)
}

fn since_epoch(days: i64, time: i64, unit: TimeUnit) -> Option<i64> {
    days.checked_mul(DAY_SECONDS)?.checked_mul(per_second(unit))?.checked_add(time)
}

/// The time since midnight of a text such as `12:34:56.789`; None if there is no such time, or the
/// unit does not hold it.
pub(crate) fn time(text: &[u8], unit: TimeUnit) -> Option<i64> {
    let text = text.trim_ascii();
    let (clock, fraction) = text.split_at(text.len().min(8));
    let &[h1, h2, b':', m1, m2, b':', s1, s2] = clock else { return None };
    let nanoseconds = match fraction {
        [] => 0,
        [b'.', digits @ ..] if (1..=9).contains(&digits.len()) => {
            let zeros = std::iter::repeat_n(&b'0', 9 - digits.len());
            digits
                .iter()
                .chain(zeros)
                .try_fold(0_u32, |value, byte| Some(value * 10 + u32::from(digit(*byte)?)))?
        }
        _ => return None,
    };
    let [hour, minute, second] = [two(h1, h2)?, two(m1, m2)?, two(s1, s2)?].map(u32::from);
    of_day(hour, minute, second, nanoseconds, unit)
}

/// The number of two digits.
fn two(tens: u8, ones: u8) -> Option<u8> {
    Some(digit(tens)? * 10 + digit(ones)?)
}

fn digit(byte: u8) -> Option<u8> {
    byte.checked_sub(b'0').filter(|digit| *digit <= 9)
}

/// The time since midnight.
fn of_day(hour: u32, minute: u32, second: u32, nanoseconds: u32, unit: TimeUnit) -> Option<i64> {
    let is_time = hour < 24 && minute < 60 && second < 60 && nanoseconds < 1_000_000_000;
    let seconds = i64::from(hour * 3600 + minute * 60 + second);
    let step = 1_000_000_000 / per_second(unit);
    let nanoseconds = i64::from(nanoseconds);
    (is_time && nanoseconds % step == 0).then(|| seconds * per_second(unit) + nanoseconds / step)
}

fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn structure(date: [i16; 3], time: [u16; 3], nanoseconds: u32) -> Vec<u8> {
        let date = date.map(i16::to_ne_bytes).concat();
        let time = time.map(u16::to_ne_bytes).concat();
        [date, time, nanoseconds.to_ne_bytes().to_vec()].concat()
    }

    #[test]
    fn dates_that_there_are() {
        let date_of = |parts: [i16; 3]| date(&structure(parts, [0; 3], 0));
        assert_eq!(date_of([1970, 1, 2]), Some(1));
        assert_eq!(date_of([2024, 2, 29]), Some(19_782));
        for none in [[0, 0, 0], [2023, 2, 29], [2023, 13, 1], [2023, 0, 1], [2023, 1, -1]] {
            assert_eq!(date_of(none), None, "{none:?}");
        }
        assert_eq!(date(&[0; 5]), None);
    }

    #[test]
    fn no_digit_of_a_fraction_is_lost() {
        let second =
            |time, nanoseconds, unit| timestamp(&structure([1970, 1, 1], time, nanoseconds), unit);
        assert_eq!(second([0, 0, 1], 5_000, TimeUnit::Microsecond), Some(1_000_005));
        assert_eq!(second([0, 0, 1], 5_001, TimeUnit::Microsecond), None);
        assert_eq!(second([0, 0, 1], 5_001, TimeUnit::Nanosecond), Some(1_000_005_001));
        assert_eq!(second([24, 0, 0], 0, TimeUnit::Microsecond), None);
        assert_eq!(second([0, 0, 0], 1_000_000_000, TimeUnit::Nanosecond), None);
        let far = structure([9999, 12, 31], [23, 59, 59], 0);
        assert_eq!(timestamp(&far, TimeUnit::Nanosecond), None);
        assert_eq!(timestamp(&far, TimeUnit::Microsecond), Some(253_402_300_799_000_000));
    }

    #[test]
    fn times_as_text() {
        let micros = |text: &str| time(text.as_bytes(), TimeUnit::Microsecond);
        assert_eq!(micros("00:00:01"), Some(1_000_000));
        assert_eq!(micros("23:59:59.999999"), Some(86_399_999_999));
        assert_eq!(micros("00:00:00.1234560"), Some(123_456));
        for none in ["24:00:00", "-1:00:00", "1:2:3", "838:59:59", "00:00:00.", "00:00:00.1234567"]
        {
            assert_eq!(micros(none), None, "{none}");
        }
        assert_eq!(time(b"00:00:00.1234567", TimeUnit::Nanosecond), Some(123_456_700));
    }

    #[test]
    fn dates_as_text() {
        let date = |text: &str| date_of_text(text.as_bytes());
        assert_eq!((date("1970-01-02"), date("2024-02-29")), (Some(1), Some(19_782)));
        for none in ["0000-00-00", "2024-00-10", "2024-02-30", "24-02-29", "2024-02-2x", ""] {
            assert_eq!(date(none), None, "{none}");
        }
        let micros = |text: &str| timestamp_of_text(text.as_bytes(), TimeUnit::Microsecond);
        assert_eq!(micros("1970-01-01 00:00:01"), Some(1_000_000));
        assert_eq!(micros("1969-12-31 23:59:59.999999"), Some(-1));
        assert_eq!(micros("9999-12-31 23:59:59"), Some(253_402_300_799_000_000));
        for none in ["0000-00-00 00:00:00", "1970-01-01", "1970-01-01T00:00:01", "1970-01-01 "] {
            assert_eq!(micros(none), None, "{none}");
        }
        assert_eq!(timestamp_of_text(b"9999-12-31 23:59:59", TimeUnit::Nanosecond), None);
    }
}
