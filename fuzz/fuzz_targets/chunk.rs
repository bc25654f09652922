//! A schema, state frames and a chunk, in the container of `spec/vectors/README.md`: u32 schema_bytes, the schema, the frames, the chunk.
//!
//! What is accepted must be a valid Arrow array, and come back the same from every compression.

#![no_main]

use arrow_array::{Array, RecordBatch};
use bytes::Bytes;
use dray_format::arrow::{Decoder, StringLayout, batch_from_arrow};
use dray_format::{
    Compression, HEADER_BYTES, Header, Limits, Schema, StateHeader, Tables, Type, chunk_bytes_bound, write,
};
use dray_fuzz::LimitedAllocator;
use libfuzzer_sys::fuzz_target;

/// Decoded, rewritten, decoded again and compared: a few times the limits below.
#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator::new(128 << 20);

const LIMITS: Limits = Limits { chunk_bytes_max: 1 << 20, decoded_bytes_max: 1 << 20, row_bytes_max: 1 << 20 };

/// Clears the flags and the fields of checksums, so that the rest of the state frames and of the chunk is met.
fn without_checksums(mut rest: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(rest.len());
    while rest.len() >= HEADER_BYTES {
        let start = out.len();
        out.extend_from_slice(&rest[..HEADER_BYTES]);
        rest = &rest[HEADER_BYTES..];
        out[start + 6] &= !1;
        out[start + 28..start + 32].fill(0);
        let Some(Ok(header)) = out.last_chunk().map(|raw| StateHeader::decode(raw, &LIMITS)) else { break };
        let frame_bytes = usize::try_from(header.frame_bytes()).unwrap_or(usize::MAX);
        let (parts, behind) = rest.split_at(rest.len().min(frame_bytes - HEADER_BYTES));
        out.extend_from_slice(parts);
        rest = behind;
    }
    out.extend_from_slice(rest);
    out
}

fuzz_target!(|input: &[u8]| {
    let Some((schema_bytes, rest)) = input.split_first_chunk::<4>() else { return };
    let Some((schema, chunk)) = rest.split_at_checked(u32::from_le_bytes(*schema_bytes) as usize) else { return };
    let Ok(schema) = Schema::decode(schema) else { return };
    let Ok((header, arrow)) = decode(Bytes::from(without_checksums(chunk)), &schema) else { return };
    // Arrow's check of a list of two billion NULLs takes a bitmap of as many.
    if !schema.fields.iter().any(|field| has_long_lists(&field.data_type)) {
        arrow.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
    }
    for compression in
        [Compression::None, Compression::Compact, Compression::Light, Compression::Symbols, Compression::Zstd(1)]
    {
        let batch = batch_from_arrow(&arrow).unwrap();
        let plain_bytes = batch.plain_bytes(0, batch.rows);
        let chunk = write(&schema, &[batch], compression, true, header.jumbo).unwrap();
        assert!(chunk.chunk_bytes() <= chunk_bytes_bound(schema.nodes(), plain_bytes));
        let (_, again) = decode(chunk.to_bytes(header.sequence), &schema).unwrap();
        assert_eq!(arrow, again);
    }
});

fn has_long_lists(data_type: &Type) -> bool {
    match data_type {
        Type::FixedList { size, item } => *size > 1 << 16 || has_long_lists(&item.data_type),
        Type::List(item) => has_long_lists(&item.data_type),
        Type::Struct(fields) => fields.iter().any(|field| has_long_lists(&field.data_type)),
        Type::Map { key, value, .. } => has_long_lists(&key.data_type) || has_long_lists(&value.data_type),
        Type::Dictionary { value, .. } => has_long_lists(value),
        _ => false,
    }
}

fn decode(mut chunk: Bytes, schema: &Schema) -> dray_format::Result<(Header, RecordBatch)> {
    let mut tables = Tables::default();
    tables.take(&mut chunk, &LIMITS)?;
    Decoder::new(schema.clone(), StringLayout::Offsets).read_with(&chunk, &LIMITS, &tables)
}
