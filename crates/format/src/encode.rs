//! The light encodings, and the rule that chooses among them: `spec/encodings.md` sections 2, 3 and
//! 6.
//!
//! The rule is the smallest of what was tried; what is tried is what a sample promises. A later
//! rule will weigh time as well; the place to change is [`fixed`] and [`strings`], and nothing else
//! knows.

mod decimals;
mod dictionary;
mod huffman;
mod integers;
pub(crate) mod kept;
mod memory;
mod range;
pub(crate) mod relative;
mod sample;
mod short_strings;
mod slots;
pub(crate) mod symbols;

use bytes::Bytes;

use self::decimals::{Decimals, likely_exponent};
use self::dictionary::{Distinct, Index, Searched, dictionary_bytes, distinct_words};
use self::integers::Part;
use self::kept::{Kept, Kind, NewTables, Plan};
pub(crate) use self::memory::Tried;
use self::range::{lengths_of, neighbours};
use self::relative::Bases;
use self::sample::{SPREAD, Sample, distinct};
use self::slots::{Order, Slots, is_constant};
use crate::bitpack::{bits_for, packed_bytes};
use crate::column::DECIMAL_BYTES;
use crate::error::{Result, refuse};
use crate::types::Type;
use crate::word::{Word, for_word};
use crate::write::{Compression, Strings, Writer, joined};

/// What the descriptors and the padding of an encoding's parts may take more than those of plain
/// values.
const OVERHEAD_BYTES: usize = 128;

/// Writes values of fixed width, as small as the rule makes them; by the differences from one of
/// `bases` too.
pub(crate) fn fixed(
    writer: &mut Writer,
    data_type: &Type,
    values: Bytes,
    width: usize,
    tried: &mut Tried,
    kept: &mut Kept,
    bases: &Bases,
) -> Result<()> {
    use Type::*;
    let order = match data_type {
        Float16 | Float32 | Float64 | FixedBinary(_) | IntervalDayTime | IntervalMonthDayNano => {
            Order::None
        }
        UInt8 | UInt16 | UInt32 | UInt64 => Order::Unsigned,
        _ => Order::Signed,
    };
    let floats = matches!(data_type, Float32 | Float64);
    let slots = Slots::new(values, width, order).narrowed();
    smallest(slots, floats, tried, (kept, writer.tables.as_ref()), bases).write(writer, kept)
}

/// The smallest of what a look at a few of the values promises to be small.
fn smallest(
    slots: Slots,
    floats: bool,
    tried: &mut Tried,
    (kept, tables): (&mut Kept, Option<&NewTables>),
    bases: &Bases,
) -> Encoded {
    let spread = slots.spread();
    let mut best = Encoded::Part(Part::with_spread(slots.clone(), spread.as_ref()));
    if slots.count() < 2 || best.bytes() <= slots.wire {
        return best;
    }
    if floats && let Some((exponent, likely_bytes)) = likely_exponent(&slots) {
        best.consider(likely_bytes, &mut tried.decimals, || {
            Decimals::of(&slots, exponent).map(Encoded::Decimals)
        });
    }
    let sample = for_word!(slots.width, [u8 u16 u32 u64 u128], sampled, (&slots), else None);
    if let Some(sample) = sample {
        let (of_runs, of_delta) =
            (likely_runs(&slots, &sample, best.bytes()), likely_delta(&slots, &sample));
        // Differences are quicker than runs on both sides, and so are preferred to what is hardly
        // smaller.
        if of_delta <= of_runs / 8 * 9 {
            best.consider(of_delta, &mut tried.delta, || delta(&slots));
            best.consider(of_runs, &mut tried.runs, || runs(&slots));
        } else {
            best.consider(of_runs, &mut tried.runs, || runs(&slots));
            best.consider(of_delta, &mut tried.delta, || delta(&slots));
        }
    }
    let frame = match &best {
        Encoded::Part(part) => part.frame().map(|frame| (frame.reference, frame.range)),
        _ => None,
    };
    let bytes_max = best.bytes();
    let known = tables.map_or(0, |_| kept.known().0);
    best.consider(likely_dictionary(&slots, spread.as_ref(), known), &mut tried.dictionary, || {
        dictionary(&slots, frame, bytes_max, tables.map(|tables| (kept, tables)))
    });
    if bases.fit(&slots) && tried.relative.is_due() {
        // A look at the pairs is what takes its time where there are hundreds of columns.
        let likely = bases.nearest(&slots).filter(|near| near.bytes <= best.bytes() / 8 * 7);
        let better = likely.map(|near| relative(near.field(), near.differences(&slots)));
        let better = better.filter(|better| better.bytes() + OVERHEAD_BYTES < best.bytes());
        tried.relative.record(better.is_some());
        best = better.unwrap_or(best);
    }
    best
}

