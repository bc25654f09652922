//! Chooses the encoding of a column of strings (`spec/encodings.md` sections 3 and 6).

use bytes::Bytes;

use super::dictionary::{Distinct, Known, Searched, indexes_below};
use super::fixed_values::{FixedValues, is_constant};
use super::history::ColumnHistory;
use super::range::lengths_of;
use super::stream_dictionary::{Entries, EntryKind, Planner};
use super::symbols::SymbolHistory;
use super::values::EncodedValues;
use crate::bitpack::{bits_for, packed_bytes};
use crate::compress::Compression;
use crate::error::Result;
use crate::sink::{Sink, Sinks, joined};

/// The strings of one column. Their data may be in several parts.
pub(crate) struct Strings {
    /// n + 1 offsets; the first is 0.
    pub(crate) offsets: Bytes,
    pub(crate) data: Vec<Bytes>,
}

impl Strings {
    pub(crate) fn data_bytes(&self) -> usize {
        self.data.iter().map(Bytes::len).sum()
    }
}

/// Writes strings in the encoding that the rule chooses.
pub(crate) fn strings(
    sinks: &mut Sinks,
    history: &mut ColumnHistory,
    strings: Strings,
    utf8: bool,
) -> Result<()> {
    let n = strings.offsets.len() / 4 - 1;
    let Strings { offsets, data } = strings;
    let ColumnHistory { trials, symbols, dictionary, .. } = history;
    let data = joined(data);
    let (lengths, shortest, longest) = lengths_of(&offsets);
    if n > 0 && shortest == longest && is_constant(&data, longest) {
        sinks.chunk.descriptors.push(1);
        return sinks.chunk.buffer(vec![data.slice(..longest)]);
    }
    // The bytes of the strings without a dictionary.
    let bytes_max = data.len()
        + packed_bytes(n, bits_for((longest - shortest.min(longest)) as u64)).unwrap_or(0);
    let searched = Searched { offsets: &offsets, data: &data, shortest, longest };
    let planner = Planner::new(dictionary, sinks.state.as_ref());
    let known = planner.as_ref().map_or(Known::default(), Planner::known);
    if n > 0 && (known.count > 0 || searched.may_repeat(bytes_max)) && trials.dictionary.is_due() {
        let found = searched.distinct(bytes_max, known);
        let plan = match (&found, planner) {
            (Some(Distinct { entries, indexes }), Some(planner)) => {
                let entries = Entries::Strings { lengths: &entries.lengths, data: &entries.data };
                planner
                    .plan(EntryKind::Strings { utf8 }, &entries, indexes)
                    .filter(|plan| plan.bytes < bytes_max)
            }
            _ => None,
        };
        // Without the stream dictionary all entries count.
        let found = found.filter(|found| known.count == 0 || found.bytes() < bytes_max);
        trials.dictionary.record(found.is_some() || plan.is_some());
        if let Some(plan) = plan {
            return dictionary.write(plan, sinks);
        }
        if let Some(Distinct { entries, indexes }) = found {
            sinks.chunk.descriptors.push(3);
            sinks.chunk.put_u32(entries.lengths.len())?;
            let count = entries.lengths.len();
            write_lengths(sinks, entries.lengths, Bytes::from(entries.data), symbols)?;
            return indexes_below(&indexes, count).write(&mut sinks.chunk);
        }
    }
    write_lengths(sinks, lengths, data, symbols)
}

/// Writes strings as lengths, and as symbols or plain data.
fn write_lengths(
    sinks: &mut Sinks,
    lengths: Vec<[u8; 4]>,
    data: Bytes,
    symbols: &mut SymbolHistory,
) -> Result<()> {
    let lengths = EncodedValues::new(FixedValues::unsigned(lengths.into_flattened(), 4));
    if sinks.chunk.compression == Compression::Symbols
        && let Some(coded) = symbols.encode(&data, sinks.clock, sinks.state.is_some())
    {
        sinks.chunk.descriptors.push(4);
        lengths.or_huffman().write(&mut sinks.chunk)?;
        return coded.write(sinks);
    }
    let sink = &mut sinks.chunk;
    sink.descriptors.push(2);
    lengths.write(sink)?;
    sink.buffer(vec![data])
}

/// Writes the lengths of the lists with these offsets.
pub(crate) fn list_lengths(sink: &mut Sink, offsets: &[u8]) -> Result<()> {
    sink.descriptors.push(2);
    EncodedValues::new(FixedValues::unsigned(lengths_of(offsets).0.into_flattened(), 4)).write(sink)
}
