//! Tables 4 and 5: compressors of whole messages, and which of them suits which link.

use std::io::Read;

use arrow_schema::SchemaRef;
use flate2::Compression as Level;
use flate2::read::{ZlibDecoder, ZlibEncoder};
use liblzma::read::{XzDecoder, XzEncoder};

use crate::codec::{AnyCodec, Compressed};
use crate::dray::Dray;
use crate::row_major::ColumnMajor;
use crate::{Result, dray};

/// A general-purpose compressor and its level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compressor {
    /// LZ4, one block.
    Lz4,
    /// Snappy, one block.
    Snappy,
    /// Deflate of this level with a zlib header instead of a gzip header.
    Gzip(u32),
    /// XZ with this preset.
    Xz(u32),
    /// zstd of this level.
    Zstd(i32),
}

/// The compressors and their names in reports.
pub const COMPRESSORS: [(&str, Compressor); 6] = [
    ("LZ4", Compressor::Lz4),
    ("Snappy", Compressor::Snappy),
    ("GZIP", Compressor::Gzip(6)),
    ("XZ", Compressor::Xz(6)),
    ("zstd 1", Compressor::Zstd(1)),
    ("zstd 9", Compressor::Zstd(9)),
];

impl Compressor {
    /// Compresses `bytes` and appends the result to `out`.
    ///
    /// # Errors
    /// If the compressor fails.
    pub fn compress(self, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let at = out.len();
        match self {
            Self::Lz4 => {
                out.resize(at + lz4_flex::block::get_maximum_output_size(bytes.len()), 0);
                let written = lz4_flex::block::compress_into(bytes, &mut out[at..])?;
                out.truncate(at + written);
            }
            Self::Snappy => {
                out.resize(at + snap::raw::max_compress_len(bytes.len()), 0);
                let written = snap::raw::Encoder::new().compress(bytes, &mut out[at..])?;
                out.truncate(at + written);
            }
            Self::Gzip(level) => {
                ZlibEncoder::new(bytes, Level::new(level)).read_to_end(out)?;
            }
            Self::Xz(preset) => {
                XzEncoder::new(bytes, preset).read_to_end(out)?;
            }
            Self::Zstd(level) => out.extend(zstd::bulk::compress(bytes, level)?),
        }
        Ok(())
    }

    /// Decompresses to exactly `plain_bytes` bytes.
    ///
    /// # Errors
    /// If the compressor fails, or the length differs.
    pub fn decompress(self, bytes: &[u8], plain_bytes: usize) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(plain_bytes);
        match self {
            Self::Lz4 => out = lz4_flex::block::decompress(bytes, plain_bytes)?,
            Self::Snappy => out = snap::raw::Decoder::new().decompress_vec(bytes)?,
            Self::Gzip(_) => drop(ZlibDecoder::new(bytes).read_to_end(&mut out)?),
            Self::Xz(_) => drop(XzDecoder::new(bytes).read_to_end(&mut out)?),
            Self::Zstd(_) => out = zstd::bulk::decompress(bytes, plain_bytes)?,
        }
        if out.len() != plain_bytes {
            return Err(
                format!("expected {plain_bytes} decompressed bytes, found {}", out.len()).into()
            );
        }
        Ok(out)
    }
}

/// Column-major messages under each compressor, and Dray's chunks.
///
/// # Errors
/// If Dray does not support the schema.
pub fn cases(schema: &SchemaRef) -> Result<Vec<(String, AnyCodec)>> {
    let plain = || Box::new(ColumnMajor::new(schema)) as AnyCodec;
    let mut cases = vec![("None".to_owned(), plain())];
    for (name, compressor) in COMPRESSORS {
        cases.push((name.to_owned(), Box::new(Compressed { inner: plain(), compressor })));
    }
    for (name, compression) in dray::COMPRESSIONS {
        cases.push((format!("Dray {name}"), Box::new(Dray::new(schema, compression)?)));
    }
    Ok(cases)
}
