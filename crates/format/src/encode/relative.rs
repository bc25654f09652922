//! Columns as differences from another column: `spec/encodings.md` section 2.2.

use std::collections::VecDeque;

use bytes::Bytes;

use super::dictionary::dictionary_bytes;
use super::fixed_values::{FixedValues, Order};
use super::range::differences;
use super::sample::distinct;
use crate::bitpack::bits_for;
use crate::types::Type;
use crate::word::{Word, for_word};

/// The most columns that a column is compared with: the last ones before it.
const BASES_MAX: usize = 8;
/// The pairs of values in a sample.
const PAIRS: usize = 64;

/// A column that others may be coded relative to. None of its values is missing.
struct Base {
    field: u32,
    width: usize,
    values: Bytes,
}

/// The last columns of a chunk that others may be coded relative to.
#[derive(Default)]
pub(crate) struct Bases(VecDeque<Base>);

/// A base whose differences are likely small.
pub(super) struct Nearest<'a> {
    base: &'a Base,
    /// The likely bytes of the differences.
    pub(super) bytes: usize,
}

impl Bases {
    /// Whether columns of a type may be coded relative to each other.
    pub(crate) fn take(data_type: &Type) -> bool {
        use Type::*;
        let others =
            matches!(data_type, Float16 | Float32 | Float64 | FixedBinary(_) | IntervalDayTime);
        !others && matches!(data_type.width(), Some(2 | 4 | 8))
    }

    /// Adds the values of a field, for the columns after it.
    pub(crate) fn push(&mut self, field: usize, width: usize, values: Bytes) {
        if self.0.len() == BASES_MAX {
            self.0.pop_front();
        }
        // A schema has fewer than 2^32 fields.
        self.0.push_back(Base { field: field as u32, width, values });
    }

    /// Whether there is a base for such values.
    pub(super) fn fit(&self, values: &FixedValues) -> bool {
        values.order != Order::None
            && values.width == values.wire
            && self.like(values).next().is_some()
    }

    fn like(&self, values: &FixedValues) -> impl Iterator<Item = &Base> {
        let (width, bytes) = (values.width, values.bytes.len());
        self.0.iter().filter(move |base| base.width == width && base.values.len() == bytes)
    }

    /// The base with the likely smallest differences, judged by a sample.
    pub(super) fn nearest(&self, values: &FixedValues) -> Option<Nearest<'_>> {
        let likely = self.like(values).filter_map(|base| {
            let bytes =
                for_word!(values.width, [u16 u32 u64], likely_bytes, (values, base), else None)?;
            Some(Nearest { base, bytes })
        });
        likely.min_by_key(|near| near.bytes)
    }
}

impl Nearest<'_> {
    /// The field of the base.
    pub(super) fn field(&self) -> u32 {
        self.base.field
    }

    /// The differences from the base.
    pub(super) fn differences(&self, values: &FixedValues) -> FixedValues {
        let (found, bases) = (&values.bytes, &self.base.values);
        let bytes =
            for_word!(values.width, [u16 u32 u64], differences_of, (found, bases), else Vec::new());
        FixedValues::new(Bytes::from(bytes), values.width, Order::Signed)
    }
}

fn differences_of<T: Word>(values: &[u8], bases: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(values.len() / (T::BITS as usize / 8));
    differences::<T>(T::slice(values), T::slice(bases), &mut out);
    T::bytes(out)
}

/// The likely bytes of the differences between two columns, packed or as a dictionary; none if
/// there are too few values.
fn likely_bytes<T: Word>(values: &FixedValues, base: &Base) -> Option<usize> {
    let (words, bases) = (T::slice(&values.bytes), T::slice(&base.values));
    let apart = words.len() / PAIRS;
    if apart == 0 {
        return None;
    }
    let mut found = [0; PAIRS];
    for (i, slot) in found.iter_mut().enumerate() {
        // Not quite evenly spaced, as in [`super::sample::spread`].
        let at = i * apart + (i.wrapping_mul(0x9E37_79B9) >> 16) % apart;
        let difference = T::of(&words[at]).minus(T::of(&bases[at]));
        *slot = difference.flipped(Order::Signed.bias::<T>()).low_64();
    }
    found.sort_unstable();
    // The outermost difference on either side would be an exception.
    let bits = bits_for(found[PAIRS - 2] - found[1]);
    let packed = words.len() / 8 * bits as usize;
    let entries = distinct(&found).filter(|entries| *entries <= words.len() / 4);
    Some(
        entries
            .and_then(|entries| dictionary_bytes(words.len(), entries, values.wire))
            .map_or(packed, |of| of.min(packed)),
    )
}
