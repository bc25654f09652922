//! Bit-packing: `spec/encodings.md` section 4.
//!
//! A block of 1024 values is interleaved over SIMD lanes, so that the plain loops below compile to
//! vector code on every processor. The values after the last whole block are one bit string. Values
//! of 8 or 16 bits are not interleaved. Packing reads values in their own width and subtracts the
//! reference in registers, a row of lanes at a time; unpacking adds it the same way.

use crate::output::{Appender, Flat};
use crate::vector::widest;
use crate::word::Word;

/// Values in a block.
const BLOCK: usize = 1024;
const LANES_32: usize = 32;
const LANES_64: usize = 16;
const BLOCK_BYTES_PER_BIT: usize = BLOCK / 8;
/// The most bytes of a tail, plus 16: its last value is read in a window of 16 bytes.
const TAIL_BYTES_MAX: usize = (BLOCK - 1) * 8 + 16;

/// The size of `count` values of `bits` bits; none if it overflows.
pub(crate) fn packed_bytes(count: usize, bits: u32) -> Option<usize> {
    let bits = bits as usize;
    let blocks = (count / BLOCK).checked_mul(BLOCK_BYTES_PER_BIT * bits)?;
    blocks.checked_add((count % BLOCK * bits).div_ceil(8))
}

/// Whether a bit of the last byte is set that belongs to no value.
pub(crate) fn has_bits_past_end(packed: &[u8], count: usize, bits: u32) -> bool {
    let used = count % BLOCK * bits as usize % 8;
    used != 0 && packed.last().is_some_and(|last| last >> used != 0)
}

/// The bits that values up to `max` need.
pub(crate) fn bits_for(max: u64) -> u32 {
    u64::BITS - max.leading_zeros()
}

widest! {
    /// Appends the distances of `values` from `reference`, each below 2^bits. With `PATCHED` some
    /// may be larger: 0 is packed for these, and `bits` is less than the width.
    pub(crate) fn pack[T: Word, const PATCHED: bool][T, PATCHED](
        values: &[T::Raw],
        reference: T,
        bits: u32,
        out: &mut Vec<u8>,
    ) {
        debug_assert!(PATCHED || bits <= T::BITS.min(u64::BITS));
        match bits {
            0 => return,
            8 => return pack_bytes::<T, PATCHED, 1>(values, reference, bits, out),
            16 => return pack_bytes::<T, PATCHED, 2>(values, reference, bits, out),
            _ => {}
        }
        let (blocks, tail) = values.as_chunks::<BLOCK>();
        for block in blocks {
            if bits <= 32 {
                pack_block_32::<T, PATCHED>(block, reference, bits, out);
            } else {
                pack_block_64::<T, PATCHED>(block, reference, bits, out);
            }
        }
        pack_tail::<T, PATCHED>(tail, reference, bits, out);
    }
}

/// The integer that is packed for a value.
#[inline(always)]
fn distance<T: Word, const PATCHED: bool>(raw: &T::Raw, reference: T, bits: u32) -> T {
    let distance = T::of(raw).minus(reference);
    if !PATCHED || distance.fits(bits) { distance } else { T::ZERO }
}

/// Packs distances of whole bytes, in order.
#[inline(always)]
fn pack_bytes<T: Word, const PATCHED: bool, const BYTES: usize>(
    values: &[T::Raw],
    reference: T,
    bits: u32,
    out: &mut Vec<u8>,
) {
    let low = |raw| distance::<T, PATCHED>(raw, reference, bits).low_32().to_le_bytes();
    let (rows, rest) = values.as_chunks::<LANES_32>();
    for row in rows {
        let mut raws = [[0; BYTES]; LANES_32];
        for (slot, raw) in raws.iter_mut().zip(row) {
            slot.copy_from_slice(&low(raw)[..BYTES]);
        }
        out.extend_from_slice(raws.as_flattened());
    }
    rest.iter().for_each(|raw| out.extend_from_slice(&low(raw)[..BYTES]));
}

#[inline(always)]
fn unpack_bytes<S: Reference, const BYTES: usize>(
    packed: &[u8],
    reference: S,
    out: &mut Appender<'_, S::Raw>,
) {
    let sum = |raw: &[u8; BYTES]| {
        reference.sum_32(raw.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte)))
    };
    let (rows, rest) = packed.as_chunks::<BYTES>().0.as_chunks::<LANES_32>();
    rows.iter().for_each(|row| out.extend_by(row, sum));
    out.extend(rest.iter().map(sum));
}

