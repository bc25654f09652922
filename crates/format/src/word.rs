//! Little-endian integers of any width, and their bytes in a buffer.

use crate::output::Flat;

/// The bits of a value as an unsigned integer of the same width, whatever the value's type.
pub(crate) trait Word: Copy + Ord + std::hash::Hash {
    /// Its bytes.
    type Raw: Flat + PartialEq;
    const BITS: u32;
    const ZERO: Self;
    const MAX: Self;

    fn of(raw: &Self::Raw) -> Self;
    fn raw(self) -> Self::Raw;
    /// The words of a buffer, whose size is a multiple of theirs.
    fn slice(bytes: &[u8]) -> &[Self::Raw];
    fn slice_mut(bytes: &mut [u8]) -> &mut [Self::Raw];
    /// The bytes of words.
    fn bytes(raws: Vec<Self::Raw>) -> Vec<u8>;
    /// The lowest 32 or 64 bits, zero-extended.
    fn low_32(self) -> u32;
    fn low_64(self) -> u64;
    /// The lowest bits of an integer.
    fn truncated(integer: u128) -> Self;
    fn plus_32(self, other: u32) -> Self;
    fn plus_64(self, other: u64) -> Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn flipped(self, bits: Self) -> Self;
    /// All bits folded to 64, for hashing.
    fn folded(self) -> u64;
    /// Whether no bit but the lowest `bits` is set; `bits` is less than the width.
    fn fits(self, bits: u32) -> bool;
}

macro_rules! words {
    ($($word:ty)*) => {$(
        impl Word for $word {
            type Raw = [u8; size_of::<$word>()];
            const BITS: u32 = <$word>::BITS;
            const ZERO: Self = 0;
            const MAX: Self = <$word>::MAX;

            #[inline(always)]
            fn of(raw: &Self::Raw) -> Self {
                Self::from_le_bytes(*raw)
            }

            #[inline(always)]
            fn raw(self) -> Self::Raw {
                self.to_le_bytes()
            }

            #[inline(always)]
            fn slice(bytes: &[u8]) -> &[Self::Raw] {
                bytes.as_chunks().0
            }

            #[inline(always)]
            fn slice_mut(bytes: &mut [u8]) -> &mut [Self::Raw] {
                bytes.as_chunks_mut().0
            }

            fn bytes(raws: Vec<Self::Raw>) -> Vec<u8> {
                raws.into_flattened()
            }

            #[inline(always)]
            fn low_32(self) -> u32 {
                self as u32
            }

            #[inline(always)]
            fn low_64(self) -> u64 {
                self as u64
            }

            #[inline(always)]
            fn truncated(integer: u128) -> Self {
                integer as Self
            }

            #[inline(always)]
            fn plus_32(self, other: u32) -> Self {
                self.wrapping_add(other as Self)
            }

            #[inline(always)]
            fn plus_64(self, other: u64) -> Self {
                self.wrapping_add(other as Self)
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            #[inline(always)]
            fn flipped(self, bits: Self) -> Self {
                self ^ bits
            }

            #[inline(always)]
            fn folded(self) -> u64 {
                let wide = self as u128;
                wide as u64 ^ ((wide >> 64) as u64).wrapping_mul(0x9FB2_1C65_1E98_DF25)
            }

            #[inline(always)]
            fn fits(self, bits: u32) -> bool {
                self >> bits == 0
            }
        }
    )*};
}
words!(u8 u16 u32 u64 u128);

/// Calls a generic function with the word type of a width, if that is among those named.
macro_rules! for_word {
    ($width:expr, [$($word:ident)*], $function:ident, $arguments:tt, else $other:expr) => {
        match $width {
            $(width if width == size_of::<$word>() => $function::<$word>$arguments,)*
            _ => $other
        }
    };
}
pub(crate) use for_word;

/// Copies `from` to `to`, which must have the same length: nothing is copied otherwise. Short
/// strings are copied as two overlapping parts of a fixed size, which is faster than one copy of a
/// variable size.
#[inline(always)]
pub fn copy_short(to: &mut [u8], from: &[u8]) {
    debug_assert_eq!(to.len(), from.len());
    if to.len() != from.len() {
        return;
    }
    match from.len() {
        0..4 => to.iter_mut().zip(from).for_each(|(to, from)| *to = *from),
        4..8 => copy_ends::<4>(to, from),
        8..16 => copy_ends::<8>(to, from),
        16..32 => copy_ends::<16>(to, from),
        32..=64 => copy_ends::<32>(to, from),
        _ => to.copy_from_slice(from),
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
