//! The light encodings, and the rule that chooses among them: `spec/encodings.md` sections 2, 3 and 6.
//!
//! The rule is the smallest of what was tried. A later one will weigh time as well; the place to change is [`fixed`] and
//! [`strings`], and nothing else knows.

use bytes::Bytes;

use crate::bitpack::{bits_for, pack, packed_bytes};
use crate::column::{u32_at, u32s};
use crate::error::Result;
use crate::types::Type;
use crate::write::{Strings, Writer, joined};

/// The most entries that a dictionary is tried with.
const DICTIONARY_COUNT_MAX: usize = 1 << 16;
/// A dictionary pays only when its entries are at most this share of the values.
const DICTIONARY_SHARE: usize = 4;

/// Writes values of fixed width, as small as the rule makes them.
pub(crate) fn fixed(writer: &mut Writer, data_type: &Type, values: &[u8], width: usize) -> Result<()> {
    use Type::*;
    if values.is_empty() {
        return plain_fixed(writer, Vec::new());
    }
    if is_constant(values, width) {
        return constant(writer, &values[..width]);
    }
    let plain = values.len();
    let framed = match data_type {
        Float16 | Float32 | Float64 | FixedBinary(_) | IntervalDayTime | IntervalMonthDayNano => None,
        UInt8 | UInt16 | UInt32 | UInt64 => frame(values, width, false),
        _ => frame(values, width, true),
    };
    let frame_bytes = framed.as_ref().map_or(usize::MAX, |frame| frame.bytes);
    let count_max = (values.len() / width / DICTIONARY_SHARE).min(DICTIONARY_COUNT_MAX);
    // A frame of eight bits or fewer is rarely beaten by a dictionary, whose search costs more than it could save.
    let worth = matches!(width, 2 | 4 | 8 | 16) && framed.as_ref().is_none_or(|frame| frame.bits > 8);
    if worth && let Some((entries, indexes)) = distinct_fixed(values, width, count_max) {
        let bits = bits_for(entries.len() as u64 - 1);
        let dictionary_bytes = entries.len() * width + packed_bytes(indexes.len(), bits).unwrap_or(usize::MAX);
        if dictionary_bytes < frame_bytes.min(plain) {
            writer.descriptors.push(3);
            writer.put_u32(entries.len())?;
            let raw: Vec<u8> = entries.iter().flat_map(|entry| entry.to_le_bytes().into_iter().take(width)).collect();
            if is_constant(&raw, width) {
                constant(writer, &raw)?
            } else {
                plain_fixed(writer, raw)?
            }
            return write_u32s(writer, &indexes);
        }
    }
    match framed {
        Some(frame) if frame.bytes < plain => write_frame(writer, frame, values, width),
        _ => plain_fixed(writer, values.to_vec()),
    }
}

/// Writes unsigned integers that a dictionary does not suit: plain, constant or frame.
pub(crate) fn integers(writer: &mut Writer, values: &[u8], width: usize) -> Result<()> {
    if is_constant(values, width) {
        return constant(writer, &values[..width]);
    }
    match frame(values, width, false) {
        Some(frame) if frame.bytes < values.len() => write_frame(writer, frame, values, width),
        _ => plain_fixed(writer, values.to_vec()),
    }
}

