//! The bits in which keys of one width differ.

use super::word::{WORD_BYTES, word};

/// The bits in which some keys of one width differ from others.
#[derive(Debug, Clone)]
pub(crate) struct KeyDifferences {
    width: usize,
    /// Where the words of a key begin. The last one may overlap the one before.
    starts: Vec<usize>,
    /// The words of one of the keys; empty without keys.
    first: Vec<u64>,
    /// For each word, the bits in which a key differs from `first`.
    differing: Vec<u64>,
}

impl KeyDifferences {
    /// No keys yet, which will have `width` bytes each.
    pub fn new(width: usize) -> Self {
        let last = width.saturating_sub(WORD_BYTES);
        let starts: Vec<usize> = (0..last).step_by(WORD_BYTES).chain([last]).collect();
        Self { width, differing: vec![0; starts.len()], starts, first: Vec::new() }
    }

    /// Adds any number of keys, one after the other.
    pub fn add(&mut self, keys: &[u8]) {
        if self.width == 0 || keys.is_empty() {
            return;
        }
        debug_assert_eq!(keys.len() % self.width, 0, "keys of {} bytes", self.width);
        if self.first.is_empty() {
            self.first = self.words(keys).collect();
        }
        if let ([first], [differing], WORD_BYTES) =
            (&self.first[..], &mut self.differing[..], self.width)
        {
            // In the processor's order of bytes until the end, which takes few instructions a key.
            let (words, first) = (keys.as_chunks::<WORD_BYTES>().0.iter(), first.to_be());
            let any = words.fold(0, |any, key| any | (u64::from_ne_bytes(*key) ^ first));
            *differing |= u64::from_be(any);
            return;
        }
        let words: Vec<(usize, u64)> =
            self.starts.iter().copied().zip(self.first.iter().copied()).collect();
        for key in keys.chunks_exact(self.width) {
            for (differing, (start, first)) in self.differing.iter_mut().zip(&words) {
                *differing |= word(&key[*start..], 0) ^ first;
            }
        }
    }

    /// Adds the keys that were added to `other`, which have the same width.
    pub fn merge(&mut self, other: &Self) {
        debug_assert_eq!(self.width, other.width);
        if self.first.is_empty() {
            self.first.clone_from(&other.first);
        }
        for (word, differing) in self.differing.iter_mut().enumerate() {
            if let (Some(a), Some(b)) = (self.first.get(word), other.first.get(word)) {
                *differing |= other.differing[word] | (a ^ b);
            }
        }
    }

    /// Whether keys differ in each byte of their first word.
    pub fn is_first_word_wholly_varying(&self) -> bool {
        let differing = self.differing.first().copied().unwrap_or(0);
        differing.to_be_bytes().iter().all(|byte| *byte != 0)
    }

    /// One of the keys; `None` without keys.
    pub fn first(&self) -> Option<Vec<u8>> {
        (!self.first.is_empty()).then(|| self.bytes(&self.first))
    }

    /// For each byte of a key, the bits in which keys differ.
    pub fn differing(&self) -> Vec<u8> {
        self.bytes(&self.differing)
    }

    fn words<'k>(&self, key: &'k [u8]) -> impl Iterator<Item = u64> + use<'_, 'k> {
        let key = key.get(..self.width).unwrap_or(key);
        self.starts.iter().map(|start| word(key.get(*start..).unwrap_or_default(), 0))
    }

    /// The bytes of a key whose words these are.
    fn bytes(&self, words: &[u64]) -> Vec<u8> {
        let mut bytes = vec![0; self.width];
        for (start, word) in self.starts.iter().zip(words) {
            bytes[*start..].iter_mut().zip(word.to_be_bytes()).for_each(|(to, byte)| *to = byte);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::KeyDifferences;

    #[test]
    fn parts_give_what_the_whole_gives() {
        for width in [1, 3, 7, 8, 9, 12, 16, 17, 24, 30] {
            let keys: Vec<u8> = (0..width * 60)
                .map(|i| if i % width % 3 == 0 { 9 } else { (i * i * 7 + i / 5) as u8 & 0x5F })
                .collect();
            let mut whole = KeyDifferences::new(width);
            whole.add(&keys);
            let mut merged = KeyDifferences::new(width);
            for part in keys.chunks(width * 7) {
                let mut differences = KeyDifferences::new(width);
                differences.add(&[]);
                differences.add(part);
                merged.merge(&differences);
                merged.merge(&KeyDifferences::new(width));
            }
            let mut expected = vec![0; width];
            for key in keys.chunks(width) {
                expected.iter_mut().zip(key.iter().zip(&keys)).for_each(|(bits, (a, b))| {
                    *bits |= a ^ b;
                });
            }
            assert_eq!(whole.differing(), expected, "width {width}");
            assert_eq!(merged.differing(), expected, "width {width}");
            assert_eq!(
                (whole.first(), merged.first()),
                (Some(keys[..width].to_vec()), whole.first())
            );
        }
        assert_eq!(KeyDifferences::new(9).first(), None);
    }
}