macro_rules! block {
    ($pack:ident, $unpack:ident, $word:ty, $lanes:ident, $low:ident) => {
        #[inline(always)]
        fn $pack<T: Word, const PATCHED: bool>(
            values: &[T::Raw; BLOCK],
            reference: T,
            bits: u32,
            out: &mut Vec<u8>,
        ) {
            const WIDTH: u32 = <$word>::BITS;
            let mut words = [0 as $word; $lanes];
            let mut filled = 0;
            for row in values.as_chunks::<$lanes>().0 {
                let mut distances = [0 as $word; $lanes];
                for (slot, raw) in distances.iter_mut().zip(row) {
                    *slot = distance::<T, PATCHED>(raw, reference, bits).$low();
                }
                for (word, distance) in words.iter_mut().zip(&distances) {
                    *word |= *distance << filled;
                }
                filled += bits;
                if filled >= WIDTH {
                    let mut raw = [[0; size_of::<$word>()]; $lanes];
                    for (raw, word) in raw.iter_mut().zip(&words) {
                        *raw = word.to_le_bytes();
                    }
                    out.extend_from_slice(raw.as_flattened());
                    filled -= WIDTH;
                    // The bits that did not fit begin the next word.
                    if filled == 0 {
                        words = [0; $lanes];
                    } else {
                        for (word, distance) in words.iter_mut().zip(&distances) {
                            *word = *distance >> (bits - filled);
                        }
                    }
                }
            }
        }

        /// Hands the values of a block to `sink`, a row at a time.
        #[inline(always)]
        fn $unpack(packed: &[u8], bits: u32, mut sink: impl FnMut(&[$word; $lanes])) {
            const WIDTH: u32 = <$word>::BITS;
            const WORD_BYTES: usize = size_of::<$word>();
            let mask = <$word>::MAX >> (WIDTH - bits);
            let words = packed.as_chunks::<WORD_BYTES>().0.as_chunks::<$lanes>().0;
            let mut from = 0;
            for _ in 0..BLOCK / $lanes {
                let at = (from / WIDTH) as usize;
                let shift = from % WIDTH;
                let mut row = [0; $lanes];
                if shift + bits <= WIDTH {
                    for (value, low) in row.iter_mut().zip(&words[at]) {
                        *value = <$word>::from_le_bytes(*low) >> shift & mask;
                    }
                } else {
                    for ((value, low), high) in row.iter_mut().zip(&words[at]).zip(&words[at + 1]) {
                        let both = <$word>::from_le_bytes(*low) >> shift
                            | <$word>::from_le_bytes(*high) << (WIDTH - shift);
                        *value = both & mask;
                    }
                }
                sink(&row);
                from += bits;
            }
        }
    };
}
block!(pack_block_32, unpack_block_32, u32, LANES_32, low_32);
block!(pack_block_64, unpack_block_64, u64, LANES_64, low_64);

#[inline(always)]
fn pack_tail<T: Word, const PATCHED: bool>(
    values: &[T::Raw],
    reference: T,
    bits: u32,
    out: &mut Vec<u8>,
) {
    let mut pending = 0u128;
    let mut filled = 0;
    for raw in values {
        pending |= u128::from(distance::<T, PATCHED>(raw, reference, bits).low_64()) << filled;
        filled += bits;
        if filled >= u64::BITS {
            out.extend_from_slice(&(pending as u64).to_le_bytes());
            pending >>= u64::BITS;
            filled -= u64::BITS;
        }
    }
    out.extend_from_slice(&pending.to_le_bytes()[..filled.div_ceil(8) as usize]);
}

/// A reference that unpacked distances are added to.
pub(crate) trait Reference: Copy {
    type Raw: Flat;

    fn sum_32(self, distance: u32) -> Self::Raw;
    fn sum_64(self, distance: u64) -> Self::Raw;
}

macro_rules! sums {
    ($($word:ty)*) => {$(
        impl Reference for $word {
            type Raw = [u8; size_of::<$word>()];

            #[inline(always)]
            fn sum_32(self, distance: u32) -> Self::Raw {
                self.plus_32(distance).to_le_bytes()
            }

            #[inline(always)]
            fn sum_64(self, distance: u64) -> Self::Raw {
                self.plus_64(distance).to_le_bytes()
            }
        }
    )*};
}
sums!(u8 u16 u32 u64 u128);

