//! Cutting batches into chunks: every row comes out once and in order, in chunks within the
//! client's limits.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test that can't go on fails")]

#[path = "../../format/tests/random/mod.rs"]
mod random;

use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_schema::Schema as ArrowSchema;
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use dray_format::arrow::{Decoder, StringLayout, batch_from_arrow, schema_from_arrow};
use dray_format::{
    Batch, Chunk, Column, Compression, Error, ErrorKind, Field, Header, Limits, Schema, Type,
    Values,
};
use dray_transfer::{Chunker, Settings};
use random::Random;

const COMPRESSIONS: [Compression; 3] =
    [Compression::None, Compression::Light, Compression::Zstd(1)];

fn settings(limits: Limits) -> Settings {
    Settings {
        limits,
        chunk_rows: 65_536,
        compression: Compression::None,
        checksum: false,
        clock: None,
    }
}

/// Cuts and encodes all batches.
fn chunks_of(
    schema: &Schema,
    batches: Vec<Batch>,
    settings: Settings,
) -> Result<Vec<Chunk>, Error> {
    let mut chunker = Chunker::new(Arc::new(schema.clone()), settings);
    let mut encoder = chunker.chunk_encoder();
    let mut chunks = Vec::new();
    for batch in batches {
        chunker.push(batch);
        while let Some(unencoded) = chunker.take_full() {
            chunks.push(encoder.encode(&unencoded)?);
        }
    }
    while let Some(unencoded) = chunker.take_rest() {
        chunks.push(encoder.encode(&unencoded)?);
    }
    Ok(chunks)
}

/// Reads a chunk as the client does, which checks its limits. Only a single row that exceeds them
/// may be jumbo.
fn received(chunk: &Chunk, schema: &Schema, settings: &Settings) -> (Header, RecordBatch) {
    let limits = &settings.limits;
    let decoder = Decoder::new(schema.clone(), StringLayout::Offsets);
    let (header, batch) = decoder.read(&chunk.to_bytes(0), limits).unwrap();
    let fits = header.chunk_bytes() <= limits.chunk_bytes_max
        && header.decoded_bytes <= limits.decoded_bytes_max;
    assert_eq!(header.jumbo, !fits, "{header:?}, {limits:?}");
    assert!(header.rows as usize <= settings.chunk_rows.max(1), "{header:?}");
    (header, batch)
}

#[test]
fn every_row_comes_out_once_and_in_order() {
    for seed in 0..400 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let fields: Vec<_> =
            (0..random.below(5)).map(|i| random.field(&format!("c{i}"), 4)).collect();
        let arrow_schema = Arc::new(ArrowSchema::new(fields));
        let record_batches: Vec<RecordBatch> =
            (0..1 + random.below(3)).flat_map(|_| random.pieces(&arrow_schema)).collect();
        let chunk_bytes_max = random.pick(&[4096, 5000, 20_000, 1 << 20]);
        let limits = Limits {
            chunk_bytes_max,
            decoded_bytes_max: random.pick(&[0, 100, 4096, 30_000, 64 << 20]),
            row_bytes_max: chunk_bytes_max.max(1 << 18),
        };
        let settings = Settings {
            limits,
            chunk_rows: random.pick(&[0, 1, 2, 13, 500, 65_536, usize::MAX]),
            compression: random.pick(&COMPRESSIONS),
            clock: None,
            checksum: random.below(2) == 0,
        };
        check(&arrow_schema, &record_batches, settings);
    }
}

#[test]
fn a_thousand_columns() {
    for seed in 0..3 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let fields: Vec<_> = (0..1000).map(|i| random.field(&format!("c{i}"), 1)).collect();
        let arrow_schema = Arc::new(ArrowSchema::new(fields));
        let record_batches = random.pieces(&arrow_schema);
        for chunk_bytes_max in [4096, 200_000] {
            let limits = Limits { chunk_bytes_max, ..Limits::default() };
            check(&arrow_schema, &record_batches, settings(limits));
        }
    }
}

fn check(arrow_schema: &Arc<ArrowSchema>, record_batches: &[RecordBatch], settings: Settings) {
    let schema = schema_from_arrow(arrow_schema).unwrap();
    let batches = record_batches.iter().map(|batch| batch_from_arrow(batch).unwrap()).collect();
    let chunks = chunks_of(&schema, batches, settings).unwrap();
    let mut found = Vec::new();
    for chunk in &chunks {
        found.push(received(chunk, &schema, &settings).1);
    }
    let rows = record_batches.iter().map(RecordBatch::num_rows).sum::<usize>();
    assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), rows);
    if rows > 0 && !schema.fields.is_empty() {
        let (found, expected) = (
            concat_batches(arrow_schema, &found).unwrap(),
            concat_batches(arrow_schema, record_batches).unwrap(),
        );
        for (found, expected) in found.columns().iter().zip(expected.columns()) {
            assert_eq!(found.to_data(), expected.to_data());
        }
    }
}

