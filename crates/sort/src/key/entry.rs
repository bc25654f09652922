//! Entries: what is sorted in place of a row, eight bytes of its key and its location.
//!
//! ```text
//! 127                  64 63            37 36          16 15          0
//! ┌──────────────────────┬────────────────┬──────────────┬────────────┐
//! │ word of the key      │ block          │ row in it    │ offset     │
//! └──────────────────────┴────────────────┴──────────────┴────────────┘
//! ```
//!
//! Before the sort, the word is the first one of the key and the offset is 0. Entries then compare
//! as their words do, and by location where words are equal, which keeps the sort stable. After the
//! sort, word and offset are the offset-value code against the entry before.

use super::offset_value::OffsetValueCode;

/// The largest page of a sort. The bits for the row in an entry suffice for all of its objects.
pub(crate) const SORT_PAGE_BYTES_MAX: usize = 16 << 20;

const OFFSET_BITS: u32 = 16;
const ROW_BITS: u32 = 21;
const BLOCK_BITS: u32 = 64 - ROW_BITS - OFFSET_BITS;
/// An object takes at least eight bytes of a page, and its slot four.
const _: () = assert!(SORT_PAGE_BYTES_MAX / 12 < 1 << ROW_BITS);
/// An in-memory run has fewer blocks than this.
pub(crate) const ENTRY_BLOCKS_END: usize = 1 << BLOCK_BITS;
const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;
/// The offset of an entry whose key equals that of the entry before.
const OFFSET_EQUAL: u64 = OFFSET_MASK;
/// Stands for all offsets that are this or larger.
const OFFSET_LARGE: u64 = OFFSET_MASK - 1;

/// Eight bytes of a row's key, and the row's location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry(u128);

impl Entry {
    /// The unsorted entry of a row.
    #[inline(always)]
    pub fn new(word: u64, block: usize, row: usize) -> Self {
        Self(
            u128::from(word) << 64
                | (block as u128) << (ROW_BITS + OFFSET_BITS)
                | (row as u128) << OFFSET_BITS,
        )
    }

    #[inline(always)]
    pub fn word(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// The row's block, and its number in that block.
    #[inline(always)]
    pub fn location(self) -> (usize, usize) {
        let location = self.0 as u64 >> OFFSET_BITS;
        ((location >> ROW_BITS) as usize, (location & ((1 << ROW_BITS) - 1)) as usize)
    }

    /// The unsorted entry of the same row with another word.
    #[inline(always)]
    pub fn with_word(self, word: u64) -> Self {
        Self(u128::from(word) << 64 | u128::from(self.0 as u64 & !OFFSET_MASK))
    }

    /// The same key and code at another location.
    pub fn relocated(self, block: usize, row: usize) -> Self {
        Self(Self::new(self.word(), block, row).0 | u128::from(self.0 as u64 & OFFSET_MASK))
    }

    /// The same row, whose key differs from that of the entry before in the word at `offset`, which
    /// is `value`.
    #[inline(always)]
    pub fn with_code(self, offset: usize, value: u64) -> Self {
        Self(self.with_word(value).0 | u128::from((offset as u64).min(OFFSET_LARGE)))
    }

    /// The same row, whose key equals that of the entry before.
    #[inline(always)]
    pub fn with_code_equal(self) -> Self {
        Self(self.with_word(0).0 | u128::from(OFFSET_EQUAL))
    }

    /// Whether the key equals that of the entry before.
    #[inline(always)]
    pub fn is_duplicate(self) -> bool {
        self.0 as u64 & OFFSET_MASK == OFFSET_EQUAL
    }

    /// The code against the entry before; `None` if its offset is too large for an entry.
    #[inline(always)]
    pub fn code(self) -> Option<OffsetValueCode> {
        match self.0 as u64 & OFFSET_MASK {
            OFFSET_EQUAL => Some(OffsetValueCode::EQUAL),
            OFFSET_LARGE => None,
            offset => Some(OffsetValueCode::new(offset as usize, self.word())),
        }
    }
}
