//! The headers of chunks and of state frames: `spec/chunk.md` section 2, `spec/state.md` section 1.

use crate::error::{Result, refuse};
use crate::layout::{COUNT_MAX, LARGE_ALIGNMENT};

/// The size of a header in bytes.
pub const HEADER_BYTES: usize = 64;

const MAGIC: [u8; 4] = *b"DRYC";
const STATE_MAGIC: [u8; 4] = *b"DRYS";
const VERSION: u16 = 0;
const FLAG_CHECKSUM: u16 = 1;
const FLAG_JUMBO: u16 = 2;
const CHECKSUM_AT: std::ops::Range<usize> = 28..32;
/// In a state frame these bytes are reserved.
const STATES_AT: std::ops::Range<usize> = 40..44;
const RESERVED_AT: std::ops::Range<usize> = 44..64;

/// The largest chunks that a reader accepts (chunk.md section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The size of a chunk in bytes.
    pub chunk_bytes_max: u64,
    /// The size that a chunk may decode to, in bytes.
    pub decoded_bytes_max: u64,
    /// Both limits for a jumbo chunk, which has one row.
    pub row_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { chunk_bytes_max: 16 << 20, decoded_bytes_max: 64 << 20, row_bytes_max: 256 << 20 }
    }
}

/// Whether chunks, state frames or pages carry a checksum (chunk.md section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// No checksum.
    None,
    /// The CRC-32C of all bytes.
    Crc32c,
}

impl From<bool> for Checksum {
    /// `true` is [`Checksum::Crc32c`].
    fn from(checksums: bool) -> Self {
        if checksums { Self::Crc32c } else { Self::None }
    }
}

/// Which limits of the reader apply to a chunk (chunk.md section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkKind {
    /// `chunk_bytes_max` and `decoded_bytes_max`.
    Regular,
    /// `row_bytes_max`: the chunk is one row that no regular chunk can hold.
    Jumbo,
}

/// The header of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The chunk's number in its stream, from 0.
    pub sequence: u64,
    /// Rows, at least one.
    pub rows: u32,
    /// Bytes of descriptors, without padding.
    pub descriptor_bytes: u32,
    /// Bytes of the body.
    pub body_bytes: u32,
    /// CRC-32C of the chunk, if it has one.
    pub checksum: Option<u32>,
    /// Whether the chunk is one row that no regular chunk can hold.
    pub jumbo: bool,
    /// The size that the chunk decodes to, in bytes.
    pub decoded_bytes: u64,
    /// The number of state frames before it in its stream.
    pub states: u32,
}

impl Header {
    /// Reads a header and checks it against the reader's limits, before anything is allocated.
    ///
    /// # Errors
    /// When it breaks a rule of chunk.md section 2, or is over a limit.
    pub fn decode(bytes: &[u8; HEADER_BYTES], limits: &Limits) -> Result<Self> {
        let header = Self::decode_fields(bytes, MAGIC, FLAG_CHECKSUM | FLAG_JUMBO)?;
        if header.rows == 0 || header.jumbo && header.rows != 1 {
            refuse!(
                Rows,
                "a chunk of {} rows{}",
                header.rows,
                if header.jumbo { " is marked as jumbo" } else { "" }
            );
        }
        header.check(limits)?;
        Ok(header)
    }

    /// Reads the fields that chunks and state frames have in common, with the checks of both.
    fn decode_fields(
        bytes: &[u8; HEADER_BYTES],
        magic: [u8; 4],
        flags_defined: u16,
    ) -> Result<Self> {
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let u32_at = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        if bytes[..4] != magic {
            refuse!(Magic, "it begins with {:02x?}, expected {magic:02x?}", &bytes[..4]);
        }
        if u16_at(4) != VERSION {
            refuse!(Version, "layout version {}, this reader knows {VERSION}", u16_at(4));
        }
        let flags = u16_at(6);
        if flags & !flags_defined != 0 {
            refuse!(Flags, "unknown flags {flags:#06x}");
        }
        let header = Self {
            sequence: u64_at(8),
            rows: u32_at(16),
            descriptor_bytes: u32_at(20),
            body_bytes: u32_at(24),
            checksum: (flags & FLAG_CHECKSUM != 0).then(|| u32_at(28)),
            jumbo: flags & FLAG_JUMBO != 0,
            decoded_bytes: u64_at(32),
            states: u32_at(STATES_AT.start),
        };
        if header.checksum.is_none() && u32_at(28) != 0 {
            refuse!(Checksum, "there is a checksum without its flag");
        }
        if bytes[RESERVED_AT].iter().any(|byte| *byte != 0) {
            refuse!(Reserved, "a reserved byte of the header is not 0");
        }
        Ok(header)
    }

    fn check(&self, limits: &Limits) -> Result<()> {
        let (chunk_max, decoded_max) = match self.jumbo {
            true => (limits.row_bytes_max, limits.row_bytes_max),
            false => (limits.chunk_bytes_max, limits.decoded_bytes_max),
        };
        if self.chunk_bytes() > chunk_max {
            refuse!(
                Limit,
                "a chunk of {} bytes is over the limit of {chunk_max}",
                self.chunk_bytes()
            );
        }
        if self.decoded_bytes > decoded_max {
            refuse!(
                Limit,
                "a chunk that decodes to {} bytes is over the limit of {decoded_max}",
                self.decoded_bytes
            );
        }
        if self.rows as usize > COUNT_MAX {
            refuse!(Limit, "{} rows are too many for a chunk", self.rows);
        }
        Ok(())
    }