fn received_batches(chunks: &[Chunk], schema: &Schema, limits: Limits) -> Vec<Batch> {
    let arrow = chunks.iter().map(|chunk| received(chunk, schema, &settings(limits)).1);
    arrow.map(|batch| batch_from_arrow(&batch).unwrap()).collect()
}

fn numbers(rows: usize) -> (Schema, Batch) {
    let bytes = Bytes::from_iter((0..rows as u64).flat_map(u64::to_le_bytes));
    one_column(
        Type::UInt64,
        Column { rows, validity: None, values: Values::Fixed { width: 8, bytes } },
    )
}

fn one_column(data_type: Type, column: Column) -> (Schema, Batch) {
    let field = Field { name: "c".into(), data_type, nullable: true, metadata: vec![] };
    (Schema { fields: vec![field] }, Batch { rows: column.rows, columns: vec![column] })
}

fn strings(texts: &[Vec<u8>]) -> (Schema, Batch) {
    let mut offsets = vec![0; 4];
    let mut data = Vec::new();
    for text in texts {
        data.extend_from_slice(text);
        offsets.extend_from_slice(&u32::try_from(data.len()).unwrap().to_le_bytes());
    }
    let values = Values::Bytes { offsets: offsets.into(), data: data.into() };
    one_column(Type::Binary, Column { rows: texts.len(), validity: None, values })
}

#[test]
fn chunks_are_filled() {
    let (schema, batch) = numbers(1 << 20);
    let limits = Limits { chunk_bytes_max: 1 << 20, ..Limits::default() };
    let chunks =
        chunks_of(&schema, vec![batch], Settings { chunk_rows: usize::MAX, ..settings(limits) })
            .unwrap();
    let (last, full) = chunks.split_last().unwrap();
    assert!(full.iter().all(|chunk| chunk.chunk_bytes() > (1 << 20) / 10 * 9), "{full:?}");
    assert!(last.rows() > 0);
    let (schema, batch) = numbers(1000);
    let thousand_rows = vec![batch.slice(0, 1), batch.slice(1, 0), batch.slice(1, 999)];
    let chunks = chunks_of(
        &schema,
        thousand_rows,
        Settings { chunk_rows: 300, ..settings(Limits::default()) },
    )
    .unwrap();
    assert_eq!(chunks.iter().map(Chunk::rows).collect::<Vec<_>>(), [300, 300, 300, 100]);
}

#[test]
fn a_huge_row_is_a_chunk_of_its_own_or_an_error_with_its_size() {
    let small = vec![b'a'; 10];
    let mut random = Random::new(1);
    let huge: Vec<u8> = (0..100_000).flat_map(|_| random.next().to_le_bytes()).collect();
    let (schema, batch) = strings(&[small.clone(), small.clone(), huge, small]);
    let limits = Limits { chunk_bytes_max: 4096, row_bytes_max: 4096, ..Limits::default() };
    for compression in COMPRESSIONS {
        let settings = |row_bytes_max| Settings {
            compression,
            ..settings(Limits { row_bytes_max, ..limits })
        };
        let error = chunks_of(&schema, vec![batch.clone()], settings(4096)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        let numbers = error
            .to_string()
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|n| n.parse().ok())
            .collect::<Vec<u64>>();
        let needed = numbers[0];
        assert_eq!(numbers, [needed, 4096], "{error}");
        assert!(chunks_of(&schema, vec![batch.clone()], settings(needed - 1)).is_err());
        let chunks = chunks_of(&schema, vec![batch.clone()], settings(needed)).unwrap();
        let headers = chunks.iter().map(|chunk| received(chunk, &schema, &settings(needed)).0);
        let found: Vec<_> = headers.map(|header| (header.rows, header.jumbo)).collect();
        assert_eq!(found, [(2, false), (1, true), (1, false)]);
    }
}

/// A row is jumbo if its encoded chunk exceeds the limits. A row that compresses well enough is
/// not.
#[test]
fn a_huge_row_that_compresses_is_an_ordinary_chunk() {
    let (schema, batch) = strings(&[vec![b'a'; 1 << 20]]);
    for (compression, decoded_bytes_max, jumbo) in [
        (Compression::None, 2 << 20, true),
        (Compression::Lz4, 2 << 20, false),
        (Compression::Lz4, 1 << 20, true),
        (Compression::Zstd(3), 2 << 20, false),
    ] {
        let limits = Limits { chunk_bytes_max: 8192, decoded_bytes_max, row_bytes_max: 4 << 20 };
        let settings = Settings { compression, ..settings(limits) };
        let chunks = chunks_of(&schema, vec![batch.clone()], settings).unwrap();
        assert_eq!(chunks.len(), 1);
        assert_eq!(
            received(&chunks[0], &schema, &settings).0.jumbo,
            jumbo,
            "{compression:?}, {decoded_bytes_max}"
        );
    }
}

