//! `numeric`, PostgreSQL's decimal: digits in base 10,000, as the server stores and sends them.

mod send;

use std::io::Write;

use dray_format::Magnitude;

pub use self::send::{Declared, send_scaled, send_text};

/// Decimal digits of one digit in base 10,000.
const DIGIT_DECIMALS: i32 = 4;
/// Powers of ten that fit into 64 bits.
const POWERS: [u64; 20] = {
    let mut powers = [1; 20];
    let mut i = 1;
    while i < 20 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

/// The sign of a number, or the kind of a value that is no finite number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// Zero or more.
    Positive,
    /// Less than zero.
    Negative,
    /// Not a number.
    NaN,
    /// More than every number.
    Infinity,
    /// Less than every number.
    NegativeInfinity,
}

/// A value in base 10,000. The first digit counts `10000^weight`, each further one a 10,000th of
/// the one before.
#[derive(Debug, Clone, Copy)]
pub struct Numeric<'a> {
    /// Its sign or kind.
    pub sign: Sign,
    /// The place of the first digit.
    pub weight: i32,
    /// The decimal digits displayed after the point.
    pub dscale: u16,
    /// Two bytes a digit.
    digits: &'a [[u8; 2]],
    big_endian: bool,
}

impl<'a> Numeric<'a> {
    /// Reads a value as `numeric_send` writes it; None if it is malformed.
    #[inline]
    pub fn from_sent(bytes: &'a [u8]) -> Option<Self> {
        let (head, digits) = bytes.split_first_chunk::<8>()?;
        let field = |i: usize| u16::from_be_bytes([head[i], head[i + 1]]);
        let (digits, rest) = digits.as_chunks();
        if !rest.is_empty() || digits.len() != usize::from(field(0)) {
            return None;
        }
        let sign = match field(4) {
            0x0000 => Sign::Positive,
            0x4000 => Sign::Negative,
            0xC000 => Sign::NaN,
            0xD000 => Sign::Infinity,
            0xF000 => Sign::NegativeInfinity,
            _ => return None,
        };
        let weight = i32::from(i16::from_be_bytes([head[2], head[3]]));
        Some(Self { sign, weight, dscale: field(6), digits, big_endian: true })
    }

    /// Reads a value as a server with this machine's byte order stores it (`NumericChoice` in
    /// numeric.c), without its length.
    #[inline]
    pub fn from_stored(bytes: &'a [u8]) -> Option<Self> {
        let (header, rest) = bytes.split_first_chunk::<2>()?;
        let header = u16::from_ne_bytes(*header);
        let big_endian = cfg!(target_endian = "big");
        if header & 0xC000 == 0xC000 {
            let sign = match header & 0xF000 {
                0xC000 => Sign::NaN,
                0xD000 => Sign::Infinity,
                _ => Sign::NegativeInfinity,
            };
            return Some(Self { sign, weight: 0, dscale: 0, digits: &[], big_endian });
        }
        if header & 0x8000 != 0 {
            // The short form: sign, scale and weight share the header.
            let sign = if header & 0x2000 != 0 { Sign::Negative } else { Sign::Positive };
            let low = i32::from(header & 0x3F);
            let weight = if header & 0x40 != 0 { low - 0x40 } else { low };
            let dscale = (header & 0x1F80) >> 7;
            return Some(Self { sign, weight, dscale, digits: rest.as_chunks().0, big_endian });
        }
        let sign = if header & 0x4000 != 0 { Sign::Negative } else { Sign::Positive };
        let (weight, digits) = rest.split_first_chunk::<2>()?;
        let weight = i32::from(i16::from_ne_bytes(*weight));
        Some(Self {
            sign,
            weight,
            dscale: header & 0x3FFF,
            digits: digits.as_chunks().0,
            big_endian,
        })
    }

    /// Whether the value is a finite number.
    #[inline]
    pub fn is_finite(&self) -> bool {
        matches!(self.sign, Sign::Positive | Sign::Negative)
    }

    #[inline]
    fn digit(&self, i: usize) -> u16 {
        let raw = self.digits[i];
        if self.big_endian { u16::from_be_bytes(raw) } else { u16::from_le_bytes(raw) }
    }

    /// The value times `10^scale`. None if that is not a whole number of at most `precision` digits
    /// (up to 38), or if the value is not finite.
    #[inline]
    pub fn to_i128(&self, precision: u8, scale: i8) -> Option<i128> {
        if !self.is_finite() {
            return None;
        }
        let magnitude = match self.small(scale) {
            Some(small) => u128::from(small),
            None => self.magnitude(scale, 0u128, |sum, factor, digit| {
                sum.checked_mul(u128::from(factor))?.checked_add(u128::from(digit))
            })?,
        };
        if magnitude >= 10u128.pow(u32::from(precision.min(38))) {
            return None;
        }
        let magnitude = i128::try_from(magnitude).ok()?;
        Some(if self.sign == Sign::Negative { -magnitude } else { magnitude })
    }

