//! Values as the text or bytes that the server's columns read.

use std::io::Write;

use arrow::array::{Array, ArrayAccessor, ArrowPrimitiveType, BooleanArray, PrimitiveArray};
use arrow::datatypes::Field;
use dray_format::calendar;
use dray_pgcopy::{Reason, json};

pub(super) const OUT_OF_RANGE: Reason = "it is out of range";
pub(super) const INEXACT: Reason = "it would be rounded";
pub(super) const TOO_FINE: Reason = "it has more digits after the second than the column";
const YEARS: Reason = "dates are of the years 1 to 9999";
const DAY_MICROSECONDS: i64 = 86_400_000_000;
/// From 0001-01-01 to 9999-12-31.
const DAYS: std::ops::RangeInclusive<i64> = -719_162..=2_932_896;
/// `838:59:59.999999`, the longest time.
const TIME_MAX: u64 = 839 * 3_600_000_000 - 1;

/// A column of Arrow data that is written into one of the table's.
pub(super) trait Values {
    fn is_null(&self, row: usize) -> bool;

    /// Appends a value that is not NULL.
    ///
    /// # Errors
    /// Why the column can't hold it.
    fn append(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Reason>;
}

/// Nothing but NULL.
pub(super) struct Nothing;

impl Values for Nothing {
    fn is_null(&self, _: usize) -> bool {
        true
    }

    fn append(&self, _: usize, _: &mut Vec<u8>) -> Result<(), Reason> {
        Ok(())
    }
}

/// Numbers and times, which `write` writes.
pub(super) struct Numbers<'a, T: ArrowPrimitiveType, F> {
    pub(super) array: &'a PrimitiveArray<T>,
    pub(super) write: F,
}

impl<T, F> Values for Numbers<'_, T, F>
where
    T: ArrowPrimitiveType,
    F: Fn(T::Native, &mut Vec<u8>) -> Result<(), Reason>,
{
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn append(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
        (self.write)(self.array.value(row), out)
    }
}

pub(super) struct Booleans<'a, F> {
    pub(super) array: &'a BooleanArray,
    pub(super) write: F,
}

impl<F: Fn(i128, &mut Vec<u8>) -> Result<(), Reason>> Values for Booleans<'_, F> {
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn append(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
        (self.write)(self.array.value(row).into(), out)
    }
}

/// Strings or bytes, which `check` lets pass.
pub(super) struct Strings<A, F> {
    pub(super) array: A,
    pub(super) check: F,
}

impl<A, F> Values for Strings<A, F>
where
    A: ArrayAccessor,
    A::Item: AsRef<[u8]>,
    F: Fn(&[u8]) -> Result<(), Reason>,
{
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn append(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
        let value = self.array.value(row);
        (self.check)(value.as_ref())?;
        out.extend_from_slice(value.as_ref());
        Ok(())
    }
}

/// Nested values as JSON, which `check` lets pass.
pub(super) struct Nested<'a> {
    pub(super) array: &'a dyn Array,
    pub(super) field: &'a Field,
    pub(super) check: fn(&[u8]) -> Result<(), Reason>,
}

impl Values for Nested<'_> {
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn append(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
        let start = out.len();
        json::write(self.array, self.field, row, out)?;
        (self.check)(&out[start..])
    }
}

/// The most digits of a fraction that a double keeps (`DBL_DIG`).
const DOUBLE_DIGITS: usize = 15;
/// The powers of ten that are doubles. The server multiplies a number's digits by one.
const EXACT_POWERS: std::ops::RangeInclusive<i64> = -22..=22;

/// Checks that MySQL's type `json` keeps the numbers of JSON text: it takes integers of 64 bits as
/// they are, and others as doubles, which it rounds if they have many digits. What is not JSON is
/// left to the server.
pub(super) fn check_json_numbers(text: &[u8]) -> Result<(), Reason> {
    let is_of_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        rest = match first {
            b'"' => after_json_string(after),
            b'-' | b'0'..=b'9' => {
                let end = rest.iter().position(|byte| !is_of_number(byte)).unwrap_or(rest.len());
                if !is_kept(&rest[..end]) {
                    return Err("MySQL's json rounds a number in it: write it into a column of \
                                type longtext, or make the number a string");
                }
                &rest[end..]
            }
            _ => after,
        };
    }
    Ok(())
}

