//! The search for distinct values, given up early where a dictionary can no longer pay.

use crate::bitpack::{bits_for, packed_bytes};
use crate::column::u32_at;

/// The most entries that a dictionary is tried with.
const DICTIONARY_COUNT_MAX: usize = 1 << 16;
/// A dictionary pays only when its entries are at most this share of the values.
const DICTIONARY_SHARE: usize = 4;
/// After so many values a dictionary is given up when nearly all of them (7 of 8) were new.
const DICTIONARY_SAMPLE: usize = 4096;

/// An open-addressing table from keys to numbers, given in order of first sight.
struct Numbers {
    slots: Vec<u32>,
    shift: u32,
}

impl Numbers {
    /// The most slots looked at for one key. Half of the slots stay empty, so that only keys chosen to collide, or very
    /// unlucky ones, need more: they get no dictionary rather than a search without end.
    const PROBES_MAX: usize = 256;

    fn new(count_max: usize) -> Self {
        let slots = (count_max.max(4) * 2).next_power_of_two();
        Self { slots: vec![0; slots], shift: 64 - slots.trailing_zeros() }
    }

    /// The number of the key with this hash, which `equals` recognises; `next` if it is new. None if it has no room.
    fn number(&mut self, hash: u64, next: usize, equals: impl Fn(usize) -> bool) -> Option<usize> {
        let mask = self.slots.len() - 1;
        // Fibonacci hashing: the product's upper bits.
        let start = (hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize;
        for at in start..start + Self::PROBES_MAX {
            match self.slots[at & mask] {
                0 => {
                    // Fewer than 2^17 entries.
                    self.slots[at & mask] = next as u32 + 1;
                    return Some(next);
                }
                taken if equals(taken as usize - 1) => return Some(taken as usize - 1),
                _ => {}
            }
        }
        None
    }
}

/// Whether so many distinct ones among the first values make a dictionary unlikely to pay.
fn hopeless(distinct: usize, seen: usize) -> bool {
    seen == DICTIONARY_SAMPLE && distinct > DICTIONARY_SAMPLE / 8 * 7
}

/// The most entries of `width` bytes for n values with which a dictionary stays below `bytes_max`.
fn entries_that_pay(n: usize, width: usize, bytes_max: usize) -> usize {
    let of_bits = |bits: u32| {
        let room = bytes_max.checked_sub(packed_bytes(n, bits)?)?.saturating_sub(1) / width;
        Some(room.min(1 << bits))
    };
    (0..=16).filter_map(of_bits).max().unwrap_or(0).min(n / DICTIONARY_SHARE).min(DICTIONARY_COUNT_MAX)
}

/// The distinct values and each value's index among them, if these take less than `bytes_max`.
pub(super) fn distinct_fixed<const W: usize>(values: &[u8], bytes_max: usize) -> Option<(Vec<u8>, Vec<u32>)> {
    let values = values.as_chunks::<W>().0;
    let count_max = entries_that_pay(values.len(), W, bytes_max);
    let mut numbers = Numbers::new(count_max);
    let mut entries: Vec<[u8; W]> = Vec::new();
    let mut indexes = Vec::with_capacity(values.len());
    for (i, value) in values.iter().enumerate() {
        let number = numbers.number(hash_bytes(value), entries.len(), |number| entries[number] == *value)?;
        if number == entries.len() {
            if entries.len() == count_max || hopeless(entries.len(), i) {
                return None;
            }
            entries.push(*value);
        }
        indexes.push(number as u32);
    }
    let bytes = entries.len() * W + packed_bytes(values.len(), bits_for(entries.len() as u64 - 1))?;
    (bytes < bytes_max).then(|| (entries.into_flattened(), indexes))
}

/// The first occurrence of each distinct string and each string's index among them, if these take less than `bytes_max`,
/// or there is only one.
pub(super) fn distinct_strings(offsets: &[u8], data: &[u8], bytes_max: usize) -> Option<(Vec<usize>, Vec<u32>)> {
    let n = offsets.len() / 4 - 1;
    let count_max = (n / DICTIONARY_SHARE).clamp(1, DICTIONARY_COUNT_MAX);
    let mut numbers = Numbers::new(count_max);
    let mut entries: Vec<usize> = Vec::new();
    let mut entry_bytes = 0;
    let mut indexes = Vec::with_capacity(n);
    let value = |i: usize| &data[u32_at(offsets, i) as usize..u32_at(offsets, i + 1) as usize];
    for i in 0..n {
        let bytes = value(i);
        let number = numbers.number(hash_bytes(bytes), entries.len(), |number| value(entries[number]) == bytes)?;
        if number == entries.len() {
            entry_bytes += bytes.len() + 4;
            if entries.len() == count_max || hopeless(entries.len(), i) || i > 0 && entry_bytes >= bytes_max {
                return None;
            }
            entries.push(i);
        }
        indexes.push(number as u32);
    }
    let bits = bits_for(entries.len().checked_sub(1)? as u64);
    let pays = entries.len() == 1 || entry_bytes + packed_bytes(n, bits)? < bytes_max;
    pays.then_some((entries, indexes))
}

/// A hash of some bytes. Short ones are read in two words that may overlap, which is quicker than a copy of any length.
#[inline]
fn hash_bytes(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(0x9FB2_1C65_1E98_DF25);
    let seed = bytes.len() as u64;
    let hash = match bytes {
        [] => seed,
        [first, ..] if bytes.len() < 4 => {
            let (middle, last) = (bytes[bytes.len() / 2], bytes[bytes.len() - 1]);
            mix(seed, u64::from(u32::from_le_bytes([*first, middle, last, 0])))
        }
        _ => match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
            (Some(_), Some(last)) => {
                let words = bytes.as_chunks::<8>().0;
                let hash = words.iter().fold(seed, |hash, word| mix(hash, u64::from_le_bytes(*word)));
                mix(hash, u64::from_le_bytes(*last))
            }
            _ => match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
                (Some(first), Some(last)) => {
                    mix(mix(seed, u32::from_le_bytes(*first).into()), u32::from_le_bytes(*last).into())
                }
                _ => seed,
            },
        },
    };
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_collide_end_the_search() {
        let mut numbers = Numbers::new(1 << 16);
        for next in 0..Numbers::PROBES_MAX {
            assert_eq!(numbers.number(7, next, |_| false), Some(next));
        }
        assert_eq!(numbers.number(7, Numbers::PROBES_MAX, |_| false), None);
    }

    #[test]
    fn as_many_entries_are_tried_as_can_pay() {
        // 4096 values of two bytes, in a frame of 9 bits 4610 bytes: 256 entries and their indexes take 4608.
        assert_eq!(entries_that_pay(4096, 2, 4610), 256);
        assert_eq!(entries_that_pay(4096, 2, 4608), 255);
        assert_eq!(entries_that_pay(4096, 4, 4), 0);
    }
}
