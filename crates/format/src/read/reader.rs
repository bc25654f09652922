//! The state of a reader within a chunk or a state frame: its place in the descriptors and in the
//! body, and what is left of the declared size.

use bytes::Bytes;

use super::Tables;
use crate::compress::{Compressor, Unpacker};
use crate::cursor::Cursor;
use crate::error::{ErrorKind, Result, refuse};
use crate::header::Header;
use crate::layout::{WEIGHTLESS_MAX, alignment, check_count, check_padding};
use crate::room::{Memory, Piece, Room};

/// A buffer in the body, not yet unpacked.
pub(super) struct Placed {
    compressor: Compressor,
    packed: Bytes,
    pub(super) raw_bytes: usize,
}

/// What becomes of a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// It is one of the column's own.
    Kept,
    /// The column's own are made of it.
    Part,
}

pub(super) struct Reader<'a, 'm> {
    pub(super) descriptors: Cursor<'a>,
    body: &'a Bytes,
    pub(super) memory: Option<&'m mut dyn Memory>,
    /// Where the last buffer ended.
    pub(super) at: usize,
    /// What is left of the declared decoded size.
    pub(super) budget: u64,
    /// How many more values there may be that take no bytes.
    weightless_left: usize,
    pub(super) tables: &'a Tables,
    unpacker: Unpacker,
    pub(super) encodings: Option<Vec<&'static str>>,
}

impl<'a> Reader<'a, '_> {
    /// A reader of a chunk, or of a state frame.
    pub(super) fn new(
        header: &Header,
        descriptors: &'a [u8],
        body: &'a Bytes,
        tables: &'a Tables,
    ) -> Result<Self> {
        let Some((descriptors, padding)) =
            descriptors.split_at_checked(header.descriptor_bytes as usize)
        else {
            refuse!(
                Size,
                "{} bytes of descriptors, the header says {}",
                descriptors.len(),
                header.descriptor_bytes
            )
        };
        check_padding(padding)?;
        if body.len() != header.body_bytes as usize {
            refuse!(Size, "a body of {} bytes, the header says {}", body.len(), header.body_bytes);
        }
        Ok(Self {
            descriptors: Cursor::new(descriptors, ErrorKind::Truncated),
            body,
            memory: None,
            at: 0,
            budget: header.decoded_bytes,
            weightless_left: WEIGHTLESS_MAX,
            tables,
            unpacker: Unpacker::default(),
            encodings: None,
        })
    }

    /// Checks that nothing is left over at the end.
    pub(super) fn check_used_up(&self, sequence: u64) -> Result<()> {
        if !self.descriptors.is_empty() || self.at != self.body.len() {
            refuse!(
                Trailing,
                "chunk {sequence}: {} bytes of descriptors and {} of the body are left over",
                self.descriptors.remaining(),
                self.body.len() - self.at
            );
        }
        if self.budget != 0 {
            refuse!(Decoded, "chunk {sequence}: {} bytes fewer than it declares", self.budget);
        }
        Ok(())
    }
}

impl Reader<'_, '_> {
    pub(super) fn charge(&mut self, count: usize, bytes: usize) -> Result<usize> {
        let total = count.checked_mul(bytes).filter(|total| *total as u64 <= self.budget);
        let Some(total) = total else {
            refuse!(Decoded, "{count} times {bytes} bytes are more than it declares")
        };
        self.budget -= total as u64;
        Ok(total)
    }

    /// Counts values that take no bytes.
    pub(super) fn weightless(&mut self, count: usize) -> Result<()> {
        let Some(left) = self.weightless_left.checked_sub(count) else {
            refuse!(Limit, "more than {WEIGHTLESS_MAX} values that take no bytes")
        };
        self.weightless_left = left;
        Ok(())
    }

    pub(super) fn note(&mut self, encoding: &'static str) {
        if let Some(encodings) = &mut self.encodings {
            encodings.push(encoding);
        }
    }

    /// Finds the place of the next buffer in the body.
    pub(super) fn place(&mut self) -> Result<Placed> {
        let compressor = Compressor::from_code(self.descriptors.u8("compressor")?)?;
        let bytes = self.descriptors.u32("bytes")? as usize;
        let raw_bytes = match compressor {
            Compressor::None => bytes,
            _ => self.descriptors.u32("raw")? as usize,
        };
        if bytes > 0 {
            let start = self.at.next_multiple_of(alignment(bytes));
            let end = start.checked_add(bytes).filter(|end| *end <= self.body.len());
            let Some(end) = end else {
                refuse!(Length, "a buffer of {bytes} bytes leaves the body")
            };
            check_padding(&self.body[self.at..start])?;
            self.at = end;
        }
        Ok(Placed { compressor, packed: self.body.slice(self.at - bytes..self.at), raw_bytes })
    }

    /// Room for a buffer whose size the caller has held against what was declared.
    pub(super) fn room(&mut self, bytes: usize, to: Use) -> Result<Room> {
        Room::new(self.piece(bytes, to), bytes)
    }

    pub(super) fn zeros(&mut self, bytes: usize, to: Use) -> Room {
        Room::zeros(self.piece(bytes, to), bytes)
    }

    fn piece(&mut self, bytes: usize, to: Use) -> Option<Box<dyn Piece>> {
        self.memory.as_mut().filter(|_| to == Use::Kept)?.piece(bytes)
    }

    /// The contents of a buffer. The caller has held their size against what was declared.
    pub(super) fn unpack(&mut self, placed: Placed, to: Use) -> Result<Bytes> {
        match placed.compressor {
            Compressor::None
                if to == Use::Part
                    || !self.memory.as_ref().is_some_and(|memory| memory.takes_plain()) =>
            {
                return Ok(placed.packed);
            }
            Compressor::None => {}
            Compressor::Lz4 => self.note("lz4"),
            Compressor::Zstd => self.note("zstd"),
        }
        let room = self.room(placed.raw_bytes, to)?;
        self.unpacker.unpack(placed.compressor, &placed.packed, placed.raw_bytes, room)
    }

    /// The contents of the next buffer, which must have `expected` bytes.
    pub(super) fn buffer(&mut self, expected: usize, to: Use) -> Result<Bytes> {
        let placed = self.place()?;
        if placed.raw_bytes != expected {
            refuse!(Length, "a buffer of {} bytes, {expected} expected", placed.raw_bytes);
        }
        self.unpack(placed, to)
    }

    /// Checks that strings of `bytes` bytes in all can be held, before they are unpacked.
    pub(super) fn check_string_bytes(&self, bytes: usize) -> Result<()> {
        check_count(bytes)?;
        if bytes as u64 > self.budget {
            refuse!(
                Decoded,
                "{bytes} bytes of strings, {} of those declared are left",
                self.budget
            );
        }
        Ok(())
    }
}

pub(super) fn reserved<T>(count: usize) -> Result<Vec<T>> {
    let mut out = Vec::new();
    match out.try_reserve_exact(count) {
        Ok(()) => Ok(out),
        Err(_) => refuse!(Limit, "no memory for {count} times {} bytes", size_of::<T>()),
    }
}
