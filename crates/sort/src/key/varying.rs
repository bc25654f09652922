//! The bytes by which keys of one width differ.
//!
//! Of numbers few bytes do: the date and the number of an order, twelve bytes of a key, differ in
//! five. Sorted by these, packed into the word of an entry, the keys are sorted at once, and not
//! first by a few dates and then by what lies behind them.

use super::word::{WORD_BYTES, word};

/// The first bytes by which some keys differ.
#[derive(Debug)]
pub(crate) struct VaryingBytes {
    /// Where they are in a key; at most as many as a word has.
    at: Vec<usize>,
    /// Where the next one is, by which keys may differ that have all these in common.
    behind: Option<usize>,
    /// The words of a key without all that varies.
    same: Vec<u64>,
}

impl VaryingBytes {
    /// Those of keys of this width, which lie one behind the other. None if a key's first word is
    /// as good.
    pub fn of<'k>(width: usize, keys: impl Iterator<Item = &'k [u8]>) -> Option<Self> {
        let last = width.checked_sub(WORD_BYTES).filter(|last| *last > 0)?;
        // The last word may have some of the bytes of the one before.
        let starts: Vec<usize> = (0..last).step_by(WORD_BYTES).chain([last]).collect();
        let mut keys = keys.filter(|keys| !keys.is_empty()).peekable();
        let first = keys.peek()?.get(..width)?;
        let word_at = |key: &[u8], start: usize| word(key.get(start..).unwrap_or_default(), 0);
        let words: Vec<(u64, usize)> =
            starts.iter().map(|start| (word_at(first, *start), *start)).collect();
        let mut differing = vec![0u64; words.len()];
        for keys in keys {
            for key in keys.chunks_exact(width) {
                for (differing, (first, start)) in differing.iter_mut().zip(&words) {
                    *differing |= word_at(key, *start) ^ first;
                }
            }
            if differing
                .first()
                .is_some_and(|word| word.to_be_bytes().iter().all(|byte| *byte != 0))
            {
                return None;
            }
        }
        let mut varies = vec![false; width];
        for (start, differing) in starts.iter().zip(&differing) {
            for (varies, byte) in varies.iter_mut().skip(*start).zip(differing.to_be_bytes()) {
                *varies |= byte != 0;
            }
        }
        let same: Vec<u8> = first
            .iter()
            .zip(&varies)
            .map(|(byte, varies)| if *varies { 0 } else { *byte })
            .collect();
        let same = (0..width.div_ceil(WORD_BYTES)).map(|depth| word(&same, depth)).collect();
        let mut places = varies.iter().enumerate().filter(|(_, varies)| **varies).map(|(at, _)| at);
        let at = places.by_ref().take(WORD_BYTES).collect();
        Some(Self { at, behind: places.next(), same })
    }

    /// These bytes of a key, the first one highest: keys compare as they do, or are the same up to
    /// what is [behind](Self::behind).
    #[inline]
    pub fn word(&self, key: &[u8]) -> u64 {
        let byte =
            |word: u64, at: &usize| word << 8 | u64::from(key.get(*at).copied().unwrap_or(0));
        let unused = 8 * (WORD_BYTES - self.at.len()) as u32;
        self.at.iter().fold(0_u64, byte).checked_shl(unused).unwrap_or(0)
    }

    /// The word of the keys in which those with these two, which differ, are not the same.
    #[inline]
    pub fn depth(&self, a: u64, b: u64) -> usize {
        self.at[(a ^ b).leading_zeros() as usize / 8] / WORD_BYTES
    }

    /// That word of the key which has these bytes, unless it has others that vary.
    #[inline]
    pub fn key_word(&self, word: u64, depth: usize) -> Option<u64> {
        let same = self.same.get(depth).filter(|_| self.behind() != Some(depth))?;
        let bytes =
            self.at.iter().zip(word.to_be_bytes()).filter(|(at, _)| **at / WORD_BYTES == depth);
        Some(
            bytes.fold(*same, |word, (at, byte)| {
                word | u64::from(byte) << (56 - 8 * (at % WORD_BYTES))
            }),
        )
    }

    /// The word of the keys in which those that have all these bytes in common may differ; none if
    /// they don't.
    pub fn behind(&self) -> Option<usize> {
        self.behind.map(|at| at / WORD_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::{VaryingBytes, word};

    #[test]
    fn bytes_that_differ() {
        let keys = *b"a0b0c0d0e0f0a1b0c0d2e0f0a0b0c0d1e0f0";
        let varying = VaryingBytes::of(12, keys.chunks(24)).unwrap();
        assert_eq!((&varying.at[..], varying.behind()), (&[1, 7][..], None));
        let [first, second, third] = [0, 12, 24].map(|start| varying.word(&keys[start..]));
        assert_eq!(first, u64::from(b'0') << 56 | u64::from(b'0') << 48);
        assert!(first < third && third < second);
        assert_eq!((varying.depth(first, second), varying.depth(first, third)), (0, 0));
        assert_eq!(varying.key_word(second, 0), Some(word(&keys[12..24], 0)));
        assert_eq!(varying.key_word(second, 1), Some(word(&keys[12..24], 1)));
    }

    #[test]
    fn more_than_a_word_has() {
        let keys = *b"0000_000000000001111_11111111111";
        let varying = VaryingBytes::of(16, [&keys[..]].into_iter()).unwrap();
        assert_eq!((&varying.at[..], varying.behind()), (&[0, 1, 2, 3, 5, 6, 7, 8][..], Some(1)));
        assert_eq!(varying.depth(0, 1), 1);
        let first = varying.word(&keys);
        assert_eq!(
            (varying.key_word(first, 0), varying.key_word(first, 1)),
            (Some(word(&keys, 0)), None)
        );
        assert_eq!(varying.depth(0, 1 << 16), 0);
        let first_word_differs = *b"00000000000011111111____";
        assert!(VaryingBytes::of(12, [&first_word_differs[..]].into_iter()).is_none());
        assert!(VaryingBytes::of(8, [&keys[..]].into_iter()).is_none());
    }

    #[test]
    fn equal_keys() {
        let varying = VaryingBytes::of(9, [&b"123456789123456789"[..]].into_iter()).unwrap();
        assert_eq!((varying.at.len(), varying.behind(), varying.word(b"123456789")), (0, None, 0));
    }
}
