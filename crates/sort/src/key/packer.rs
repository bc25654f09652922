//! Keys of one width, packed into integers by the bits in which they differ.
//!
//! ```text
//!   key      80 00 00 00 00 00 1F 3C │ 80 00 00 07     bits that are equal in all keys
//!                         └───┬────┘          └┬┘      are left out
//!   packed                 1 1111 0011 1100  0111
//! ```
//!
//! Packed keys compare as the keys do, and a key can be made again from its packed one.

use std::fmt::Debug;

use super::differences::KeyDifferences;
use super::word::{WORD_BYTES, word};

/// An unsigned integer that keys are packed into.
pub(crate) trait Packed: Copy + Ord + Default + Debug + Send + Sync + 'static {
    /// `self` with `bits` bits of `value` after it. `value` has no others.
    #[must_use]
    fn append(self, bits: u32, value: u64) -> Self;

    /// `self` without its lowest `bits` bits.
    #[must_use]
    fn without(self, bits: u32) -> Self;

    /// The lowest 64 bits.
    fn low(self) -> u64;

    /// The bits in which `self` differs from `other`.
    #[must_use]
    fn differing(self, other: Self) -> Self;

    /// The bits of either.
    #[must_use]
    fn or(self, other: Self) -> Self;

    /// The number of bits up to the highest that is set.
    fn bit_length(self) -> u32;
}

macro_rules! packed {
    ($($integer:ty)*) => {$(
        impl Packed for $integer {
            #[inline(always)]
            fn append(self, bits: u32, value: u64) -> Self {
                self.checked_shl(bits).unwrap_or(0) | Self::from(value)
            }

            #[inline(always)]
            fn without(self, bits: u32) -> Self {
                self.checked_shr(bits).unwrap_or(0)
            }

            #[inline(always)]
            fn low(self) -> u64 {
                self as u64
            }

            #[inline(always)]
            fn differing(self, other: Self) -> Self {
                self ^ other
            }

            #[inline(always)]
            fn or(self, other: Self) -> Self {
                self | other
            }

            #[inline(always)]
            fn bit_length(self) -> u32 {
                Self::BITS - self.leading_zeros()
            }
        }
    )*};
}
packed!(u64 u128);

/// The lowest `bits` bits, of which there are at most 64.
#[inline(always)]
pub(crate) fn mask(bits: u32) -> u64 {
    u64::MAX.checked_shr(u64::BITS - bits).unwrap_or(0)
}

/// Packs the keys of a sort.
#[derive(Debug)]
pub(crate) struct KeyPacker {
    /// A key, with zeros for the bits that differ.
    common: Vec<u8>,
    segments: Vec<Segment>,
    bits: u32,
}

/// Bits of a key that follow each other, within eight bytes.
#[derive(Debug, Clone, Copy)]
struct Segment {
    /// The first of the eight bytes. A shorter key is padded with zeros.
    start: usize,
    /// The bits of the eight bytes after the segment.
    shift: u32,
    bits: u32,
}

impl KeyPacker {
    /// Packs the bits in which keys differ; `None` without keys, or if keys have no bytes.
    pub fn new(differences: &KeyDifferences) -> Option<Self> {
        let first = differences.first().filter(|first| !first.is_empty())?;
        let differing = differences.differing();
        let common = first.iter().zip(&differing).map(|(byte, bits)| byte & !bits).collect();
        let last_start = first.len().saturating_sub(WORD_BYTES);
        let mut segments = Vec::new();
        let mut at = 0;
        while at < differing.len() {
            let count = differing[at..].iter().take(WORD_BYTES).take_while(|bits| **bits != 0);
            let end = at + count.count();
            if let [highest, ..] = differing[at..end] {
                let start = at.min(last_start);
                let shift =
                    8 * (start + WORD_BYTES - end) as u32 + differing[end - 1].trailing_zeros();
                let above = 8 * (at - start) as u32 + highest.leading_zeros();
                segments.push(Segment { start, shift, bits: u64::BITS - above - shift });
            }
            at = end.max(at + 1);
        }
        let bits = segments.iter().map(|segment| segment.bits).sum();
        Some(Self { common, segments, bits })
    }

    /// The bits of a packed key.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Packs keys that follow each other to `packed`, segment by segment, since short loops are
    /// quick. `P` must have [`bits`](Self::bits).
    pub fn pack<P: Packed>(&self, keys: &[u8], packed: &mut [P]) {
        packed.fill(P::default());
        for Segment { start, shift, bits } in self.segments.iter().copied() {
            let mask = mask(bits);
            let append = |packed: &mut P, word: u64| {
                *packed = packed.append(bits, word >> shift & mask);
            };
            if self.common.len() == WORD_BYTES {
                let words = keys.as_chunks::<WORD_BYTES>().0.iter();
                packed.iter_mut().zip(words).for_each(|(packed, key)| {
                    append(packed, u64::from_be_bytes(*key));
                });
            } else {
                let keys = keys.chunks_exact(self.common.len());
                packed.iter_mut().zip(keys).for_each(|(packed, key)| {
                    append(packed, word(&key[start..], 0));
                });
            }
        }
    }

