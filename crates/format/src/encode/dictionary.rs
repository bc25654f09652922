//! The search for distinct values. It is given up as soon as a dictionary can no longer pay.

use super::fixed_values::FixedValues;
use super::range::Frame;
use super::sample::distinct;
use super::short_strings::{SHORT_BYTES_MAX, distinct_short};
use super::values::EncodedValues;
use crate::bitpack::{bits_for, packed_bytes};
use crate::column::u32_at;
use crate::numbers::{Numbers, hash_bytes};
use crate::word::Word;

/// The most entries of a dictionary: an index has two bytes here.
const DICTIONARY_COUNT_MAX: usize = (1 << 16) - 1;
/// A dictionary pays only with at least this many values per entry.
const DICTIONARY_DIVISOR: usize = 4;
/// After this many values the search is given up if nearly all of them (7 of 8) were new.
const DICTIONARY_SAMPLE: usize = 4096;
/// Fewer strings are searched without a look at a sample.
const STRINGS_MIN: usize = 1024;
const STRINGS_SAMPLE: usize = 256;
/// Values in a range of this size are numbered by a table of all values in it.
const NEAR_MAX: u64 = (1 << 16) - 1;

/// The number of an entry, in order of first occurrence.
pub(super) type Index = u16;

/// The entries that a stream dictionary has already: a search does not count their bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Known {
    pub(super) count: usize,
    pub(super) bytes: usize,
}

/// The distinct values of a column, and the index of each value among them.
pub(super) struct Distinct<E> {
    pub(super) entries: E,
    pub(super) indexes: Vec<Index>,
}

/// Whether a dictionary is unlikely to pay, with this many distinct values among the first ones.
pub(super) fn hopeless(distinct: usize, seen: usize) -> bool {
    seen == DICTIONARY_SAMPLE && distinct > DICTIONARY_SAMPLE / 8 * 7
}

/// The bytes of a dictionary with this many entries for n values.
pub(super) fn dictionary_bytes(n: usize, entries: usize, entry_bytes: usize) -> Option<usize> {
    packed_bytes(n, bits_for(entries.checked_sub(1)? as u64))?
        .checked_add(entries.checked_mul(entry_bytes)?)
}

/// The most entries of `width` bytes for n values with which a dictionary stays below `bytes_max`.
fn entries_that_pay(n: usize, width: usize, bytes_max: usize) -> usize {
    let of_bits = |bits: u32| {
        let entries = bytes_max.checked_sub(packed_bytes(n, bits)?)?.saturating_sub(1) / width;
        Some(entries.min(1 << bits))
    };
    (0..=16)
        .filter_map(of_bits)
        .max()
        .unwrap_or(0)
        .min(n / DICTIONARY_DIVISOR)
        .min(DICTIONARY_COUNT_MAX)
}

/// The distinct values and each value's index among them, if these take less than `bytes_max`. An
/// entry takes `entry_bytes`, but `known` entries take none. `frame` is the frame of all values, if
/// it was determined.
pub(super) fn distinct_words<T: Word>(
    values: &[u8],
    frame: Option<Frame>,
    entry_bytes: usize,
    bytes_max: usize,
    known: usize,
) -> Option<Distinct<Vec<u8>>> {
    let values = T::slice(values);
    let count_max =
        (entries_that_pay(values.len(), entry_bytes, bytes_max) + known).min(DICTIONARY_COUNT_MAX);
    let found = match frame {
        Some(Frame { reference, range: range @ ..=NEAR_MAX }) => {
            near::<T>(values, T::truncated(reference.into()), range as usize, count_max)
        }
        _ => hashed::<T>(values, count_max),
    }?;
    let bytes = dictionary_bytes(values.len(), found.entries.len(), entry_bytes)?;
    (bytes < bytes_max + known * entry_bytes)
        .then(|| Distinct { entries: T::bytes(found.entries), indexes: found.indexes })
}

/// Indexes into `count` entries, each of which occurs.
pub(super) fn indexes_below(indexes: &[Index], count: usize) -> EncodedValues {
    let raw: Vec<_> = indexes.iter().map(|index| index.to_le_bytes()).collect();
    let values = FixedValues::unsigned(raw.into_flattened(), size_of::<Index>());
    match count {
        1 => EncodedValues::new(values),
        _ => EncodedValues::below(values, count),
    }
}

