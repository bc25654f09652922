//! The footer: `spec/page-file.md` section 6.

use crate::error::{Result, refuse};
use crate::header::{DIGEST_BYTES, UNIT_BYTES, u32_at, u64_at};
use crate::index::PAGE_ENTRY_BYTES;
use crate::key::KEY_ENTRY_BYTES;

pub(crate) const FOOTER_BYTES: usize = 128;
const MAGIC: [u8; 8] = *b"DRYFEND\0";
const MAGIC_AT: usize = FOOTER_BYTES - MAGIC.len();
/// The bytes that the digest covers.
const DIGESTED_BYTES: usize = 80;
const RESERVED_AT: [std::ops::Range<usize>; 2] = [56..80, 112..120];

/// What a file ends with. Offsets and sizes are in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) index_at: usize,
    pub(crate) pages: usize,
    pub(crate) objects: u64,
    /// With the zeros behind them; 0 without a key index.
    pub(crate) key_paths_bytes: usize,
    /// The entries of the key index.
    pub(crate) keys: usize,
    pub(crate) keys_checksum: u32,
    pub(crate) digest: [u8; DIGEST_BYTES],
}

impl Footer {
    /// Reads the end of a file whose pages begin at `pages_at`.
    pub(crate) fn decode(file: &[u8], pages_at: usize) -> Result<Self> {
        let body = file.get(pages_at..).unwrap_or_default();
        let Some(footer) = body.last_chunk::<FOOTER_BYTES>() else {
            refuse!(Cut, "it ends after {} bytes, without a footer", file.len());
        };
        if footer[MAGIC_AT..] != MAGIC || u64_at(footer, 0) != file.len() as u64 {
            refuse!(Cut, "it ends after {} bytes, without a footer", file.len());
        }
        let mut digest = [0; DIGEST_BYTES];
        digest.copy_from_slice(&footer[DIGESTED_BYTES..DIGESTED_BYTES + DIGEST_BYTES]);
        if RESERVED_AT.into_iter().any(|range| footer[range].iter().any(|byte| *byte != 0)) {
            refuse!(Footer, "a reserved byte of the footer is not 0");
        }
        let read = Self {
            index_at: Self::size(footer, 8)?,
            pages: Self::size(footer, 16)?,
            objects: u64_at(footer, 24),
            key_paths_bytes: u32_at(footer, 48) as usize,
            keys: Self::size(footer, 40)?,
            keys_checksum: u32_at(footer, 52),
            digest,
        };
        let keys_at = Self::size(footer, 32)?;
        // No arithmetic below can overflow: each factor is at most the size of the file.
        let expected_keys_at = match read.key_paths_bytes {
            0 => 0,
            _ => read.key_paths_at(),
        };
        let fits = read.index_at >= pages_at
            && (read.index_at - pages_at).is_multiple_of(UNIT_BYTES)
            && read.objects >= read.pages as u64
            && (read.objects == 0) == (read.pages == 0)
            && read.keys as u64 <= read.objects
            && read.key_paths_bytes.is_multiple_of(8)
            && (read.has_keys() || read.keys == 0 && read.keys_checksum == 0)
            && keys_at == expected_keys_at
            && read.end() == file.len() - FOOTER_BYTES;
        if !fits {
            refuse!(Footer, "offsets, counts and sizes of the footer contradict each other");
        }
        Ok(read)
    }

    /// A count or an offset. None is larger than a file that is mapped can be.
    fn size(footer: &[u8], at: usize) -> Result<usize> {
        match u64_at(footer, at) {
            size if size < 1 << 48 => Ok(size as usize),
            size => refuse!(Footer, "the footer says {size}, more than a file has"),
        }
    }

    pub(crate) fn has_keys(&self) -> bool {
        self.key_paths_bytes > 0
    }

    /// Where the page index ends, and the key paths begin if there are any.
    pub(crate) fn key_paths_at(&self) -> usize {
        self.index_at + PAGE_ENTRY_BYTES * self.pages
    }

    pub(crate) fn keys_at(&self) -> usize {
        self.key_paths_at() + self.key_paths_bytes
    }

    fn end(&self) -> usize {
        self.keys_at() + KEY_ENTRY_BYTES * self.keys
    }

    /// The footer's bytes. `digest` makes the digest of the bytes that the footer begins with.
    pub(crate) fn encode(
        &self,
        digest: impl FnOnce(&[u8]) -> [u8; DIGEST_BYTES],
    ) -> [u8; FOOTER_BYTES] {
        let keys_at = if self.has_keys() { self.key_paths_at() } else { 0 };
        let words = [
            (self.end() + FOOTER_BYTES) as u64,
            self.index_at as u64,
            self.pages as u64,
            self.objects,
            keys_at as u64,
            self.keys as u64,
            self.key_paths_bytes as u64 | u64::from(self.keys_checksum) << 32,
        ];
        let mut bytes = [0; FOOTER_BYTES];
        for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        let (start, rest) = bytes.split_at_mut(DIGESTED_BYTES);
        rest[..DIGEST_BYTES].copy_from_slice(&digest(start));
        bytes[MAGIC_AT..].copy_from_slice(&MAGIC);
        bytes
    }

    /// The footer's bytes that the digest covers.
    pub(crate) fn digested(file: &[u8]) -> &[u8] {
        let at = file.len().saturating_sub(FOOTER_BYTES);
        file.get(at..at + DIGESTED_BYTES).unwrap_or_default()
    }
}
