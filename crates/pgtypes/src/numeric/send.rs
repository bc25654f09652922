//! Numbers as `numeric_recv` reads them.

use super::POWERS;

/// The most decimal digits of 128 bits.
const DECIMALS_MAX: u32 = 38;
/// Digits in base 10,000 that 128 bits can have, one of them in part.
const GROUPS_MAX: usize = 11;
/// The most digits after the point that a value can have (`NUMERIC_DSCALE_MAX`).
const DSCALE_MAX: usize = 16_383;
/// The most digits before the point.
const INTEGER_DIGITS_MAX: usize = 131_072;
const NEGATIVE: u16 = 0x4000;

/// What a column of type `numeric(precision, scale)` declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Declared {
    /// All digits.
    pub precision: i32,
    /// Digits after the point; below zero, the last digits before it are zeros.
    pub scale: i32,
}

impl Declared {
    /// Reads a type modifier; None if the column takes numbers of any size.
    pub fn from_typmod(typmod: i32) -> Option<Self> {
        let declared = typmod.checked_sub(4).filter(|declared| *declared >= 0)?;
        // Eleven bits with a sign.
        let scale = ((declared & 0x7FF) ^ 0x400) - 0x400;
        Some(Self { precision: (declared >> 16) & 0xFFFF, scale })
    }

    /// Whether the column holds `magnitude / 10^scale` without rounding it.
    #[inline]
    pub fn holds(self, magnitude: u128, scale: i32) -> bool {
        if magnitude == 0 {
            return true;
        }
        let power = |exponent: i32| {
            u32::try_from(exponent).ok().filter(|e| *e <= DECIMALS_MAX).map(|e| 10u128.pow(e))
        };
        let surplus = scale - self.scale;
        let is_exact =
            surplus <= 0 || power(surplus).is_some_and(|divisor| magnitude.is_multiple_of(divisor));
        let integers = self.precision - self.scale + scale;
        let is_small =
            integers > DECIMALS_MAX as i32 || power(integers).is_some_and(|end| magnitude < end);
        is_exact && is_small
    }

    /// The same for a number's digits, of which `scale` are after the point.
    fn holds_digits(self, digits: &[u8], scale: usize) -> bool {
        let significant = digits.iter().skip_while(|digit| **digit == b'0').count();
        let zeros = digits.iter().rev().take_while(|digit| **digit == b'0').count();
        let (Ok(scale), Ok(zeros)) = (i32::try_from(scale), i32::try_from(zeros)) else {
            return false;
        };
        let integers = i32::try_from(significant).unwrap_or(i32::MAX) - scale;
        significant == 0 || scale - self.scale <= zeros && integers <= self.precision - self.scale
    }
}

/// Appends `magnitude / 10^scale`, with `scale` digits after the point.
#[inline]
pub fn send_scaled(negative: bool, magnitude: u128, scale: u8, out: &mut Vec<u8>) {
    let mut groups = [0u16; GROUPS_MAX];
    // The last digit in base 10,000 has only the decimals that the scale leaves it.
    let last = match scale % 4 {
        0 => 4,
        decimals => usize::from(decimals),
    };
    let factor = POWERS[4 - last] as u16;
    let count = match u64::try_from(magnitude) {
        Ok(mut rest) => {
            let mut count = 0;
            let mut divisor = POWERS[last];
            while rest > 0 {
                groups[count] = (rest % divisor) as u16;
                (rest, divisor, count) = (rest / divisor, 10_000, count + 1);
            }
            count
        }
        Err(_) => {
            let (mut rest, mut divisor, mut count) = (magnitude, u128::from(POWERS[last]), 0);
            while rest > 0 {
                groups[count] = (rest % divisor) as u16;
                (rest, divisor, count) = (rest / divisor, 10_000, count + 1);
            }
            count
        }
    };
    groups[0] *= factor;
    let groups_after_point = i32::from(scale.div_ceil(4));
    let zeros = groups[..count].iter().take_while(|group| **group == 0).count();
    let weight = count as i32 - 1 - groups_after_point;
    send_groups(negative, weight, u16::from(scale), groups[zeros..count].iter().rev(), out);
}

fn send_groups<'a>(
    negative: bool,
    weight: i32,
    dscale: u16,
    groups: impl ExactSizeIterator<Item = &'a u16>,
    out: &mut Vec<u8>,
) {
    let count = groups.len();
    // Zero has no digits and no sign.
    let (weight, sign) = match count {
        0 => (0, 0),
        _ => (weight, if negative { NEGATIVE } else { 0 }),
    };
    let mut bytes = [0; 8 + 2 * GROUPS_MAX];
    let head = [count as u16, weight as i16 as u16, sign, dscale];
    if count <= GROUPS_MAX {
        let all = head.into_iter().chain(groups.copied());
        for (field, value) in bytes.as_chunks_mut().0.iter_mut().zip(all) {
            *field = value.to_be_bytes();
        }
        out.extend_from_slice(&bytes[..8 + 2 * count]);
    } else {
        for value in head.into_iter().chain(groups.copied()) {
            out.extend_from_slice(&value.to_be_bytes());
        }
    }
}