/// Numbers values by a table of all values in their range.
fn near<T: Word>(
    values: &[T::Raw],
    min: T,
    range: usize,
    count_max: usize,
) -> Option<Distinct<Vec<T::Raw>>> {
    let mut numbers: Vec<Index> = vec![0; (range + 1).next_power_of_two()];
    see(values, min, &mut numbers);
    let mut entries = Vec::new();
    for (distance, number) in numbers.iter_mut().enumerate().filter(|(_, number)| **number > 0) {
        if entries.len() == count_max {
            return None;
        }
        // Fewer than 2^16.
        *number = entries.len() as Index;
        entries.push(min.plus_32(distance as u32).raw());
    }
    let mut indexes = vec![0; values.len()];
    look_up(values, min, &numbers, &mut indexes);
    Some(Distinct { entries, indexes })
}

/// Marks the distances of values from the smallest. All of them are in range.
fn see<T: Word>(values: &[T::Raw], min: T, seen: &mut [Index]) {
    // The length is a power of two above the range: the mask changes nothing, but spares the check
    // of bounds.
    let mask = seen.len() - 1;
    for raw in values {
        seen[T::of(raw).minus(min).low_32() as usize & mask] = 1;
    }
}

fn look_up<T: Word>(values: &[T::Raw], min: T, numbers: &[Index], indexes: &mut [Index]) {
    let mask = numbers.len() - 1;
    for (index, raw) in indexes.iter_mut().zip(values) {
        *index = numbers[T::of(raw).minus(min).low_32() as usize & mask];
    }
}

fn hashed<T: Word>(values: &[T::Raw], count_max: usize) -> Option<Distinct<Vec<T::Raw>>> {
    let mut numbers = Numbers::new(count_max);
    let mut entries: Vec<T::Raw> = Vec::new();
    let mut indexes = Vec::with_capacity(values.len());
    for (i, value) in values.iter().enumerate() {
        let hash = T::of(value).folded();
        let number =
            numbers.number(hash ^ hash >> 32, entries.len(), |number| entries[number] == *value)?;
        if number == entries.len() {
            if entries.len() == count_max || hopeless(entries.len(), i) {
                return None;
            }
            entries.push(*value);
        }
        indexes.push(number as Index);
    }
    Some(Distinct { entries, indexes })
}

/// The entries of a dictionary of strings.
#[derive(Default)]
pub(super) struct StringEntries {
    pub(super) lengths: Vec<[u8; 4]>,
    pub(super) data: Vec<u8>,
}

impl Distinct<StringEntries> {
    /// An upper bound on the bytes of entries and indexes, with four bytes per length.
    pub(super) fn bytes(&self) -> usize {
        let count = self.entries.lengths.len();
        let indexes = packed_bytes(self.indexes.len(), bits_for(count.saturating_sub(1) as u64));
        indexes.map_or(usize::MAX, |indexes| self.entries.data.len() + 4 * count + indexes)
    }
}

impl StringEntries {
    fn push(&mut self, entry: &[u8]) {
        // A chunk's strings have fewer than 2^31 bytes.
        self.lengths.push((entry.len() as u32).to_le_bytes());
        self.data.extend_from_slice(entry);
    }
}

/// The strings of a column, for a search.
pub(super) struct Searched<'a> {
    pub(super) offsets: &'a [u8],
    pub(super) data: &'a [u8],
    /// The bytes of the shortest and of the longest string.
    pub(super) shortest: usize,
    pub(super) longest: usize,
}

impl<'a> Searched<'a> {
    fn count(&self) -> usize {
        self.offsets.len() / 4 - 1
    }

