//! Dates and times in text that keep their value as a column of dates or timestamps.
//!
//! The parsers of the engine's readers take more than these: `2024-01-3x` as 2024-01-03, and the
//! second 60 as 59.

use datafusion::arrow::compute::kernels::cast_utils::{Parser, string_to_datetime};
use datafusion::arrow::datatypes::Date32Type;

/// Maximum fraction digits of a second.
const NANOSECOND_DIGITS: usize = 9;

/// Days since 1970-01-01 of YYYY-MM-DD.
pub(super) fn date(text: &str) -> Option<i32> {
    let is_expected = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    let is_date = text.len() == 10 && text.bytes().enumerate().all(is_expected);
    is_date.then(|| Date32Type::parse(text)).flatten()
}

/// The form of a timestamp.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TimestampForm {
    /// Digits behind the point of its seconds.
    pub(super) digits: usize,
    pub(super) is_zoned: bool,
}

/// The form of YYYY-MM-DD hh:mm:ss, with a fraction and a zone or without, in the range of
/// nanoseconds. None for all else.
pub(super) fn timestamp(text: &str) -> Option<TimestampForm> {
    let (seconds, rest) = text.split_at_checked(19)?;
    let is_expected = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        10 => matches!(byte, b' ' | b'T'),
        13 | 16 => byte == b':',
        _ => byte.is_ascii_digit(),
    };
    // A leap second would be the one before, or the one after.
    if !seconds.bytes().enumerate().all(is_expected) || seconds.ends_with("60") {
        return None;
    }
    let fraction = rest.strip_prefix('.').unwrap_or_default();
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    if digits > NANOSECOND_DIGITS {
        return None;
    }
    string_to_datetime(&chrono::Utc, text).ok()?.timestamp_nanos_opt()?;
    Some(TimestampForm { digits, is_zoned: rest.len() > digits + usize::from(digits > 0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_ten_bytes() {
        assert_eq!(date("1970-01-02"), Some(1));
        assert_eq!(date("0001-01-01"), Some(-719_162));
        for text in [
            "2024-01-3x",
            "2024-1-12B",
            "2024-1-1",
            "2024-01-1",
            "2024-1-1AB",
            "2024-01-1 ",
            "2024/01/12",
            "20240112",
            "2024-02-30",
            "+024-01-12",
            "-024-01-12",
            "2024-01-1é",
            "2024-01-12 ",
            "x024-01-12",
            "",
        ] {
            assert_eq!(date(text), None, "{text}");
        }
    }

    #[test]
    fn timestamps_have_all_fields() {
        for (text, digits, is_zoned) in [
            ("2024-01-12 01:02:03", 0, false),
            ("2024-01-12T01:02:03.25", 2, false),
            ("2024-01-12T01:02:03.123456789Z", 9, true),
            ("2024-01-12T01:02:03+02:00", 0, true),
            ("2024-01-12 01:02:03 -08", 0, true),
        ] {
            assert_eq!(timestamp(text), Some(TimestampForm { digits, is_zoned }), "{text}");
        }
        for text in [
            "2024-01-12",
            "2024-01-12t01:02:03",
            "2024-01-12 01:02",
            "2024-01-12 01:02:60",
            "2024-01-12 01:02:60Z",
            "2024-01-12 010203+04:00",
            "2024-01-12 01:02:3x",
            "2024-01-12 01:02:03x",
            "2024-01-12 01:02:03.",
            "2024-01-12 01:02:03.5x",
            "2024-01-12 01:02:03.1234567890",
            "2024-1-12  01:02:03",
            "9999-12-31 00:00:00",
            "2024-01-12 01:02:03+2",
            "2024-01-12 24:00:00",
        ] {
            assert_eq!(timestamp(text), None, "{text}");
        }
    }
}
