//! Numbers for keys: what dictionaries of distinct values are made with.

use std::ops::Range;

/// An open-addressing table from keys to numbers.
#[derive(Debug)]
pub(crate) struct Numbers {
    slots: Vec<u32>,
    shift: u32,
}

/// The most slots that are probed for one key. At least half of the slots are empty, so that only
/// keys that are chosen to collide, or very unlucky ones, need more. Such keys get no number.
pub(crate) const PROBES_MAX: usize = 256;

impl Default for Numbers {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Numbers {
    pub(crate) fn new(count_max: usize) -> Self {
        let slots = (count_max.max(4) * 2).next_power_of_two();
        Self { slots: vec![0; slots], shift: 64 - slots.trailing_zeros() }
    }

    /// The number of the key with this hash that `equals` recognises, or `next` for a new key. None
    /// if there is no slot for it.
    #[inline]
    pub(crate) fn number(
        &mut self,
        hash: u64,
        next: usize,
        equals: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let mask = self.slots.len() - 1;
        for at in self.probes(hash) {
            match self.slots[at & mask] {
                0 => {
                    // Dictionaries have fewer than 2^31 entries.
                    self.slots[at & mask] = next as u32 + 1;
                    return Some(next);
                }
                taken if equals(taken as usize - 1) => return Some(taken as usize - 1),
                _ => {}
            }
        }
        None
    }

    /// The number of the key with this hash that `equals` recognises, if there is one.
    pub(crate) fn find(&self, hash: u64, equals: impl Fn(usize) -> bool) -> Option<usize> {
        let mask = self.slots.len() - 1;
        let taken =
            self.probes(hash).map(|at| self.slots[at & mask]).take_while(|taken| *taken != 0);
        taken.map(|taken| taken as usize - 1).find(|number| equals(*number))
    }

    /// The bytes that the table takes.
    pub(crate) fn bytes(&self) -> usize {
        self.slots.len() * size_of::<u32>()
    }

    /// Whether at least half of the slots are empty with this many keys.
    #[inline]
    pub(crate) fn has_room(&self, count: usize) -> bool {
        count * 2 <= self.slots.len()
    }

    #[inline]
    fn probes(&self, hash: u64) -> Range<usize> {
        // Fibonacci hashing takes the upper bits of the product.
        let start = (hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize;
        start..start + PROBES_MAX
    }
}

/// Hashes bytes. Short strings are read as two words that may overlap, which is faster than a copy
/// of a variable length.
#[inline]
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    let mix =
        |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(0x9FB2_1C65_1E98_DF25);
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
                let hash =
                    words.iter().fold(seed, |hash, word| mix(hash, u64::from_le_bytes(*word)));
                mix(hash, u64::from_le_bytes(*last))
            }
            _ => match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
                (Some(first), Some(last)) => mix(
                    mix(seed, u32::from_le_bytes(*first).into()),
                    u32::from_le_bytes(*last).into(),
                ),
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
    fn too_many_collisions_end_the_search() {
        let mut numbers = Numbers::new(1 << 16);
        for next in 0..PROBES_MAX {
            assert_eq!(numbers.number(7, next, |_| false), Some(next));
        }
        assert_eq!(numbers.number(7, PROBES_MAX, |_| false), None);
    }
}