    fn value(&self, i: usize) -> &'a [u8] {
        &self.data[u32_at(self.offsets, i) as usize..u32_at(self.offsets, i + 1) as usize]
    }

    /// Whether a dictionary likely takes less than `bytes_max`, judged by a sample.
    pub(super) fn may_repeat(&self, bytes_max: usize) -> bool {
        let n = self.count();
        if n < STRINGS_MIN {
            return true;
        }
        let apart = n / STRINGS_SAMPLE;
        let mut hashes = [0; STRINGS_SAMPLE];
        for (i, hash) in hashes.iter_mut().enumerate() {
            // Not quite evenly spaced: a sample in step with a period would see one value of it.
            *hash = hash_bytes(self.value(i * apart + (i.wrapping_mul(0x9E37_79B9) >> 16) % apart));
        }
        hashes.sort_unstable();
        let entry_bytes = self.data.len() / n + 1;
        distinct(&hashes)
            .filter(|distinct| *distinct <= n / DICTIONARY_DIVISOR)
            .and_then(|distinct| dictionary_bytes(n, distinct, entry_bytes))
            .is_some_and(|bytes| bytes < bytes_max / 8 * 7)
    }

    /// The distinct strings and each string's index among them, if these take less than
    /// `bytes_max`. The `known` entries take no bytes.
    pub(super) fn distinct(
        &self,
        bytes_max: usize,
        known: Known,
    ) -> Option<Distinct<StringEntries>> {
        let n = self.count();
        let bytes_max = bytes_max + known.bytes;
        if (self.shortest, self.longest) == (1, 1) {
            let frame = Frame { reference: 0, range: u8::MAX.into() };
            let found = distinct_words::<u8>(self.data, Some(frame), 1, bytes_max, known.count)?;
            let lengths = vec![1u32.to_le_bytes(); found.entries.len()];
            return Some(Distinct {
                entries: StringEntries { lengths, data: found.entries },
                indexes: found.indexes,
            });
        }
        let count_max = (n / DICTIONARY_DIVISOR + known.count).clamp(1, DICTIONARY_COUNT_MAX);
        let found = match self.longest {
            ..=7 => distinct_short::<1>(self, count_max, bytes_max),
            8..=15 => distinct_short::<2>(self, count_max, bytes_max),
            16..=23 => distinct_short::<3>(self, count_max, bytes_max),
            24..=SHORT_BYTES_MAX => distinct_short::<4>(self, count_max, bytes_max),
            _ => self.distinct_long(count_max, bytes_max),
        }?;
        let mut entries = StringEntries::default();
        found.entries.iter().for_each(|first| entries.push(self.value(*first)));
        let found = Distinct { entries, indexes: found.indexes };
        (found.bytes() < bytes_max).then_some(found)
    }

    /// The first of each of the distinct strings, of any length.
    fn distinct_long(&self, count_max: usize, bytes_max: usize) -> Option<Distinct<Vec<usize>>> {
        let n = self.count();
        let mut numbers = Numbers::new(count_max);
        let mut entries: Vec<usize> = Vec::new();
        let mut entry_bytes = 0;
        let mut indexes = Vec::with_capacity(n);
        for i in 0..n {
            let bytes = self.value(i);
            let equals = |number: usize| self.value(entries[number]) == bytes;
            let number = numbers.number(hash_bytes(bytes), entries.len(), equals)?;
            if number == entries.len() {
                entry_bytes += bytes.len() + 4;
                if entries.len() == count_max
                    || hopeless(entries.len(), i)
                    || i > 0 && entry_bytes >= bytes_max
                {
                    return None;
                }
                entries.push(i);
            }
            indexes.push(number as Index);
        }
        Some(Distinct { entries, indexes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_entries_are_tried_as_can_pay() {
        // 4096 values of two bytes, in a frame of 9 bits 4610 bytes: 256 entries and their indexes
        // take 4608.
        assert_eq!(entries_that_pay(4096, 2, 4610), 256);
        assert_eq!(entries_that_pay(4096, 2, 4608), 255);
        assert_eq!(entries_that_pay(4096, 4, 4), 0);
    }

    #[test]
    fn strings_are_told_apart_whatever_their_length() {
        for longest in [3, 7, 8, 15, 16, 23, 24, 31, 32, 100] {
            let mut texts: Vec<Vec<u8>> = (0..=longest).map(|bytes| vec![0; bytes]).collect();
            texts.extend((0..longest).map(|at| (0..longest).map(|i| u8::from(i == at)).collect()));
            let column: Vec<&Vec<u8>> =
                (0..texts.len() * 50).map(|i| &texts[i * 7919 % texts.len()]).collect();
            let mut offsets = 0u32.to_le_bytes().to_vec();
            let mut data = Vec::new();
            for text in &column {
                data.extend_from_slice(text);
                offsets.extend_from_slice(&(data.len() as u32).to_le_bytes());
            }
            let searched = Searched { offsets: &offsets, data: &data, shortest: 0, longest };
            let Some(found) = searched.distinct(usize::MAX, Known::default()) else {
                panic!("{longest}: none")
            };
            assert_eq!(found.entries.lengths.len(), texts.len(), "{longest}");
            let mut ends = vec![0];
            for length in &found.entries.lengths {
                ends.push(ends[ends.len() - 1] + u32::from_le_bytes(*length) as usize);
            }
            for (index, text) in found.indexes.iter().zip(column) {
                let index = *index as usize;
                assert_eq!(found.entries.data[ends[index]..ends[index + 1]], text[..]);
            }
        }
    }
}
