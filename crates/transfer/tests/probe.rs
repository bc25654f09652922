//! Probes: candidates are measured on the columns that they may suit, and used at once.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::sync::Arc;
use std::time::Duration;

use dray_chooser::{Chooser, Line};
use dray_format::{Batch, Column, ColumnStats, Compression, Field, Limits, Schema, Type, Values};
use dray_transfer::{Chunker, Settings};

const ROWS: u64 = 50_000;
/// At this price, zstd is not expected to pay unless it halves a column.
const PRICE_NS: f64 = 20.0;

fn mix(number: u64) -> u64 {
    let mixed = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB)
}

#[test]
fn the_second_chunk_is_compressed_where_that_pays() {
    // Light reduces the first column to nothing, can't reduce the second, and does not see that the
    // third repeats itself.
    let values: [fn(u64) -> u64; 3] = [|_| 7, mix, |row| mix(row % 1000) % (1 << 20)];
    let column = |value: fn(u64) -> u64| {
        let bytes: Vec<u8> = (0..ROWS).flat_map(|row| value(row).to_le_bytes()).collect();
        Column {
            rows: ROWS as usize,
            validity: None,
            values: Values::Fixed { width: 8, bytes: bytes.into() },
        }
    };
    let field = |name: &str| Field {
        name: name.into(),
        data_type: Type::Int64,
        nullable: false,
        metadata: vec![],
    };
    let schema = Arc::new(Schema { fields: ["constant", "random", "repeated"].map(field).into() });
    // With a clock that stands still, all times are estimates.
    let settings = Settings {
        limits: Limits::default(),
        chunk_rows: 65_536,
        compression: Compression::Light,
        checksum: false,
        clock: Some(|| Duration::ZERO),
    };
    let shares = |chooser: &Arc<Chooser>, chunks: usize| {
        let mut chunker = Chunker::new(schema.clone(), settings).with_chooser(chooser.clone());
        let mut encoder = chunker.chunk_encoder();
        chunker.push(Batch { rows: ROWS as usize, columns: values.map(column).into() });
        let mut next = || {
            let chunk = encoder.encode(&chunker.take_full().unwrap()).unwrap();
            let share = |written: &ColumnStats| written.bytes as f64 / written.decoded_bytes as f64;
            chunk.columns().iter().map(share).collect::<Vec<_>>()
        };
        (0..chunks).map(|_| next()).collect::<Vec<_>>()
    };
    let line = Line::of_price(PRICE_NS);
    let chooser = Arc::new(Chooser::new(&schema, line, Duration::ZERO, 3));
    let [first, second] = shares(&chooser, 2).try_into().unwrap();
    assert!(second[2] < first[2] / 3.0, "{first:?}, {second:?}");
    assert!(second[1] > 0.99 && second[0] < 0.01, "{second:?}");
    // So is the first chunk of a stream that begins with the costs of this one. It has fewer rows,
    // since nothing is known of the line.
    let kept = chooser.costs();
    let kept = |column: usize| kept.get(column).cloned();
    let next = Arc::new(Chooser::with_costs(&schema, line, Duration::ZERO, 3, kept));
    let [begins] = shares(&next, 1).try_into().unwrap();
    assert!(begins[2] < first[2] / 2.0 && begins[1] > 0.99, "{first:?}, {begins:?}");
}

#[test]
fn a_rest_of_less_than_a_chunk_joins_the_chunk() {
    let field =
        Field { name: "n".into(), data_type: Type::Int64, nullable: false, metadata: vec![] };
    let schema = Arc::new(Schema { fields: vec![field] });
    let settings = Settings {
        limits: Limits::default(),
        chunk_rows: 65_536,
        compression: Compression::Light,
        checksum: false,
        clock: None,
    };
    let first_rows = |rows: usize| {
        let chooser = Arc::new(Chooser::new(&schema, Line::of_price(PRICE_NS), Duration::ZERO, 3));
        let mut chunker = Chunker::new(schema.clone(), settings).with_chooser(chooser);
        let values = Values::Fixed { width: 8, bytes: vec![1; 8 * rows].into() };
        chunker.push(Batch { rows, columns: vec![Column { rows, validity: None, values }] });
        let mut encoder = chunker.chunk_encoder();
        chunker.take_full().map(|unencoded| encoder.encode(&unencoded).unwrap().rows())
    };
    assert_eq!(
        [8191, 8192, 15_000, 16_383, 16_384].map(first_rows),
        [None, Some(8192), Some(15_000), Some(16_383), Some(8192)]
    );
}
