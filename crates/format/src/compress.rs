//! Compressors: `spec/encodings.md` section 5.

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result, refuse};
use crate::room::Room;

/// The magic number of a zstd frame (RFC 8878 section 3.1.1).
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// How hard a writer tries to make a chunk small (encodings.md section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// Every buffer plain, as batches have it.
    #[default]
    None,
    /// What costs next to nothing and makes readers copy: where most values are missing these are
    /// left out, and [`Values::Narrow`](crate::Values::Narrow) stays narrow.
    Compact,
    /// Light encodings alone: quick, and all that numbers mostly gain by.
    Light,
    /// Light encodings, and strings coded with a table of symbols that was trained on them.
    Symbols,
    /// Light encodings, then LZ4 on every buffer where that saves a tenth.
    Lz4,
    /// Light encodings, then zstd at this level on every buffer where that saves a tenth.
    Zstd(i32),
}

impl Compression {
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

/// What unpacks buffers. zstd's working memory is kept from one to the next.
#[derive(Default)]
pub(crate) struct Unpacker {
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl Unpacker {
    /// Unpacks `packed` to exactly the `raw_bytes` bytes of a room. The caller has taken these out
    /// of the chunk's budget.
    pub(crate) fn unpack(
        &mut self,
        compressor: Compressor,
        packed: &[u8],
        raw_bytes: usize,
        mut room: Room,
    ) -> Result<Bytes> {
        let unpacked = match compressor {
            Compressor::None => {
                room.write(|out| out.extend_from_slice(packed));
                Some(packed.len())
            }
            Compressor::Lz4 => lz4_flex::block::decompress_into(packed, room.all()).ok(),
            // Exactly one frame, and no skippable one: the library would accept several.
            Compressor::Zstd if packed.starts_with(&ZSTD_MAGIC) => {
                let whole = zstd::zstd_safe::find_frame_compressed_size(packed) == Ok(packed.len());
                self.zstd().filter(|_| whole).and_then(|zstd| match room.heap() {
                    Some(heap) => zstd.decompress_to_buffer(packed, heap).ok(),
                    None => zstd.decompress_to_buffer(packed, room.all()).ok(),
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
        room.finish()
    }

    fn zstd(&mut self) -> Option<&mut zstd::bulk::Decompressor<'static>> {
        if self.zstd.is_none() {
            self.zstd = zstd::bulk::Decompressor::new().ok();
        }
        self.zstd.as_mut()
    }
}

/// What packs buffers. zstd's working memory, which takes longer to set up than a small buffer to
/// pack, is kept from one to the next.
#[derive(Default)]
pub(crate) struct Packer {
    zstd: Option<zstd::bulk::Compressor<'static>>,
}

impl Packer {
    /// Packs `raw` with LZ4, or zstd at a level. None if the compressor fails: the buffer then
    /// stays as it is.
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
