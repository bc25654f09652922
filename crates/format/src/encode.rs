//! The light encodings, and the rule that chooses among them: `spec/encodings.md` sections 2, 3 and 6.
//!
//! The rule is the smallest of what was tried. A later one will weigh time as well; the place to change is [`fixed`] and
//! [`strings`], and nothing else knows.

use bytes::Bytes;

use crate::bitpack::{bits_for, pack, packed_bytes};
use crate::column::{DECIMAL_BYTES, u32_at, u32s};
use crate::error::{Result, refuse};
use crate::types::Type;
use crate::write::{Strings, Writer, joined};

/// The most entries that a dictionary is tried with.
const DICTIONARY_COUNT_MAX: usize = 1 << 16;
/// A dictionary pays only when its entries are at most this share of the values.
const DICTIONARY_SHARE: usize = 4;
/// After so many values a dictionary is given up when nearly all of them (7 of 8) were new.
const DICTIONARY_SAMPLE: usize = 4096;

/// Writes values of fixed width, as small as the rule makes them.
pub(crate) fn fixed(writer: &mut Writer, data_type: &Type, values: Bytes, width: usize) -> Result<()> {
    use Type::*;
    if values.is_empty() {
        return plain_fixed(writer, values);
    }
    if is_constant(&values, width) {
        return constant(writer, &values[..width]);
    }
    let framed = match data_type {
        Float16 | Float32 | Float64 | FixedBinary(_) | IntervalDayTime | IntervalMonthDayNano => None,
        UInt8 | UInt16 | UInt32 | UInt64 => frame(&values, width, false),
        _ => frame(&values, width, true),
    };
    let framed = framed.filter(|frame| frame.bytes < values.len());
    // A frame of eight bits or fewer is rarely beaten by a dictionary, whose search costs more than it could save.
    let worth = framed.as_ref().is_none_or(|frame| frame.bits > 8);
    let bytes_max = framed.as_ref().map_or(values.len(), |frame| frame.bytes);
    let distinct = match width {
        2 if worth => distinct_fixed::<2>(&values, bytes_max),
        4 if worth => distinct_fixed::<4>(&values, bytes_max),
        8 if worth => distinct_fixed::<8>(&values, bytes_max),
        16 if worth => distinct_fixed::<16>(&values, bytes_max),
        _ => None,
    };
    match (distinct, framed) {
        (Some((entries, indexes)), _) => {
            writer.descriptors.push(3);
            writer.put_u32(entries.len() / width)?;
            plain_fixed(writer, Bytes::from(entries))?;
            write_u32s(writer, &indexes)
        }
        (None, Some(frame)) => write_frame(writer, frame, &values, width),
        (None, None) => plain_fixed(writer, values),
    }
}

/// Writes decimals that come as signed integers of 4 or 8 bytes. A frame of 32 or 64 bits packs nothing, so unless the values
/// are to be made smaller than they came, this only moves zero to the middle of the unsigned range.
pub(crate) fn narrow(writer: &mut Writer, data_type: &Type, values: Bytes, width: usize) -> Result<()> {
    if !matches!(data_type, Type::Decimal128 { .. }) {
        refuse!(Unsupported, "narrow decimals instead of {data_type:?}");
    }
    let reference = match width {
        4 => i128::from(i32::MIN),
        8 => i128::from(i64::MIN),
        _ => refuse!(Unsupported, "narrow decimals of {width} bytes"),
    };
    if writer.compression.encodes() {
        return fixed(writer, data_type, widened(&values, width), DECIMAL_BYTES);
    }
    let moved = match width {
        4 => values
            .as_chunks()
            .0
            .iter()
            .map(|raw| u32::from_le_bytes(*raw) ^ 1 << 31)
            .flat_map(u32::to_le_bytes)
            .collect(),
        _ => values
            .as_chunks()
            .0
            .iter()
            .map(|raw| u64::from_le_bytes(*raw) ^ 1 << 63)
            .flat_map(u64::to_le_bytes)
            .collect(),
    };
    // 32 or 64.
    writer.descriptors.extend_from_slice(&[2, 8 * width as u8]);
    writer.descriptors.extend_from_slice(&reference.to_le_bytes());
    writer.packed_buffer(moved)
}

