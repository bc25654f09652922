//! Keys in words of eight bytes.
//!
//! A word is big-endian, so that words compare as their bytes do. The last word of a key is padded
//! with zeros. No key is a prefix of another (`spec/sort-key.md` section 1), so two keys that
//! differ do so in a word that both have.

/// The bytes of a word.
pub(crate) const WORD_BYTES: usize = 8;

/// Word `index` of a key; 0 after its end.
#[inline(always)]
pub(crate) fn word(key: &[u8], index: usize) -> u64 {
    let rest = key.get(index.saturating_mul(WORD_BYTES)..).unwrap_or_default();
    match rest.first_chunk::<WORD_BYTES>() {
        Some(word) => u64::from_be_bytes(*word),
        None => padded_word(rest),
    }
}

/// Fewer than eight bytes, padded with zeros.
#[inline]
fn padded_word(rest: &[u8]) -> u64 {
    let shift = 8 * (WORD_BYTES - rest.len()) as u32;
    rest.iter()
        .fold(0u64, |word, byte| word << 8 | u64::from(*byte))
        .checked_shl(shift)
        .unwrap_or(0)
}

/// Whether a key has bytes after word `index`.
#[inline(always)]
pub(crate) fn has_next_word(key: &[u8], index: usize) -> bool {
    key.len() > (index + 1) * WORD_BYTES
}

/// The first word from `index` on in which two keys differ: its index and both its values. `None`
/// if the keys are equal from there on.
#[inline]
pub(crate) fn first_difference(a: &[u8], b: &[u8], index: usize) -> Option<(usize, u64, u64)> {
    let mut index = index;
    while index * WORD_BYTES < a.len().max(b.len()) {
        let (of_a, of_b) = (word(a, index), word(b, index));
        if of_a != of_b {
            return Some((index, of_a, of_b));
        }
        index += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{first_difference, has_next_word, word};

    #[test]
    fn words_are_padded_with_zeros() {
        let key = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        assert_eq!(word(&key, 0), 0x0102_0304_0506_0708);
        assert_eq!(word(&key, 1), 9 << 56);
        assert_eq!((word(&key, 2), word(&[], 0)), (0, 0));
        assert!(has_next_word(&key, 0) && !has_next_word(&key, 1) && !has_next_word(&key[..8], 0));
        assert_eq!(first_difference(&key, &key[..8], 0), Some((1, 9 << 56, 0)));
        assert_eq!(first_difference(&key, &key, 0), None);
    }
}
