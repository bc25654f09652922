//! Sorts rows that are all in memory, without a merge.
//!
//! ```text
//!   keys ──pack──▶ entries ──by splitters──▶ bucket 0 ──radix sort──▶ rows 0 to n
//!                                            bucket 1 ──radix sort──▶ rows n to m
//!                                            …
//! ```
//!
//! An entry is one integer: the bits in which keys differ, and the row's location. A sample of the
//! entries gives splitters, which divide all entries into buckets of about equal size that fit the
//! processor's cache (Frazer and McKellar, "Samplesort", 1970). Threads sort the buckets by
//! themselves. Columns that are in the key are decoded from it, and only the others are gathered.
//!
//! It serves keys of one width whose differing bits fit an integer. Others are sorted in runs,
//! which are merged. Rows that came in order stay as they are.

mod buckets;
mod input;
mod output;
mod radix;
mod splitters;

pub(crate) use self::input::InputBlocks;
pub(crate) use self::output::{SampleSort, SampleSortOutput, SampleSortPlan};
