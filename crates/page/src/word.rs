//! Little-endian words from bytes, and the places of strings and lists.

use crate::layout::{INLINE_BYTES_MAX, LIST_BYTES, STRING_BYTES};

/// `N` bytes from `at` on. They are always within `bytes`; the zeros that are returned otherwise
/// only rule out a panic.
#[inline(always)]
pub(crate) fn load<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

#[inline(always)]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(load(bytes, at))
}

/// Bit `i` of a bitmap that begins at `at`.
#[inline(always)]
pub(crate) fn bit_at(bytes: &[u8], at: usize, i: usize) -> bool {
    bytes.get(at + i / 8).is_some_and(|byte| byte >> (i % 8) & 1 == 1)
}

/// The 64 bits from byte `at` on; zeros after the end.
#[inline(always)]
pub(crate) fn bits_at(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).unwrap_or_default() {
        rest if rest.len() >= 8 => u64::from_le_bytes(load(rest, 0)),
        rest => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// Whether all of `bytes` are zero.
#[inline(always)]
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().fold(0, |any, word| any | u64::from_ne_bytes(*word)) == 0
        && rest.iter().fold(0, |any, byte| any | byte) == 0
}

/// Whether no byte is above 127.
#[inline(always)]
pub(crate) fn is_ascii(bytes: &[u8]) -> bool {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let (words, rest) = bytes.as_chunks::<8>();
    let any = words.iter().fold(0, |any, word| any | u64::from_ne_bytes(*word));
    // Reading the last eight bytes, some of them again, is faster than the last few one by one.
    let rest = match bytes.last_chunk::<8>() {
        Some(last) => u64::from_ne_bytes(*last),
        None => rest.iter().fold(0, |any, byte| any | u64::from(*byte)),
    };
    (any | rest) & HIGH == 0
}

/// The place of a string (page.md section 4). Its tail, if it has one, is at `tail_at`.
#[inline(always)]
pub(crate) fn string_place(value: &[u8], tail_at: usize) -> [u8; STRING_BYTES] {
    let length = value.len();
    let rest = if length <= INLINE_BYTES_MAX {
        short(value)
    } else {
        u128::from(u32_at(value, 0)) | (tail_at as u128) << 64
    };
    // Strings and extents have fewer than 2^31 bytes.
    (length as u128 | rest << 32).to_le_bytes()
}

/// Up to 16 bytes as a number. Two loads that overlap are faster than a copy of some length.
#[inline(always)]
fn short(value: &[u8]) -> u128 {
    let at = |i: usize| u128::from(value.get(i).copied().unwrap_or(0)) << (8 * i);
    match value.len() {
        0 => 0,
        length @ 1..4 => at(0) | at(length / 2) | at(length - 1),
        length @ 4..8 => {
            let last = u128::from(u32_at(value, length - 4));
            u128::from(u32_at(value, 0)) | last << (8 * (length - 4))
        }
        length => {
            let last = u128::from(u64::from_le_bytes(load(value, length - 8)));
            u128::from(u64::from_le_bytes(load(value, 0))) | last << (8 * (length - 8))
        }
    }
}

/// The place of a list of at least one item (page.md section 5).
#[inline(always)]
pub(crate) fn list_place(items_at: usize, count: usize) -> [u8; LIST_BYTES] {
    let mut place = [0; LIST_BYTES];
    // Both are below 2^31.
    place[..4].copy_from_slice(&(items_at as u32).to_le_bytes());
    place[4..].copy_from_slice(&(count as u32).to_le_bytes());
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_strings() {
        let text: Vec<u8> = (1..=40).collect();
        for length in 0..=40 {
            let mut expected = [0; 16];
            expected[0] = length as u8;
            match length {
                0..=12 => expected[4..4 + length].copy_from_slice(&text[..length]),
                _ => {
                    expected[4..8].copy_from_slice(&text[..4]);
                    expected[12..14].copy_from_slice(&[0x21, 0x43]);
                }
            }
            assert_eq!(string_place(&text[..length], 0x4321), expected, "{length}");
        }
    }
}
