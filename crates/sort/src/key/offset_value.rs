//! Keys in words, and offset-value codes: where a key first differs from an earlier one, and what
//! it has there.
//!
//! A key is compared eight bytes at a time, as a big-endian word, the last one filled up with
//! zeros. No key is the beginning of another one (`spec/sort-key.md` section 1), so that keys which
//! differ do so in a word that both have.
//!
//! Two keys that are not less than a third one can often be compared by where they first differ
//! from it, alone: the one that does so later is less, and of two that do so in the same word the
//! one whose word is less. Only where both are the same the words behind it decide. So no byte is
//! looked at twice however many keys a merge compares one with (Graefe and Do, "Offset-value coding
//! in database query processing", 2023).

use super::word::first_difference;

/// Where a key differs from another that is not greater: less if it does so later, or by a lesser
/// word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OffsetValueCode(u128);

impl OffsetValueCode {
    /// Of a key that is equal to the other one.
    pub const EQUAL: Self = Self(0);
    /// Of what comes behind all keys.
    pub const END: Self = Self(u128::MAX);

    /// A key that has `word` at `depth`, where the other one has a lesser one. Keys are below 2³²
    /// bytes.
    #[inline(always)]
    pub fn new(depth: usize, word: u64) -> Self {
        Self(u128::from(u32::MAX - depth as u32) << 64 | u128::from(word))
    }

    /// A key, and one that comes before it or is equal to it; both have the same words before
    /// `depth`.
    #[inline]
    pub fn between(before: &[u8], key: &[u8], depth: usize) -> Self {
        first_difference(before, key, depth)
            .map_or(Self::EQUAL, |(depth, _, word)| Self::new(depth, word))
    }

    /// Where the difference is.
    #[inline(always)]
    pub fn depth(self) -> usize {
        (u32::MAX - (self.0 >> 64) as u32) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::OffsetValueCode;

    #[test]
    fn a_later_difference_is_less() {
        let code = |key: &[u8]| OffsetValueCode::between(b"aaaaaaaabbbbbbbb", key, 0);
        assert_eq!(code(b"aaaaaaaabbbbbbbb"), OffsetValueCode::EQUAL);
        assert!(code(b"aaaaaaaabbbbbbbc") < code(b"aaaaaaabbbbbbbbb"));
        assert!(code(b"aaaaaaab") < code(b"aaaaaaac"));
        assert!(code(b"b") < OffsetValueCode::END);
        assert_eq!(code(b"aaaaaaaabbbbbbbc").depth(), 1);
    }
}