fn after_json_string(mut text: &[u8]) -> &[u8] {
    loop {
        match text {
            [b'"', rest @ ..] => return rest,
            [b'\\', _, rest @ ..] | [_, rest @ ..] => text = rest,
            [] => return text,
        }
    }
}

/// Whether a number of JSON is the same after MySQL has read it.
fn is_kept(number: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(number) else { return true };
    let Some(at) = text.find(['.', 'e', 'E']) else {
        return text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok();
    };
    let (whole, rest) = text.split_at(at);
    let (fraction, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (&rest[..at], rest[at + 1..].parse::<i64>().ok()),
        None => (rest, Some(0)),
    };
    let (whole, fraction) = (whole.trim_start_matches('-'), fraction.trim_start_matches('.'));
    let digits = whole.bytes().chain(fraction.bytes()).skip_while(|digit| *digit == b'0');
    let digits = digits.count();
    let power = exponent.and_then(|exponent| exponent.checked_sub(fraction.len() as i64));
    let is_power_exact = power.is_some_and(|power| EXACT_POWERS.contains(&power));
    digits == 0 || digits <= DOUBLE_DIGITS && is_power_exact
}

/// Appends a whole number.
pub(super) fn push_integer(value: i128, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    push_digits(value.unsigned_abs(), 1, out);
}

