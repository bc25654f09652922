//! Tables 4 and 5: compressors of whole messages, which know nothing of columns; and which one a
//! link asks for.

use std::io::Read;

use arrow_schema::SchemaRef;
use flate2::Compression as Level;
use flate2::read::{ZlibDecoder, ZlibEncoder};
use liblzma::read::{XzDecoder, XzEncoder};

use crate::codec::{AnyCodec, Compressed};
use crate::dray::Dray;
use crate::row_major::ColumnMajor;
use crate::{Result, dray};

/// A compressor of bytes, with its level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compressor {
    /// LZ4, one block.
    Lz4,
    /// Snappy, one block.
    Snappy,
    /// Deflate with a zlib header, of this level: what GZIP does, without its file header.
    Gzip(u32),
    /// XZ of this preset.
    Xz(u32),
    /// zstd of this level.
    Zstd(i32),
}

/// Compressors under the names that reports give them.
pub const COMPRESSORS: [(&str, Compressor); 6] = [
    ("LZ4", Compressor::Lz4),
    ("Snappy", Compressor::Snappy),
    ("GZIP", Compressor::Gzip(6)),
    ("XZ", Compressor::Xz(6)),
    ("zstd 1", Compressor::Zstd(1)),
    ("zstd 9", Compressor::Zstd(9)),
];

impl Compressor {
    /// Appends the compressed bytes.
    ///
    /// # Errors
    /// Those of the compressor.
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

    /// The bytes as they were, so many.
    ///
    /// # Errors
    /// Those of the compressor, and when they are not so many.
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
            return Err(format!("{} bytes unpacked, expected {plain_bytes}", out.len()).into());
        }
        Ok(out)
    }
}

/// Column-major chunks under each compressor, and the product's own.
///
/// # Errors
/// When the product does not carry the schema.
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
