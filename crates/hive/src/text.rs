//! Decimals, dates and timestamps, which come as text.

use dray_format::calendar;

const SECOND: i64 = 1_000_000;
const DAY_SECONDS: i64 = 86_400;

/// Reads a decimal such as `-123.45`, times `10^scale`. None if it has more digits than that, other
/// than zeros behind the point, or over `precision` ones.
pub(crate) fn decimal(text: &[u8], precision: u8, scale: u8) -> Option<i128> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let (mut value, mut fraction, mut count) = (0i128, None, 0u32);
    for byte in digits {
        match (byte, fraction) {
            (b'0'..=b'9', Some(places)) if places == scale => {
                if *byte != b'0' {
                    return None;
                }
            }
            (b'0'..=b'9', places) => {
                value = value.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
                fraction = places.map(|places| places + 1);
            }
            (b'.', None) if count > 0 => fraction = Some(0),
            _ => return None,
        }
        count = count.checked_add(u32::from(*byte != b'.'))?;
    }
    if count == 0 || digits.ends_with(b".") {
        return None;
    }
    let zeros = scale.checked_sub(fraction.unwrap_or(0))?;
    value = value.checked_mul(10i128.checked_pow(zeros.into())?)?;
    let is_within = 10i128.checked_pow(precision.into()).is_some_and(|bound| value < bound);
    is_within.then_some(if is_negative { -value } else { value })
}

/// Reads a date such as `2024-02-29`, in days since 1970-01-01. Years have four digits or more, and
/// a sign if that is needed.
#[inline]
pub(crate) fn date(text: &[u8]) -> Option<i32> {
    let at = text.len().checked_sub(6)?;
    let (year, [b'-', m0, m1, b'-', d0, d1]) = text.split_at(at) else { return None };
    calendar::days(year_of(year)?, pair(*m0, *m1)?, pair(*d0, *d1)?)
}

#[inline]
fn year_of(text: &[u8]) -> Option<i32> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if !(4..=7).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let year = digits.iter().fold(0, |year, digit| year * 10 + i32::from(digit - b'0'));
    Some(if is_negative { -year } else { year })
}

/// Reads a timestamp such as `2024-02-29 12:34:56.789`, in microseconds since 1970-01-01. None if
/// it has digits of nanoseconds other than zeros.
#[inline]
pub(crate) fn timestamp(text: &[u8]) -> Option<i64> {
    let at = text.iter().position(|byte| *byte == b' ')?;
    let days = date(&text[..at])?;
    let [h0, h1, b':', m0, m1, b':', s0, s1, fraction @ ..] = &text[at + 1..] else { return None };
    let (hour, minute, second) = (pair(*h0, *h1)?, pair(*m0, *m1)?, pair(*s0, *s1)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second);
    let seconds = (i64::from(days) * DAY_SECONDS).checked_add(seconds)?;
    seconds.checked_mul(SECOND)?.checked_add(microseconds(fraction)?)
}

/// [`timestamp`] with `UTC` or `Z` behind it.
pub(crate) fn timestamp_utc(text: &[u8]) -> Option<i64> {
    let zones: [&[u8]; 3] = [b" UTC", b" Z", b"Z"];
    timestamp(zones.iter().find_map(|zone| text.strip_suffix(*zone))?)
}

/// Reads `.789`, or nothing.
#[inline]
fn microseconds(text: &[u8]) -> Option<i64> {
    let digits = match text {
        [] => return Some(0),
        [b'.', digits @ ..] if matches!(digits.len(), 1..=9) => digits,
        _ => return None,
    };
    let mut sum = 0;
    for i in 0..digits.len().max(6) {
        let digit = digits.get(i).copied().unwrap_or(b'0');
        match (i, digit) {
            (..6, b'0'..=b'9') => sum = sum * 10 + i64::from(digit - b'0'),
            (_, b'0') => {}
            _ => return None,
        }
    }
    Some(sum)
}

/// The number of two digits.
#[inline]
fn pair(tens: u8, ones: u8) -> Option<u8> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens < 10 && ones < 10).then(|| tens * 10 + ones)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals() {
        for (text, precision, scale, expected) in [
            ("1.50", 3, 2, Some(150)),
            ("-0.05", 3, 2, Some(-5)),
            ("1.5", 3, 2, Some(150)),
            ("7", 3, 2, Some(700)),
            ("1.500", 3, 2, Some(150)),
            ("0", 1, 1, Some(0)),
            ("1.501", 4, 2, None),
            ("10.00", 3, 2, None),
            ("", 3, 2, None),
            ("-", 3, 2, None),
            (".5", 3, 2, None),
            ("5.", 3, 2, None),
            ("1.2.3", 3, 2, None),
            ("1e3", 3, 2, None),
            ("+1", 3, 2, None),
            ("99999999999999999999999999999999999999", 38, 0, Some(10i128.pow(38) - 1)),
            ("100000000000000000000000000000000000000", 38, 0, None),
            ("999999999999999999999999999999999999999999", 38, 0, None),
        ] {
            assert_eq!(decimal(text.as_bytes(), precision, scale), expected, "{text}");
        }
    }

    #[test]
    fn dates_and_timestamps() {
        for (text, expected) in [
            ("1970-01-01", Some(0)),
            ("2024-02-29", Some(19_782)),
            ("0001-01-01", Some(-719_162)),
            ("-0044-03-15", Some(-735_525)),
            ("+12345-01-01", Some(3_789_391)),
            ("2023-02-29", None),
            ("2023-00-01", None),
            ("123-01-01", None),
            ("2023-01-01 ", None),
            ("", None),
        ] {
            assert_eq!(date(text.as_bytes()), expected, "{text}");
        }
        for (text, expected) in [
            ("1970-01-01 00:00:00", Some(0)),
            ("1970-01-01 00:00:01.5", Some(1_500_000)),
            ("1969-12-31 23:59:59.999999", Some(-1)),
            ("1970-01-01 00:00:00.123456000", Some(123_456)),
            ("1970-01-01 00:00:00.123456001", None),
            ("1970-01-01 00:00:00.", None),
            ("1970-01-01 24:00:00", None),
            ("1970-01-01 00:00:00 UTC", None),
            ("1970-01-01", None),
        ] {
            assert_eq!(timestamp(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(timestamp_utc(b"1970-01-01 00:00:01.0 UTC"), Some(1_000_000));
        assert_eq!(timestamp_utc(b"1970-01-01 00:00:01.0 Europe/Berlin"), None);
    }
}
