//! Keys of rows: how columns become bytes that compare as the rows do, and how these are compared
//! in words and by offset-value codes. `spec/sort-key.md` is the law for the bytes.

mod column;
mod encoder;
mod entry;
mod offset_value;
mod range;
mod varying;
mod word;

pub use self::encoder::{KeyEncoder, Keys, Purpose, SortColumn};
pub(crate) use self::entry::{BLOCKS_END, Entry, SORT_PAGE_BYTES_MAX};
pub(crate) use self::offset_value::Code;
pub(crate) use self::range::{BOUND_BYTES, Bounds, cut};
pub(crate) use self::varying::Varying;
pub(crate) use self::word::{first_difference, goes_on, word};
