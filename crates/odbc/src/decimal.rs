//! Decimals as text.

use arrow_buffer::i256;

/// A number of a column of decimals.
pub(crate) trait Decimal: Copy {
    const ZERO: Self;
    /// Ten times the number and a digit; None if that is too large.
    fn push(self, digit: u8) -> Option<Self>;
    fn negated(self) -> Self;
}

impl Decimal for i128 {
    const ZERO: Self = 0;

    fn push(self, digit: u8) -> Option<Self> {
        self.checked_mul(10)?.checked_add(digit.into())
    }

    fn negated(self) -> Self {
        self.wrapping_neg()
    }
}

impl Decimal for i256 {
    const ZERO: Self = i256::ZERO;

    fn push(self, digit: u8) -> Option<Self> {
        self.checked_mul(i256::from_i128(10))?.checked_add(i256::from_i128(digit.into()))
    }

    fn negated(self) -> Self {
        self.wrapping_neg()
    }
}

/// The number in a text, times 10^scale; None if it is none, or has more than `precision` digits or
/// more than `scale` digits of its fraction.
pub(crate) fn parse<T: Decimal>(text: &[u8], precision: u8, scale: u8) -> Option<T> {
    let text = text.trim_ascii();
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        digits => (false, digits),
    };
    let point = digits.iter().position(|byte| *byte == b'.').unwrap_or(digits.len());
    let (whole, fraction) = digits.split_at(point);
    let fraction = fraction.strip_prefix(b".").unwrap_or(fraction);
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // Zeros at the end of the fraction are no digits, but missing ones count.
    let (kept, cut) = fraction.split_at(fraction.len().min(scale.into()));
    if cut.iter().any(|digit| *digit != b'0') {
        return None;
    }
    let zeros = usize::from(scale).checked_sub(kept.len())?;
    let mut value = T::ZERO;
    let mut count = 0_u8;
    for digit in whole.iter().chain(kept).copied().chain(std::iter::repeat_n(b'0', zeros)) {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        if digit > 0 || count > 0 {
            count += 1;
            if count > precision {
                return None;
            }
        }
        value = value.push(digit)?;
    }
    Some(if is_negative { value.negated() } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_exact_or_refused() {
        for (text, precision, scale, value) in [
            ("0", 1, 0, Some(0)),
            ("-12.34", 4, 2, Some(-1234)),
            (" +1.5 ", 5, 2, Some(150)),
            (".5", 1, 1, Some(5)),
            ("5.", 1, 0, Some(5)),
            ("1.2300", 5, 2, Some(123)),
            ("0000012", 2, 0, Some(12)),
            ("1.234", 5, 2, None),
            ("1000", 5, 2, None),
            ("123456", 5, 0, None),
            ("", 5, 0, None),
            (".", 5, 0, None),
            ("-", 5, 0, None),
            ("1e3", 5, 0, None),
            ("1,5", 5, 1, None),
            ("NaN", 5, 1, None),
            ("1.2.3", 5, 3, None),
        ] {
            assert_eq!(parse::<i128>(text.as_bytes(), precision, scale), value, "{text:?}");
        }
        let nines = "9".repeat(38);
        assert_eq!(parse(nines.as_bytes(), 38, 0), Some(10_i128.pow(38) - 1));
        let more = "-".to_owned() + &"9".repeat(76);
        let value = parse::<i256>(more.as_bytes(), 76, 0).unwrap();
        assert_eq!(value.to_string(), more);
        assert_eq!(parse::<i256>(&[b'9'; 77], 76, 0), None);
    }
}
