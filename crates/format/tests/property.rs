//! Random schemas and batches through a chunk and back to Arrow, with `concat` as the oracle.
//!
//! Each round prints nothing unless it fails; then the seed is in the message, and `DRAY_SEED=n`
//! runs it alone.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

mod random;

use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::{concat, concat_batches};
use dray_format::arrow::{Decoder, StringLayout, batch_from_arrow, schema_from_arrow};
use dray_format::{
    Batch, Checksum, ChunkKind, Column, Compression, Limits, Values, chunk_bytes_bound, read, write,
};
use random::{Random, for_seeds};

const COMPRESSIONS: [Compression; 6] = [
    Compression::None,
    Compression::Compact,
    Compression::Light,
    Compression::Symbols,
    Compression::Lz4,
    Compression::Zstd(1),
];

#[test]
fn batches_come_back() {
    for_seeds(200, |seed| {
        let mut random = Random::new(seed);
        let fields: Vec<Field> =
            (0..1 + random.below(4)).map(|i| random.field(&format!("c{i}"), 4)).collect();
        let schema = Arc::new(Schema::new(fields));
        let pieces = random.pieces(&schema);
        if pieces.iter().all(|piece| piece.num_rows() == 0) {
            return;
        }
        check(&pieces, &schema, seed);
    });
}

fn check(pieces: &[RecordBatch], arrow_schema: &Arc<Schema>, seed: u64) {
    let expected = concat_batches(arrow_schema, pieces).unwrap();
    let schema = schema_from_arrow(arrow_schema).unwrap();
    let mut encoded = Vec::new();
    schema.encode(&mut encoded).unwrap();
    assert_eq!(dray_format::Schema::decode(&encoded).as_ref(), Ok(&schema), "seed {seed}");
    let decoder = Decoder::new(schema.clone(), StringLayout::Offsets);
    assert_eq!(decoder.schema(), arrow_schema, "seed {seed}");

    let batches: Vec<Batch> = pieces.iter().map(|piece| batch_from_arrow(piece).unwrap()).collect();
    let plain_bytes = batches.iter().map(|batch| batch.plain_bytes(0, batch.rows)).sum();
    for compression in COMPRESSIONS {
        let context = format!("seed {seed}, {compression:?}, schema {arrow_schema}");
        let chunk = write(&schema, &batches, compression, Checksum::Crc32c, ChunkKind::Regular)
            .expect(&context);
        let bound = chunk_bytes_bound(schema.nodes(), plain_bytes);
        assert!(
            chunk.chunk_bytes() <= bound,
            "{} bytes, bound {bound}, {context}",
            chunk.chunk_bytes()
        );
        assert!(
            chunk.decoded_bytes() <= plain_bytes,
            "{} decoded, {plain_bytes} plain, {context}",
            chunk.decoded_bytes()
        );
        let bytes = chunk.to_bytes(seed);
        assert_eq!(bytes.len() as u64, chunk.chunk_bytes(), "{context}");
        let limits = Limits { decoded_bytes_max: chunk.decoded_bytes(), ..Limits::default() };
        let (header, batch) = read(&bytes, &schema, &limits).expect(&context);
        assert_eq!(header.sequence, seed, "{context}");
        for column in &batch.columns {
            check_hidden_is_zero(column, &|_| false, &context);
        }
        let (_, found) = decoder.read(&bytes, &limits).expect(&context);
        for (i, column) in found.columns().iter().enumerate() {
            column.to_data().validate_full().expect(&context);
            assert_eq!(column, expected.column(i), "column {i}, {context}");
        }
    }
}

/// Checks that the value under a missing one is zero or empty.
fn check_hidden_is_zero(column: &Column, hidden_above: &dyn Fn(usize) -> bool, context: &str) {
    let hidden = |i: usize| hidden_above(i) || !column.is_valid(i);
    let rows = (0..column.rows).filter(|i| hidden(*i));
    let offset =
        |offsets: &[u8], i: usize| u32::from_le_bytes(offsets[i * 4..][..4].try_into().unwrap());
    match &column.values {
        Values::Null => {}
        Values::Boolean(bits) => rows.for_each(|i| assert!(!bits.bit(i), "boolean {i}, {context}")),
        Values::Fixed { width, bytes } | Values::Dictionary { width, indexes: bytes, .. } => {
            rows.for_each(|i| {
                assert!(
                    bytes[i * width..][..*width].iter().all(|b| *b == 0),
                    "value {i}, {context}"
                )
            });
        }
        Values::Bytes { offsets, .. } | Values::List { offsets, .. } => {
            rows.for_each(|i| {
                assert_eq!(
                    offset(offsets, i),
                    offset(offsets, i + 1),
                    "string or list {i}, {context}"
                )
            });
        }
        Values::FixedList { .. } | Values::Struct(_) => {}
        Values::Narrow { .. } => panic!("a reader gives values of their type's width, {context}"),
    }
    match &column.values {
        Values::List { child, .. } => check_hidden_is_zero(child, &|_| false, context),
        Values::Dictionary { entries, .. } => check_hidden_is_zero(entries, &|_| false, context),
        Values::FixedList { size, child } => {
            check_hidden_is_zero(child, &|i| hidden(i / size), context)
        }
        Values::Struct(children) => {
            children.iter().for_each(|child| check_hidden_is_zero(child, &hidden, context))
        }
        _ => {}
    }
}

#[test]
fn variants_travel_as_their_plain_types() {
    use DataType::*;
    let item = |data_type: &DataType| Arc::new(Field::new("item", data_type.clone(), true));
    let variants =
        [(Utf8, LargeUtf8), (Utf8, Utf8View), (Binary, LargeBinary), (Binary, BinaryView)];
    for_seeds(20, |seed| {
        let mut random = Random::new(seed);
        for (plain, variant) in &variants {
            let nested = [
                (plain.clone(), variant.clone()),
                (List(item(plain)), LargeList(item(variant))),
                (List(item(plain)), ListView(item(variant))),
                (
                    Struct([item(plain)].into_iter().collect()),
                    Struct([item(variant)].into_iter().collect()),
                ),
            ];
            for (plain, variant) in nested {
                let rows = random.array(&plain, 100, true);
                let schema = Schema::new(vec![Field::new("v", variant.clone(), true)]);
                let batch =
                    RecordBatch::try_new(Arc::new(schema), vec![cast(&rows, &variant).unwrap()])
                        .unwrap();
                let schema = schema_from_arrow(&batch.schema()).unwrap();
                let pieces = [
                    batch_from_arrow(&batch).unwrap(),
                    batch_from_arrow(&batch.slice(3, 40)).unwrap(),
                ];
                let chunk =
                    write(&schema, &pieces, Compression::Light, Checksum::None, ChunkKind::Regular)
                        .unwrap()
                        .to_bytes(0);
                for layout in
                    [StringLayout::Offsets, StringLayout::LargeOffsets, StringLayout::Views]
                {
                    let decoder = Decoder::new(schema.clone(), layout);
                    let (_, found) = decoder.read(&chunk, &Limits::default()).unwrap();
                    found.column(0).to_data().validate_full().unwrap();
                    let found = cast(found.column(0), &plain).unwrap();
                    let expected = concat(&[&rows, &rows.slice(3, 40)]).unwrap();
                    assert_eq!(&found, &expected, "seed {seed}, {variant} as {layout:?}");
                }
            }
        }
    });
}