/// A dictionary column. Some row uses each of its entries.
fn dictionary(index: Type, width: usize, rows: usize, entries: Batch) -> (Schema, Batch) {
    let count = entries.rows;
    let indexes = Bytes::from_iter(
        (0..rows).flat_map(|i| (i * 7 % count).to_le_bytes().into_iter().take(width)),
    );
    let values =
        Values::Dictionary { width, indexes, entries: Box::new(entries.columns[0].clone()) };
    let data_type =
        Type::Dictionary { index: Box::new(index), ordered: false, value: Box::new(Type::Binary) };
    one_column(data_type, Column { rows, validity: None, values })
}

/// All rows of some batches, as plain values.
fn entries_of_rows(batches: &[Batch], width: usize) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for batch in batches {
        let Values::Dictionary { indexes, entries, .. } = &batch.columns[0].values else {
            panic!("not a dictionary")
        };
        let Values::Bytes { offsets, data } = &entries.values else { panic!("not binary") };
        let offset =
            |i: usize| u32::from_le_bytes(offsets[i * 4..][..4].try_into().unwrap()) as usize;
        found.extend(indexes.chunks_exact(width).map(|raw| {
            let mut wide = [0; 8];
            wide[..width].copy_from_slice(raw);
            let i = u64::from_le_bytes(wide) as usize;
            data[offset(i)..offset(i + 1)].to_vec()
        }));
    }
    found
}

#[test]
fn a_dictionary_larger_than_a_chunk_is_split_with_its_rows() {
    let (_, entries) = strings(
        &(0..20_000).map(|i| format!("entry number {i:08}").into_bytes()).collect::<Vec<_>>(),
    );
    let (schema, batch) = dictionary(Type::Int32, 4, 20_000, entries);
    let expected = entries_of_rows(std::slice::from_ref(&batch), 4);
    let limits = Limits { chunk_bytes_max: 65_536, ..Limits::default() };
    let chunks = chunks_of(&schema, vec![batch], settings(limits)).unwrap();
    let found = received_batches(&chunks, &schema, limits);
    assert!(entries_of_rows(&found, 4) == expected);
    // A row has twenty bytes of text, an offset, an index and two bits: half a megabyte in all.
    assert!(chunks.len() < 20, "{} chunks", chunks.len());
}

#[test]
fn dictionaries_too_large_for_one_index_are_in_different_chunks() {
    let part = |from: usize| {
        let (_, entries) =
            strings(&(from..from + 100).map(|i| format!("{i}").into_bytes()).collect::<Vec<_>>());
        dictionary(Type::Int8, 1, 250, entries)
    };
    let (schema, first) = part(0);
    let batches = vec![first.clone(), first.slice(3, 200), part(100).1, part(200).1];
    let expected = entries_of_rows(&batches, 1);
    let chunks = chunks_of(&schema, batches, settings(Limits::default())).unwrap();
    let found = received_batches(&chunks, &schema, Limits::default());
    assert!(entries_of_rows(&found, 1) == expected);
    assert_eq!(chunks.iter().map(Chunk::rows).collect::<Vec<_>>(), [450, 250, 250]);
}

/// 30 million items in 10 lists, in almost no bytes.
#[test]
fn counts_stay_below_the_limits_of_a_chunk() {
    let items = 3_000_000;
    let offsets = Bytes::from_iter((0..=10u32).flat_map(|i| (i * items).to_le_bytes()));
    let child = Column { rows: 10 * items as usize, validity: None, values: Values::Null };
    let item =
        Field { name: "item".into(), data_type: Type::Null, nullable: true, metadata: vec![] };
    let values = Values::List { offsets, child: Box::new(child) };
    let (schema, batch) =
        one_column(Type::List(Box::new(item)), Column { rows: 10, validity: None, values });
    let bytes_max = u64::from(u32::MAX);
    let limits = Limits {
        chunk_bytes_max: bytes_max,
        decoded_bytes_max: bytes_max,
        row_bytes_max: bytes_max,
    };
    let chunks = chunks_of(&schema, vec![batch], settings(limits)).unwrap();
    assert_eq!(chunks.iter().map(Chunk::rows).collect::<Vec<_>>(), [4, 4, 2]);
    // The same for rows without columns.
    let many = Batch { rows: 3_000_000_000, columns: vec![] };
    let settings = Settings { chunk_rows: usize::MAX, ..settings(limits) };
    let chunks = chunks_of(&Schema::default(), vec![many], settings).unwrap();
    assert_eq!(chunks.iter().map(|chunk| u64::from(chunk.rows())).sum::<u64>(), 3_000_000_000);
}