/// Appends the digits of a number, at least `min` of them.
fn push_digits(value: u128, min: usize, out: &mut Vec<u8>) {
    const MAX: usize = 39;
    let mut digits = [b'0'; MAX];
    let mut at = MAX;
    let mut wide = value;
    // A division of 128 bits is slow.
    while wide > u64::MAX.into() {
        at -= 1;
        digits[at] += (wide % 10) as u8;
        wide /= 10;
    }
    let mut rest = wide as u64;
    while rest > 0 {
        at -= 1;
        digits[at] += (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&digits[at.min(MAX - min)..]);
}

/// Appends a decimal with `scale` digits after the point.
pub(super) fn push_decimal(value: i128, scale: usize, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    push_digits(value.unsigned_abs(), scale + 1, out);
    if scale > 0 {
        out.insert(out.len() - scale, b'.');
    }
}

/// Appends the fewest digits that give the same float of 64 bits back. One of 32 bits is written as
/// one of 64: what the server reads first must not be rounded twice.
pub(super) fn push_float(value: f64, out: &mut Vec<u8>) -> Result<(), Reason> {
    if !value.is_finite() {
        return Err("MySQL has neither NaN nor infinity");
    }
    // Writing to a vector never fails.
    let _ = write!(out, "{value:e}");
    Ok(())
}

/// Appends a date, counted from 1970-01-01.
pub(super) fn push_date(days: i64, out: &mut Vec<u8>) -> Result<(), Reason> {
    if !DAYS.contains(&days) {
        return Err(YEARS);
    }
    let (year, month, day) = calendar::date(days);
    push_digits(year.unsigned_abs().into(), 4, out);
    for part in [month, day] {
        out.push(b'-');
        push_digits(part.unsigned_abs().into(), 2, out);
    }
    Ok(())
}

/// Appends a date and its time, in microseconds since 1970.
pub(super) fn push_datetime(value: i64, out: &mut Vec<u8>) -> Result<(), Reason> {
    push_date(value.div_euclid(DAY_MICROSECONDS), out)?;
    out.push(b' ');
    push_clock(value.rem_euclid(DAY_MICROSECONDS).unsigned_abs(), out);
    Ok(())
}

/// Appends a time of this many microseconds.
pub(super) fn push_time(value: i64, out: &mut Vec<u8>) -> Result<(), Reason> {
    if value.unsigned_abs() > TIME_MAX {
        return Err("times have at most 838:59:59.999999");
    }
    if value < 0 {
        out.push(b'-');
    }
    push_clock(value.unsigned_abs(), out);
    Ok(())
}

fn push_clock(microseconds: u64, out: &mut Vec<u8>) {
    let (seconds, fraction) = (microseconds / 1_000_000, microseconds % 1_000_000);
    push_digits((seconds / 3_600).into(), 2, out);
    for part in [seconds / 60 % 60, seconds % 60] {
        out.push(b':');
        push_digits(part.into(), 2, out);
    }
    if fraction > 0 {
        out.push(b'.');
        push_digits(fraction.into(), 6, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(push: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = b"|".to_vec();
        push(&mut out);
        String::from_utf8(out.split_off(1)).unwrap()
    }

    #[test]
    fn integers_and_decimals() {
        for value in [0, 7, -1, i128::from(u64::MAX), i128::from(u64::MAX) + 1, i128::MIN] {
            assert_eq!(text(|out| push_integer(value, out)), value.to_string());
        }
        for (value, scale, expected) in [
            (0, 0, "0"),
            (0, 2, "0.00"),
            (-5, 2, "-0.05"),
            (12_345, 2, "123.45"),
            (i128::MAX, 38, "1.70141183460469231731687303715884105727"),
        ] {
            assert_eq!(text(|out| push_decimal(value, scale, out)), expected);
        }
    }

    #[test]
    fn numbers_that_json_of_mysql_keeps() {
        for text in [
            "0",
            "-9223372036854775808",
            "18446744073709551615",
            "1.5",
            "-0.1",
            "1e5",
            "1E+20",
            "2.5e-7",
            "0.000000000000000000001",
            "123456789.012345",
            "0.00000000000000000000000000000000",
            "true",
            r#"{"a": [1, -2.50, "3.14159265358979323846", null], "b\"1.23456789012345678": 4}"#,
            r#""\\", 5"#,
            r#""1.234567890123456789"#,
            "",
        ] {
            assert_eq!(check_json_numbers(text.as_bytes()), Ok(()), "{text}");
        }
        for text in [
            "18446744073709551616",
            "-9223372036854775809",
            "12345678901234567890123",
            "0.30000000000000004",
            "1.234567890123456789",
            "12345678901234567890.10",
            "1e23",
            "1e-23",
            "2.2250738585072014e-308",
            "1e99999999999999999999",
            r#"{"a": [1, {"b": 1.234567890123456789}]}"#,
            r#""\\", 0.30000000000000004"#,
            r#"["\"", 0.30000000000000004]"#,
        ] {
            assert!(check_json_numbers(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn dates_and_times() {
        for (value, expected) in [
            (0, Ok("1970-01-01 00:00:00")),
            (-1, Ok("1969-12-31 23:59:59.999999")),
            (-62_135_596_800_000_000, Ok("0001-01-01 00:00:00")),
            (-62_135_596_800_000_001, Err(YEARS)),
            (253_402_300_799_000_001, Ok("9999-12-31 23:59:59.000001")),
            (253_402_300_800_000_000, Err(YEARS)),
        ] {
            let mut out = Vec::new();
            let pushed = push_datetime(value, &mut out).map(|()| String::from_utf8(out).unwrap());
            assert_eq!(pushed.as_deref().map_err(|why| *why), expected);
        }
        assert_eq!(text(|out| push_time(-90_061_000_001, out).unwrap()), "-25:01:01.000001");
        assert_eq!(text(|out| push_time(TIME_MAX.cast_signed(), out).unwrap()), "838:59:59.999999");
        assert!(push_time(TIME_MAX.cast_signed() + 1, &mut Vec::new()).is_err());
    }

    #[test]
    fn floats_come_back() {
        for value in [0.1, -0.0, 5e-324, f64::MAX, f64::MIN_POSITIVE, f64::from(0.1f32), 1e22] {
            let text = text(|out| push_float(value, out).unwrap());
            assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits(), "{text}");
        }
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            push_float(value, &mut Vec::new()).unwrap_err();
        }
    }
}