    /// The magnitude for [`Self::to_i128`], for values of up to 4 digits in base 10,000, as nearly
    /// all are. None if 64 bits are not enough.
    #[inline]
    fn small(&self, scale: i8) -> Option<u64> {
        let count = self.digits.len();
        if count == 0 {
            return Some(0);
        }
        if count > 4 {
            return None;
        }
        let sum = (0..count).fold(0u64, |sum, i| sum * 10_000 + u64::from(self.digit(i)));
        let exponent = DIGIT_DECIMALS * (self.weight - count as i32 + 1) + i32::from(scale);
        if exponent >= 0 {
            return sum.checked_mul(*POWERS.get(usize::try_from(exponent).ok()?)?);
        }
        let divisor = *POWERS.get(usize::try_from(-exponent).ok()?)?;
        sum.is_multiple_of(divisor).then(|| sum / divisor)
    }

    /// Adds up the digits: `step` multiplies the sum by a factor, then adds a digit.
    fn magnitude<T>(
        &self,
        scale: i8,
        zero: T,
        step: impl Fn(T, u64, u64) -> Option<T>,
    ) -> Option<T> {
        let mut sum = zero;
        let mut exponent = 0;
        for i in 0..self.digits.len() {
            let digit = u64::from(self.digit(i));
            exponent = DIGIT_DECIMALS * (self.weight - i as i32) + i32::from(scale);
            if exponent >= 0 {
                sum = step(sum, 10_000, digit)?;
                continue;
            }
            // Only the upper part of this digit is at or before the last place. The rest must be
            // zero.
            let upper_digits = DIGIT_DECIMALS + exponent;
            let divisor = if upper_digits > 0 { POWERS[(-exponent) as usize] } else { 10_000 };
            if !digit.is_multiple_of(divisor) {
                return None;
            }
            if upper_digits > 0 {
                sum = step(sum, POWERS[upper_digits as usize], digit / divisor)?;
            }
        }
        // Trailing zero digits are not stored.
        for _ in 0..exponent.clamp(0, 400) {
            sum = step(sum, 10, 0)?;
        }
        Some(sum)
    }

    /// [`Self::to_i128`] for up to 76 digits, as 32 bytes in little-endian order.
    pub fn to_i256(&self, precision: u8, scale: i8) -> Option<[u8; 32]> {
        if !self.is_finite() {
            return None;
        }
        let magnitude = self.magnitude(scale, Magnitude::default(), Magnitude::times_plus)?;
        magnitude
            .has_at_most(precision.min(76))
            .then(|| magnitude.to_bytes(self.sign == Sign::Negative))
    }

    /// The nearest 64-bit float, as PostgreSQL's own cast gives it.
    pub fn to_f64(&self) -> f64 {
        let mut text = Vec::new();
        self.write_text(&mut text);
        // Rust reads NaN and Infinity too.
        std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
    }

    /// The most bytes that [`Self::write_text`] writes. They may be far more than were sent: 14
    /// bytes can mean 131,072 digits before the point.
    pub fn text_bytes_max(&self) -> usize {
        const NAMES_BYTES_MAX: usize = "-Infinity".len();
        const SIGN_AND_POINT: usize = 2;
        let digits = 4 * (1 + self.weight.max(0).unsigned_abs() as usize);
        NAMES_BYTES_MAX.max(SIGN_AND_POINT + digits + 4 * usize::from(self.dscale.div_ceil(4)))
    }

