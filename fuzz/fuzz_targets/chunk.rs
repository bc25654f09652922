//! Decodes a schema, state frames and a chunk, in the container of `spec/vectors/README.md`: u32
//! schema_bytes, the schema, the frames, the chunk.
//!
//! Accepted input must give valid Arrow arrays, which every compression must reproduce.

#![no_main]

use arrow_array::{Array, RecordBatch};
use bytes::Bytes;
use dray_format::arrow::{Decoder, StringLayout, batch_from_arrow};
use dray_format::{
    Checksum, ChunkKind, Compression, HEADER_BYTES, Header, Limits, Schema, StateHeader, Tables,
    Type, chunk_bytes_bound, write,
};
use dray_fuzz::LimitedAllocator;
use libfuzzer_sys::fuzz_target;

/// Room for the decoded batch, its copy and the chunk, each within the limits below.
#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator::new(128 << 20);

const LIMITS: Limits =
    Limits { chunk_bytes_max: 1 << 20, decoded_bytes_max: 1 << 20, row_bytes_max: 1 << 20 };

/// Clears the flags and values of checksums, so that the fuzzer reaches the code behind them.
fn without_checksums(mut rest: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(rest.len());
    while rest.len() >= HEADER_BYTES {
        let start = out.len();
        out.extend_from_slice(&rest[..HEADER_BYTES]);
        rest = &rest[HEADER_BYTES..];
        out[start + 6] &= !1;
        out[start + 28..start + 32].fill(0);
        let Some(Ok(header)) = out.last_chunk().map(|raw| StateHeader::decode(raw, &LIMITS)) else {
            break;
        };
        let frame_bytes = usize::try_from(header.frame_bytes()).unwrap_or(usize::MAX);
        let (parts, after) = rest.split_at(rest.len().min(frame_bytes - HEADER_BYTES));
        out.extend_from_slice(parts);
        rest = after;
    }
    out.extend_from_slice(rest);
    out
}

fuzz_target!(|input: &[u8]| {
    let Some((schema_bytes, rest)) = input.split_first_chunk::<4>() else { return };
    let Some((schema, chunk)) = rest.split_at_checked(u32::from_le_bytes(*schema_bytes) as usize)
    else {
        return;
    };
    let Ok(schema) = Schema::decode(schema) else { return };
    let Ok((header, arrow)) = decode(Bytes::from(without_checksums(chunk)), &schema) else {
        return;
    };
    arrow.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
    for compression in [
        Compression::None,
        Compression::Compact,
        Compression::Light,
        Compression::Symbols,
        Compression::Zstd(1),
    ] {
        let batch = batch_from_arrow(&arrow).unwrap();
        let plain_bytes = batch.plain_bytes(0, batch.rows);
        let chunk = write(
            &schema,
            &[batch],
            compression,
            Checksum::Crc32c,
            if header.jumbo { ChunkKind::Jumbo } else { ChunkKind::Regular },
        )
        .unwrap();
        assert!(chunk.chunk_bytes() <= chunk_bytes_bound(schema.nodes(), plain_bytes));
        let (_, again) = decode(chunk.to_bytes(header.sequence), &schema).unwrap();
        assert_eq!(arrow, again);
    }
});

/// Decodes within a memory limit that is proportional to the received bytes and the declared
/// decoded size.
fn decode(mut chunk: Bytes, schema: &Schema) -> dray_format::Result<(Header, RecordBatch)> {
    /// The state of a compressor, and the tables of symbols and Huffman codes.
    const FIXED: usize = 1 << 20;
    /// The fixed overhead of a column and its Arrow array.
    const COLUMN: usize = 4096;
    /// The single entry that Arrow stores for an empty dictionary.
    const ENTRY: usize = 1 << 20;
    /// Received bytes, decompressed parts, and one column's indexes, with four bytes for a one-byte
    /// value.
    const FACTOR: usize = 8;
    let dictionaries: usize =
        schema.fields.iter().map(|field| dictionaries(&field.data_type)).sum();
    let fixed = FIXED + COLUMN * schema.nodes() + ENTRY * dictionaries;
    let mut tables = Tables::default();
    let received = chunk.len();
    ALLOCATOR.within(fixed + FACTOR * (received + declared(&chunk)), || {
        tables.take(&mut chunk, &LIMITS)
    })?;
    let decoder = Decoder::new(schema.clone(), StringLayout::Offsets);
    let budget = fixed + FACTOR * (received + declared(&chunk));
    ALLOCATOR.within(budget, || decoder.read_with(&chunk, &LIMITS, &tables))
}

fn dictionaries(data_type: &Type) -> usize {
    match data_type {
        Type::FixedList { item, .. } | Type::List(item) => dictionaries(&item.data_type),
        Type::Struct(fields) => fields.iter().map(|field| dictionaries(&field.data_type)).sum(),
        Type::Map { key, value, .. } => {
            dictionaries(&key.data_type) + dictionaries(&value.data_type)
        }
        Type::Dictionary { value, .. } => 1 + dictionaries(value),
        _ => 0,
    }
}

/// The decoded size that state frames and a chunk declare.
fn declared(mut rest: &[u8]) -> usize {
    let mut bytes = 0;
    while let Some(raw) = rest.first_chunk::<HEADER_BYTES>() {
        if let Ok(header) = Header::decode(raw, &LIMITS) {
            return bytes + usize::try_from(header.decoded_bytes).unwrap_or(usize::MAX);
        }
        let Ok(state) = StateHeader::decode(raw, &LIMITS) else { break };
        // All current dictionaries together stay within the limit.
        bytes = LIMITS.decoded_bytes_max as usize;
        rest = &rest[rest.len().min(usize::try_from(state.frame_bytes()).unwrap_or(usize::MAX))..];
    }
    bytes
}
