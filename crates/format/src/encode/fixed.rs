//! Chooses the encoding of a column of fixed width: the smallest of those that look small in a
//! sample (`spec/encodings.md` sections 2 and 6).

use bytes::Bytes;

use super::backoff::Backoff;
use super::decimals::{Decimals, likely_exponent};
use super::dictionary::{Distinct, dictionary_bytes, distinct_words, indexes_below};
use super::fixed_values::{FixedValues, Order};
use super::history::ColumnHistory;
use super::range::{Frame, neighbours};
use super::relative::Bases;
use super::sample::{SPREAD, Sample, distinct};
use super::stream_dictionary::{Entries, EntryKind, Plan, Planner, StreamDictionary};
use super::values::EncodedValues;
use crate::bitpack::{bits_for, packed_bytes};
use crate::column::DECIMAL_BYTES;
use crate::error::{Result, refuse};
use crate::sink::Sinks;
use crate::types::Type;
use crate::word::{Word, for_word};

/// An upper bound on the descriptors and the padding of an encoding's parts.
const OVERHEAD_BYTES: usize = 128;

/// Writes values of fixed width in the encoding that the rule chooses. `bases` are the columns that
/// they may be coded relative to.
pub(crate) fn fixed(
    sinks: &mut Sinks,
    history: &mut ColumnHistory,
    data_type: &Type,
    width: usize,
    values: Bytes,
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
    let values = FixedValues::new(values, width, order).narrowed();
    smallest(values, floats, sinks, history, bases).write(sinks, &mut history.dictionary)
}

/// The smallest of the encodings that look small in a sample.
fn smallest(
    values: FixedValues,
    floats: bool,
    sinks: &Sinks,
    history: &mut ColumnHistory,
    bases: &Bases,
) -> ColumnEncoding {
    let ColumnHistory { trials, dictionary: known_entries, .. } = history;
    let spread = values.spread();
    let mut best =
        ColumnEncoding::Values(EncodedValues::with_spread(values.clone(), spread.as_ref()));
    if values.count() < 2 || best.bytes() <= values.wire {
        return best;
    }
    if floats && let Some((exponent, likely_bytes)) = likely_exponent(&values) {
        best.consider(likely_bytes, &mut trials.decimals, || {
            Decimals::of(&values, exponent).map(ColumnEncoding::Decimals)
        });
    }
    let sample = for_word!(values.width, [u8 u16 u32 u64 u128], sampled, (&values), else None);
    if let Some(sample) = sample {
        let (of_runs, of_delta) =
            (likely_runs(&values, &sample, best.bytes()), likely_delta(&values, &sample));
        // Differences are faster than runs to write and to read, so runs must be clearly smaller.
        if of_delta <= of_runs / 8 * 9 {
            best.consider(of_delta, &mut trials.delta, || delta(&values));
            best.consider(of_runs, &mut trials.runs, || runs(&values));
        } else {
            best.consider(of_runs, &mut trials.runs, || runs(&values));
            best.consider(of_delta, &mut trials.delta, || delta(&values));
        }
    }
    let frame = match &best {
        ColumnEncoding::Values(values) => values.frame(),
        _ => None,
    };
    let bytes_max = best.bytes();
    let planner = Planner::new(known_entries, sinks.state.as_ref());
    let known = planner.as_ref().map_or(0, |planner| planner.known().count);
    best.consider(
        likely_dictionary(&values, spread.as_ref(), known),
        &mut trials.dictionary,
        || dictionary(&values, frame, bytes_max, planner),
    );
    if bases.fit(&values) && trials.relative.is_due() {
        // With hundreds of columns, comparing the samples of pairs takes most of the time.
        let likely = bases.nearest(&values).filter(|near| near.bytes <= best.bytes() / 8 * 7);
        let better = likely.map(|near| relative(near.field(), near.differences(&values)));
        let better = better.filter(|better| better.bytes() + OVERHEAD_BYTES < best.bytes());
        trials.relative.record(better.is_some());
        best = better.unwrap_or(best);
    }
    best
}

