//! Sizes as users write them: `2GiB`, `512M`, `1.5 GB`, `65536`.

use std::str::FromStr;

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteSize(pub u64);

impl FromStr for ByteSize {
    type Err = String;

    /// `KB`, `MB`, `GB` and `TB` are powers of 1000. `KiB` to `TiB`, and `K` to `T`, are powers of
    /// 1024. Case does not matter.
    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || format!("{text:?} is not a size; write 65536, 512MiB or 1.5GB");
        let text = text.trim();
        let (number, unit) =
            text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
        let factor: u64 = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kib" => 1 << 10,
            "m" | "mib" => 1 << 20,
            "g" | "gib" => 1 << 30,
            "t" | "tib" => 1 << 40,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000,
            _ => return Err(invalid()),
        };
        // Integers, since a float can't represent every number of bytes.
        let (whole, fraction) = number.trim().split_once('.').unwrap_or((number.trim(), ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 6 {
            return Err(invalid());
        }
        let bytes = whole
            .parse::<u64>()
            .ok()
            .and_then(|whole| whole.checked_mul(factor))
            .ok_or_else(invalid)?;
        let millionths: u64 = format!("{fraction:0<6}").parse().map_err(|_| invalid())?;
        let rest = u128::from(factor) * u128::from(millionths) / 1_000_000;
        let rest = u64::try_from(rest).map_err(|_| invalid())?;
        bytes.checked_add(rest).map(Self).ok_or_else(invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("65536", 65_536),
            ("64k", 65_536),
            ("2GiB", 2 << 30),
            ("1.5GB", 1_500_000_000),
            ("0.5 MiB", 512 << 10),
            ("1.", 1),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
        for text in
            ["", "GB", "-1", "1e9", "1,5GB", ".5G", "1..5", "16777216TiB", "1 XB", "1.1234567k"]
        {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
    }
}