/// Integers of 4 or 8 bytes as ones of 16.
fn widened(values: &[u8], width: usize) -> Bytes {
    let wide: Vec<[u8; DECIMAL_BYTES]> = match width {
        4 => values.as_chunks().0.iter().map(|raw| i128::from(i32::from_le_bytes(*raw)).to_le_bytes()).collect(),
        _ => values.as_chunks().0.iter().map(|raw| i128::from(i64::from_le_bytes(*raw)).to_le_bytes()).collect(),
    };
    Bytes::from(wide.into_flattened())
}

/// Writes unsigned integers that a dictionary does not suit: plain, constant or frame.
pub(crate) fn integers(writer: &mut Writer, values: Bytes, width: usize) -> Result<()> {
    if is_constant(&values, width) {
        return constant(writer, &values[..width]);
    }
    match frame(&values, width, false) {
        Some(frame) if frame.bytes < values.len() => write_frame(writer, frame, &values, width),
        _ => plain_fixed(writer, values),
    }
}

/// Writes strings, as small as the rule makes them.
pub(crate) fn strings(writer: &mut Writer, strings: Strings) -> Result<()> {
    let n = strings.offsets.len() / 4 - 1;
    let Strings { offsets, data } = strings;
    let data = joined(data);
    // What the strings would take without a dictionary: their bytes, and about one byte a length.
    let bytes_max = data.len() + n;
    if let Some((entries, indexes)) = distinct_strings(&offsets, &data, bytes_max) {
        let span = |i: usize| u32_at(&offsets, i) as usize..u32_at(&offsets, i + 1) as usize;
        if let [only] = entries[..] {
            writer.descriptors.push(1);
            return writer.buffer(vec![data.slice(span(only))]);
        }
        writer.descriptors.push(3);
        writer.put_u32(entries.len())?;
        let mut lengths = Vec::with_capacity(entries.len());
        let mut bytes = Vec::new();
        for entry in entries {
            bytes.extend_from_slice(&data[span(entry)]);
            lengths.push(u32_at(&offsets, entry + 1) - u32_at(&offsets, entry));
        }
        write_lengths(writer, &lengths, Bytes::from(bytes))?;
        return write_u32s(writer, &indexes);
    }
    let lengths: Vec<u32> = u32s(&offsets).zip(u32s(&offsets[4..])).map(|(start, end)| end - start).collect();
    write_lengths(writer, &lengths, data)
}

fn write_lengths(writer: &mut Writer, lengths: &[u32], data: Bytes) -> Result<()> {
    writer.descriptors.push(2);
    write_u32s(writer, lengths)?;
    writer.buffer(vec![data])
}

fn write_u32s(writer: &mut Writer, values: &[u32]) -> Result<()> {
    let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    integers(writer, Bytes::from(raw), 4)
}

fn is_constant(values: &[u8], width: usize) -> bool {
    values.len() >= width && values[width..] == values[..values.len() - width]
}

fn constant(writer: &mut Writer, value: &[u8]) -> Result<()> {
    writer.descriptors.push(1);
    writer.descriptors.extend_from_slice(value);
    Ok(())
}

fn plain_fixed(writer: &mut Writer, values: Bytes) -> Result<()> {
    writer.descriptors.push(0);
    writer.buffer(vec![values])
}

/// The frame that fits some values.
struct Frame {
    reference: u128,
    bits: u32,
    /// What it takes in the chunk.
    bytes: usize,
}

fn frame(values: &[u8], width: usize, signed: bool) -> Option<Frame> {
    let (reference, range) = match width {
        1 => range_64::<1>(values, signed),
        2 => range_64::<2>(values, signed),
        4 => range_64::<4>(values, signed),
        8 => range_64::<8>(values, signed),
        16 => range_128(values)?,
        _ => return None,
    };
    let bits = bits_for(range);
    Some(Frame { reference, bits, bytes: packed_bytes(values.len() / width, bits)? + width })
}

fn zero_extended<const W: usize>(raw: &[u8; W]) -> u64 {
    let mut wide = [0; 8];
    wide[..W].copy_from_slice(raw);
    u64::from_le_bytes(wide)
}

/// The smallest value and the distance to the largest, of values of up to 8 bytes.
fn range_64<const W: usize>(values: &[u8], signed: bool) -> (u128, u64) {
    // With the sign's bit flipped, signed values compare as unsigned ones.
    let bias = if signed { 1u64 << (W * 8 - 1) } else { 0 };
    let (mut min, mut max) = (u64::MAX, 0);
    for raw in values.as_chunks::<W>().0 {
        let key = zero_extended(raw) ^ bias;
        min = min.min(key);
        max = max.max(key);
    }
    if min > max {
        return (0, 0);
    }
    (u128::from(min ^ bias), max - min)
}