fn relative(field: u32, differences: FixedValues) -> ColumnEncoding {
    let spread = differences.spread();
    let mut best =
        ColumnEncoding::Values(EncodedValues::with_spread(differences.clone(), spread.as_ref()));
    let bytes_max = best.bytes();
    if likely_dictionary(&differences, spread.as_ref(), 0) < bytes_max / 8 * 7
        && let Some(smaller) = dictionary(&differences, None, bytes_max, None)
    {
        best = smaller;
    }
    ColumnEncoding::Relative { field, differences: Box::new(best) }
}

fn sampled<T: Word>(values: &FixedValues) -> Option<Sample> {
    Sample::of::<T>(&values.bytes, values.have_differences())
}

/// The encoding of a column, with its parts.
enum ColumnEncoding {
    Values(EncodedValues),
    Dictionary {
        entries: FixedValues,
        indexes: EncodedValues,
    },
    StreamDictionary(Plan),
    Runs {
        count: usize,
        entries: EncodedValues,
        lengths: EncodedValues,
    },
    Delta {
        first: Vec<u8>,
        differences: EncodedValues,
    },
    Decimals(Decimals),
    /// The differences are encoded values or a dictionary.
    Relative {
        field: u32,
        differences: Box<ColumnEncoding>,
    },
}

impl ColumnEncoding {
    fn bytes(&self) -> usize {
        match self {
            Self::Values(values) => values.bytes,
            Self::Dictionary { entries, indexes } => entries.plain_bytes() + indexes.bytes,
            Self::StreamDictionary(plan) => plan.bytes,
            Self::Runs { entries, lengths, .. } => entries.bytes + lengths.bytes,
            Self::Delta { first, differences } => first.len() + differences.bytes,
            Self::Decimals(decimals) => decimals.bytes,
            Self::Relative { differences, .. } => differences.bytes(),
        }
    }

    /// Tries another encoding, if its likely size saves an eighth.
    fn consider(
        &mut self,
        likely_bytes: usize,
        backoff: &mut Backoff,
        other: impl FnOnce() -> Option<Self>,
    ) {
        if likely_bytes > self.bytes() / 8 * 7 || !backoff.is_due() {
            return;
        }
        let better = other().filter(|other| other.bytes() + OVERHEAD_BYTES < self.bytes());
        backoff.record(better.is_some());
        if let Some(better) = better {
            *self = better;
        }
    }

    fn write(self, sinks: &mut Sinks, dictionary: &mut StreamDictionary) -> Result<()> {
        let sink = &mut sinks.chunk;
        match self {
            Self::Values(values) => values.write(sink),
            Self::StreamDictionary(plan) => dictionary.write(plan, sinks),
            Self::Dictionary { entries, indexes } => {
                sink.descriptors.push(3);
                sink.put_u32(entries.count())?;
                sink.descriptors.push(0);
                sink.buffer(vec![entries.plain()])?;
                indexes.write(sink)
            }
            Self::Runs { count, entries, lengths } => {
                sink.descriptors.push(4);
                sink.put_u32(count)?;
                entries.write(sink)?;
                lengths.write(sink)
            }
            Self::Decimals(decimals) => decimals.write(sink),
            Self::Relative { field, differences } => {
                sink.descriptors.push(8);
                sink.descriptors.extend_from_slice(&field.to_le_bytes());
                differences.write(sinks, dictionary)
            }
            Self::Delta { first, differences } => {
                sink.descriptors.push(5);
                sink.descriptors.extend_from_slice(&first);
                differences.write(sink)
            }
        }
    }
}

/// The likely bytes of a dictionary, if a stream dictionary has `known` entries.
fn likely_dictionary(values: &FixedValues, spread: Option<&[u64; SPREAD]>, known: usize) -> usize {
    // Indexes into values of one byte are as large as the values.
    if values.width == 1 || !matches!(values.width, 2 | 4 | 8 | 16) {
        return usize::MAX;
    }
    // Few values are searched without a look at a sample.
    let Some(spread) = spread else { return 0 };
    if let Some(bits) = known.checked_sub(1).map(|last| bits_for(last as u64)) {
        return packed_bytes(values.count(), bits).unwrap_or(usize::MAX);
    }
    let entries = distinct(spread).filter(|entries| *entries <= values.count() / 4);
    entries
        .and_then(|entries| dictionary_bytes(values.count(), entries, values.wire))
        .unwrap_or(usize::MAX)
}