    /// Appends the value as `numeric_out` writes it.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        match self.sign {
            Sign::NaN => return out.extend_from_slice(b"NaN"),
            Sign::Infinity => return out.extend_from_slice(b"Infinity"),
            Sign::NegativeInfinity => return out.extend_from_slice(b"-Infinity"),
            Sign::Negative => out.push(b'-'),
            Sign::Positive => {}
        }
        let digit = |place: i32| {
            let i = usize::try_from(self.weight - place).ok().filter(|i| *i < self.digits.len());
            i.map_or(0, |i| self.digit(i))
        };
        // Writing to a vector never fails.
        let _ = write!(out, "{}", digit(self.weight.max(0)));
        for place in (0..self.weight.max(0)).rev() {
            let _ = write!(out, "{:04}", digit(place));
        }
        let dscale = usize::from(self.dscale);
        if dscale > 0 {
            out.push(b'.');
            let end = out.len() + dscale;
            for place in 1..=self.dscale.div_ceil(4) {
                let _ = write!(out, "{:04}", digit(-i32::from(place)));
            }
            out.truncate(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(weight: i16, sign: u16, dscale: u16, digits: &[u16]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for field in [digits.len() as u16, weight as u16, sign, dscale].iter().chain(digits) {
            bytes.extend_from_slice(&field.to_be_bytes());
        }
        bytes
    }

    fn text(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        Numeric::from_sent(bytes).unwrap().write_text(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn texts_and_integers() {
        // select numeric_send(…)
        let cases: &[(Vec<u8>, &str, Option<i128>)] = &[
            (sent(0, 0, 0, &[]), "0", Some(0)),
            (sent(0, 0, 2, &[]), "0.00", Some(0)),
            (sent(1, 0, 2, &[2, 1168, 2300]), "21168.23", Some(2_116_823)),
            (sent(0, 0x4000, 2, &[7, 500]), "-7.05", Some(-705)),
            (sent(-1, 0, 2, &[400]), "0.04", Some(4)),
            (sent(2, 0, 0, &[1]), "100000000", Some(10_000_000_000)),
            (sent(-1, 0, 3, &[10]), "0.001", None),
            (sent(-2, 0, 8, &[1]), "0.00000001", None),
        ];
        for (bytes, expected, scaled) in cases {
            let numeric = Numeric::from_sent(bytes).unwrap();
            assert_eq!(text(bytes), *expected);
            assert_eq!(numeric.to_i128(38, 2), *scaled, "{expected}");
            let wide = numeric
                .to_i256(76, 2)
                .map(|bytes| i128::from_le_bytes(bytes[..16].try_into().unwrap()));
            assert_eq!(wide, *scaled, "{expected}");
        }
        let one = sent(0x7FFF, 0, 3, &[1]);
        assert_eq!(text(&one).len(), 4 * 0x7FFF + 5);
        for (bytes, ..) in
            cases.iter().chain([&(one, "", None), &(sent(0, 0xF000, 0, &[]), "", None)])
        {
            let numeric = Numeric::from_sent(bytes).unwrap();
            assert!(
                (text(bytes).len()..text(bytes).len() + 12).contains(&numeric.text_bytes_max())
            );
        }
        assert_eq!(text(&sent(0, 0xC000, 0, &[])), "NaN");
        assert_eq!(text(&sent(0, 0xF000, 0, &[])), "-Infinity");
    }

    #[test]
    fn many_digits_beyond_small_ones() {
        let digits = [12, 3456, 7890, 1234, 5678, 9012, 3456, 7890, 1234, 5600];
        let bytes = sent(7, 0, 6, &digits);
        let expected = 12_3456_7890_1234_5678_9012_3456_7890_i128 * 1_000_000 + 123_456;
        assert_eq!(Numeric::from_sent(&bytes).unwrap().to_i128(38, 6), Some(expected));
        assert_eq!(Numeric::from_sent(&bytes).unwrap().to_i128(35, 6), None);
        assert_eq!(Numeric::from_sent(&bytes).unwrap().to_i128(38, 5), None);
        assert_eq!(
            text(&bytes),
            "12345678901234567890123456789012.123456".replacen(
                "12345678901234567890123456789012",
                "123456789012345678901234567890",
                1
            )
        );
    }

    #[test]
    fn what_is_not_one() {
        for bytes in [&[][..], &[0; 7], &sent(0, 0, 0, &[1])[..9], &sent(0, 0x1234, 0, &[])] {
            assert!(Numeric::from_sent(bytes).is_none());
        }
    }

    #[test]
    fn stored_forms() {
        let short = |header: u16, digits: &[u16]| {
            let mut bytes = header.to_ne_bytes().to_vec();
            digits.iter().for_each(|digit| bytes.extend_from_slice(&digit.to_ne_bytes()));
            bytes
        };
        // -7.05: short, negative, scale 2, weight 0
        let bytes = short(0x8000 | 0x2000 | 2 << 7, &[7, 500]);
        assert_eq!(Numeric::from_stored(&bytes).unwrap().to_i128(15, 2), Some(-705));
        // 0.04: short, scale 2, weight -1
        let bytes = short(0x8000 | 2 << 7 | 0x7F, &[400]);
        assert_eq!(Numeric::from_stored(&bytes).unwrap().to_i128(15, 2), Some(4));
        // The long form: 1 with scale 100
        let bytes = short(100, &[0, 1]);
        assert_eq!(Numeric::from_stored(&bytes).unwrap().to_i128(15, 2), Some(100));
        assert_eq!(Numeric::from_stored(&short(0xC000, &[])).unwrap().sign, Sign::NaN);
    }
}
