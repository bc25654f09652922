//! Whether a 64-bit float stands for a number in text, so that no digit is lost.

use std::fmt::{self, Write};

/// A float keeps all decimals of up to this number of digits.
const DIGITS_ALWAYS_KEPT: usize = 15;
/// Magnitudes of ten between which a float has all of its bits.
const NORMAL: std::ops::Range<i64> = -300..300;
/// The digits of the longest float, rounded up. Text has more only if no float stands for it, or if
/// the rest are zeros.
const DIGITS_MAX: usize = 800;

/// Whether the float nearest to a number has the number's digits, if it is printed with as many of
/// them, or with as few as tell it from all others. `2.50` and `0.10000000000000001` have,
/// `12345678901234567.89` and `1e-400` have not. The text is one that parses as a float.
pub(super) fn keeps_digits(text: &str) -> bool {
    let Some(number) = Decimal::of(text.as_bytes()) else { return false };
    if number.digits == 0 {
        return true;
    }
    if number.digits <= DIGITS_ALWAYS_KEPT && NORMAL.contains(&number.magnitude) {
        return true;
    }
    let Some(float) = text.parse::<f64>().ok().filter(|float| float.is_finite()) else {
        return false;
    };
    if number.digits > DIGITS_MAX {
        return false;
    }
    let mut printed = Printed { bytes: [0; DIGITS_MAX + 16], length: 0 };
    let mut is_same = |arguments: fmt::Arguments<'_>| {
        printed.length = 0;
        printed.write_fmt(arguments).is_ok()
            && Decimal::of(printed.bytes()).is_some_and(|printed| printed.is(&number))
    };
    is_same(format_args!("{float:.*e}", number.digits - 1)) || is_same(format_args!("{float:e}"))
}

/// A number's digits without zeros at both ends, and its power of ten.
struct Decimal<'a> {
    /// From the first digit that is not zero to the last one, with a point among them or without.
    text: &'a [u8],
    /// Digits in `text`.
    digits: usize,
    /// The power of ten of the first digit.
    magnitude: i64,
}

impl<'a> Decimal<'a> {
    /// Splits a number. None if it has another form.
    fn of(number: &'a [u8]) -> Option<Self> {
        let number = match number {
            [b'-' | b'+', rest @ ..] => rest,
            all => all,
        };
        let end = number.iter().position(|byte| matches!(byte, b'e' | b'E'));
        let (mantissa, exponent) = number.split_at(end.unwrap_or(number.len()));
        let exponent = match exponent {
            [] => 0,
            [_, digits @ ..] => power_of_ten(digits)?,
        };
        let point = mantissa.iter().position(|byte| *byte == b'.').unwrap_or(mantissa.len());
        let is_digit = |byte: &u8| matches!(byte, b'1'..=b'9');
        let Some(first) = mantissa.iter().position(is_digit) else {
            return Some(Self { text: &[], digits: 0, magnitude: 0 });
        };
        let last = mantissa.iter().rposition(is_digit)?;
        let text = mantissa.get(first..=last)?;
        let digits = text.len() - usize::from((first..=last).contains(&point));
        let above = match point.checked_sub(first) {
            Some(digits) => i64::try_from(digits).ok()? - 1,
            None => -i64::try_from(first - point).ok()?,
        };
        Some(Self { text, digits, magnitude: exponent.saturating_add(above) })
    }

    fn is(&self, other: &Self) -> bool {
        self.magnitude == other.magnitude && self.each_digit().eq(other.each_digit())
    }

    fn each_digit(&self) -> impl Iterator<Item = &u8> {
        self.text.iter().filter(|byte| **byte != b'.')
    }
}

/// The number behind an `e`. One beyond 64 bits is as far as any.
fn power_of_ten(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    let mut power = 0i64;
    for digit in digits {
        let digit = digit.is_ascii_digit().then(|| i64::from(digit - b'0'))?;
        power = power.saturating_mul(10).saturating_add(digit);
    }
    (!digits.is_empty()).then_some(if is_negative { -power } else { power })
}

/// A printed number.
struct Printed {
    bytes: [u8; DIGITS_MAX + 16],
    length: usize,
}

impl Printed {
    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl Write for Printed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        let room = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use super::*;

    #[test]
    fn floats_stand_for_digits() {
        for kept in [
            "0",
            "-0",
            "0.0",
            "0e999",
            "1.50",
            "2.5e-3",
            ".5",
            "5.",
            "+5",
            "1e300",
            "1E+5",
            "123456789012345",
            "0.000000000000123456789012345",
            "100000000000000000000",
            "1.7976931348623157e308",
            "2.2250738585072014e-308",
            "5e-324",
            // As other programs print floats: as few digits as needed, 17, 19, or all of them.
            "0.1234567890123456",
            "0.30000000000000004",
            "0.10000000000000001",
            "1.000000000000000056e-01",
            "0.1000000000000000055511151231257827021181583404541015625",
            "1234567890123456.25",
            "9007199254740992",
            "0.10000000000000000000000000000000",
        ] {
            assert!(keeps_digits(kept), "{kept}");
        }
        for lost in [
            "12345678901234567.89",
            "-12345678901234567.89",
            "0.1234567890123456789",
            "9007199254740993.0",
            "1234567890123456.7",
            "1e-400",
            "-1e-400",
            "1.2e-323",
            "1e400",
            "1e99999999999999999999",
            "1e-99999999999999999999",
            "123456789.123456789123",
        ] {
            assert!(!keeps_digits(lost), "{lost}");
        }
        let long = format!("0.1{}", "7".repeat(2 * DIGITS_MAX));
        assert!(!keeps_digits(&long));
        assert!(keeps_digits(&format!("0.1{}", "0".repeat(2 * DIGITS_MAX))));
    }

    #[test]
    fn printed_floats_are_kept() {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for _ in 0..20_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let float = f64::from_bits(state);
            if !float.is_finite() {
                continue;
            }
            for text in [format!("{float:e}"), format!("{float:.16e}"), format!("{float}")] {
                assert!(keeps_digits(&text), "{text}");
            }
        }
    }
}
