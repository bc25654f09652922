//! The tables of a stream, which outlive chunks: `spec/state.md`.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::fixed::Codes;
use super::{Destination, Reader};
use crate::column::u32s;
use crate::error::{Error, Result, refuse};
use crate::header::{HEADER_BYTES, Header, Limits, StateHeader};
use crate::layout::{TABLE_BYTES_MAX, TABLE_ENTRIES_MAX, TABLE_NUMBERS};

/// The tables at one point of a stream. A clone keeps them as they are now, for chunks that are
/// decoded later.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    /// The number of state frames received.
    frames: u32,
    /// The bytes that all tables decode to.
    bytes: u64,
    tables: BTreeMap<u32, Arc<Table>>,
}

#[derive(Debug, Clone)]
struct Table {
    /// The bytes that the table decodes to.
    bytes: u64,
    entries: TableEntries,
}

#[derive(Debug, Clone)]
enum TableEntries {
    Symbols { lengths: Bytes, symbols: Bytes },
    Fixed { width: usize, values: Vec<u8> },
    Strings { utf8: bool, offsets: Vec<u8>, data: Vec<u8> },
}

impl Tables {
    /// The number of state frames received.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// Receives a state frame whose header has been checked against the limits, and checks its
    /// checksum. `descriptors` includes their padding. After an error no more of the stream can be
    /// read.
    ///
    /// # Errors
    /// When the frame breaks a rule of state.md, or all tables together are over a limit.
    pub fn receive(
        &mut self,
        header: &StateHeader,
        descriptors: &[u8],
        body: &Bytes,
        limits: &Limits,
    ) -> Result<()> {
        header.verify(&[descriptors, body])?;
        // Tables do not refer to other tables.
        let none = Self::default();
        let mut reader = Reader::new(&header.0, descriptors, body, &none)?;
        for _ in 0..header.0.rows {
            let number = reader.descriptors.u32("table")?;
            self.receive_table(number, &mut reader, limits).map_err(|error| {
                Error::new(
                    error.kind(),
                    format!("state frame {}, table {number}: {error}", header.sequence()),
                )
            })?;
        }
        reader.check_used_up(header.sequence())?;
        let Some(frames) = self.frames.checked_add(1) else {
            refuse!(State, "too many state frames")
        };
        self.frames = frames;
        Ok(())
    }

    fn receive_table(
        &mut self,
        number: u32,
        reader: &mut Reader<'_, '_>,
        limits: &Limits,
    ) -> Result<()> {
        if number >= TABLE_NUMBERS {
            refuse!(State, "a table's number is below {TABLE_NUMBERS}");
        }
        let before = reader.budget;
        match reader.descriptors.u8("table code")? {
            0 => {
                let (lengths, symbols) = reader.symbol_table()?;
                reader.charge(lengths.len() + symbols.len(), 1)?;
                self.insert(number, TableEntries::Symbols { lengths, symbols });
            }
            code @ 1..=3 => {
                let first = reader.descriptors.u32("first")? as usize;
                let count = reader.descriptors.u32("count")? as usize;
                let width =
                    if code == 1 { Some(reader.descriptors.u32("width")? as usize) } else { None };
                if first == 0 {
                    self.insert(
                        number,
                        match width {
                            Some(width) => TableEntries::Fixed { width, values: Vec::new() },
                            None => TableEntries::Strings {
                                utf8: code == 2,
                                offsets: vec![0; 4],
                                data: Vec::new(),
                            },
                        },
                    );
                }
                let Some(table) = self.tables.get_mut(&number) else {
                    refuse!(State, "there is no such table to append to")
                };
                Arc::make_mut(table).entries.append(first, count, code, width, reader)?;
            }
            code => refuse!(Code, "unknown table code {code}"),
        }
        let bytes = before - reader.budget;
        self.bytes += bytes;
        if let Some(table) = self.tables.get_mut(&number) {
            Arc::make_mut(table).bytes += bytes;
        }
        if self.bytes > limits.decoded_bytes_max {
            refuse!(
                Limit,
                "all tables decode to {} bytes, over the limit of {}",
                self.bytes,
                limits.decoded_bytes_max
            );
        }
        Ok(())
    }

    /// Begins a table, and drops the one that had its number.
    fn insert(&mut self, number: u32, entries: TableEntries) {
        let replaced = self.tables.insert(number, Arc::new(Table { bytes: 0, entries }));
        self.bytes -= replaced.map_or(0, |table| table.bytes);
    }

