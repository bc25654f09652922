//! What is sorted in the place of a row: eight bytes of its key, and where it is.
//!
//! ```text
//! 127                  64 63            37 36          16 15          0
//! ┌──────────────────────┬────────────────┬──────────────┬────────────┐
//! │ word of the key      │ block          │ row in it    │ depth      │
//! └──────────────────────┴────────────────┴──────────────┴────────────┘
//! ```
//!
//! Before the sort the word is the first one and the depth 0: so entries compare as their words do,
//! and in the order of the rows where these are equal. After it word and depth are those of the
//! code against the entry before.

use super::offset_value::OffsetValueCode;

/// Objects of a page, and so its bytes, are numbered by so many bits in an entry.
pub(crate) const SORT_PAGE_BYTES_MAX: usize = 16 << 20;

const DEPTH_BITS: u32 = 16;
const ROW_BITS: u32 = 21;
const BLOCK_BITS: u32 = 64 - ROW_BITS - DEPTH_BITS;
/// An object takes at least eight bytes of a page, and its slot four.
const _: () = assert!(SORT_PAGE_BYTES_MAX / 12 < 1 << ROW_BITS);
/// A piece has fewer blocks.
pub(crate) const ENTRY_BLOCKS_END: usize = 1 << BLOCK_BITS;
const DEPTH_MASK: u64 = (1 << DEPTH_BITS) - 1;
/// The depth of an entry that is equal to the one before.
const DEPTH_EQUAL: u64 = DEPTH_MASK;
/// The depth of an entry whose depth is this or more.
const DEPTH_LARGE: u64 = DEPTH_MASK - 1;

/// Eight bytes of a row's key, and where the row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry(u128);

impl Entry {
    /// The entry of a row, not yet sorted.
    #[inline(always)]
    pub fn new(word: u64, block: usize, row: usize) -> Self {
        Self(
            u128::from(word) << 64
                | (block as u128) << (ROW_BITS + DEPTH_BITS)
                | (row as u128) << DEPTH_BITS,
        )
    }

    #[inline(always)]
    pub fn word(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// Its block and its row in it.
    #[inline(always)]
    pub fn place(self) -> (usize, usize) {
        let place = self.0 as u64 >> DEPTH_BITS;
        ((place >> ROW_BITS) as usize, (place & ((1 << ROW_BITS) - 1)) as usize)
    }

    /// The same row with another word, not yet sorted.
    #[inline(always)]
    pub fn with_word(self, word: u64) -> Self {
        Self(u128::from(word) << 64 | u128::from(self.0 as u64 & !DEPTH_MASK))
    }

    /// The same row at another place.
    pub fn moved(self, block: usize, row: usize) -> Self {
        Self(Self::new(self.word(), block, row).0 | u128::from(self.0 as u64 & DEPTH_MASK))
    }

    /// The same row, which differs from the one before at `depth`, by `word`.
    #[inline(always)]
    pub fn coded(self, depth: usize, word: u64) -> Self {
        Self(self.with_word(word).0 | u128::from((depth as u64).min(DEPTH_LARGE)))
    }

    /// The same row, which is equal to the one before.
    #[inline(always)]
    pub fn equal(self) -> Self {
        Self(self.with_word(0).0 | u128::from(DEPTH_EQUAL))
    }

    #[inline(always)]
    pub fn is_equal(self) -> bool {
        self.0 as u64 & DEPTH_MASK == DEPTH_EQUAL
    }

    /// The code against the entry before; none if its depth is too large for an entry.
    #[inline(always)]
    pub fn code(self) -> Option<OffsetValueCode> {
        match self.0 as u64 & DEPTH_MASK {
            DEPTH_EQUAL => Some(OffsetValueCode::EQUAL),
            DEPTH_LARGE => None,
            depth => Some(OffsetValueCode::new(depth as usize, self.word())),
        }
    }
}