/// Appends a number that is written in decimal digits, as `numeric_out` writes it: `-12.50`, `NaN`,
/// `Infinity`. With `declared`, it must fit such a column without being rounded.
///
/// # Errors
/// Why it can't be sent.
pub fn send_text(
    text: &str,
    declared: Option<Declared>,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    let special = match text {
        "NaN" => Some(0xC000u16),
        "Infinity" => Some(0xD000),
        "-Infinity" => Some(0xF000),
        _ => None,
    };
    if let Some(sign) = special {
        // The server refuses infinities in declared columns by itself.
        for field in [0, 0, sign, 0] {
            out.extend_from_slice(&field.to_be_bytes());
        }
        return Ok(());
    }
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (integer, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    if integer.len() + fraction.len() == 0 || !is_number(integer) || !is_number(fraction) {
        return Err("it is no number in decimal digits");
    }
    let integer = integer.trim_start_matches('0');
    if integer.len() > INTEGER_DIGITS_MAX || fraction.len() > DSCALE_MAX {
        return Err("it has more digits than PostgreSQL's numeric");
    }
    let digits = [integer.as_bytes(), fraction.as_bytes()].concat();
    if declared.is_some_and(|declared| !declared.holds_digits(&digits, fraction.len())) {
        return Err("it does not fit without being rounded");
    }
    // Groups of four digits on both sides of the point.
    let mut padded = vec![b'0'; (4 - integer.len() % 4) % 4];
    padded.extend_from_slice(&digits);
    padded.resize(padded.len().next_multiple_of(4), b'0');
    if fraction.is_empty() {
        debug_assert_eq!(padded.len(), integer.len().next_multiple_of(4));
    }
    let groups: Vec<u16> = padded
        .chunks_exact(4)
        .map(|group| group.iter().fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0')))
        .collect();
    let before_point = integer.len().div_ceil(4) as i32;
    let zeros = groups.iter().take_while(|group| **group == 0).count();
    let end = groups.iter().rposition(|group| *group != 0).map_or(zeros, |last| last + 1);
    let weight = before_point - 1 - zeros as i32;
    send_groups(negative, weight, fraction.len() as u16, groups[zeros.min(end)..end].iter(), out);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Numeric;
    use super::*;

    fn text(sent: &[u8]) -> String {
        let mut out = Vec::new();
        Numeric::from_sent(sent).unwrap().write_text(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn sent_text(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        send_text(text, None, &mut out).unwrap();
        out
    }

    #[test]
    fn scaled_numbers_are_the_same_as_their_text() {
        let magnitudes = (0..39).flat_map(|i| {
            let power = 10u128.pow(i.min(38));
            [power - 1, power, power + 1, power / 3 * 7, u128::from(u64::MAX), u128::MAX >> 1]
        });
        for magnitude in magnitudes {
            for scale in 0..=38u8 {
                for negative in [false, true] {
                    let mut out = Vec::new();
                    send_scaled(negative, magnitude, scale, &mut out);
                    let digits = format!("{magnitude:0>width$}", width = usize::from(scale) + 1);
                    let (integer, fraction) = digits.split_at(digits.len() - usize::from(scale));
                    let sign = if negative && magnitude > 0 { "-" } else { "" };
                    let point = if scale > 0 { "." } else { "" };
                    let expected = format!("{sign}{integer}{point}{fraction}");
                    assert_eq!(text(&out), expected);
                    assert_eq!(out, sent_text(&expected), "{expected}");
                }
            }
        }
    }

    #[test]
    fn texts_come_back() {
        let long = format!("-{}.{}", "9".repeat(131_072), "1".repeat(16_383));
        let cases =
            ["0", "0.00", "0.0001", "-10000", "9999.9999", "1000000000000", "NaN", "Infinity"];
        for case in cases.into_iter().chain(["-Infinity", "0.00000001", &long]) {
            assert_eq!(text(&sent_text(case)), case);
        }
        for wrong in ["", "-", ".", "1e5", "1,5", " 1", "0x10", "١"] {
            assert!(send_text(wrong, None, &mut Vec::new()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn declared_columns_refuse_what_they_would_round() {
        let typmod = |precision: i32, scale: i32| ((precision << 16) | (scale & 0x7FF)) + 4;
        for (precision, scale, number, fits) in [
            (5, 2, "999.99", true),
            (5, 2, "1000", false),
            (5, 2, "1.5000", true),
            (5, 2, "1.501", false),
            (5, -2, "9999900", true),
            (5, -2, "99", false),
            (5, -2, "10000000", false),
            (3, 5, "0.00999", true),
            (3, 5, "0.01", false),
            (3, 5, "0", true),
            (38, 0, "99999999999999999999999999999999999999", true),
        ] {
            let declared = Declared::from_typmod(typmod(precision, scale));
            assert_eq!(declared, Some(Declared { precision, scale }));
            assert_eq!(send_text(number, declared, &mut Vec::new()).is_ok(), fits, "{number}");
            let (integer, fraction) = number.split_once('.').unwrap_or((number, ""));
            let magnitude = format!("{integer}{fraction}").parse().unwrap();
            let held = declared.unwrap().holds(magnitude, fraction.len() as i32);
            assert_eq!(held, fits, "{number}");
        }
        assert_eq!(Declared::from_typmod(-1), None);
    }
}
