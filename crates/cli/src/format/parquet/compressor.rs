//! Compression of pages.

use parquet::basic::Compression;

use super::super::WriteError;

/// A compressor, which keeps its tables from page to page.
pub(super) enum Compressor {
    None,
    Snappy(Box<snap::raw::Encoder>),
    Lz4,
    Zstd(i32),
}

impl Compressor {
    /// The compressor of a codec. None if pages with it are left to the library.
    pub(super) fn new(codec: Compression) -> Option<Self> {
        Some(match codec {
            Compression::UNCOMPRESSED => Self::None,
            Compression::SNAPPY => Self::Snappy(Box::new(snap::raw::Encoder::new())),
            Compression::LZ4_RAW => Self::Lz4,
            Compression::ZSTD(level) => Self::Zstd(level.compression_level()),
            _ => return None,
        })
    }

    pub(super) fn compress(&mut self, bytes: Vec<u8>) -> Result<Vec<u8>, WriteError> {
        Ok(match self {
            Self::None => bytes,
            Self::Snappy(encoder) => encoder.compress_vec(&bytes)?,
            Self::Lz4 => lz4_flex::block::compress(&bytes),
            Self::Zstd(level) => zstd::bulk::compress(&bytes, *level)?,
        })
    }
}
