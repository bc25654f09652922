//! The byte sinks of a chunk, and of the state frame ahead of it.
//!
//! A [`Sink`] collects the descriptors and the body of one frame. Large buffers are shared, small
//! ones are copied together. Encoders write to sinks and know nothing above them; `write` calls the
//! encoders.
//!
//! ```text
//! ColumnWriter ─▶ encoders ─▶ Sinks ┬ chunk: Sink ─▶ descriptors, body ─▶ Frame
//!                                   └ state: StateSink, with a Sink of its own
//! ```

mod body;
mod state;

use bytes::{Bytes, BytesMut};

use self::body::Body;
pub use self::state::DictionaryBudget;
pub(crate) use self::state::{StateSink, TableClaim};
use crate::clock::Clock;
use crate::compress::{Compression, Compressor, Packer};
use crate::error::{Result, refuse};
use crate::header::{Checksum, Header, crc32c};
use crate::layout::LARGE_ALIGNMENT;

/// Smaller buffers are not compressed: zstd takes some microseconds for each buffer.
const COMPRESSED_BYTES_MIN: usize = 512;

/// The sinks that the columns of a chunk are written to.
pub(crate) struct Sinks {
    pub(crate) chunk: Sink,
    /// The state frame, if the chunk may have tables that outlive it.
    pub(crate) state: Option<StateSink>,
    pub(crate) clock: Clock,
}

impl Sinks {
    /// Sets the compression of the buffers that follow.
    pub(crate) fn set_compression(&mut self, compression: Compression) {
        self.chunk.compression = compression;
        if let Some(state) = &mut self.state {
            state.sink.compression = compression;
        }
    }

    /// The bytes written to the state frame so far.
    pub(crate) fn state_bytes(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.sink.bytes())
    }
}

/// A frame without its number: a chunk, or a state frame.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) header: Header,
    /// The checksum of `parts`, which is continued over the header.
    pub(crate) parts_checksum: Option<u32>,
    /// The descriptors with their padding, then the body.
    pub(crate) parts: Vec<Bytes>,
}

/// A frame under construction.
pub(crate) struct Sink {
    pub(crate) compression: Compression,
    pub(crate) descriptors: Vec<u8>,
    body: Body,
    decoded_bytes: u64,
    packer: Packer,
}

impl Sink {
    pub(crate) fn new() -> Self {
        Self {
            compression: Compression::None,
            descriptors: Vec::new(),
            body: Body::default(),
            decoded_bytes: 0,
            packer: Packer::default(),
        }
    }

    /// Closes the frame, which has this many rows or tables.
    pub(crate) fn finish(mut self, rows: u32, checksum: Checksum) -> Result<Frame> {
        let (Ok(descriptor_bytes), Ok(body_bytes)) =
            (u32::try_from(self.descriptors.len()), u32::try_from(self.body.bytes()))
        else {
            refuse!(Limit, "a chunk of {} bytes is too large", self.body.bytes())
        };
        let padded = self.descriptors.len().next_multiple_of(LARGE_ALIGNMENT);
        self.descriptors.resize(padded, 0);
        let mut parts = vec![Bytes::from(self.descriptors)];
        parts.append(&mut self.body.finish());
        let header = Header {
            sequence: 0,
            rows,
            descriptor_bytes,
            body_bytes,
            checksum: None,
            jumbo: false,
            decoded_bytes: self.decoded_bytes,
            states: 0,
        };
        let parts_checksum = match checksum {
            Checksum::None => None,
            Checksum::Crc32c => Some(parts.iter().fold(0, |crc, part| crc32c(crc, part))),
        };
        Ok(Frame { header, parts_checksum, parts })
    }

    /// The bytes of descriptors and body so far.
    pub(crate) fn bytes(&self) -> u64 {
        (self.descriptors.len() + self.body.bytes()) as u64
    }

    /// What the frame decodes to so far, in bytes.
    pub(crate) fn decoded_bytes(&self) -> u64 {
        self.decoded_bytes
    }

    /// Adds to what the frame decodes to.
    pub(crate) fn add_decoded(&mut self, bytes: u64) {
        self.decoded_bytes += bytes;
    }

    /// Adds `count` values of `bytes` bytes to what the frame decodes to.
    pub(crate) fn count(&mut self, count: usize, bytes: usize) {
        self.add_decoded((count * bytes) as u64);
    }

    /// Writes one buffer made of parts, compressed if that saves a tenth.
    pub(crate) fn buffer(&mut self, parts: Vec<Bytes>) -> Result<()> {
        let raw_bytes: usize = parts.iter().map(Bytes::len).sum();
        if !self.compression.compresses() || raw_bytes < COMPRESSED_BYTES_MIN {
            self.buffer_head(Compressor::None, raw_bytes, raw_bytes)?;
            parts.into_iter().for_each(|part| self.body.push(part));
            return Ok(());
        }
        let raw = joined(parts);
        match self.compressed(&raw, raw_bytes) {
            Some(packed) => self.compressed_buffer(packed, raw_bytes),
            None => self.plain_buffer(raw),
        }
    }

    /// Writes one buffer as it is.
    pub(crate) fn plain_buffer(&mut self, raw: Bytes) -> Result<()> {
        let raw_bytes = raw.len();
        self.stored_buffer(Compressor::None, raw, raw_bytes)
    }

    /// Compresses a buffer. None unless the result is a tenth smaller than `bytes`.
    pub(crate) fn compressed(&mut self, raw: &[u8], bytes: usize) -> Option<Bytes> {
        let (compressor, level) = self.compression.compressor();
        if raw.len() < COMPRESSED_BYTES_MIN {
            return None;
        }
        self.packer
            .pack(compressor, level, raw)
            .filter(|packed| packed.len() < bytes / 10 * 9)
            .map(Bytes::from)
    }

    /// Writes a buffer of `raw_bytes` bytes that [`Self::compressed`] has packed.
    pub(crate) fn compressed_buffer(&mut self, packed: Bytes, raw_bytes: usize) -> Result<()> {
        self.stored_buffer(self.compression.compressor().0, packed, raw_bytes)
    }

    /// Writes a buffer that is compressed already, or stays uncompressed.
    pub(crate) fn stored_buffer(
        &mut self,
        compressor: Compressor,
        stored: Bytes,
        raw_bytes: usize,
    ) -> Result<()> {
        self.buffer_head(compressor, stored.len(), raw_bytes)?;
        self.body.push(stored);
        Ok(())
    }

    fn buffer_head(
        &mut self,
        compressor: Compressor,
        bytes: usize,
        raw_bytes: usize,
    ) -> Result<()> {
        self.descriptors.push(compressor as u8);
        self.put_u32(bytes)?;
        if compressor != Compressor::None {
            self.put_u32(raw_bytes)?;
        }
        if bytes > 0 {
            self.body.align(bytes);
        }
        Ok(())
    }

    /// Appends a number to the descriptors.
    pub(crate) fn put_u32(&mut self, value: usize) -> Result<()> {
        let Ok(value) = u32::try_from(value) else {
            refuse!(Limit, "{value} bytes or values are too many for a chunk")
        };
        self.descriptors.extend_from_slice(&value.to_le_bytes());
        Ok(())
    }
}

/// All parts in one buffer.
pub(crate) fn joined(mut parts: Vec<Bytes>) -> Bytes {
    if parts.len() == 1
        && let Some(part) = parts.pop()
    {
        return part;
    }
    let mut out = BytesMut::with_capacity(parts.iter().map(Bytes::len).sum());
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out.freeze()
}
