//! Dictionaries that last for a stream: the reader keeps their entries in a table
//! (`spec/state.md`).
//!
//! ```text
//! a chunk's distinct values ─▶ Planner: what the table has ─▶ Plan ┬▶ state frame: new entries
//!                                                                  └▶ chunk: indexes
//! ```

use bytes::Bytes;

use super::dictionary::{Index, Known, indexes_below};
use super::fixed_values::FixedValues;
use super::values::EncodedValues;
use crate::bitpack::{bits_for, packed_bytes};
use crate::error::Result;
use crate::layout::{TABLE_BYTES_MAX, TABLE_ENTRIES_MAX};
use crate::numbers::{Numbers, hash_bytes};
use crate::sink::{Sinks, StateSink, TableClaim};

/// The encoder's copy of one column's table at the reader.
#[derive(Debug, Default)]
pub(crate) struct StreamDictionary {
    claim: TableClaim,
    entries: EntryList,
    /// Finds an entry's number.
    numbers: Numbers,
}

/// The type of entries.
#[derive(Debug, Clone, Copy)]
pub(super) enum EntryKind {
    /// Values of this width.
    Fixed(usize),
    Strings {
        utf8: bool,
    },
}

/// Entries one after the other, with the end of each.
#[derive(Debug, Default)]
struct EntryList {
    ends: Vec<u32>,
    data: Vec<u8>,
}

impl EntryList {
    fn get(&self, i: usize) -> &[u8] {
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.data[start as usize..self.ends[i] as usize]
    }
}

/// The entries of a chunk's dictionary.
pub(super) enum Entries<'a> {
    Fixed { values: &'a [u8], width: usize },
    Strings { lengths: &'a [[u8; 4]], data: &'a [u8] },
}

impl<'a> Entries<'a> {
    fn list(&self) -> Vec<&'a [u8]> {
        match self {
            Self::Fixed { values, width } => values.chunks_exact(*width).collect(),
            Self::Strings { lengths, data } => {
                let mut rest = *data;
                let entry = |raw: &[u8; 4]| {
                    let (entry, after) = rest.split_at(u32::from_le_bytes(*raw) as usize);
                    rest = after;
                    entry
                };
                lengths.iter().map(entry).collect()
            }
        }
    }

    fn count(&self) -> usize {
        match self {
            Self::Fixed { values, width } => values.len() / width,
            Self::Strings { lengths, .. } => lengths.len(),
        }
    }
}

/// How a chunk is written with the table.
pub(super) struct Plan {
    number: u32,
    /// Whether the table begins again, without its entries so far.
    restarts: bool,
    kind: EntryKind,
    /// The entries to append.
    new: EntryList,
    pub(super) indexes: EncodedValues,
    /// The bytes of new entries and indexes.
    pub(super) bytes: usize,
}

/// A stream dictionary, and the state frame that its new entries may go into.
pub(super) struct Planner<'a> {
    dictionary: &'a mut StreamDictionary,
    state: &'a StateSink,
}

impl<'a> Planner<'a> {
    /// A planner, if the chunk may have a state frame.
    pub(super) fn new(
        dictionary: &'a mut StreamDictionary,
        state: Option<&'a StateSink>,
    ) -> Option<Self> {
        state.map(|state| Self { dictionary, state })
    }

    /// The entries that the table has.
    pub(super) fn known(&self) -> Known {
        self.dictionary.known()
    }