/// A reference of 128 bits whose sums all fit 64 bits: no vector instruction adds 128 bits.
#[derive(Clone, Copy)]
pub(crate) struct NarrowReference(i64);

impl NarrowReference {
    /// None if adding a distance of `bits` bits may overflow 64 bits.
    pub(crate) fn new(reference: i128, bits: u32) -> Option<Self> {
        let narrow = i64::try_from(reference).ok()?;
        narrow
            .checked_add_unsigned(u64::MAX.checked_shr(u64::BITS - bits).unwrap_or(0))
            .map(|_| Self(narrow))
    }
}

impl Reference for NarrowReference {
    type Raw = [u8; 16];

    #[inline(always)]
    fn sum_32(self, distance: u32) -> Self::Raw {
        self.sum_64(u64::from(distance))
    }

    #[inline(always)]
    fn sum_64(self, distance: u64) -> Self::Raw {
        let low = self.0.wrapping_add_unsigned(distance);
        let mut raw = [0; 16];
        raw[..8].copy_from_slice(&low.to_le_bytes());
        raw[8..].copy_from_slice(&(low >> 63).to_le_bytes());
        raw
    }
}

widest! {
    /// Appends the `count` values packed in `packed`, each added to `reference`. `packed` has the
    /// size that [`packed_bytes`] gives.
    pub(crate) fn unpack[S: Reference][S](
        packed: &[u8],
        count: usize,
        bits: u32,
        reference: S,
        out: &mut Appender<'_, S::Raw>,
    ) {
        debug_assert_eq!(packed_bytes(count, bits), Some(packed.len()));
        match bits {
            0 => return out.repeat(reference.sum_32(0), count),
            8 => return unpack_bytes::<S, 1>(packed, reference, out),
            16 => return unpack_bytes::<S, 2>(packed, reference, out),
            _ => {}
        }
        let (blocks, tail) = packed.split_at(count / BLOCK * BLOCK_BYTES_PER_BIT * bits as usize);
        for block in blocks.chunks_exact(BLOCK_BYTES_PER_BIT * bits as usize) {
            if bits <= 32 {
                unpack_block_32(block, bits, |row| {
                    out.extend_by(row, |value| reference.sum_32(*value));
                });
            } else {
                unpack_block_64(block, bits, |row| {
                    out.extend_by(row, |value| reference.sum_64(*value));
                });
            }
        }
        unpack_tail(tail, count % BLOCK, bits, |value| out.push(reference.sum_64(value)));
    }
}

