//! Dictionaries that are kept from chunk to chunk, in tables that stand at the reader:
//! `spec/state.md`.
//!
//! ```text
//! a chunk's distinct values ──▶ Kept: which of them the table has ──▶ Plan ──▶ new entries into the state frame
//!                                                                        └───▶ indexes into the chunk
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bytes::Bytes;

use super::dictionary::{Index, Numbers, hash_bytes};
use super::integers::Part;
use super::slots::Slots;
use crate::bitpack::{bits_for, packed_bytes};
use crate::error::Result;
use crate::header::Limits;
use crate::layout::{TABLE_BYTES_MAX, TABLE_ENTRIES_MAX, TABLE_NUMBERS};
use crate::write::Writer;

/// What a table's descriptors and padding may take, the frame's header and padding included.
const OVERHEAD_BYTES: usize = 256;

/// What is left for the tables of a stream: shared by all encoders that make its chunks.
#[derive(Debug)]
pub struct TableRoom {
    next_number: AtomicU32,
    decoded_bytes: AtomicU64,
    frame_bytes_max: u64,
}

impl TableRoom {
    /// Of a stream whose reader has these limits.
    pub fn new(limits: &Limits) -> Self {
        Self {
            next_number: AtomicU32::new(0),
            decoded_bytes: AtomicU64::new(limits.decoded_bytes_max),
            frame_bytes_max: limits.chunk_bytes_max,
        }
    }
}

/// A number for a table, and the room that it has taken. The room is not given back: another
/// encoder's table could arrive before the one that is smaller now.
#[derive(Debug, Default)]
pub(crate) struct Place {
    number: Option<u32>,
    claimed_bytes: u64,
}

/// The tables that a chunk adds, on their way into its state frame.
pub(crate) struct NewTables {
    room: Arc<TableRoom>,
    pub(crate) writer: Box<Writer>,
    pub(crate) count: u32,
}

impl NewTables {
    pub(crate) fn new(room: Arc<TableRoom>, writer: Writer) -> Self {
        Self { room, writer: Box::new(writer), count: 0 }
    }

    /// The number of a table of which `new_bytes` will be sent now, and that will decode to
    /// `decoded_bytes`; none if there is no room.
    pub(super) fn claim(
        &self,
        place: &mut Place,
        new_bytes: usize,
        decoded_bytes: usize,
    ) -> Option<u32> {
        if self.writer.written_bytes() + (new_bytes + OVERHEAD_BYTES) as u64
            > self.room.frame_bytes_max
        {
            return None;
        }
        let more = (decoded_bytes as u64).saturating_sub(place.claimed_bytes);
        let claim = |left: u64| left.checked_sub(more);
        self.room.decoded_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, claim).ok()?;
        place.claimed_bytes += more;
        if place.number.is_none() {
            let next = |number: u32| (number < TABLE_NUMBERS).then_some(number + 1);
            place.number =
                self.room.next_number.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok();
        }
        place.number
    }

    /// Begins a table, whose code and contents the caller writes.
    pub(super) fn begin(&mut self, number: u32) -> &mut Writer {
        self.count += 1;
        self.writer.descriptors.extend_from_slice(&number.to_le_bytes());
        &mut self.writer
    }
}

/// The table of one column's dictionary.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    place: Place,
    entries: List,
    /// The number of each entry.
    numbers: Numbers,
}

/// What entries are.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Fixed(usize),
    Strings { utf8: bool },
}

/// Entries one after the other.
#[derive(Debug, Default)]
struct List {
    ends: Vec<u32>,
    data: Vec<u8>,
}

impl List {
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

/// How a chunk's dictionary goes into the table.
pub(super) struct Plan {
    number: u32,
    /// Whether the table begins anew.
    anew: bool,
    kind: Kind,
    /// The entries that it does not have.
    new: List,
    pub(super) indexes: Part,
    /// What new entries and indexes take.
    pub(super) bytes: usize,
}

impl Kept {
    /// How many entries the table has, and their bytes: a search need not count these.
    pub(super) fn known(&self) -> (usize, usize) {
        (self.entries.ends.len(), self.entries.data.len() + 4 * self.entries.ends.len())
    }