fn dictionary(
    values: &FixedValues,
    frame: Option<Frame>,
    bytes_max: usize,
    planner: Option<Planner<'_>>,
) -> Option<ColumnEncoding> {
    let known = planner.as_ref().map_or(0, |planner| planner.known().count);
    let Distinct { entries, indexes } = for_word!(
        values.width,
        [u16 u32 u64 u128],
        distinct_words,
        (&values.bytes, frame, values.wire, bytes_max, known),
        else None
    )?;
    let count = entries.len() / values.width;
    let entries = values.of(entries);
    if let Some(planner) = planner {
        let plain = entries.clone().plain();
        let entries = Entries::Fixed { values: &plain, width: values.wire };
        if let Some(plan) = planner.plan(EntryKind::Fixed(values.wire), &entries, &indexes) {
            return Some(ColumnEncoding::StreamDictionary(plan));
        }
    }
    Some(ColumnEncoding::Dictionary { entries, indexes: indexes_below(&indexes, count) })
}

/// The likely bytes of runs, if the values take `bytes` without them.
fn likely_runs(values: &FixedValues, sample: &Sample, bytes: usize) -> usize {
    let n = values.count();
    let likely = sample.runs(n);
    // An entry takes as much as a value without runs, and a length the bits of the mean length.
    let run_bits = bytes * 8 / n + bits_for((n / likely) as u64) as usize + 1;
    likely.saturating_mul(run_bits) / 8
}

fn runs(values: &FixedValues) -> Option<ColumnEncoding> {
    let (entries, lengths) =
        for_word!(values.width, [u8 u16 u32 u64 u128], runs_of, (&values.bytes), else None)?;
    let count = lengths.len();
    let entries = EncodedValues::new(values.of(entries));
    Some(ColumnEncoding::Runs {
        count,
        entries,
        lengths: EncodedValues::new(FixedValues::unsigned(lengths.into_flattened(), 4)),
    })
}

/// The entries and lengths of runs, unless there are too many to pay.
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
    debug_assert_eq!(entries.len(), lengths.len());
    Some((T::bytes(entries), lengths))
}

/// The likely bytes of differences between neighbours.
fn likely_delta(values: &FixedValues, sample: &Sample) -> usize {
    if !values.have_differences() {
        return usize::MAX;
    }
    // An exception takes its own bytes, and about two for its position.
    let n = values.count();
    n / 8 * sample.difference_bits as usize + n / 256 * sample.leaps * (values.width + 2)
}

fn delta(values: &FixedValues) -> Option<ColumnEncoding> {
    let differences = for_word!(
        values.width,
        [u8 u16 u32 u64],
        differences_of,
        (&values.bytes),
        else return None
    );
    let differences =
        EncodedValues::new(FixedValues::new(Bytes::from(differences), values.width, Order::Signed));
    Some(ColumnEncoding::Delta { first: values.bytes[..values.width].to_vec(), differences })
}

fn differences_of<T: Word>(values: &[u8]) -> Vec<u8> {
    T::bytes(neighbours::<T>(T::slice(values)))
}

/// Writes decimals of 128 bits that are given as signed integers of 4 or 8 bytes. Without light
/// encodings they become a frame of 32 or 64 bits: that packs nothing, and only moves zero to the
/// middle of the unsigned range.
pub(crate) fn narrow(
    sinks: &mut Sinks,
    history: &mut ColumnHistory,
    data_type: &Type,
    width: usize,
    values: Bytes,
) -> Result<()> {
    if !matches!(data_type, Type::Decimal128 { .. }) {
        refuse!(Unsupported, "narrow decimals instead of {data_type:?}");
    }
    let reference = match width {
        4 => i128::from(i32::MIN),
        8 => i128::from(i64::MIN),
        _ => refuse!(Unsupported, "narrow decimals of {width} bytes"),
    };
    if sinks.chunk.compression.encodes() {
        let values = FixedValues::signed(values, width, DECIMAL_BYTES);
        let encoding = smallest(values, false, sinks, history, &Bases::default());
        return encoding.write(sinks, &mut history.dictionary);
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
    let sink = &mut sinks.chunk;
    // 32 or 64.
    sink.descriptors.extend_from_slice(&[2, 8 * width as u8]);
    sink.descriptors.extend_from_slice(&reference.to_le_bytes());
    sink.buffer(vec![moved])
}
