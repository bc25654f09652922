//! The light encodings, and the rule that chooses among them: `spec/encodings.md` sections 2, 3 and 6.
//!
//! The rule is the smallest of what was tried; what is tried is what a sample promises. A later rule will weigh time as well;
//! the place to change is [`fixed`] and [`strings`], and nothing else knows.

mod decimals;
mod dictionary;
mod integers;
mod sample;
pub(crate) mod symbols;

use bytes::Bytes;

use self::decimals::Decimals;
use self::dictionary::{distinct_fixed, distinct_strings};
use self::integers::{Order, Part};
use self::sample::Sample;
use crate::bitpack::bits_for;
use crate::column::{DECIMAL_BYTES, u32_at, u32s};
use crate::error::{Result, refuse};
use crate::types::Type;
use crate::write::{Compression, Strings, Writer, joined};

/// What the descriptors and the padding of an encoding's parts may take more than those of plain values.
const OVERHEAD_BYTES: usize = 128;

/// Writes values of fixed width, as small as the rule makes them.
pub(crate) fn fixed(writer: &mut Writer, data_type: &Type, values: Bytes, width: usize) -> Result<()> {
    use Type::*;
    let order = match data_type {
        Float16 | Float32 | Float64 | FixedBinary(_) | IntervalDayTime | IntervalMonthDayNano => Order::None,
        UInt8 | UInt16 | UInt32 | UInt64 => Order::Unsigned,
        _ => Order::Signed,
    };
    let mut best = Encoded::Part(Part::new(values.clone(), width, order));
    if values.len() > width && best.bytes() > width {
        let sample = match width {
            1 => Sample::of::<1>(&values),
            2 => Sample::of::<2>(&values),
            4 => Sample::of::<4>(&values),
            8 => Sample::of::<8>(&values),
            16 => Sample::of::<16>(&values),
            _ => None,
        };
        let decimals = match data_type {
            Float32 => Decimals::of::<4>(&values, best.bytes()),
            Float64 => Decimals::of::<8>(&values, best.bytes()),
            _ => None,
        };
        best.consider(decimals.map(Encoded::Decimals));
        if let Some(sample) = sample {
            best.consider(runs(&values, width, order, &sample, best.bytes()));
            best.consider(delta(&values, width, order, &sample, best.bytes()));
        }
        // Eight bits a value or fewer are rarely beaten by a dictionary, whose search costs more than it could save.
        let n = values.len() / width;
        if best.bytes() > n + n / 16 {
            best.consider(dictionary(&values, width, best.bytes()));
        }
    }
    best.write(writer, width)
}

/// How a column is written.
enum Encoded {
    Part(Part),
    Dictionary { entries: Bytes, indexes: Part },
    Runs { count: usize, entries: Part, lengths: Part },
    Delta { first: Vec<u8>, differences: Part },
    Decimals(Decimals),
}

impl Encoded {
    fn bytes(&self) -> usize {
        match self {
            Self::Part(part) => part.bytes,
            Self::Dictionary { entries, indexes } => entries.len() + indexes.bytes,
            Self::Runs { entries, lengths, .. } => entries.bytes + lengths.bytes,
            Self::Delta { first, differences } => first.len() + differences.bytes,
            Self::Decimals(decimals) => decimals.bytes,
        }
    }

    fn consider(&mut self, other: Option<Self>) {
        if let Some(other) = other.filter(|other| other.bytes() + OVERHEAD_BYTES < self.bytes()) {
            *self = other;
        }
    }

    fn write(self, writer: &mut Writer, width: usize) -> Result<()> {
        match self {
            Self::Part(part) => part.write(writer),
            Self::Dictionary { entries, indexes } => {
                writer.descriptors.push(3);
                writer.put_u32(entries.len() / width)?;
                writer.descriptors.push(0);
                writer.buffer(vec![entries])?;
                indexes.write(writer)
            }
            Self::Runs { count, entries, lengths } => {
                writer.descriptors.push(4);
                writer.put_u32(count)?;
                entries.write(writer)?;
                lengths.write(writer)
            }
            Self::Decimals(decimals) => decimals.write(writer),
            Self::Delta { first, differences } => {
                writer.descriptors.push(5);
                writer.descriptors.extend_from_slice(&first);
                differences.write(writer)
            }
        }
    }
}

fn dictionary(values: &Bytes, width: usize, bytes_max: usize) -> Option<Encoded> {
    let (entries, indexes) = match width {
        2 => distinct_fixed::<2>(values, bytes_max),
        4 => distinct_fixed::<4>(values, bytes_max),
        8 => distinct_fixed::<8>(values, bytes_max),
        16 => distinct_fixed::<16>(values, bytes_max),
        _ => None,
    }?;
    Some(Encoded::Dictionary { entries: Bytes::from(entries), indexes: part_of(&indexes) })
}

