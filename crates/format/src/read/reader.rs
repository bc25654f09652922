//! A reader's position in the descriptors and in the body of one frame, and the budget of decoded
//! bytes that the frame declared.

use bytes::Bytes;

use super::Tables;
use crate::compress::{Compressor, Unpacker};
use crate::cursor::Cursor;
use crate::error::{ErrorKind, Result, refuse};
use crate::header::Header;
use crate::layout::{WEIGHTLESS_MAX, alignment, check_count, check_padding};
use crate::output::{BufferSlice, BufferSource, OutputBuffer};

/// A buffer as it is in the body.
pub(super) struct StoredBuffer {
    compressor: Compressor,
    packed: Bytes,
    /// Its size once it is unpacked.
    pub(super) raw_bytes: usize,
}

/// What a buffer is decoded for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Destination {
    /// It becomes a buffer of the column.
    Column,
    /// The column's buffers are computed from it.
    Scratch,
}

/// Reads one frame: a chunk, or a state frame.
pub(super) struct Reader<'a, 'm> {
    pub(super) descriptors: Cursor<'a>,
    body: &'a Bytes,
    /// Where the buffers of columns go; none for the heap.
    pub(super) source: Option<&'m mut dyn BufferSource>,
    /// Where the last buffer ended in the body.
    pub(super) at: usize,
    /// What is left of the declared decoded size.
    pub(super) budget: u64,
    /// How many more values may take no bytes.
    weightless_left: usize,
    pub(super) tables: &'a Tables,
    unpacker: Unpacker,
    /// The encodings of the column that is being read, if a profile is taken.
    pub(super) encodings: Option<Vec<&'static str>>,
}

impl<'a> Reader<'a, '_> {
    /// A reader at the start of a frame. `descriptors` includes their padding.
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
            source: None,
            at: 0,
            budget: header.decoded_bytes,
            weightless_left: WEIGHTLESS_MAX,
            tables,
            unpacker: Unpacker::default(),
            encodings: None,
        })
    }

    /// Checks that the frame was read to its end.
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
    /// Takes `count` times `bytes` bytes out of the budget, and returns the product.
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

    /// Notes an encoding for the profile.
    pub(super) fn note(&mut self, encoding: &'static str) {
        if let Some(encodings) = &mut self.encodings {
            encodings.push(encoding);
        }
    }

    /// The next buffer in the body.
    pub(super) fn next_buffer(&mut self) -> Result<StoredBuffer> {
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
        debug_assert!(bytes <= self.at && self.at <= self.body.len());
        Ok(StoredBuffer {
            compressor,
            packed: self.body.slice(self.at - bytes..self.at),
            raw_bytes,
        })
    }

    /// An empty buffer to decode to. The caller has checked its size against the budget.
    pub(super) fn output(&mut self, bytes: usize, to: Destination) -> Result<OutputBuffer> {
        OutputBuffer::new(self.slice(bytes, to), bytes)
    }

    /// A buffer of zeros. The caller has checked its size against the budget.
    pub(super) fn zeros(&mut self, bytes: usize, to: Destination) -> OutputBuffer {
        OutputBuffer::zeros(self.slice(bytes, to), bytes)
    }

    fn slice(&mut self, bytes: usize, to: Destination) -> Option<Box<dyn BufferSlice>> {
        self.source.as_mut().filter(|_| to == Destination::Column)?.buffer(bytes)
    }

    /// The contents of a buffer. The caller has checked their size against the budget.
    pub(super) fn unpack(&mut self, stored: StoredBuffer, to: Destination) -> Result<Bytes> {
        match stored.compressor {
            Compressor::None
                if to == Destination::Scratch
                    || !self.source.as_ref().is_some_and(|source| source.copies_plain()) =>
            {
                return Ok(stored.packed);
            }
            Compressor::None => {}
            Compressor::Lz4 => self.note("lz4"),
            Compressor::Zstd => self.note("zstd"),
        }
        let output = self.output(stored.raw_bytes, to)?;
        self.unpacker.unpack(stored.compressor, &stored.packed, stored.raw_bytes, output)
    }

    /// The contents of the next buffer, which must have `expected` bytes.
    pub(super) fn buffer(&mut self, expected: usize, to: Destination) -> Result<Bytes> {
        let stored = self.next_buffer()?;
        if stored.raw_bytes != expected {
            refuse!(Length, "a buffer of {} bytes, {expected} expected", stored.raw_bytes);
        }
        self.unpack(stored, to)
    }

    /// Checks the total size of strings before they are unpacked.
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

/// An empty vector with memory for `count` items.
pub(super) fn reserved<T>(count: usize) -> Result<Vec<T>> {
    let mut out = Vec::new();
    match out.try_reserve_exact(count) {
        Ok(()) => Ok(out),
        Err(_) => refuse!(Limit, "no memory for {count} times {} bytes", size_of::<T>()),
    }
}