fn range_128(values: &[u8]) -> Option<(u128, u64)> {
    let (mut min, mut max) = (i128::MAX, i128::MIN);
    for raw in values.as_chunks::<16>().0 {
        let value = i128::from_le_bytes(*raw);
        min = min.min(value);
        max = max.max(value);
    }
    if min > max {
        return Some((0, 0));
    }
    // The bits of the smallest value: the reader adds modulo 2^128.
    Some((min as u128, u64::try_from(max.checked_sub(min)?).ok()?))
}

fn write_frame(writer: &mut Writer, frame: Frame, values: &[u8], width: usize) -> Result<()> {
    let mut packed = Vec::with_capacity(frame.bytes);
    match width {
        1 => pack_frame::<1>(values, &frame, &mut packed),
        2 => pack_frame::<2>(values, &frame, &mut packed),
        4 => pack_frame::<4>(values, &frame, &mut packed),
        8 => pack_frame::<8>(values, &frame, &mut packed),
        _ => pack_frame_128(values, &frame, &mut packed),
    }
    // At most 64.
    writer.descriptors.extend_from_slice(&[2, frame.bits.to_le_bytes()[0]]);
    writer.descriptors.extend_from_slice(&frame.reference.to_le_bytes()[..width]);
    writer.packed_buffer(Bytes::from(packed))
}

fn pack_frame<const W: usize>(values: &[u8], frame: &Frame, out: &mut Vec<u8>) {
    let mask = u64::MAX >> (64 - W * 8);
    // The reference of values of W bytes fits into 64 bits.
    let reference = frame.reference as u64;
    let mut deltas = Vec::with_capacity(1024);
    for block in values.as_chunks::<W>().0.chunks(1024) {
        deltas.clear();
        deltas.extend(block.iter().map(|raw| zero_extended(raw).wrapping_sub(reference) & mask));
        pack(&deltas, frame.bits, out);
    }
}

fn pack_frame_128(values: &[u8], frame: &Frame, out: &mut Vec<u8>) {
    let mut deltas = Vec::with_capacity(1024);
    for block in values.as_chunks::<16>().0.chunks(1024) {
        deltas.clear();
        // The distance to the smallest value fits into 64 bits: `frame` has checked it.
        deltas.extend(block.iter().map(|raw| u128::from_le_bytes(*raw).wrapping_sub(frame.reference) as u64));
        pack(&deltas, frame.bits, out);
    }
}

/// An open-addressing table from keys to numbers, given in order of first sight.
struct Numbers {
    slots: Vec<u32>,
    shift: u32,
}

impl Numbers {
    /// The most slots looked at for one key. Half of the slots stay empty, so that only keys chosen to collide, or very
    /// unlucky ones, need more: they get no dictionary rather than a search without end.
    const PROBES_MAX: usize = 256;

    fn new(count_max: usize) -> Self {
        let slots = (count_max.max(4) * 2).next_power_of_two();
        Self { slots: vec![0; slots], shift: 64 - slots.trailing_zeros() }
    }

