//! Keys of rows: how columns become bytes that compare as the rows do (`spec/sort-key.md`), and how
//! such bytes are compared, in words and by offset-value codes.

mod column;
mod differences;
mod encoder;
mod entry;
mod offset_value;
mod packer;
mod range;
mod varying;
mod word;

pub(crate) use self::differences::KeyDifferences;
pub use self::encoder::{KeyEncoder, KeyPurpose, Keys, SortColumn};
pub(crate) use self::entry::{ENTRY_BLOCKS_END, Entry, SORT_PAGE_BYTES_MAX};
pub(crate) use self::offset_value::OffsetValueCode;
pub(crate) use self::packer::{KeyPacker, Packed, mask};
pub(crate) use self::range::{KeyRange, PREFIX_BYTES, key_prefix};
pub(crate) use self::varying::VaryingBytes;
pub(crate) use self::word::{WORD_BYTES, first_difference, has_next_word, word};
