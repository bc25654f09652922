//! Table 7: Dray's chunks, Protocol Buffers, and Arrow IPC.

use std::sync::{Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::CompressionType;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::{IpcWriteOptions, StreamEncoder};
use arrow_schema::SchemaRef;
use bytes::Bytes;

use crate::Result;
use crate::codec::{AnyCodec, Codec, Compressed, concatenate};
use crate::compressors::Compressor;
use crate::dray::{self, Dray};
use crate::protobuf::Protobuf;
use crate::row_major::ColumnMajor;

/// A codec for the record batches of an Arrow IPC stream whose schema both ends know.
struct ArrowIpc {
    encoder: Mutex<StreamEncoder>,
    decoder: Mutex<StreamDecoder>,
}

impl ArrowIpc {
    fn new(schema: &SchemaRef, compression: Option<CompressionType>) -> Result<Self> {
        let options = IpcWriteOptions::default().try_with_compression(compression)?;
        let mut encoder = StreamEncoder::try_new_with_options(schema, options)?;
        let mut decoder = StreamDecoder::new();
        let opening = encoder.encode(&RecordBatch::new_empty(schema.clone()))?;
        let mut opening = Buffer::from(concatenate(opening.into_iter().map(shared).collect()));
        decoder.decode(&mut opening)?.ok_or("the stream did not open")?;
        Ok(Self { encoder: encoder.into(), decoder: decoder.into() })
    }
}

impl Codec for ArrowIpc {
    fn encode(&self, rows: &RecordBatch) -> Result<Vec<Bytes>> {
        let parts = self.encoder.lock().unwrap_or_else(PoisonError::into_inner).encode(rows)?;
        Ok(parts.into_iter().map(shared).collect())
    }

    fn decode(&self, message: Bytes) -> Result<RecordBatch> {
        let mut decoder = self.decoder.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(decoder.decode(&mut Buffer::from(message))?.ok_or("the message is not whole")?)
    }
}

/// An Arrow buffer that owns the memory of a [`Bytes`].
struct Owner(Buffer);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

fn shared(buffer: Buffer) -> Bytes {
    Bytes::from_owner(Owner(buffer))
}

/// The paper's four formats, three of Arrow IPC, and Dray's.
///
/// # Errors
/// If a format does not support the schema.
pub fn cases(schema: &SchemaRef) -> Result<Vec<(String, AnyCodec)>> {
    let custom = || Box::new(ColumnMajor::new(schema)) as AnyCodec;
    let protobuf = || Box::new(Protobuf { schema: schema.clone() }) as AnyCodec;
    let snappy = |inner| Box::new(Compressed { inner, compressor: Compressor::Snappy }) as AnyCodec;
    let mut cases = vec![
        ("Custom".to_owned(), custom()),
        ("Custom+C".to_owned(), snappy(custom())),
        ("Protobuf".to_owned(), protobuf()),
        ("Protobuf+C".to_owned(), snappy(protobuf())),
    ];
    for (name, compression) in [
        ("Arrow IPC", None),
        ("Arrow IPC LZ4", Some(CompressionType::LZ4_FRAME)),
        ("Arrow IPC zstd", Some(CompressionType::ZSTD)),
    ] {
        cases.push((name.to_owned(), Box::new(ArrowIpc::new(schema, compression)?)));
    }
    for (name, compression) in &dray::COMPRESSIONS[..4] {
        cases.push((format!("Dray {name}"), Box::new(Dray::new(schema, *compression)?)));
    }
    Ok(cases)
}
