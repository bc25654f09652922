//! The bytes in which keys of one width differ.
//!
//! Numbers differ in few bytes: a date and an order number, twelve bytes of a key, differ in five.
//! These bytes are packed into the word of an entry. The first sort by words then usually decides
//! all of the order, instead of only the dates.

use super::differences::KeyDifferences;
use super::word::{WORD_BYTES, word};

/// The first bytes in which some keys differ, at most as many as a word has.
#[derive(Debug)]
pub(crate) struct VaryingBytes {
    /// Their positions in a key, ascending.
    positions: Vec<usize>,
    /// The position of the next byte in which keys differ; `None` if `positions` has all.
    next: Option<usize>,
    /// The words of a key, with zeros for all bytes that vary.
    common: Vec<u64>,
}

impl VaryingBytes {
    /// Finds the bytes in which keys differ. Each of `keys` has any number of keys of this width,
    /// one after the other. `None` if the first word of the keys decides as well.
    pub fn find<'k>(width: usize, keys: impl Iterator<Item = &'k [u8]>) -> Option<Self> {
        if width <= WORD_BYTES {
            return None;
        }
        let mut differences = KeyDifferences::new(width);
        for keys in keys {
            differences.add(keys);
            if differences.is_first_word_wholly_varying() {
                return None;
            }
        }
        let first = differences.first()?;
        let varies: Vec<bool> = differences.differing().iter().map(|bits| *bits != 0).collect();
        let common: Vec<u8> = first
            .iter()
            .zip(&varies)
            .map(|(byte, varies)| if *varies { 0 } else { *byte })
            .collect();
        let common = (0..width.div_ceil(WORD_BYTES)).map(|index| word(&common, index)).collect();
        let mut varying =
            varies.iter().enumerate().filter(|(_, varies)| **varies).map(|(at, _)| at);
        let positions = varying.by_ref().take(WORD_BYTES).collect();
        Some(Self { positions, next: varying.next(), common })
    }

    /// The varying bytes of a key, the first one highest. Words of two keys compare as the keys do,
    /// or are equal if the keys differ only from [`next_word`](Self::next_word) on.
    #[inline]
    pub fn word(&self, key: &[u8]) -> u64 {
        let byte = |word: u64, position: &usize| {
            word << 8 | u64::from(key.get(*position).copied().unwrap_or(0))
        };
        let unused = 8 * (WORD_BYTES - self.positions.len()) as u32;
        self.positions.iter().fold(0_u64, byte).checked_shl(unused).unwrap_or(0)
    }

    /// The index of the first word in which two keys differ, given their [`word`](Self::word)s,
    /// which must differ.
    #[inline]
    pub fn offset(&self, a: u64, b: u64) -> usize {
        debug_assert_ne!(a, b);
        self.positions[(a ^ b).leading_zeros() as usize / 8] / WORD_BYTES
    }

    /// Word `index` of the key whose [`word`](Self::word) is this; `None` if word `index` has
    /// varying bytes that are not among these.
    #[inline]
    pub fn key_word(&self, word: u64, index: usize) -> Option<u64> {
        let common = self.common.get(index).filter(|_| self.next_word() != Some(index))?;
        let bytes = self
            .positions
            .iter()
            .zip(word.to_be_bytes())
            .filter(|(position, _)| **position / WORD_BYTES == index);
        Some(bytes.fold(*common, |word, (position, byte)| {
            word | u64::from(byte) << (56 - 8 * (position % WORD_BYTES))
        }))
    }

    /// The index of the first word in which keys may differ although all these bytes are equal;
    /// `None` if such keys are equal.
    pub fn next_word(&self) -> Option<usize> {
        self.next.map(|position| position / WORD_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::{VaryingBytes, word};

    #[test]
    fn few_bytes_vary() {
        let keys = *b"a0b0c0d0e0f0a1b0c0d2e0f0a0b0c0d1e0f0";
        let varying = VaryingBytes::find(12, keys.chunks(24)).unwrap();
        assert_eq!((&varying.positions[..], varying.next_word()), (&[1, 7][..], None));
        let [first, second, third] = [0, 12, 24].map(|start| varying.word(&keys[start..]));
        assert_eq!(first, u64::from(b'0') << 56 | u64::from(b'0') << 48);
        assert!(first < third && third < second);
        assert_eq!((varying.offset(first, second), varying.offset(first, third)), (0, 0));
        assert_eq!(varying.key_word(second, 0), Some(word(&keys[12..24], 0)));
        assert_eq!(varying.key_word(second, 1), Some(word(&keys[12..24], 1)));
    }

    #[test]
    fn more_bytes_vary_than_a_word_has() {
        let keys = *b"0000_000000000001111_11111111111";
        let varying = VaryingBytes::find(16, [&keys[..]].into_iter()).unwrap();
        assert_eq!(
            (&varying.positions[..], varying.next_word()),
            (&[0, 1, 2, 3, 5, 6, 7, 8][..], Some(1))
        );
        assert_eq!(varying.offset(0, 1), 1);
        let first = varying.word(&keys);
        assert_eq!(
            (varying.key_word(first, 0), varying.key_word(first, 1)),
            (Some(word(&keys, 0)), None)
        );
        assert_eq!(varying.offset(0, 1 << 16), 0);
        let first_word_differs = *b"00000000000011111111____";
        assert!(VaryingBytes::find(12, [&first_word_differs[..]].into_iter()).is_none());
        assert!(VaryingBytes::find(8, [&keys[..]].into_iter()).is_none());
    }

    #[test]
    fn no_byte_varies() {
        let varying = VaryingBytes::find(9, [&b"123456789123456789"[..]].into_iter()).unwrap();
        assert_eq!(
            (varying.positions.len(), varying.next_word(), varying.word(b"123456789")),
            (0, None, 0)
        );
    }
}
