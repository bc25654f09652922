//! Little-endian words out of bytes.

/// `N` bytes from `at` on. The places of a record are within their bytes, so that the zeros for others are never read; they are
/// here so that nothing can panic.
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

/// Up to 64 bits from `at` on, the rest zeros.
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
    // The last eight bytes once more are faster than the last few one by one.
    let rest = match bytes.last_chunk::<8>() {
        Some(last) => u64::from_ne_bytes(*last),
        None => rest.iter().fold(0, |any, byte| any | u64::from(*byte)),
    };
    (any | rest) & HIGH == 0
}

/// Copies a string of more than 12 bytes to a place of its size. Most are short enough for two overlapping copies of a size that the compiler knows,
/// which are faster than one of the right size.
#[inline(always)]
pub(crate) fn copy_long(to: &mut [u8], from: &[u8]) {
    match from.len() {
        8..16 => copy_ends::<8>(to, from),
        16..32 => copy_ends::<16>(to, from),
        32..=64 => copy_ends::<32>(to, from),
        _ if to.len() == from.len() => to.copy_from_slice(from),
        _ => {}
    }
}

#[inline(always)]
fn copy_ends<const N: usize>(to: &mut [u8], from: &[u8]) {
    if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk::<N>()) {
        *to = *from;
    }
    if let (Some(to), Some(from)) = (to.last_chunk_mut::<N>(), from.last_chunk::<N>()) {
        *to = *from;
    }
}