/// Runs of equal values, if the sample promises to save an eighth.
fn runs(values: &Bytes, width: usize, order: Order, sample: &Sample, bytes_max: usize) -> Option<Encoded> {
    let n = values.len() / width;
    let likely = sample.runs(n);
    // An entry takes what a value does now, a length its own bits.
    let run_bits = bytes_max * 8 / n + bits_for((n / likely) as u64) as usize + 1;
    if likely.saturating_mul(run_bits) / 8 > bytes_max / 8 * 7 {
        return None;
    }
    let (entries, lengths) = match width {
        1 => runs_of::<1>(values),
        2 => runs_of::<2>(values),
        4 => runs_of::<4>(values),
        8 => runs_of::<8>(values),
        16 => runs_of::<16>(values),
        _ => None,
    }?;
    let entries = Part::new(Bytes::from(entries), width, order);
    Some(Encoded::Runs { count: lengths.len(), entries, lengths: part_of(&lengths) })
}

/// The entries and lengths of runs, unless there are more than make sense.
fn runs_of<const W: usize>(values: &[u8]) -> Option<(Vec<u8>, Vec<u32>)> {
    let values = values.as_chunks::<W>().0;
    let count_max = values.len() / 2;
    let (mut entries, mut lengths) = (Vec::new(), Vec::new());
    let mut start = 0;
    for (at, pair) in values.windows(2).enumerate() {
        if pair[0] != pair[1] {
            if lengths.len() == count_max {
                return None;
            }
            entries.push(pair[0]);
            // A chunk has fewer than 2^31 values.
            lengths.push((at + 1 - start) as u32);
            start = at + 1;
        }
    }
    entries.push(*values.last()?);
    lengths.push((values.len() - start) as u32);
    Some((entries.into_flattened(), lengths))
}

/// Differences between neighbours, if the sample promises to save an eighth.
fn delta(values: &Bytes, width: usize, order: Order, sample: &Sample, bytes_max: usize) -> Option<Encoded> {
    let n = values.len() / width;
    if order == Order::None || n / 8 * sample.difference_bits as usize > bytes_max / 8 * 7 {
        return None;
    }
    let differences = match width {
        1 => differences::<1>(values),
        2 => differences::<2>(values),
        4 => differences::<4>(values),
        8 => differences::<8>(values),
        _ => return None,
    };
    let differences = Part::new(Bytes::from(differences), width, Order::Signed);
    Some(Encoded::Delta { first: values[..width].to_vec(), differences })
}

fn differences<const W: usize>(values: &[u8]) -> Vec<u8> {
    let integer = |raw: &[u8; W]| {
        let mut wide = [0; 8];
        wide[..W].copy_from_slice(raw);
        u64::from_le_bytes(wide)
    };
    let values = values.as_chunks::<W>().0;
    let mut out = vec![[0; W]; values.len().saturating_sub(1)];
    for (slot, pair) in out.iter_mut().zip(values.windows(2)) {
        let difference = integer(&pair[1]).wrapping_sub(integer(&pair[0]));
        slot.copy_from_slice(&difference.to_le_bytes()[..W]);
    }
    out.into_flattened()
}

/// Writes unsigned integers that are part of something else.
pub(crate) fn integers(writer: &mut Writer, values: Bytes, width: usize) -> Result<()> {
    Part::new(values, width, Order::Unsigned).write(writer)
}

fn part_of(values: &[u32]) -> Part {
    let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Part::new(Bytes::from(raw), 4, Order::Unsigned)
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
    writer.buffer(vec![moved])
}

/// Integers of 4 or 8 bytes as ones of 16.
fn widened(values: &[u8], width: usize) -> Bytes {
    let wide: Vec<[u8; DECIMAL_BYTES]> = match width {
        4 => values.as_chunks().0.iter().map(|raw| i128::from(i32::from_le_bytes(*raw)).to_le_bytes()).collect(),
        _ => values.as_chunks().0.iter().map(|raw| i128::from(i64::from_le_bytes(*raw)).to_le_bytes()).collect(),
    };
    Bytes::from(wide.into_flattened())
}

/// Writes strings, as small as the rule makes them.
pub(crate) fn strings(writer: &mut Writer, strings: Strings, memory: &mut symbols::Memory) -> Result<()> {
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
        write_lengths(writer, &lengths, Bytes::from(bytes), memory)?;
        return part_of(&indexes).write(writer);
    }
    let lengths: Vec<u32> = u32s(&offsets).zip(u32s(&offsets[4..])).map(|(start, end)| end - start).collect();
    write_lengths(writer, &lengths, data, memory)
}

fn write_lengths(writer: &mut Writer, lengths: &[u32], data: Bytes, memory: &mut symbols::Memory) -> Result<()> {
    if writer.compression == Compression::Symbols
        && let Some(coded) = memory.encode(&data)
    {
        writer.descriptors.push(4);
        part_of(lengths).write(writer)?;
        return coded.write(writer);
    }
    writer.descriptors.push(2);
    part_of(lengths).write(writer)?;
    writer.buffer(vec![data])
}
