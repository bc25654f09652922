//! Integers and decimals in text.

use dray_format::Magnitude;

use crate::error::{Error, ErrorKind, Result};
use crate::text::unexpected;

/// Digits that fit into 64 bits, whatever they are.
const WORD_DIGITS: usize = 19;

/// Reads an integer with a sign.
#[inline]
pub(crate) fn signed<T: TryFrom<i64>>(text: &[u8]) -> Result<T> {
    let value = match text {
        [b'-', digits @ ..] => magnitude(digits).and_then(|value| 0i64.checked_sub_unsigned(value)),
        digits => magnitude(digits).and_then(|value| i64::try_from(value).ok()),
    };
    value.and_then(|value| T::try_from(value).ok()).ok_or_else(|| unexpected(text))
}

/// Reads an integer without a sign.
#[inline]
pub(crate) fn unsigned<T: TryFrom<u64>>(text: &[u8]) -> Result<T> {
    let value = magnitude(text).and_then(|value| T::try_from(value).ok());
    value.ok_or_else(|| unexpected(text))
}

#[inline]
fn magnitude(digits: &[u8]) -> Option<u64> {
    match digits.len() {
        0 => None,
        1..=WORD_DIGITS => word(digits),
        // ZEROFILL fills up to 255 digits.
        _ => digits
            .chunks(1)
            .try_fold(0u64, |sum, digit| sum.checked_mul(10)?.checked_add(word(digit)?)),
    }
}

/// The number of at most 19 digits. None if they are no digits.
#[inline]
fn word(digits: &[u8]) -> Option<u64> {
    let (mut sum, mut are_digits) = (0u64, true);
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        are_digits &= digit < 10;
        sum = sum.wrapping_mul(10).wrapping_add(digit.into());
    }
    are_digits.then_some(sum)
}

/// Reads a decimal such as `-123.45`, times `10^scale`, for a precision of at most 38 digits.
#[inline]
pub(crate) fn decimal128(text: &[u8], precision: u8, scale: u8) -> Result<i128> {
    match short(text, precision, scale) {
        Some(scaled) => Ok(scaled.into()),
        None => Decimal::parse(text, precision, scale)?.to_i128().ok_or_else(|| unexpected(text)),
    }
}

/// [`decimal128`] for up to 76 digits, as 32 bytes in little-endian order.
pub(crate) fn decimal256(text: &[u8], precision: u8, scale: u8) -> Result<[u8; 32]> {
    Decimal::parse(text, precision, scale)?.to_i256().ok_or_else(|| unexpected(text))
}

/// [`decimal128`] for text as short as nearly all is. None for others, and for what is no value of
/// the column.
#[inline]
fn short(text: &[u8], precision: u8, scale: u8) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    // The server writes all digits of the scale.
    let point = digits.len().checked_sub(usize::from(scale) + usize::from(scale > 0))?;
    if !(1..WORD_DIGITS).contains(&point) || digits.len() > WORD_DIGITS {
        return None;
    }
    let (whole, fraction) = match digits[point..] {
        [] => (digits, &[][..]),
        [b'.', ref fraction @ ..] => (&digits[..point], fraction),
        _ => return None,
    };
    // At most 19 digits together.
    let scaled = word(whole)? * POWERS[fraction.len()] + word(fraction)?;
    let scaled = i64::try_from(scaled).ok()?;
    let is_within =
        POWERS.get(usize::from(precision)).is_none_or(|bound| scaled.cast_unsigned() < *bound);
    is_within.then_some(if is_negative { -scaled } else { scaled })
}

/// The digits of a decimal that fits its column's precision and scale.
#[derive(Debug)]
struct Decimal<'a> {
    is_negative: bool,
    /// Without leading zeros.
    whole: &'a [u8],
    /// At most as many as the scale.
    fraction: &'a [u8],
    scale: u8,
}

impl<'a> Decimal<'a> {
    /// Reads `-123.45`.
    fn parse(text: &'a [u8], precision: u8, scale: u8) -> Result<Self> {
        let (is_negative, digits) = match text {
            [b'-', digits @ ..] => (true, digits),
            digits => (false, digits),
        };
        let point = digits.iter().position(|byte| *byte == b'.');
        let (whole, fraction) = match point {
            Some(point) => (&digits[..point], &digits[point + 1..]),
            None => (digits, &[][..]),
        };
        let are_digits = |digits: &[u8]| digits.iter().all(u8::is_ascii_digit);
        if whole.is_empty()
            || point.is_some() && fraction.is_empty()
            || !are_digits(whole)
            || !are_digits(fraction)
        {
            return Err(unexpected(text));
        }
        let zeros = whole.iter().take_while(|digit| **digit == b'0').count();
        let whole = &whole[zeros..];
        let (fraction, excess) = fraction.split_at_checked(scale.into()).unwrap_or((fraction, &[]));
        if whole.len() + usize::from(scale) > precision.into()
            || excess.iter().any(|digit| *digit != b'0')
        {
            return Err(unfit(text, precision, scale));
        }
        Ok(Self { is_negative, whole, fraction, scale })
    }

    /// The digits in numbers of at most 19, each with the power of ten that makes space for it.
    fn words(&self) -> impl Iterator<Item = Option<(u64, u64)>> {
        let words = self.whole.chunks(WORD_DIGITS).chain(self.fraction.chunks(WORD_DIGITS));
        let zeros = usize::from(self.scale) - self.fraction.len();
        let zeros = (0..zeros).map(|_| Some((10, 0)));
        words.map(|digits| Some((POWERS[digits.len()], word(digits)?))).chain(zeros)
    }

    /// The value times `10^scale`, for a precision of at most 38 digits, which fit into 127 bits.
    fn to_i128(&self) -> Option<i128> {
        let magnitude = self.words().try_fold(0i128, |sum, word| {
            let (power, digits) = word?;
            Some(sum * i128::from(power) + i128::from(digits))
        })?;
        Some(if self.is_negative { -magnitude } else { magnitude })
    }

    fn to_i256(&self) -> Option<[u8; 32]> {
        let magnitude = self.words().try_fold(Magnitude::default(), |sum, word| {
            let (power, digits) = word?;
            sum.times_plus(power, digits)
        })?;
        Some(magnitude.to_bytes(self.is_negative))
    }
}

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

#[cold]
fn unfit(text: &[u8], precision: u8, scale: u8) -> Error {
    let what = format!(
        "{} is no decimal({precision},{scale}), as which the server described the column; \
         cast it to another",
        text.escape_ascii()
    );
    Error::new(ErrorKind::Unrepresentable, what)
}
