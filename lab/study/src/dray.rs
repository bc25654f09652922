//! Dray's chunk as a codec. No other file of the study calls Dray.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use dray_format::arrow::{Decoder, StringLayout, batch_from_arrow, schema_from_arrow};
use dray_format::{Checksum, ChunkKind, Compression, Limits, Schema, write};

use crate::Result;
use crate::codec::Codec;

/// Dray's compressions and their names in reports.
pub const COMPRESSIONS: [(&str, Compression); 5] = [
    ("none", Compression::None),
    ("light", Compression::Light),
    ("LZ4", Compression::Lz4),
    ("zstd 1", Compression::Zstd(1)),
    ("zstd 9", Compression::Zstd(9)),
];
/// Limits that no chunk of the study exceeds.
const LIMITS: Limits =
    Limits { chunk_bytes_max: 1 << 31, decoded_bytes_max: 1 << 31, row_bytes_max: 1 << 31 };

/// A codec for the chunks of one stream.
pub struct Dray {
    schema: Schema,
    decoder: Decoder,
    compression: Compression,
}

impl Dray {
    /// A codec for chunks of this schema.
    ///
    /// # Errors
    /// If Dray does not support a type.
    pub fn new(schema: &SchemaRef, compression: Compression) -> Result<Self> {
        let schema = schema_from_arrow(schema)?;
        Ok(Self {
            decoder: Decoder::new(schema.clone(), StringLayout::Offsets),
            schema,
            compression,
        })
    }
}

impl Codec for Dray {
    fn encode(&self, rows: &RecordBatch) -> Result<Vec<Bytes>> {
        let batches = [batch_from_arrow(rows)?];
        let (checksum, kind) = (Checksum::None, ChunkKind::Regular);
        let chunk = write(&self.schema, &batches, self.compression, checksum, kind)?;
        let (header, mut parts) = chunk.numbered(0, 0);
        parts.insert(0, Bytes::copy_from_slice(&header));
        Ok(parts)
    }

    fn decode(&self, message: Bytes) -> Result<RecordBatch> {
        Ok(self.decoder.read(&message, &LIMITS)?.1)
    }
}