    /// Receives the state frames that `bytes` begins with, and leaves the rest in `bytes`.
    ///
    /// # Errors
    /// Those of [`Self::receive`], and when the last frame is not whole.
    pub fn take(&mut self, bytes: &mut Bytes, limits: &Limits) -> Result<()> {
        while StateHeader::is_next(bytes) {
            let Some(raw) = bytes.first_chunk::<HEADER_BYTES>() else {
                refuse!(Size, "a state frame of {} bytes is shorter than its header", bytes.len())
            };
            let header = StateHeader::decode(raw, limits)?;
            let Some(frame_bytes) =
                usize::try_from(header.frame_bytes()).ok().filter(|size| *size <= bytes.len())
            else {
                refuse!(
                    Size,
                    "{} bytes, a state frame's header says {}",
                    bytes.len(),
                    header.frame_bytes()
                )
            };
            let frame = bytes.split_to(frame_bytes);
            let body = frame.slice(frame_bytes - header.0.body_bytes as usize..);
            self.receive(&header, &frame[HEADER_BYTES..frame_bytes - body.len()], &body, limits)?;
        }
        Ok(())
    }

    /// Checks that a chunk was written with these tables.
    pub(super) fn check(&self, header: &Header) -> Result<()> {
        if header.states != self.frames {
            refuse!(
                State,
                "the chunk was written after {} state frames, {} were received",
                header.states,
                self.frames
            );
        }
        Ok(())
    }

    fn entries(&self, number: u32) -> Option<&TableEntries> {
        self.tables.get(&number).map(|table| &table.entries)
    }

    /// The entries of a table of values of `width` bytes. There is at least one.
    pub(super) fn fixed(&self, number: u32, width: usize) -> Result<&[u8]> {
        match self.entries(number) {
            Some(TableEntries::Fixed { width: found, values }) if *found == width => Ok(values),
            _ => refuse!(State, "no table {number} of values of {width} bytes"),
        }
    }

    /// The offsets and the data of a table of strings. There is at least one string.
    pub(super) fn strings(&self, number: u32, utf8: bool) -> Result<(&[u8], &[u8])> {
        match self.entries(number) {
            Some(TableEntries::Strings { utf8: found, offsets, data }) if *found == utf8 => {
                Ok((offsets, data))
            }
            _ => refuse!(State, "no table {number} of strings of this type"),
        }
    }

    /// The lengths and the bytes of a table of symbols.
    pub(super) fn symbols(&self, number: u32) -> Result<(&[u8], &[u8])> {
        match self.entries(number) {
            Some(TableEntries::Symbols { lengths, symbols }) => Ok((lengths, symbols)),
            _ => refuse!(State, "no table {number} of symbols"),
        }
    }
}

impl TableEntries {
    /// Appends `count` entries. There must be `first` entries already.
    fn append(
        &mut self,
        first: usize,
        count: usize,
        code: u8,
        appended_width: Option<usize>,
        reader: &mut Reader<'_, '_>,
    ) -> Result<()> {
        let present = match self {
            Self::Fixed { width, values } if appended_width == Some(*width) => {
                match (1..=TABLE_BYTES_MAX).contains(width) {
                    true => values.len() / *width,
                    false => refuse!(State, "entries of {width} bytes"),
                }
            }
            Self::Strings { utf8, offsets, .. } if code == if *utf8 { 2 } else { 3 } => {
                offsets.len() / 4 - 1
            }
            _ => refuse!(State, "entries of code {code} are appended to a table of another type"),
        };
        if first != present {
            refuse!(State, "entries are appended from {first} on, the table has {present}");
        }
        if count == 0 || count > TABLE_ENTRIES_MAX - present {
            refuse!(
                State,
                "{count} entries are appended to {present}; a table has 1 to {TABLE_ENTRIES_MAX}"
            );
        }
        let check_bytes = |bytes: usize| match bytes > TABLE_BYTES_MAX {
            true => refuse!(State, "{bytes} bytes of entries, over the limit of {TABLE_BYTES_MAX}"),
            false => Ok(()),
        };
        match self {
            Self::Fixed { width, values } => {
                // Fewer than 2^32.
                check_bytes(values.len() + count * *width)?;
                reader.charge(count, *width)?;
                values.extend_from_slice(&reader.fixed(
                    count,
                    *width,
                    Codes::ENTRIES,
                    Destination::Scratch,
                )?);
            }
            Self::Strings { utf8, offsets, data } => {
                reader.charge(count, 4)?;
                if reader.descriptors.clone().u8("encoding")? == 4 {
                    refuse!(Code, "symbols for the entries of a table");
                }
                let (appended_offsets, appended) = reader.flat_strings(
                    count,
                    *utf8,
                    Destination::Scratch,
                    Destination::Scratch,
                )?;
                check_bytes(data.len() + appended.len())?;
                reader.charge(appended.len(), 1)?;
                // At most 2^16.
                let start = data.len() as u32;
                offsets.extend(
                    u32s(&appended_offsets[4..]).flat_map(|end| (start + end).to_le_bytes()),
                );
                data.extend_from_slice(&appended);
            }
            Self::Symbols { .. } => {}
        }
        Ok(())
    }
}
