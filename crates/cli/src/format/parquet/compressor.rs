//! Compression of pages.

use lz4_flex::block::{compress_into, get_maximum_output_size};
use parquet::basic::Compression;
use zstd::zstd_safe::compress_bound;

use super::super::WriteError;

/// A compressor, and the memory of its output.
pub(super) struct Compressor {
    codec: Codec,
    out: Vec<u8>,
}

enum Codec {
    None,
    Snappy(Box<snap::raw::Encoder>),
    Lz4,
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Compressor {
    /// None if pages with this codec are left to the library.
    pub(super) fn new(codec: Compression) -> Result<Option<Self>, WriteError> {
        let codec = match codec {
            Compression::UNCOMPRESSED => Codec::None,
            Compression::SNAPPY => Codec::Snappy(Box::new(snap::raw::Encoder::new())),
            Compression::LZ4_RAW => Codec::Lz4,
            Compression::ZSTD(level) => {
                Codec::Zstd(zstd::bulk::Compressor::new(level.compression_level())?)
            }
            _ => return Ok(None),
        };
        Ok(Some(Self { codec, out: Vec::new() }))
    }

    pub(super) fn compress<'a>(&'a mut self, bytes: &'a [u8]) -> Result<&'a [u8], WriteError> {
        let bytes_max = match self.codec {
            Codec::None => return Ok(bytes),
            Codec::Snappy(_) => snap::raw::max_compress_len(bytes.len()),
            Codec::Lz4 => get_maximum_output_size(bytes.len()),
            Codec::Zstd(_) => compress_bound(bytes.len()),
        };
        // It is filled once, since it keeps its length.
        if self.out.len() < bytes_max {
            self.out.resize(bytes_max, 0);
        }
        let out = &mut self.out[..];
        let length = match &mut self.codec {
            Codec::None => 0,
            Codec::Snappy(encoder) => encoder.compress(bytes, out)?,
            Codec::Lz4 => compress_into(bytes, out)?,
            Codec::Zstd(encoder) => encoder.compress_to_buffer(bytes, out)?,
        };
        Ok(&self.out[..length])
    }
}