fn relative(field: u32, differences: Slots) -> Encoded {
    let spread = differences.spread();
    let mut best = Encoded::Part(Part::with_spread(differences.clone(), spread.as_ref()));
    let bytes_max = best.bytes();
    if likely_dictionary(&differences, spread.as_ref(), 0) < bytes_max / 8 * 7
        && let Some(smaller) = dictionary(&differences, None, bytes_max, None)
    {
        best = smaller;
    }
    Encoded::Relative { field, differences: Box::new(best) }
}

fn sampled<T: Word>(slots: &Slots) -> Option<Sample> {
    Sample::of::<T>(&slots.bytes, slots.have_differences())
}

/// How a column is written.
enum Encoded {
    Part(Part),
    Dictionary {
        entries: Slots,
        indexes: Part,
    },
    Kept(Plan),
    Runs {
        count: usize,
        entries: Part,
        lengths: Part,
    },
    Delta {
        first: Vec<u8>,
        differences: Part,
    },
    Decimals(Decimals),
    /// The differences are a part or a dictionary.
    Relative {
        field: u32,
        differences: Box<Encoded>,
    },
}

impl Encoded {
    fn bytes(&self) -> usize {
        match self {
            Self::Part(part) => part.bytes,
            Self::Dictionary { entries, indexes } => entries.plain_bytes() + indexes.bytes,
            Self::Kept(plan) => plan.bytes,
            Self::Runs { entries, lengths, .. } => entries.bytes + lengths.bytes,
            Self::Delta { first, differences } => first.len() + differences.bytes,
            Self::Decimals(decimals) => decimals.bytes,
            Self::Relative { differences, .. } => differences.bytes(),
        }
    }

    /// Tries another way that likely takes so many bytes, if that saves an eighth.
    fn consider(
        &mut self,
        likely_bytes: usize,
        tried: &mut memory::Vain,
        other: impl FnOnce() -> Option<Self>,
    ) {
        if likely_bytes > self.bytes() / 8 * 7 || !tried.is_due() {
            return;
        }
        let better = other().filter(|other| other.bytes() + OVERHEAD_BYTES < self.bytes());
        tried.record(better.is_some());
        if let Some(better) = better {
            *self = better;
        }
    }

    fn write(self, writer: &mut Writer, kept: &mut Kept) -> Result<()> {
        match self {
            Self::Part(part) => part.write(writer),
            Self::Kept(plan) => kept.write(plan, writer),
            Self::Dictionary { entries, indexes } => {
                writer.descriptors.push(3);
                writer.put_u32(entries.count())?;
                writer.descriptors.push(0);
                writer.buffer(vec![entries.plain()])?;
                indexes.write(writer)
            }
            Self::Runs { count, entries, lengths } => {
                writer.descriptors.push(4);
                writer.put_u32(count)?;
                entries.write(writer)?;
                lengths.write(writer)
            }
            Self::Decimals(decimals) => decimals.write(writer),
            Self::Relative { field, differences } => {
                writer.descriptors.push(8);
                writer.descriptors.extend_from_slice(&field.to_le_bytes());
                differences.write(writer, kept)
            }
            Self::Delta { first, differences } => {
                writer.descriptors.push(5);
                writer.descriptors.extend_from_slice(&first);
                differences.write(writer)
            }
        }
    }
}

/// What a dictionary likely takes, where a table has so many `known` entries.
fn likely_dictionary(slots: &Slots, spread: Option<&[u64; SPREAD]>, known: usize) -> usize {
    // Values of one byte take no fewer bits as indexes of as many.
    if slots.width == 1 || !matches!(slots.width, 2 | 4 | 8 | 16) {
        return usize::MAX;
    }
    // Few values are all looked at.
    let Some(spread) = spread else { return 0 };
    if let Some(bits) = known.checked_sub(1).map(|last| bits_for(last as u64)) {
        return packed_bytes(slots.count(), bits).unwrap_or(usize::MAX);
    }
    let entries = distinct(spread).filter(|entries| *entries <= slots.count() / 4);
    entries
        .and_then(|entries| dictionary_bytes(slots.count(), entries, slots.wire))
        .unwrap_or(usize::MAX)
}