    /// Replaces `keys` by the keys that were packed, each with `bits_after` bits after it.
    pub fn unpack<P: Packed>(&self, packed: &[P], bits_after: u32, keys: &mut Vec<u8>) {
        keys.clear();
        packed.iter().for_each(|_| keys.extend_from_slice(&self.common));
        let mut bits_after = bits_after;
        for Segment { start, shift, bits } in self.segments.iter().rev().copied() {
            let mask = mask(bits);
            let word = |packed: &P| (packed.without(bits_after).low() & mask) << shift;
            if self.common.len() < WORD_BYTES {
                let keys = keys.chunks_exact_mut(self.common.len());
                keys.zip(packed).for_each(|(key, packed)| {
                    let bytes = word(packed).to_be_bytes();
                    key.iter_mut().zip(bytes).for_each(|(to, byte)| *to |= byte);
                });
            } else {
                let keys = keys.chunks_exact_mut(self.common.len());
                keys.zip(packed).for_each(|(key, packed)| {
                    let place = &mut key[start..start + WORD_BYTES];
                    let bytes = word(packed).to_be_bytes();
                    place.iter_mut().zip(bytes).for_each(|(to, byte)| *to |= byte);
                });
            }
            bits_after += bits;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{KeyPacker, Packed, mask};
    use crate::key::KeyDifferences;

    /// Packs keys that follow each other, and compares order and keys with the ones before.
    fn check<P: Packed>(width: usize, keys: &[u8]) -> u32 {
        let mut differences = KeyDifferences::new(width);
        differences.add(keys);
        let packer = KeyPacker::new(&differences).unwrap();
        assert!(packer.bits() <= 8 * size_of::<P>() as u32, "{packer:?}");
        let mut packed = vec![P::default().append(3, 5); keys.len() / width];
        packer.pack(keys, &mut packed);
        let mut unpacked = vec![1];
        packer.unpack(&packed, 0, &mut unpacked);
        assert_eq!(unpacked, keys, "width {width}, {packer:?}");
        if packer.bits() + 5 <= 8 * size_of::<P>() as u32 {
            let longer: Vec<P> = packed.iter().map(|key| key.append(5, 9)).collect();
            packer.unpack(&longer, 5, &mut unpacked);
            assert_eq!(unpacked, keys, "width {width}, {packer:?}");
        }
        for (a, key_a) in packed.iter().zip(keys.chunks(width)) {
            for (b, key_b) in packed.iter().zip(keys.chunks(width)) {
                assert_eq!(a.cmp(b), key_a.cmp(key_b), "{key_a:?} {key_b:?} {packer:?}");
            }
            assert!(a.bit_length() <= packer.bits());
        }
        packer.bits()
    }

    #[test]
    fn packed_keys_compare_as_keys_do_and_give_them_back() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u8
        };
        let rows = if cfg!(miri) { 6 } else { 40 };
        for width in 1..=30 {
            for _ in 0..6 {
                let masks: Vec<u8> = (0..width)
                    .map(|at| if at < 16 && random() % 3 > 0 { random() } else { 0 })
                    .collect();
                let fixed = random();
                let keys: Vec<u8> = (0..rows)
                    .flat_map(|_| {
                        masks.iter().map(|mask| random() & mask | fixed & !mask).collect::<Vec<_>>()
                    })
                    .collect();
                let bits = check::<u128>(width, &keys);
                if bits <= 64 {
                    check::<u64>(width, &keys);
                }
            }
        }
    }

    #[test]
    fn only_bits_that_differ_are_packed() {
        assert_eq!(check::<u64>(4, &[7, 0, 0, 1, 7, 0, 0, 5]), 1);
        assert_eq!(check::<u64>(9, b"a0_______a1_______a0______b"), 7);
        assert_eq!(check::<u64>(3, b"abcabcabc"), 0);
        let extremes = [i64::MIN.to_be_bytes(), [0xFF; 8], [0; 8]].concat();
        assert_eq!(check::<u64>(8, &extremes), 64);
        assert_eq!(check::<u128>(16, &[[0; 16], [0xFF; 16]].concat()), 128);
        assert_eq!((mask(0), mask(1), mask(64)), (0, 1, u64::MAX));
        assert!(KeyPacker::new(&KeyDifferences::new(8)).is_none());
    }
}
