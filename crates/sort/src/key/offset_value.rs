//! Offset-value codes: where a key first differs from a base key, and its value there.
//!
//! The offset counts words, and the value is the key's word at that offset. Two keys that are not
//! less than the same base can usually be ordered by their codes alone. The key that differs from
//! the base later is the lesser one; of two keys that differ at the same offset, the one with the
//! lesser word is. Only if both codes are equal do the words after the offset decide. A merge
//! therefore looks at no byte of a key twice (Graefe and Do, "Offset-value coding in database query
//! processing", 2023).

use super::word::first_difference;

/// The code of a key against a base that is not greater. Codes against the same base compare as
/// their keys do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OffsetValueCode(u128);

impl OffsetValueCode {
    /// The code of a key that equals its base.
    pub const EQUAL: Self = Self(0);
    /// A code that is greater than that of any key: the end of a source.
    pub const END: Self = Self(u128::MAX);

    /// The code of a key that has `value` as its word at `offset`, where the base has a lesser one.
    /// Keys are shorter than 2³² bytes.
    #[inline(always)]
    pub fn new(offset: usize, value: u64) -> Self {
        Self(u128::from(u32::MAX - offset as u32) << 64 | u128::from(value))
    }

    /// The code of `key` against `base`, which is not greater. Both have the same words before
    /// `offset`.
    #[inline]
    pub fn between(base: &[u8], key: &[u8], offset: usize) -> Self {
        first_difference(base, key, offset)
            .map_or(Self::EQUAL, |(offset, _, value)| Self::new(offset, value))
    }

    /// The index of the word in which the key differs from its base.
    #[inline(always)]
    pub fn offset(self) -> usize {
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
        assert_eq!(code(b"aaaaaaaabbbbbbbc").offset(), 1);
    }
}