fn dictionary(
    slots: &Slots,
    frame: Option<(u64, u64)>,
    bytes_max: usize,
    keep: Option<(&mut Kept, &NewTables)>,
) -> Option<Encoded> {
    let known = keep.as_ref().map_or(0, |(kept, _)| kept.known().0);
    let arguments = (&slots.bytes, frame, slots.wire, bytes_max, known);
    fn search<T: Word>(
        (values, frame, entry_bytes, bytes_max, known): (
            &Bytes,
            Option<(u64, u64)>,
            usize,
            usize,
            usize,
        ),
    ) -> Option<Distinct<Vec<u8>>> {
        distinct_words::<T>(values, frame, entry_bytes, bytes_max, known)
    }
    let Distinct { entries, indexes } =
        for_word!(slots.width, [u16 u32 u64 u128], search, (arguments), else None)?;
    let count = entries.len() / slots.width;
    let entries = slots.of(entries);
    if let Some((kept, tables)) = keep {
        let values = entries.clone().plain();
        let entries = kept::Entries::Fixed { values: &values, width: slots.wire };
        if let Some(plan) = kept.plan(tables, Kind::Fixed(slots.wire), &entries, &indexes) {
            return Some(Encoded::Kept(plan));
        }
    }
    Some(Encoded::Dictionary { entries, indexes: part_of_indexes(&indexes, count) })
}

/// Indexes into `count` entries, at least one of them into each.
fn part_of_indexes(indexes: &[Index], count: usize) -> Part {
    let raw: Vec<_> = indexes.iter().map(|index| index.to_le_bytes()).collect();
    let slots = Slots::unsigned(raw.into_flattened(), size_of::<Index>());
    match count {
        1 => Part::new(slots),
        _ => Part::below(slots, count),
    }
}

/// What runs of equal values likely take, where their values take `bytes` now.
fn likely_runs(slots: &Slots, sample: &Sample, bytes: usize) -> usize {
    let n = slots.count();
    let likely = sample.runs(n);
    // An entry takes what a value does now, a length its own bits.
    let run_bits = bytes * 8 / n + bits_for((n / likely) as u64) as usize + 1;
    likely.saturating_mul(run_bits) / 8
}

fn runs(slots: &Slots) -> Option<Encoded> {
    let (entries, lengths) =
        for_word!(slots.width, [u8 u16 u32 u64 u128], runs_of, (&slots.bytes), else None)?;
    let count = lengths.len();
    let entries = Part::new(slots.of(entries));
    Some(Encoded::Runs {
        count,
        entries,
        lengths: Part::new(Slots::unsigned(lengths.into_flattened(), 4)),
    })
}

/// The entries and lengths of runs, unless there are more than make sense.
fn runs_of<T: Word>(values: &[u8]) -> Option<(Vec<u8>, Vec<[u8; 4]>)> {
    let values = T::slice(values);
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
            lengths.push(((at + 1 - start) as u32).to_le_bytes());
            start = at + 1;
        }
    }
    entries.push(*values.last()?);
    lengths.push(((values.len() - start) as u32).to_le_bytes());
    Some((T::bytes(entries), lengths))
}

/// What differences between neighbours likely take.
fn likely_delta(slots: &Slots, sample: &Sample) -> usize {
    if !slots.have_differences() {
        return usize::MAX;
    }
    // An exception takes about as many bits for its position as make the distance to the last one,
    // and its own.
    let n = slots.count();
    n / 8 * sample.difference_bits as usize + n / 256 * sample.leaps * (slots.width + 2)
}

fn delta(slots: &Slots) -> Option<Encoded> {
    let differences =
        for_word!(slots.width, [u8 u16 u32 u64], differences_of, (&slots.bytes), else return None);
    let differences = Part::new(Slots::new(Bytes::from(differences), slots.width, Order::Signed));
    Some(Encoded::Delta { first: slots.bytes[..slots.width].to_vec(), differences })
}

fn differences_of<T: Word>(values: &[u8]) -> Vec<u8> {
    T::bytes(neighbours::<T>(T::slice(values)))
}

