//! Decimal128 of BSON: an IEEE 754 decimal in binary integer form.
//!
//! Its 128 bits are a sign, an exponent of 14 bits and a coefficient of 113 bits:
//!
//! ```text
//!   bit 127   126 … 113              112 … 0
//!   sign      exponent + 6176        coefficient, at most 10³⁴ - 1
//! ```
//!
//! Five ones behind the sign are NaN, four and a zero infinity. Two ones begin another form, whose
//! coefficients are all too large; these are zeros.

use mongodb::bson::Decimal128;

const EXPONENT_BIAS: i32 = 6176;
const COEFFICIENT_MAX: u128 = 10_u128.pow(34) - 1;
/// The digits of an Arrow decimal of 128 bits.
pub(crate) const PRECISION_MAX: u8 = 38;

/// A finite number: `coefficient * 10^exponent`, negative or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Number {
    pub(crate) is_negative: bool,
    pub(crate) coefficient: u128,
    pub(crate) exponent: i32,
}

impl Number {
    /// None for NaN and the infinities.
    pub(crate) fn of(value: &Decimal128) -> Option<Self> {
        let bits = u128::from_le_bytes(value.bytes());
        let is_negative = bits >> 127 == 1;
        if (bits >> 123) & 0b1111 == 0b1111 {
            return None;
        }
        let (exponent, coefficient) = match (bits >> 125) & 0b11 == 0b11 {
            true => (bits >> 111, 0),
            false => (bits >> 113, bits & ((1 << 113) - 1)),
        };
        let exponent = i32::try_from(exponent & 0x3fff).ok()? - EXPONENT_BIAS;
        let coefficient = if coefficient > COEFFICIENT_MAX { 0 } else { coefficient };
        Some(Self { is_negative, coefficient, exponent })
    }

    /// A whole number.
    pub(crate) fn whole(value: i64) -> Self {
        let coefficient = u128::from(value.unsigned_abs());
        Self { is_negative: value < 0, coefficient, exponent: 0 }
    }

    /// Whether it is a zero with a sign, which a decimal of Arrow does not have.
    pub(crate) fn is_negative_zero(&self) -> bool {
        self.is_negative && self.coefficient == 0
    }

    /// How many digits it has behind the point, zeros among them.
    pub(crate) fn scale(&self) -> u32 {
        self.exponent.min(0).unsigned_abs()
    }

    /// How many digits it has before the point.
    pub(crate) fn whole_digits(&self) -> i32 {
        let digits = self.coefficient.checked_ilog10().map_or(0, |log| log.cast_signed() + 1);
        if digits == 0 { 0 } else { (digits + self.exponent).max(0) }
    }

    /// The number scaled by `10^scale`; None unless it has at most `precision` digits then, and
    /// none is lost.
    pub(crate) fn scaled(&self, precision: u8, scale: u8) -> Option<i128> {
        if self.is_negative_zero() {
            return None;
        }
        let mut value = self.coefficient;
        if value == 0 {
            return Some(0);
        }
        let shift = self.exponent.checked_add(i32::from(scale))?;
        if shift >= 0 {
            value = value.checked_mul(10_u128.checked_pow(shift.unsigned_abs())?)?;
        } else {
            let power = 10_u128.checked_pow(shift.unsigned_abs())?;
            if !value.is_multiple_of(power) {
                return None;
            }
            value /= power;
        }
        if value >= 10_u128.pow(u32::from(precision.min(PRECISION_MAX))) {
            return None;
        }
        let value = i128::try_from(value).ok()?;
        Some(if self.is_negative { -value } else { value })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn number(text: &str) -> Option<Number> {
        Number::of(&text.parse::<Decimal128>().unwrap())
    }

    #[test]
    fn numbers() {
        for (text, scale, scaled) in [
            ("0", 0, Some(0)),
            ("12.50", 2, Some(1250)),
            ("12.50", 1, Some(125)),
            ("12.50", 0, None),
            ("-0.001", 3, Some(-1)),
            ("1E+3", 0, Some(1000)),
            ("1E+3", 2, Some(100_000)),
            ("-0", 0, None),
            ("0E-6000", 0, Some(0)),
            ("9999999999999999999999999999999999", 4, Some((10_i128.pow(34) - 1) * 10_000)),
            ("9999999999999999999999999999999999", 5, None),
            ("1E+6111", 0, None),
            ("1E-6176", 0, None),
        ] {
            assert_eq!(number(text).unwrap().scaled(38, scale), scaled, "{text}");
        }
        assert_eq!(number("1000").unwrap().scaled(3, 0), None);
        assert_eq!(number("999").unwrap().scaled(3, 0), Some(999));
        for text in ["NaN", "Infinity", "-Infinity"] {
            assert_eq!(number(text), None, "{text}");
        }
        assert_eq!(Number::whole(i64::MIN).scaled(19, 0), Some(i128::from(i64::MIN)));
    }

    #[test]
    fn digits() {
        for (text, whole_digits, scale) in
            [("0.001", 0, 3), ("12.5", 2, 1), ("1E+3", 4, 0), ("0.00", 0, 2), ("100", 3, 0)]
        {
            let number = number(text).unwrap();
            assert_eq!((number.whole_digits(), number.scale()), (whole_digits, scale), "{text}");
        }
    }

    #[test]
    fn coefficients_that_are_too_large_are_zeros() {
        // Both forms: 113 ones, and two ones behind the sign.
        for bits in [(6176_u128 << 113) | ((1 << 113) - 1), 0b011 << 125] {
            let number = Number::of(&Decimal128::from_bytes(bits.to_le_bytes())).unwrap();
            assert_eq!(number.coefficient, 0);
        }
    }
}