#[inline(always)]
fn unpack_tail(packed: &[u8], count: usize, bits: u32, mut sink: impl FnMut(u64)) {
    if count == 0 {
        return;
    }
    // The copy can be read 16 bytes at a time up to the last value.
    let mut padded = [0; TAIL_BYTES_MAX];
    padded[..packed.len()].copy_from_slice(packed);
    let mask = u64::MAX >> (u64::BITS - bits);
    for i in 0..count {
        let from = i * bits as usize;
        let window = padded[from / 8..].first_chunk().map_or(0, |raw| u128::from_le_bytes(*raw));
        // Masked to at most 64 bits.
        sink((window >> (from % 8)) as u64 & mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::tests::written;
    use crate::vector::tests::at_each_level;

    fn words<T: Word>(values: &[u64]) -> Vec<T::Raw> {
        values.iter().map(|value| T::truncated(u128::from(*value)).raw()).collect()
    }

    #[test]
    fn the_example_of_the_specification() {
        let mut out = Vec::new();
        pack::<u64, false>(&words::<u64>(&[5, 1, 7]), 0, 3, &mut out);
        assert_eq!(out, [0xCD, 0x01]);
    }

    /// The definition in the specification, bit by bit.
    fn packed_by_the_book(values: &[u64], bits: u32) -> Vec<u8> {
        let (bits, mut out) =
            (bits as usize, vec![0u8; packed_bytes(values.len(), bits).unwrap_or(0)]);
        let (lanes, word_bits) = if bits <= 32 { (32, 32) } else { (16, 64) };
        for (i, value) in values.iter().enumerate() {
            for bit in 0..bits {
                let (block, at) = (i / BLOCK, i % BLOCK);
                let of_block = if block < values.len() / BLOCK && !matches!(bits, 8 | 16) {
                    let of_lane = at / lanes * bits + bit;
                    (of_lane / word_bits * lanes + at % lanes) * word_bits + of_lane % word_bits
                } else {
                    at * bits + bit
                };
                let to = block * BLOCK * bits + of_block;
                out[to / 8] |= ((value >> bit & 1) as u8) << (to % 8);
            }
        }
        out
    }

    fn check<T: Word + Reference<Raw = <T as Word>::Raw>>(values: &[u64], bits: u32, seed: u64)
    where
        <T as Word>::Raw: std::fmt::Debug,
    {
        let context = format!("{} values of {bits} bits in {}", values.len(), T::BITS);
        let reference = T::truncated(u128::from(seed) << 64 | u128::from(seed));
        let moved: Vec<_> = values.iter().map(|value| reference.plus_64(*value).raw()).collect();
        let expected = packed_by_the_book(values, bits);
        let packed = at_each_level(|| {
            let mut out = Vec::new();
            pack::<T, false>(&moved, reference, bits, &mut out);
            out
        });
        packed.iter().for_each(|packed| assert_eq!(*packed, expected, "{context}"));
        let back = at_each_level(|| {
            written(values.len() * size_of::<T>(), |out| {
                unpack::<T>(&expected, values.len(), bits, reference, out)
            })
        });
        back.iter().for_each(|back| assert_eq!(T::slice(back), moved, "{context}"));
        if bits > 0 {
            // Half of the values as exceptions.
            let fewer = bits - 1;
            let narrow: Vec<u64> =
                values.iter().map(|value| if value >> fewer == 0 { *value } else { 0 }).collect();
            let packed = at_each_level(|| {
                let mut out = Vec::new();
                pack::<T, true>(&moved, reference, fewer, &mut out);
                out
            });
            let expected = packed_by_the_book(&narrow, fewer);
            packed.iter().for_each(|packed| assert_eq!(*packed, expected, "{context}, patched"));
        }
    }

    #[test]
    fn every_width_and_remainder_comes_back_at_every_level() {
        let mut seed = 88172645463325252u64;
        for bits in 0..=64 {
            for count in [0, 1, 7, 8, 1023, 1024, 1025, 3000] {
                let values: Vec<u64> = (0..count)
                    .map(|_| {
                        seed ^= seed << 13;
                        seed ^= seed >> 7;
                        seed ^= seed << 17;
                        seed.checked_shr(64 - bits).unwrap_or(0)
                    })
                    .collect();
                if bits <= 8 {
                    check::<u8>(&values, bits, seed);
                }
                if bits <= 16 {
                    check::<u16>(&values, bits, seed);
                }
                if bits <= 32 {
                    check::<u32>(&values, bits, seed);
                }
                check::<u64>(&values, bits, seed);
                check::<u128>(&values, bits, seed);
            }
        }
    }

    #[test]
    fn references_of_128_bits_near_zero_add_up_as_wide_ones_do() {
        for (reference, bits) in
            [(-5, 3), (-1000, 12), (1 << 40, 33), (i64::MIN.into(), 63), (0, 63)]
        {
            let values: Vec<u64> = (0..2049u64)
                .map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - bits))
                .collect();
            let packed = packed_by_the_book(&values, bits);
            let narrow = NarrowReference::new(reference, bits).map(|narrow| {
                at_each_level(|| {
                    written(16 * values.len(), |out| {
                        unpack(&packed, values.len(), bits, narrow, out)
                    })
                })
            });
            let wide = written(16 * values.len(), |out| {
                unpack(&packed, values.len(), bits, reference as u128, out)
            });
            assert!(
                narrow.is_some_and(|levels| levels.iter().all(|narrow| *narrow == wide)),
                "{reference} {bits}"
            );
        }
        assert!(NarrowReference::new(i64::MAX.into(), 1).is_none());
        assert!(NarrowReference::new(1, 63).is_none());
        assert!(NarrowReference::new(i64::MIN.into(), 64).is_some());
        assert!(NarrowReference::new(i128::from(i64::MIN) - 1, 1).is_none());
    }
}