/// Writes unsigned integers that are part of something else.
pub(crate) fn integers(writer: &mut Writer, values: Bytes, width: usize) -> Result<()> {
    Part::new(Slots::new(values, width, Order::Unsigned)).write(writer)
}

/// Writes decimals that come as signed integers of 4 or 8 bytes. A frame of 32 or 64 bits packs
/// nothing, so unless the values are to be made smaller than they came, this only moves zero to the
/// middle of the unsigned range.
pub(crate) fn narrow(
    writer: &mut Writer,
    data_type: &Type,
    values: Bytes,
    width: usize,
    tried: &mut Tried,
    kept: &mut Kept,
) -> Result<()> {
    if !matches!(data_type, Type::Decimal128 { .. }) {
        refuse!(Unsupported, "narrow decimals instead of {data_type:?}");
    }
    let reference = match width {
        4 => i128::from(i32::MIN),
        8 => i128::from(i64::MIN),
        _ => refuse!(Unsupported, "narrow decimals of {width} bytes"),
    };
    if writer.compression.encodes() {
        let slots = Slots::signed(values, width, DECIMAL_BYTES);
        let encoded =
            smallest(slots, false, tried, (kept, writer.tables.as_ref()), &Bases::default());
        return encoded.write(writer, kept);
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

/// Writes strings, as small as the rule makes them.
pub(crate) fn strings(
    writer: &mut Writer,
    strings: Strings,
    utf8: bool,
    tried: &mut Tried,
    memory: &mut symbols::Memory,
    kept: &mut Kept,
) -> Result<()> {
    let n = strings.offsets.len() / 4 - 1;
    let Strings { offsets, data } = strings;
    let data = joined(data);
    let (lengths, shortest, longest) = lengths_of(&offsets);
    if n > 0 && shortest == longest && is_constant(&data, longest) {
        writer.descriptors.push(1);
        return writer.buffer(vec![data.slice(..longest)]);
    }
    // What the strings take without a dictionary.
    let bytes_max = data.len()
        + packed_bytes(n, bits_for((longest - shortest.min(longest)) as u64)).unwrap_or(0);
    let searched = Searched { offsets: &offsets, data: &data, shortest, longest };
    let known = writer.tables.as_ref().map_or((0, 0), |_| kept.known());
    if n > 0 && (known.0 > 0 || searched.may_repeat(bytes_max)) && tried.dictionary.is_due() {
        let found = searched.distinct(bytes_max, known);
        let plan = match (&found, &writer.tables) {
            (Some(Distinct { entries, indexes }), Some(tables)) => {
                let entries =
                    kept::Entries::Strings { lengths: &entries.lengths, data: &entries.data };
                kept.plan(tables, Kind::Strings { utf8 }, &entries, indexes)
                    .filter(|plan| plan.bytes < bytes_max)
            }
            _ => None,
        };
        // Without the table all entries count.
        let found = found.filter(|found| known.0 == 0 || found.bytes() < bytes_max);
        tried.dictionary.record(found.is_some() || plan.is_some());
        if let Some(plan) = plan {
            return kept.write(plan, writer);
        }
        if let Some(Distinct { entries, indexes }) = found {
            writer.descriptors.push(3);
            writer.put_u32(entries.lengths.len())?;
            let count = entries.lengths.len();
            write_lengths(writer, entries.lengths, Bytes::from(entries.data), memory)?;
            return part_of_indexes(&indexes, count).write(writer);
        }
    }
    write_lengths(writer, lengths, data, memory)
}

fn write_lengths(
    writer: &mut Writer,
    lengths: Vec<[u8; 4]>,
    data: Bytes,
    memory: &mut symbols::Memory,
) -> Result<()> {
    let lengths = Part::new(Slots::unsigned(lengths.into_flattened(), 4));
    if writer.compression == Compression::Symbols
        && let Some(coded) = memory.encode(&data, writer.clock, writer.tables.is_some())
    {
        writer.descriptors.push(4);
        lengths.or_huffman().write(writer)?;
        return coded.write(writer);
    }
    writer.descriptors.push(2);
    lengths.write(writer)?;
    writer.buffer(vec![data])
}

/// Writes how long each list is of those that begin and end at these offsets.
pub(crate) fn list_lengths(writer: &mut Writer, offsets: &[u8]) -> Result<()> {
    writer.descriptors.push(2);
    Part::new(Slots::unsigned(lengths_of(offsets).0.into_flattened(), 4)).write(writer)
}