    /// The header's bytes.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        self.encode_fields(MAGIC)
    }

    fn encode_fields(&self, magic: [u8; 4]) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let flags = if self.checksum.is_some() { FLAG_CHECKSUM } else { 0 }
            | if self.jumbo { FLAG_JUMBO } else { 0 };
        bytes[..4].copy_from_slice(&magic);
        bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
        bytes[6..8].copy_from_slice(&flags.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.rows.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.descriptor_bytes.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.body_bytes.to_le_bytes());
        bytes[CHECKSUM_AT].copy_from_slice(&self.checksum.unwrap_or(0).to_le_bytes());
        bytes[32..40].copy_from_slice(&self.decoded_bytes.to_le_bytes());
        bytes[STATES_AT].copy_from_slice(&self.states.to_le_bytes());
        bytes
    }

    /// The bytes between the header and the body: descriptors and their padding.
    pub fn descriptor_bytes_padded(&self) -> u64 {
        u64::from(self.descriptor_bytes).next_multiple_of(LARGE_ALIGNMENT as u64)
    }

    /// The size of the whole chunk in bytes.
    pub fn chunk_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + self.descriptor_bytes_padded() + u64::from(self.body_bytes)
    }

    /// Continues the checksum of descriptors and body over this header (chunk.md section 6).
    pub(crate) fn finish_checksum(&self, parts: u32) -> u32 {
        self.finish_checksum_of(MAGIC, parts)
    }

    fn finish_checksum_of(&self, magic: [u8; 4], parts: u32) -> u32 {
        crc32c(parts, &Self { checksum: Some(0), ..*self }.encode_fields(magic))
    }

    /// Checks the checksum, if there is one. `parts` are the descriptors with their padding, and
    /// the body.
    ///
    /// # Errors
    /// When it does not match.
    pub fn verify(&self, parts: &[&[u8]]) -> Result<()> {
        self.verify_as("chunk", MAGIC, parts)
    }

    fn verify_as(&self, what: &str, magic: [u8; 4], parts: &[&[u8]]) -> Result<()> {
        let Some(expected) = self.checksum else {
            return Ok(());
        };
        let found =
            self.finish_checksum_of(magic, parts.iter().fold(0, |crc, part| crc32c(crc, part)));
        if found != expected {
            let sequence = self.sequence;
            refuse!(
                Checksum,
                "{what} {sequence} was damaged on its way: checksum {found:08x}, \
                 expected {expected:08x}"
            );
        }
        Ok(())
    }
}

/// The header of a state frame (state.md section 1). It has a chunk's fields; `rows` is the number
/// of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateHeader(pub(crate) Header);

impl StateHeader {
    /// Reads a header and checks it against the reader's limits, before anything is allocated.
    ///
    /// # Errors
    /// When it breaks a rule of state.md section 1, or is over a limit.
    pub fn decode(bytes: &[u8; HEADER_BYTES], limits: &Limits) -> Result<Self> {
        let header = Header::decode_fields(bytes, STATE_MAGIC, FLAG_CHECKSUM)?;
        if header.rows == 0 {
            refuse!(State, "a state frame without tables");
        }
        if header.states != 0 {
            refuse!(Reserved, "a reserved byte of the header is not 0");
        }
        header.check(limits)?;
        Ok(Self(header))
    }

    /// Whether a state frame begins with these bytes, rather than a chunk.
    pub fn is_next(bytes: &[u8]) -> bool {
        bytes.starts_with(&STATE_MAGIC)
    }

    /// The frame's number among the state frames of its stream, from 0.
    pub fn sequence(&self) -> u64 {
        self.0.sequence
    }

    /// Bytes of the body.
    pub fn body_bytes(&self) -> u32 {
        self.0.body_bytes
    }

    /// Whether the frame has a checksum.
    pub fn has_checksum(&self) -> bool {
        self.0.checksum.is_some()
    }

    /// The size of the whole frame in bytes.
    pub fn frame_bytes(&self) -> u64 {
        self.0.chunk_bytes()
    }

    pub(crate) fn verify(&self, parts: &[&[u8]]) -> Result<()> {
        self.0.verify_as("state frame", STATE_MAGIC, parts)
    }

    /// The header's bytes. `parts_checksum` is the checksum of descriptors and body.
    pub(crate) fn finished(mut self, parts_checksum: Option<u32>) -> [u8; HEADER_BYTES] {
        self.0.checksum = parts_checksum.map(|parts| self.0.finish_checksum_of(STATE_MAGIC, parts));
        self.0.encode_fields(STATE_MAGIC)
    }
}

/// Continues the CRC-32C `before` over `bytes`. The first `before` is 0.
pub fn crc32c(before: u32, bytes: &[u8]) -> u32 {
    ::crc32c::crc32c_append(before, bytes)
}
