//! The light encodings, and the rule that chooses among them: `spec/encodings.md` sections 2, 3 and
//! 6.
//!
//! ```text
//! write ─▶ fixed, strings      which encoding
//!            │   └▶ history    what the chunks before have taught
//!            ▼
//!          dictionary, stream_dictionary, symbols, decimals, relative, integers, huffman
//!            ▼
//!          sink
//! ```
//!
//! The rule takes the smallest encoding of those that were tried, and tries those that a sample
//! promises to be small. It is in [`fixed`] and [`strings`] alone.

mod backoff;
mod decimals;
mod dictionary;
mod fixed;
mod history;
mod huffman;
mod integers;
mod range;
mod relative;
mod sample;
mod short_strings;
mod slots;
mod stream_dictionary;
mod strings;
mod symbols;

use bytes::Bytes;

pub(crate) use self::fixed::{fixed, narrow};
pub(crate) use self::history::ColumnHistory;
use self::integers::Part;
pub(crate) use self::relative::Bases;
use self::slots::{Order, Slots};
pub(crate) use self::strings::{Strings, list_lengths, strings};
use crate::error::Result;
use crate::sink::Sink;

/// Writes unsigned integers that are part of something else.
pub(crate) fn integers(sink: &mut Sink, values: Bytes, width: usize) -> Result<()> {
    Part::new(Slots::new(values, width, Order::Unsigned)).write(sink)
}