    /// Plans how to write values with these indexes into `entries`, which are distinct. Either new
    /// entries are appended to the table or the table restarts, whichever takes less. None if the
    /// table would be over a limit or the stream's budget.
    pub(super) fn plan(
        self,
        kind: EntryKind,
        entries: &Entries<'_>,
        indexes: &[Index],
    ) -> Option<Plan> {
        if entries.count() > TABLE_ENTRIES_MAX {
            return None;
        }
        let Self { dictionary, state } = self;
        let entries = entries.list();
        let known_count = dictionary.entries.ends.len();
        let mut count = known_count;
        let mut moved = Vec::with_capacity(entries.len());
        let entry_bytes =
            |entry: &[u8]| entry.len() + if matches!(kind, EntryKind::Fixed(_)) { 0 } else { 4 };
        let (mut new_bytes, mut all_bytes) = (0, 0);
        for entry in &entries {
            let bytes = entry_bytes(entry);
            all_bytes += bytes;
            let known = dictionary
                .numbers
                .find(hash_bytes(entry), |number| dictionary.entries.get(number) == *entry);
            moved.push(known.unwrap_or_else(|| {
                new_bytes += bytes;
                count += 1;
                count - 1
            }));
        }
        let indexed = |count: usize| packed_bytes(indexes.len(), bits_for(count as u64 - 1));
        let (appended, restarted) =
            (new_bytes + indexed(count)?, all_bytes + indexed(entries.len())?);
        let fits =
            |data: usize, count: usize| data <= TABLE_BYTES_MAX && count <= TABLE_ENTRIES_MAX;
        let restarts = known_count == 0
            || restarted < appended
            || !fits(dictionary.entries.data.len() + new_bytes, count);
        let mut new = EntryList::default();
        let known_bytes = match kind {
            _ if restarts => 0,
            EntryKind::Fixed(_) => dictionary.entries.data.len(),
            EntryKind::Strings { .. } => dictionary.known().bytes,
        };
        for (entry, number) in entries.iter().zip(&moved) {
            if restarts || *number >= known_count {
                new.data.extend_from_slice(entry);
                // At most 2^16.
                new.ends.push(new.data.len() as u32);
            }
        }
        let sent_bytes = if restarts { all_bytes } else { new_bytes };
        if !fits(new.data.len(), new.ends.len()) {
            return None;
        }
        let number = state.claim(&mut dictionary.claim, sent_bytes, known_bytes + sent_bytes)?;
        let indexes = match restarts {
            true => indexes_below(indexes, entries.len()),
            false => {
                // At most 2^14.
                let moved: Vec<Index> = moved.iter().map(|number| *number as Index).collect();
                let raw: Vec<_> =
                    indexes.iter().map(|index| moved[usize::from(*index)].to_le_bytes()).collect();
                EncodedValues::new(FixedValues::unsigned(raw.into_flattened(), size_of::<Index>()))
            }
        };
        Some(Plan { number, restarts, kind, new, bytes: sent_bytes + indexes.bytes, indexes })
    }
}

impl StreamDictionary {
    /// The entries that the table has.
    fn known(&self) -> Known {
        let count = self.entries.ends.len();
        Known { count, bytes: self.entries.data.len() + 4 * count }
    }

    /// Writes the new entries into the state frame and the indexes into the chunk.
    pub(super) fn write(&mut self, plan: Plan, sinks: &mut Sinks) -> Result<()> {
        let Plan { number, restarts, kind, new, indexes, .. } = plan;
        sinks.chunk.descriptors.push(if matches!(kind, EntryKind::Fixed(_)) { 9 } else { 5 });
        sinks.chunk.descriptors.extend_from_slice(&number.to_le_bytes());
        if restarts {
            (self.entries, self.numbers) = (EntryList::default(), Numbers::default());
        }
        if !new.ends.is_empty()
            && let Some(state) = &mut sinks.state
        {
            let sink = state.begin(number);
            sink.descriptors.push(match kind {
                EntryKind::Fixed(_) => 1,
                EntryKind::Strings { utf8: true } => 2,
                EntryKind::Strings { utf8: false } => 3,
            });
            sink.put_u32(self.entries.ends.len())?;
            sink.put_u32(new.ends.len())?;
            match kind {
                EntryKind::Fixed(width) => {
                    sink.put_u32(width)?;
                    sink.count(new.ends.len(), width);
                    sink.descriptors.push(0);
                }
                EntryKind::Strings { .. } => {
                    sink.count(new.ends.len(), 4);
                    sink.count(new.data.len(), 1);
                    let starts = std::iter::once(&0).chain(&new.ends);
                    let lengths: Vec<_> = new
                        .ends
                        .iter()
                        .zip(starts)
                        .map(|(end, start)| (end - start).to_le_bytes())
                        .collect();
                    sink.descriptors.push(2);
                    EncodedValues::new(FixedValues::unsigned(lengths.into_flattened(), 4))
                        .write(sink)?;
                }
            }
            sink.buffer(vec![Bytes::copy_from_slice(&new.data)])?;
            self.append(&new);
        }
        indexes.write(&mut sinks.chunk)
    }

    fn append(&mut self, new: &EntryList) {
        let (start, known_count) = (self.entries.data.len() as u32, self.entries.ends.len());
        self.entries.data.extend_from_slice(&new.data);
        self.entries.ends.extend(new.ends.iter().map(|end| start + end));
        debug_assert!(self.entries.data.len() <= TABLE_BYTES_MAX);
        debug_assert!(self.entries.ends.len() <= TABLE_ENTRIES_MAX);
        debug_assert!(self.entries.ends.is_sorted());
        let count = self.entries.ends.len();
        let from = if self.numbers.has_room(count) { known_count } else { 0 };
        if from == 0 {
            self.numbers = Numbers::new(count);
        }
        for number in from..count {
            let entry = self.entries.get(number);
            // An entry that finds no slot is sent again each time.
            self.numbers.number(hash_bytes(entry), number, |_| false);
        }
    }
}
