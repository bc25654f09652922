//! The chunk's header: `spec/chunk.md` section 2.

use crate::error::{Result, refuse};

/// The size of a header in bytes.
pub const HEADER_BYTES: usize = 64;

const MAGIC: [u8; 4] = *b"DRYC";
const VERSION: u16 = 0;
const FLAG_CHECKSUM: u16 = 1;
const FLAG_JUMBO: u16 = 2;
const CHECKSUM_AT: std::ops::Range<usize> = 28..32;
const RESERVED_AT: std::ops::Range<usize> = 40..64;

/// The largest chunks that a reader accepts (chunk.md section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The size of a chunk in bytes.
    pub chunk_bytes_max: u64,
    /// What a chunk may decode to, in bytes.
    pub decoded_bytes_max: u64,
    /// Both, for a chunk of one row that is larger than these.
    pub row_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { chunk_bytes_max: 16 << 20, decoded_bytes_max: 64 << 20, row_bytes_max: 256 << 20 }
    }
}

/// What a chunk says about itself.
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
    /// CRC-32C of the chunk, if it was taken.
    pub checksum: Option<u32>,
    /// One row, larger than the stream's largest chunk.
    pub jumbo: bool,
    /// What the chunk decodes to, in bytes.
    pub decoded_bytes: u64,
}

impl Header {
    /// Reads a header and holds it against the reader's limits, before anything is allocated for it.
    ///
    /// # Errors
    /// When it breaks a rule of chunk.md section 2, or is over a limit.
    pub fn decode(bytes: &[u8; HEADER_BYTES], limits: &Limits) -> Result<Self> {
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        if bytes[..4] != MAGIC {
            refuse!(Magic, "a chunk begins with {:02x?}, expected {MAGIC:02x?}", &bytes[..4]);
        }
        if u16_at(4) != VERSION {
            refuse!(Version, "chunk layout version {}, this reader knows {VERSION}", u16_at(4));
        }
        let flags = u16_at(6);
        if flags & !(FLAG_CHECKSUM | FLAG_JUMBO) != 0 {
            refuse!(Flags, "unknown chunk flags {flags:#06x}");
        }
        let header = Self {
            sequence: u64_at(8),
            rows: u32_at(16),
            descriptor_bytes: u32_at(20),
            body_bytes: u32_at(24),
            checksum: (flags & FLAG_CHECKSUM != 0).then(|| u32_at(28)),
            jumbo: flags & FLAG_JUMBO != 0,
            decoded_bytes: u64_at(32),
        };
        if header.rows == 0 || header.jumbo && header.rows != 1 {
            refuse!(Rows, "a chunk of {} rows{}", header.rows, if header.jumbo { " is marked as jumbo" } else { "" });
        }
        if header.checksum.is_none() && u32_at(28) != 0 {
            refuse!(Checksum, "a chunk without the checksum's flag has a checksum");
        }
        if bytes[RESERVED_AT].iter().any(|byte| *byte != 0) {
            refuse!(Reserved, "a reserved byte of the chunk's header is not 0");
        }
        header.check(limits)?;
        Ok(header)
    }

    fn check(&self, limits: &Limits) -> Result<()> {
        let (chunk_max, decoded_max) = match self.jumbo {
            true => (limits.row_bytes_max, limits.row_bytes_max),
            false => (limits.chunk_bytes_max, limits.decoded_bytes_max),
        };
        if self.chunk_bytes() > chunk_max {
            refuse!(Limit, "a chunk of {} bytes is over the limit of {chunk_max}", self.chunk_bytes());
        }
        if self.decoded_bytes > decoded_max {
            refuse!(Limit, "a chunk that decodes to {} bytes is over the limit of {decoded_max}", self.decoded_bytes);
        }
        if self.rows as usize > crate::types::COUNT_MAX {
            refuse!(Limit, "{} rows are too many for a chunk", self.rows);
        }
        Ok(())
    }

    /// The header's bytes.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let flags = if self.checksum.is_some() { FLAG_CHECKSUM } else { 0 } | if self.jumbo { FLAG_JUMBO } else { 0 };
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
        bytes[6..8].copy_from_slice(&flags.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.rows.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.descriptor_bytes.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.body_bytes.to_le_bytes());
        bytes[CHECKSUM_AT].copy_from_slice(&self.checksum.unwrap_or(0).to_le_bytes());
        bytes[32..40].copy_from_slice(&self.decoded_bytes.to_le_bytes());
        bytes
    }

    /// The bytes between the header and the body: descriptors and their padding.
    pub fn descriptor_bytes_padded(&self) -> u64 {
        u64::from(self.descriptor_bytes).next_multiple_of(64)
    }

    /// The size of the whole chunk in bytes.
    pub fn chunk_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + self.descriptor_bytes_padded() + u64::from(self.body_bytes)
    }

    /// Finishes a checksum, begun over descriptors and body, over this header (chunk.md section 6).
    pub(crate) fn finish_checksum(&self, parts: u32) -> u32 {
        crc32c(parts, &Self { checksum: Some(0), ..*self }.encode())
    }

    /// Compares the checksum, if there is one, with that of the bytes received: descriptors with their padding, and body.
    ///
    /// # Errors
    /// When they differ.
    pub fn verify(&self, parts: &[&[u8]]) -> Result<()> {
        let Some(expected) = self.checksum else {
            return Ok(());
        };
        let found = self.finish_checksum(parts.iter().fold(0, |crc, part| crc32c(crc, part)));
        if found != expected {
            let sequence = self.sequence;
            refuse!(Checksum, "chunk {sequence} was damaged on its way: checksum {found:08x}, expected {expected:08x}");
        }
        Ok(())
    }
}

/// Continues a CRC-32C over `bytes`; begin with 0.
pub fn crc32c(before: u32, bytes: &[u8]) -> u32 {
    ::crc32c::crc32c_append(before, bytes)
}