    /// How to write values that have these indexes among `entries`, none of which comes twice: with
    /// the new ones behind what is there, or with a table begun anew, whichever takes less. None
    /// where there is no room.
    pub(super) fn plan(
        &mut self,
        tables: &NewTables,
        kind: Kind,
        entries: &Entries<'_>,
        indexes: &[Index],
    ) -> Option<Plan> {
        if entries.count() > TABLE_ENTRIES_MAX {
            return None;
        }
        let entries = entries.list();
        let there = self.entries.ends.len();
        let mut count = there;
        let mut moved = Vec::with_capacity(entries.len());
        let entry_bytes =
            |entry: &[u8]| entry.len() + if matches!(kind, Kind::Fixed(_)) { 0 } else { 4 };
        let (mut new_bytes, mut all_bytes) = (0, 0);
        for entry in &entries {
            let bytes = entry_bytes(entry);
            all_bytes += bytes;
            let known =
                self.numbers.find(hash_bytes(entry), |number| self.entries.get(number) == *entry);
            moved.push(known.unwrap_or_else(|| {
                new_bytes += bytes;
                count += 1;
                count - 1
            }));
        }
        let indexed = |count: usize| packed_bytes(indexes.len(), bits_for(count as u64 - 1));
        let (behind, own) = (new_bytes + indexed(count)?, all_bytes + indexed(entries.len())?);
        let fits =
            |data: usize, count: usize| data <= TABLE_BYTES_MAX && count <= TABLE_ENTRIES_MAX;
        let anew = there == 0 || own < behind || !fits(self.entries.data.len() + new_bytes, count);
        let mut new = List::default();
        let kept_bytes = match kind {
            _ if anew => 0,
            Kind::Fixed(_) => self.entries.data.len(),
            Kind::Strings { .. } => self.known().1,
        };
        for (entry, number) in entries.iter().zip(&moved) {
            if anew || *number >= there {
                new.data.extend_from_slice(entry);
                // At most 2^16.
                new.ends.push(new.data.len() as u32);
            }
        }
        let sent_bytes = if anew { all_bytes } else { new_bytes };
        if !fits(new.data.len(), new.ends.len()) {
            return None;
        }
        let number = tables.claim(&mut self.place, sent_bytes, kept_bytes + sent_bytes)?;
        let indexes = match anew {
            true => super::part_of_indexes(indexes, entries.len()),
            false => {
                // At most 2^14.
                let moved: Vec<Index> = moved.iter().map(|number| *number as Index).collect();
                let raw: Vec<_> =
                    indexes.iter().map(|index| moved[usize::from(*index)].to_le_bytes()).collect();
                Part::new(Slots::unsigned(raw.into_flattened(), size_of::<Index>()))
            }
        };
        Some(Plan { number, anew, kind, new, bytes: sent_bytes + indexes.bytes, indexes })
    }

    /// Writes what was planned: new entries into the state frame, the rest into the chunk.
    pub(super) fn write(&mut self, plan: Plan, writer: &mut Writer) -> Result<()> {
        let Plan { number, anew, kind, new, indexes, .. } = plan;
        writer.descriptors.push(if matches!(kind, Kind::Fixed(_)) { 9 } else { 5 });
        writer.descriptors.extend_from_slice(&number.to_le_bytes());
        if anew {
            (self.entries, self.numbers) = (List::default(), Numbers::default());
        }
        if !new.ends.is_empty()
            && let Some(tables) = &mut writer.tables
        {
            let state = tables.begin(number);
            state.descriptors.push(match kind {
                Kind::Fixed(_) => 1,
                Kind::Strings { utf8: true } => 2,
                Kind::Strings { utf8: false } => 3,
            });
            state.put_u32(self.entries.ends.len())?;
            state.put_u32(new.ends.len())?;
            match kind {
                Kind::Fixed(width) => {
                    state.put_u32(width)?;
                    state.count(new.ends.len(), width);
                    state.descriptors.push(0);
                }
                Kind::Strings { .. } => {
                    state.count(new.ends.len(), 4);
                    state.count(new.data.len(), 1);
                    let starts = std::iter::once(&0).chain(&new.ends);
                    let lengths: Vec<_> = new
                        .ends
                        .iter()
                        .zip(starts)
                        .map(|(end, start)| (end - start).to_le_bytes())
                        .collect();
                    state.descriptors.push(2);
                    Part::new(Slots::unsigned(lengths.into_flattened(), 4)).write(state)?;
                }
            }
            state.buffer(vec![Bytes::copy_from_slice(&new.data)])?;
            self.append(&new);
        }
        indexes.write(writer)
    }

    fn append(&mut self, new: &List) {
        let (start, there) = (self.entries.data.len() as u32, self.entries.ends.len());
        self.entries.data.extend_from_slice(&new.data);
        self.entries.ends.extend(new.ends.iter().map(|end| start + end));
        let count = self.entries.ends.len();
        let from = if self.numbers.has_room(count) { there } else { 0 };
        if from == 0 {
            self.numbers = Numbers::new(count);
        }
        for number in from..count {
            let entry = self.entries.get(number);
            // One that finds no place is sent again.
            self.numbers.number(hash_bytes(entry), number, |_| false);
        }
    }
}