/// Writes strings, as small as the rule makes them.
pub(crate) fn strings(writer: &mut Writer, strings: Strings) -> Result<()> {
    let n = strings.offsets.len() / 4 - 1;
    let Strings { offsets, data } = strings;
    let data = joined(data);
    let count_max = (n / DICTIONARY_SHARE).min(DICTIONARY_COUNT_MAX);
    if n > 0
        && let Some((entries, indexes)) = distinct_strings(&offsets, &data, count_max.max(1))
    {
        let span = |i: usize| u32_at(&offsets, i) as usize..u32_at(&offsets, i + 1) as usize;
        if let [only] = entries[..] {
            writer.descriptors.push(1);
            return writer.buffer(vec![data.slice(span(only))]);
        }
        let entry_bytes: usize = entries.iter().map(|entry| span(*entry).len() + 4).sum();
        let bits = bits_for(entries.len() as u64 - 1);
        if entry_bytes + packed_bytes(n, bits).unwrap_or(usize::MAX) < data.len() + n {
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
    }
    let lengths: Vec<u32> = u32s(&offsets).zip(u32s(&offsets).skip(1)).map(|(start, end)| end - start).collect();
    write_lengths(writer, &lengths, data)
}

fn write_lengths(writer: &mut Writer, lengths: &[u32], data: Bytes) -> Result<()> {
    writer.descriptors.push(2);
    write_u32s(writer, lengths)?;
    writer.buffer(vec![data])
}

fn write_u32s(writer: &mut Writer, values: &[u32]) -> Result<()> {
    let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    integers(writer, &raw, 4)
}

fn is_constant(values: &[u8], width: usize) -> bool {
    values.len() >= width && values[width..] == values[..values.len() - width]
}

fn constant(writer: &mut Writer, value: &[u8]) -> Result<()> {
    writer.descriptors.push(1);
    writer.descriptors.extend_from_slice(value);
    Ok(())
}

fn plain_fixed(writer: &mut Writer, values: Vec<u8>) -> Result<()> {
    writer.descriptors.push(0);
    writer.buffer(vec![Bytes::from(values)])
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
    writer.buffer(vec![Bytes::from(packed)])
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
    fn new(count_max: usize) -> Self {
        let slots = (count_max.max(4) * 2).next_power_of_two();
        Self { slots: vec![0; slots], shift: 64 - slots.trailing_zeros() }
    }

    /// The number of the key with this hash, which `equals` recognises; `next` if it is new.
    fn number(&mut self, hash: u64, next: usize, equals: impl Fn(usize) -> bool) -> usize {
        let mask = self.slots.len() - 1;
        // Fibonacci hashing: the product's upper bits.
        let mut at = (hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize;
        loop {
            match self.slots[at & mask] {
                0 => {
                    // Fewer than 2^17 entries.
                    self.slots[at & mask] = next as u32 + 1;
                    return next;
                }
                taken if equals(taken as usize - 1) => return taken as usize - 1,
                _ => at += 1,
            }
        }
    }
}

/// The distinct values and each value's index among them, if there are at most `count_max`.
fn distinct_fixed(values: &[u8], width: usize, count_max: usize) -> Option<(Vec<u128>, Vec<u32>)> {
    let mut numbers = Numbers::new(count_max);
    let mut entries: Vec<u128> = Vec::new();
    let mut indexes = Vec::with_capacity(values.len() / width);
    for raw in values.chunks_exact(width) {
        let mut wide = [0; 16];
        wide[..width].copy_from_slice(raw);
        let key = u128::from_le_bytes(wide);
        // Both halves, folded.
        let hash = (key as u64) ^ ((key >> 64) as u64).rotate_left(32);
        let number = numbers.number(hash, entries.len(), |number| entries[number] == key);
        if number == entries.len() {
            if entries.len() == count_max {
                return None;
            }
            entries.push(key);
        }
        indexes.push(number as u32);
    }
    Some((entries, indexes))
}

/// The first occurrence of each distinct string and each string's index among them, if there are at most `count_max`.
fn distinct_strings(offsets: &[u8], data: &[u8], count_max: usize) -> Option<(Vec<usize>, Vec<u32>)> {
    let mut numbers = Numbers::new(count_max);
    let mut entries: Vec<usize> = Vec::new();
    let mut indexes = Vec::with_capacity(offsets.len() / 4);
    let value = |i: usize| &data[u32_at(offsets, i) as usize..u32_at(offsets, i + 1) as usize];
    for i in 0..offsets.len() / 4 - 1 {
        let bytes = value(i);
        let number = numbers.number(hash_bytes(bytes), entries.len(), |number| value(entries[number]) == bytes);
        if number == entries.len() {
            if entries.len() == count_max {
                return None;
            }
            entries.push(i);
        }
        indexes.push(number as u32);
    }
    Some((entries, indexes))
}

fn hash_bytes(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(0x9FB2_1C65_1E98_DF25);
    let hash = words.iter().fold(bytes.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let hash = mix(hash, u64::from_le_bytes(last));
    hash ^ hash >> 32
}
