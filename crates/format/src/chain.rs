//! The digest of a row: `spec/partitions.md` section 5. A chain takes values one after the other.

/// The start of a chain.
const START: u64 = 0xA076_1D64_78BD_642F;
/// Folds a word in.
const VALUE: u64 = 0xE703_7ED1_A0B4_28DB;
/// Folds a missing value in.
const MISSING: u64 = 0x8EBC_6AF0_9C88_C6E3;
/// Ends the chain of a row.
const FINAL: u64 = 0x5899_65CC_7537_4CC3;

/// The digest of the values so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chain(u64);

impl Default for Chain {
    fn default() -> Self {
        Self(START)
    }
}

impl Chain {
    /// With a word more.
    #[inline]
    #[must_use]
    pub fn word(self, word: u64) -> Self {
        Self(fold(self.0 ^ word, VALUE))
    }

    /// With a missing value more.
    #[inline]
    #[must_use]
    pub fn missing(self) -> Self {
        Self(fold(self.0, MISSING))
    }

    /// With a string or binary value more: its length, then its bytes.
    #[inline]
    #[must_use]
    pub fn text(self, bytes: &[u8]) -> Self {
        self.word(bytes.len() as u64).padded(bytes)
    }

    /// With bytes more, filled up with zeros to words.
    #[inline]
    #[must_use]
    pub fn padded(self, bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<8>();
        let mut chain = self;
        for bytes in words {
            chain = chain.word(u64::from_le_bytes(*bytes));
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            chain = chain.word(u64::from_le_bytes(last));
        }
        chain
    }

    /// With the digest of an item's or a struct's own chain more.
    #[inline]
    #[must_use]
    pub fn nested(self, inner: Self) -> Self {
        self.word(inner.0)
    }

    /// The digest of a row whose columns the chain has taken.
    #[inline]
    pub fn row(self) -> u64 {
        fold(self.0, FINAL)
    }
}

#[inline]
fn fold(a: u64, k: u64) -> u64 {
    let product = u128::from(a) * u128::from(k);
    #[allow(clippy::cast_possible_truncation, reason = "both halves are used")]
    let halves = (product as u64, (product >> 64) as u64);
    halves.0 ^ halves.1
}