    /// The number of the key with this hash, which `equals` recognises; `next` if it is new. None if it has no room.
    fn number(&mut self, hash: u64, next: usize, equals: impl Fn(usize) -> bool) -> Option<usize> {
        let mask = self.slots.len() - 1;
        // Fibonacci hashing: the product's upper bits.
        let start = (hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize;
        for at in start..start + Self::PROBES_MAX {
            match self.slots[at & mask] {
                0 => {
                    // Fewer than 2^17 entries.
                    self.slots[at & mask] = next as u32 + 1;
                    return Some(next);
                }
                taken if equals(taken as usize - 1) => return Some(taken as usize - 1),
                _ => {}
            }
        }
        None
    }
}

/// Whether so many distinct ones among the first values make a dictionary unlikely to pay.
fn hopeless(distinct: usize, seen: usize) -> bool {
    seen == DICTIONARY_SAMPLE && distinct > DICTIONARY_SAMPLE / 8 * 7
}

/// The most entries of `width` bytes for n values with which a dictionary stays below `bytes_max`.
fn entries_that_pay(n: usize, width: usize, bytes_max: usize) -> usize {
    let of_bits = |bits: u32| {
        let room = bytes_max.checked_sub(packed_bytes(n, bits)?)?.saturating_sub(1) / width;
        Some(room.min(1 << bits))
    };
    (0..=16).filter_map(of_bits).max().unwrap_or(0).min(n / DICTIONARY_SHARE).min(DICTIONARY_COUNT_MAX)
}

/// The distinct values and each value's index among them, if these take less than `bytes_max`.
fn distinct_fixed<const W: usize>(values: &[u8], bytes_max: usize) -> Option<(Vec<u8>, Vec<u32>)> {
    let values = values.as_chunks::<W>().0;
    let count_max = entries_that_pay(values.len(), W, bytes_max);
    let mut numbers = Numbers::new(count_max);
    let mut entries: Vec<[u8; W]> = Vec::new();
    let mut indexes = Vec::with_capacity(values.len());
    for (i, value) in values.iter().enumerate() {
        let number = numbers.number(hash_bytes(value), entries.len(), |number| entries[number] == *value)?;
        if number == entries.len() {
            if entries.len() == count_max || hopeless(entries.len(), i) {
                return None;
            }
            entries.push(*value);
        }
        indexes.push(number as u32);
    }
    let bytes = entries.len() * W + packed_bytes(values.len(), bits_for(entries.len() as u64 - 1))?;
    (bytes < bytes_max).then(|| (entries.into_flattened(), indexes))
}

/// The first occurrence of each distinct string and each string's index among them, if these take less than `bytes_max`,
/// or there is only one.
fn distinct_strings(offsets: &[u8], data: &[u8], bytes_max: usize) -> Option<(Vec<usize>, Vec<u32>)> {
    let n = offsets.len() / 4 - 1;
    let count_max = (n / DICTIONARY_SHARE).clamp(1, DICTIONARY_COUNT_MAX);
    let mut numbers = Numbers::new(count_max);
    let mut entries: Vec<usize> = Vec::new();
    let mut entry_bytes = 0;
    let mut indexes = Vec::with_capacity(n);
    let value = |i: usize| &data[u32_at(offsets, i) as usize..u32_at(offsets, i + 1) as usize];
    for i in 0..n {
        let bytes = value(i);
        let number = numbers.number(hash_bytes(bytes), entries.len(), |number| value(entries[number]) == bytes)?;
        if number == entries.len() {
            entry_bytes += bytes.len() + 4;
            if entries.len() == count_max || hopeless(entries.len(), i) || i > 0 && entry_bytes >= bytes_max {
                return None;
            }
            entries.push(i);
        }
        indexes.push(number as u32);
    }
    let bits = bits_for(entries.len().checked_sub(1)? as u64);
    let pays = entries.len() == 1 || entry_bytes + packed_bytes(n, bits)? < bytes_max;
    pays.then_some((entries, indexes))
}

/// A hash of some bytes. Short ones are read in two words that may overlap, which is quicker than a copy of any length.
#[inline]
fn hash_bytes(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(0x9FB2_1C65_1E98_DF25);
    let seed = bytes.len() as u64;
    let hash = match bytes {
        [] => seed,
        [first, ..] if bytes.len() < 4 => {
            let (middle, last) = (bytes[bytes.len() / 2], bytes[bytes.len() - 1]);
            mix(seed, u64::from(u32::from_le_bytes([*first, middle, last, 0])))
        }
        _ => match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
            (Some(_), Some(last)) => {
                let words = bytes.as_chunks::<8>().0;
                let hash = words.iter().fold(seed, |hash, word| mix(hash, u64::from_le_bytes(*word)));
                mix(hash, u64::from_le_bytes(*last))
            }
            _ => match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
                (Some(first), Some(last)) => {
                    mix(mix(seed, u32::from_le_bytes(*first).into()), u32::from_le_bytes(*last).into())
                }
                _ => seed,
            },
        },
    };
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_collide_end_the_search() {
        let mut numbers = Numbers::new(1 << 16);
        for next in 0..Numbers::PROBES_MAX {
            assert_eq!(numbers.number(7, next, |_| false), Some(next));
        }
        assert_eq!(numbers.number(7, Numbers::PROBES_MAX, |_| false), None);
    }

    #[test]
    fn as_many_entries_are_tried_as_can_pay() {
        // 4096 values of two bytes, in a frame of 9 bits 4610 bytes: 256 entries and their indexes take 4608.
        assert_eq!(entries_that_pay(4096, 2, 4610), 256);
        assert_eq!(entries_that_pay(4096, 2, 4608), 255);
        assert_eq!(entries_that_pay(4096, 4, 4), 0);
    }
}
