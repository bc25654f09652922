//! The light encodings, and the rule that chooses among them: `spec/encodings.md` sections 2, 3 and
//! 6.
//!
//! ```text
//! write ─▶ fixed, strings      which encoding
//!            │   └▶ history    what earlier chunks have taught
//!            ▼
//!          dictionary, stream_dictionary, symbols, decimals, relative, values, huffman
//!            ▼
//!          sink
//! ```
//!
//! The rule tries the encodings that look small in a sample, and takes the smallest. It is in
//! [`fixed`] and [`strings`] alone.

mod backoff;
mod decimals;
mod dictionary;
mod fixed;
mod fixed_values;
mod history;
mod huffman;
mod range;
mod relative;
mod sample;
mod short_strings;
mod stream_dictionary;
mod strings;
mod symbols;
mod values;

use bytes::Bytes;

pub(crate) use self::fixed::{fixed, narrow};
use self::fixed_values::{FixedValues, Order};
pub(crate) use self::history::ColumnHistory;
pub(crate) use self::relative::Bases;
pub(crate) use self::strings::{Strings, list_lengths, strings};
use self::values::EncodedValues;
use crate::error::Result;
use crate::sink::Sink;

/// Writes unsigned integers, such as the indexes of a dictionary type.
pub(crate) fn integers(sink: &mut Sink, values: Bytes, width: usize) -> Result<()> {
    EncodedValues::new(FixedValues::new(values, width, Order::Unsigned)).write(sink)
}
