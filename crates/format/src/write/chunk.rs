//! A chunk ready to be sent, and the state frame ahead of it.

use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::header::{HEADER_BYTES, Header, StateHeader};
use crate::sink::{Frame, Sinks};

/// A chunk that is ready to be sent.
#[derive(Debug, Clone)]
pub struct Chunk {
    frame: Frame,
    columns: Vec<ColumnStats>,
    state: Option<StateFrame>,
}

/// The tables that a chunk adds to those of its stream, ready to be sent ahead of the chunk.
#[derive(Debug, Clone)]
pub struct StateFrame {
    header: StateHeader,
    parts_checksum: Option<u32>,
    parts: Vec<Bytes>,
}

impl StateFrame {
    pub(super) fn new(frame: Frame) -> Self {
        let Frame { header, parts_checksum, parts } = frame;
        Self { header: StateHeader(header), parts_checksum, parts }
    }

    /// The size of the whole frame in bytes.
    pub fn frame_bytes(&self) -> u64 {
        self.header.frame_bytes()
    }

    /// Gives the frame its number. Returns its header's bytes and the parts that follow.
    pub fn numbered(mut self, sequence: u64) -> ([u8; HEADER_BYTES], Vec<Bytes>) {
        self.header.0.sequence = sequence;
        (self.header.finished(self.parts_checksum), self.parts)
    }
}

/// The sizes of one column of a chunk, and the time it took to encode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnStats {
    /// The size that the column decodes to, in bytes.
    pub decoded_bytes: u64,
    /// The bytes in the chunk and in the state frame ahead of it, descriptors and padding included.
    pub bytes: u64,
    /// The bytes among these that are in the state frame.
    pub state_bytes: u64,
    /// The time to encode the column in nanoseconds, without the training of symbols, which the
    /// next chunks reuse.
    pub encode_ns: u64,
}

impl ColumnStats {
    /// The sizes before a column is written.
    pub(super) fn so_far(sinks: &Sinks) -> Self {
        let (chunk, state_bytes) = (&sinks.chunk, sinks.state_bytes());
        let bytes = chunk.bytes() + state_bytes;
        Self { decoded_bytes: chunk.decoded_bytes(), bytes, state_bytes, encode_ns: 0 }
    }

    /// The statistics of a column that was written since `before`.
    pub(super) fn since(before: Self, sinks: &Sinks, elapsed: Duration) -> Self {
        let now = Self::so_far(sinks);
        Self {
            decoded_bytes: now.decoded_bytes - before.decoded_bytes,
            bytes: now.bytes - before.bytes,
            state_bytes: now.state_bytes - before.state_bytes,
            encode_ns: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
        }
    }
}

impl Chunk {
    pub(super) fn new(frame: Frame, columns: Vec<ColumnStats>, state: Option<StateFrame>) -> Self {
        debug_assert_eq!(
            HEADER_BYTES as u64 + frame.parts.iter().map(|part| part.len() as u64).sum::<u64>(),
            frame.header.chunk_bytes()
        );
        Self { frame, columns, state }
    }

    /// The number of rows.
    pub fn rows(&self) -> u32 {
        self.frame.header.rows
    }

    /// The size of the whole chunk in bytes.
    pub fn chunk_bytes(&self) -> u64 {
        self.frame.header.chunk_bytes()
    }

    /// The size of the state frame that must be sent ahead of the chunk; 0 if there is none.
    pub fn state_bytes(&self) -> u64 {
        self.state.as_ref().map_or(0, StateFrame::frame_bytes)
    }

    /// The size that the chunk decodes to, in bytes.
    pub fn decoded_bytes(&self) -> u64 {
        self.frame.header.decoded_bytes
    }

    /// Statistics of each column.
    pub fn columns(&self) -> &[ColumnStats] {
        &self.columns
    }

    /// Takes the state frame that must be sent ahead of the chunk, if there is one.
    pub fn take_state(&mut self) -> Option<StateFrame> {
        self.state.take()
    }

    /// Gives the chunk its number and the number of state frames before it. Returns its header's
    /// bytes and the parts that follow.
    pub fn numbered(self, sequence: u64, states: u32) -> ([u8; HEADER_BYTES], Vec<Bytes>) {
        let Frame { header, parts_checksum, parts } = self.frame;
        let mut header = Header { sequence, states, ..header };
        header.checksum = parts_checksum.map(|checksum| header.finish_checksum(checksum));
        (header.encode(), parts)
    }

    /// The whole chunk in one buffer, with no state frames before it.
    pub fn to_bytes(&self, sequence: u64) -> Bytes {
        let (header, parts) = self.clone().numbered(sequence, 0);
        let mut out = BytesMut::from(&header[..]);
        parts.iter().for_each(|part| out.extend_from_slice(part));
        out.freeze()
    }
}
