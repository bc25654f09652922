//! Compressors: `spec/encodings.md` section 5.

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result, refuse};
use crate::output::OutputBuffer;

/// The magic number of a zstd frame (RFC 8878 section 3.1.1).
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// How hard a writer tries to make a chunk small (encodings.md section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// Every buffer plain, as it is in the batches.
    #[default]
    None,
    /// Only what costs next to nothing: missing values are left out where they are the majority,
    /// and [`Values::Narrow`](crate::Values::Narrow) stays narrow. Readers have to copy such
    /// columns.
    Compact,
    /// Light encodings. They are quick, and for numbers they save most of what can be saved.
    Light,
    /// Light encodings, and strings coded with a symbol table that was trained on them.
    Symbols,
    /// Light encodings, then LZ4 on every buffer where that saves a tenth.
    Lz4,
    /// Light encodings, then zstd at this level on every buffer where that saves a tenth.
    Zstd(i32),
}

impl Compression {
    /// Whether light encodings are used.
    pub(crate) fn encodes(self) -> bool {
        !matches!(self, Self::None | Self::Compact)
    }

    /// Whether a compressor comes after the encodings.
    pub(crate) fn compresses(self) -> bool {
        self.compressor().0 != Compressor::None
    }

    /// The compressor that comes after the encodings, and its level.
    pub(crate) fn compressor(self) -> (Compressor, i32) {
        match self {
            Self::None | Self::Compact | Self::Light | Self::Symbols => (Compressor::None, 0),
            Self::Lz4 => (Compressor::Lz4, 0),
            Self::Zstd(level) => (Compressor::Zstd, level),
        }
    }
}

/// The compressor of a buffer, by its code on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compressor {
    None = 0,
    Lz4 = 1,
    Zstd = 2,
}

impl Compressor {
    pub(crate) fn from_code(code: u8) -> Result<Self> {
        match code {
            0 => Ok(Self::None),
            1 => Ok(Self::Lz4),
            2 => Ok(Self::Zstd),
            _ => refuse!(Code, "unknown compressor {code}"),
        }
    }
}

/// Unpacks buffers, one after the other with the same working memory.
#[derive(Default)]
pub(crate) struct Unpacker {
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl Unpacker {
    /// Unpacks `packed` to exactly `raw_bytes` bytes, the size of `output`. The caller has checked
    /// that size against the chunk's budget.
    pub(crate) fn unpack(
        &mut self,
        compressor: Compressor,
        packed: &[u8],
        raw_bytes: usize,
        mut output: OutputBuffer,
    ) -> Result<Bytes> {
        let unpacked = match compressor {
            Compressor::None => {
                output.append(|out| out.extend_from_slice(packed));
                Some(packed.len())
            }
            Compressor::Lz4 => lz4_flex::block::decompress_into(packed, output.all()).ok(),
            // Exactly one frame, and no skippable one: the library would accept several.
            Compressor::Zstd if packed.starts_with(&ZSTD_MAGIC) => {
                let whole = zstd::zstd_safe::find_frame_compressed_size(packed) == Ok(packed.len());
                self.zstd().filter(|_| whole).and_then(|zstd| match output.heap() {
                    Some(heap) => zstd.decompress_to_buffer(packed, heap).ok(),
                    None => zstd.decompress_to_buffer(packed, output.all()).ok(),
                })
            }
            Compressor::Zstd => None,
        };
        if unpacked != Some(raw_bytes) {
            return Err(Error::new(
                ErrorKind::Compressed,
                format!(
                    "a {compressor:?} buffer of {} bytes does not unpack to its {raw_bytes} bytes",
                    packed.len()
                ),
            ));
        }
        output.finish()
    }

    fn zstd(&mut self) -> Option<&mut zstd::bulk::Decompressor<'static>> {
        if self.zstd.is_none() {
            self.zstd = zstd::bulk::Decompressor::new().ok();
        }
        self.zstd.as_mut()
    }
}

/// Packs buffers, one after the other with the same working memory: setting up zstd's takes longer
/// than packing a small buffer.
#[derive(Default)]
pub(crate) struct Packer {
    zstd: Option<zstd::bulk::Compressor<'static>>,
}

impl Packer {
    /// Packs `raw` with LZ4, or with zstd at a level. None if the compressor fails.
    pub(crate) fn pack(
        &mut self,
        compressor: Compressor,
        level: i32,
        raw: &[u8],
    ) -> Option<Vec<u8>> {
        match compressor {
            Compressor::None => None,
            Compressor::Lz4 => Some(lz4_flex::block::compress(raw)),
            Compressor::Zstd => {
                let mut zstd =
                    self.zstd.take().map_or_else(|| zstd::bulk::Compressor::new(level), Ok).ok()?;
                zstd.set_compression_level(level).ok()?;
                let packed = zstd.compress(raw).ok();
                self.zstd = Some(zstd);
                packed
            }
        }
    }
}
