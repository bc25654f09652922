//! Compares sorted rows with Arrow's own comparison: random schemas, rows, settings and threads,
//! and rows that are hard to sort.
//!
//! A failure names its seed; `DRAY_SEED=n` runs it alone. `DRAY_ROUNDS=n` runs n rounds.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod by_arrow;
#[path = "../../format/tests/random/mod.rs"]
mod random;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Decimal128Array, Float64Array, Int32Array, Int64Array,
    RecordBatch, StringArray,
};
use arrow_schema::{Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use by_arrow::comparator;
use dray_format::arrow::{batch_from_arrow, schema_from_arrow};
use dray_format::{Batch, Checksum};
use dray_page::{Layout, PageBuilder, VerifiedPage};
use dray_sort::{
    Distinct, Error, FixedBudget, KeyEncoder, KeyPurpose, MemoryBudget, Options, SortColumn,
    Sorter, SpillCompression,
};
use random::{Random, for_seeds};

/// The rows as objects. Equal rows have equal bytes.
fn objects(schema: &dray_format::Schema, batches: &[Batch]) -> Vec<Vec<u8>> {
    let layout = Layout::new(schema.clone()).unwrap();
    let mut builder = PageBuilder::new(layout, 256 << 10, Checksum::None).unwrap();
    batches.iter().for_each(|batch| builder.append(batch).unwrap());
    builder
        .finish()
        .iter()
        .flat_map(VerifiedPage::objects)
        .map(|object| object.bytes().to_vec())
        .collect()
}

/// The numbers of the rows in Arrow's order.
fn order_of_arrow(rows: &RecordBatch, by: &[SortColumn]) -> Vec<usize> {
    let compare = comparator(rows, by);
    let mut order: Vec<usize> = (0..rows.num_rows()).collect();
    order.sort_by(|a, b| compare(*a, *b));
    order
}

/// The numbers of the first rows of each key, in the order of the keys.
fn order_of_distinct(rows: &RecordBatch, by: &[SortColumn]) -> Vec<usize> {
    let schema = schema_from_arrow(&rows.schema()).unwrap();
    let encoder = KeyEncoder::new(&schema, by, KeyPurpose::Distinct).unwrap();
    let keys = encoder.encode(&batch_from_arrow(rows).unwrap());
    let mut order: Vec<usize> = (0..rows.num_rows()).collect();
    order.sort_by_key(|row| keys.get(*row));
    let mut seen = HashSet::new();
    order.retain(|row| seen.insert(keys.get(*row)));
    order
}

#[derive(Debug, Clone)]
struct Settings {
    by: Vec<SortColumn>,
    distinct: Distinct,
    limit: Option<u64>,
    threads: usize,
    memory_bytes: usize,
    page_bytes: Option<usize>,
    fan_in_max: usize,
    batch_rows: usize,
    compression: SpillCompression,
}

/// Sorts batches with several threads, and compares the result with the oracle. Returns the bytes
/// that were spilled.
fn check(schema: &SchemaRef, batches: &[RecordBatch], settings: &Settings, context: &str) -> u64 {
    let context = &format!("{context}, {settings:?}");
    let rows = concat_batches(schema, batches).unwrap();
    let all: Vec<SortColumn> = (0..schema.fields().len())
        .filter(|column| settings.by.iter().all(|by| by.column != *column))
        .map(|column| SortColumn { column, descending: false, nulls_first: false })
        .collect();
    let mut order = match settings.distinct {
        Distinct::No => order_of_arrow(&rows, &settings.by),
        Distinct::Keys => order_of_distinct(&rows, &settings.by),
        Distinct::Rows => order_of_distinct(&rows, &[&settings.by[..], &all].concat()),
    };
    order.truncate(settings.limit.map_or(usize::MAX, |limit| limit as usize));
    let dray_schema = schema_from_arrow(schema).unwrap();
    let batches: Vec<Batch> =
        batches.iter().map(|batch| batch_from_arrow(batch).unwrap()).collect();
    let unsorted = objects(&dray_schema, &batches);

    let folder = tempfile::tempdir().unwrap();
    let budget = FixedBudget::new(settings.memory_bytes);
    let options = Options {
        spill_folder: Some(folder.path().into()),
        page_bytes: settings.page_bytes,
        fan_in_max: settings.fan_in_max,
        batch_rows: settings.batch_rows,
        spill_compression: settings.compression,
        limit: settings.limit,
        distinct: settings.distinct,
        ..Options::new(settings.by.clone(), budget.clone())
    };
    let sorter = Sorter::new(dray_schema.clone(), options)
        .unwrap_or_else(|error| panic!("{error}, {context}"));
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..settings.threads {
            scope.spawn(|| {
                let mut writer = sorter.writer();
                while let Some((number, batch)) = {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    batches.get(number).map(|batch| (number, batch))
                } {
                    writer
                        .append(number as u64, batch)
                        .unwrap_or_else(|error| panic!("{error}, {context}"));
                    std::thread::yield_now();
                }
            });
        }
    });
    let progress = sorter.progress();
    assert_eq!(progress.rows(), rows.num_rows() as u64, "{context}");
    let sorted =
        sorter.finish(settings.threads).unwrap_or_else(|error| panic!("{error}, {context}"));
    let sorted: Vec<Batch> =
        sorted.collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{error}, {context}"));
    assert!(
        sorted.iter().all(|batch| (1..=settings.batch_rows).contains(&batch.rows)),
        "{context}"
    );
    let found = objects(&dray_schema, &sorted);
    assert_eq!(found.len(), order.len(), "{context}");
    for (i, (found, row)) in found.iter().zip(&order).enumerate() {
        assert_eq!(*found, unsorted[*row], "row {i}, of the input {row}, {context}");
    }
    assert_eq!(budget.reserved(), 0, "{context}");
    assert!(budget.peak() <= budget.bytes_max(), "{context}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{context}");
    progress.spilled_bytes()
}

fn settings(random: &mut Random, columns: usize) -> Settings {
    let mut by: Vec<SortColumn> = (0..columns)
        .map(|column| SortColumn {
            column,
            descending: random.below(2) == 0,
            nulls_first: random.below(2) == 0,
        })
        .collect();
    (1..columns).for_each(|i| by.swap(i, random.below(i + 1)));
    by.truncate(1 + random.below(columns));
    Settings {
        by,
        distinct: random.pick(&[
            Distinct::No,
            Distinct::No,
            Distinct::No,
            Distinct::Rows,
            Distinct::Keys,
        ]),
        limit: random.pick(&[None, None, None, Some(0), Some(1), Some(17), Some(1000)]),
        threads: 1 + random.below(4),
        memory_bytes: random.pick(&[64 << 10, 100 << 10, 300 << 10, 4 << 20, 64 << 20]),
        page_bytes: random.pick(&[None, None, Some(4 << 10)]),
        fan_in_max: random.pick(&[2, 3, 7, 256]),
        batch_rows: random.pick(&[1, 100, 1 << 14]),
        compression: random.pick(&[
            SpillCompression::Auto,
            SpillCompression::Lz4,
            SpillCompression::None,
        ]),
    }
}

#[test]
fn random_rows() {
    for_seeds(200, |seed| {
        let mut random = Random::new(seed);
        // Flat schemas, whose batches are kept as they came, alternate with nested ones, whose rows
        // become objects.
        let depth = random.pick(&[0, 4]);
        let fields: Vec<Field> =
            (0..1 + random.below(4)).map(|i| random.field(&format!("c{i}"), depth)).collect();
        let schema = Arc::new(Schema::new(fields));
        let batches: Vec<RecordBatch> =
            (0..1 + random.below(3)).flat_map(|_| random.pieces(&schema)).collect();
        let settings = settings(&mut random, schema.fields().len());
        check(&schema, &batches, &settings, &format!("seed {seed}, {schema}"));
    });
}

/// Strings with long common prefixes, empty strings, and bytes that are escaped.
fn text(random: &mut Random) -> Vec<u8> {
    let beginning = random.pick(&[0, 0, 3, 8, 20, 300]);
    let mut text = vec![b'x'; beginning];
    (0..random.below(12)).for_each(|_| text.push(random.pick(&[0, 1, 2, b'a', b'b', 255])));
    text
}

#[test]
fn hard_rows() {
    for_seeds(60, |seed| {
        let mut random = Random::new(seed);
        let skew = random.pick(&[1, 2, 1000, usize::MAX]);
        let batches: Vec<[ArrayRef; 4]> = (0..1 + random.below(12))
            .map(|_| {
                let rows = random.below(800);
                let binary: Vec<_> =
                    (0..rows).map(|_| (random.below(9) > 0).then(|| text(&mut random))).collect();
                let utf8 = binary.iter().map(|text| {
                    text.as_ref().map(|text| String::from_utf8_lossy(text).to_string())
                });
                let utf8: Vec<_> = utf8.collect();
                let number = |random: &mut Random| {
                    if random.below(10) > 0 { random.below(skew) as i64 } else { 7 }
                };
                let numbers: Vec<i64> = (0..rows).map(|_| number(&mut random)).collect();
                let special =
                    [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::MIN_POSITIVE, 1.5];
                let floats: Vec<f64> = (0..rows).map(|_| random.pick(&special)).collect();
                [
                    Arc::new(BinaryArray::from_iter(binary)) as ArrayRef,
                    Arc::new(StringArray::from(utf8)),
                    Arc::new(Int64Array::from(numbers)),
                    Arc::new(Float64Array::from(floats)),
                ]
            })
            .collect();
        let schema = ["binary", "utf8", "number", "float"].iter().zip(&batches[0]);
        let schema: SchemaRef = Arc::new(Schema::new(
            schema
                .map(|(name, column)| Field::new(*name, column.data_type().clone(), true))
                .collect::<Vec<_>>(),
        ));
        let batches: Vec<RecordBatch> = batches
            .into_iter()
            .map(|columns| RecordBatch::try_new(schema.clone(), columns.into()).unwrap())
            .collect();
        let settings = settings(&mut random, 4);
        check(&schema, &batches, &settings, &format!("seed {seed}"));
    });
}

fn numbers(values: impl Iterator<Item = i64>) -> (SchemaRef, RecordBatch) {
    let schema = Arc::new(Schema::new(vec![Field::new("n", arrow_schema::DataType::Int64, false)]));
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(values));
    (schema.clone(), RecordBatch::try_new(schema, vec![column]).unwrap())
}

fn plain_settings(memory_bytes: usize) -> Settings {
    Settings {
        by: vec![SortColumn { column: 0, descending: false, nulls_first: false }],
        distinct: Distinct::No,
        limit: None,
        threads: 2,
        memory_bytes,
        page_bytes: None,
        fan_in_max: 4,
        batch_rows: 1 << 14,
        compression: SpillCompression::None,
    }
}

#[test]
fn the_least_memory_suffices_in_several_passes() {
    let mut random = Random::new(1);
    let (schema, rows) = numbers((0..60_000).map(|_| random.next() as i64));
    let batches: Vec<RecordBatch> = (0..60).map(|i| rows.slice(i * 1000, 1000)).collect();
    let spilled = check(&schema, &batches, &plain_settings(64 << 10), "");
    assert!(spilled > 60_000 * 24, "{spilled}");
    let compressed = Settings { compression: SpillCompression::Lz4, ..plain_settings(64 << 10) };
    assert!(check(&schema, &batches, &compressed, "") < spilled / 4 * 3);
    assert_eq!(check(&schema, &batches, &plain_settings(64 << 20), ""), 0);
}

#[test]
fn threads_merge_runs_into_longer_ones() {
    let mut random = Random::new(5);
    let (schema, rows) = numbers((0..200_000).map(|_| random.below(50_000) as i64));
    let batches: Vec<RecordBatch> = (0..200).map(|i| rows.slice(i * 1000, 1000)).collect();
    for (threads, limit) in [(2, None), (3, Some(150_000))] {
        let settings = Settings {
            threads,
            limit,
            fan_in_max: 2,
            page_bytes: Some(4 << 10),
            ..plain_settings(1 << 20)
        };
        let spilled = check(&schema, &batches, &settings, "");
        assert!(spilled > 2 * 200_000 * 24, "{spilled}");
    }
}

#[test]
fn runs_up_and_down_and_equal_rows() {
    for values in [
        (0..30_000).collect::<Vec<i64>>(),
        (0..30_000).rev().collect(),
        vec![5; 30_000],
        (0..30_000).map(|i| i % 3).collect(),
        (0..30_000).map(|i| if i % 100 == 0 { i } else { 7 }).collect(),
    ] {
        let (schema, rows) = numbers(values.into_iter());
        let batches: Vec<RecordBatch> = (0..30).map(|i| rows.slice(i * 1000, 1000)).collect();
        for memory_bytes in [128 << 10, 16 << 20] {
            check(&schema, &batches, &plain_settings(memory_bytes), "");
        }
    }
}

/// Rows of several buckets, sorted in memory. The row's number beside the key shows whether equal
/// keys stay in order.
#[test]
fn buckets_of_rows_in_memory() {
    const ROWS: usize = 150_000;
    let mut random = Random::new(11);
    let mut column = |width: usize, value: &mut dyn FnMut(&mut Random, usize) -> Option<i64>| {
        let values = (0..ROWS).map(|row| value(&mut random, row));
        let array: ArrayRef = match width {
            1 => Arc::new(
                values.map(|value| value.map(|value| value % 2 == 0)).collect::<BooleanArray>(),
            ),
            4 => Arc::new(
                values.map(|value| value.map(|value| value as i32)).collect::<Int32Array>(),
            ),
            8 => Arc::new(values.collect::<Int64Array>()),
            9 => Arc::new(
                values
                    .map(|value| value.map(|value| f64::from_bits(value as u64)))
                    .collect::<Float64Array>(),
            ),
            _ => Arc::new(
                values
                    .map(|value| value.map(|value| i128::from(value) << 40))
                    .collect::<Decimal128Array>(),
            ),
        };
        array
    };
    let any = &mut |random: &mut Random, _: usize| Some(random.next() as i64);
    let few = &mut |random: &mut Random, _: usize| Some(random.below(3) as i64 - 1);
    let some =
        &mut |random: &mut Random, _: usize| (random.below(5) > 0).then(|| random.next() as i64);
    let skewed = &mut |random: &mut Random, _: usize| match random.below(20) {
        0 => Some(random.next() as i64),
        _ => Some(random.below(100_000) as i64),
    };
    let mut row = |_: &mut Random, row: usize| Some(row as i64);
    let mut down = |_: &mut Random, row: usize| Some(-(row as i64));
    let one = &mut |_: &mut Random, _: usize| Some(5);
    let tables: Vec<Vec<ArrayRef>> = vec![
        // All columns are in the key, and locations don't fit beside it.
        vec![column(8, any)],
        vec![column(8, few)],
        vec![column(8, some)],
        vec![column(9, any), column(4, few)],
        vec![column(16, some), column(8, skewed)],
        // Rows are gathered, too.
        vec![column(4, any), column(8, &mut row)],
        vec![column(4, few), column(8, &mut row), column(16, some)],
        vec![column(8, skewed), column(8, &mut row), column(1, some)],
        vec![column(1, some), column(8, &mut row)],
        vec![column(9, some), column(4, &mut row)],
        vec![column(16, any), column(4, &mut row)],
        vec![column(8, one), column(4, &mut row)],
        // Rows that come in order, one way or the other.
        vec![column(8, &mut row), column(4, any)],
        vec![column(4, &mut down), column(4, &mut row)],
        // Keys that fit no entry.
        vec![column(16, any), column(16, any), column(4, &mut row)],
    ];
    for (number, columns) in tables.into_iter().enumerate() {
        let field = |(i, column): (usize, &ArrayRef)| {
            Field::new(format!("c{i}"), column.data_type().clone(), column.is_nullable())
        };
        let fields: Vec<Field> = columns.iter().enumerate().map(field).collect();
        let keys = if [0, 1, 2, 3, 4].contains(&number) { columns.len() } else { 1 };
        let keys = if number == 14 { 2 } else { keys };
        let schema = Arc::new(Schema::new(fields));
        let rows = RecordBatch::try_new(schema.clone(), columns).unwrap();
        for (threads, batch_rows) in [(1, 20_000), (3, 777), (2, ROWS)] {
            let (mut batches, mut from) = (Vec::new(), 0);
            while from < ROWS {
                let rows_here = (1 + random.below(batch_rows)).min(ROWS - from);
                batches.push(rows.slice(from, rows_here));
                from += rows_here;
            }
            let by = |column| SortColumn {
                column,
                descending: (threads + column) % 2 == 0,
                nulls_first: threads == 1,
            };
            let by = (0..keys).map(by).collect();
            let settings = Settings {
                by,
                threads,
                batch_rows: batch_rows.min(30_000),
                ..plain_settings(256 << 20)
            };
            assert_eq!(check(&schema, &batches, &settings, &format!("table {number}")), 0);
        }
    }
}

#[test]
fn keys_with_a_common_prefix_too_long_for_an_entry() {
    let schema = Arc::new(Schema::new(vec![Field::new("s", arrow_schema::DataType::Utf8, false)]));
    let long = |end: usize| format!("{}{end:03}", "long ".repeat(120_000));
    let column: ArrayRef = Arc::new(StringArray::from_iter_values([3, 1, 2, 1, 0, 2].map(long)));
    let rows = RecordBatch::try_new(schema.clone(), vec![column]).unwrap();
    let batches = [rows.slice(0, 2), rows.slice(2, 4)];
    check(&schema, &batches, &plain_settings(64 << 20), "");
    check(&schema, &batches, &Settings { threads: 1, ..plain_settings(24 << 20) }, "");
}

/// Most rows are larger than a page. They are sorted by a number, and by their own text.
#[test]
fn very_wide_rows_are_written_once() {
    let schema = Arc::new(Schema::new(vec![
        Field::new("n", arrow_schema::DataType::Int64, false),
        Field::new("s", arrow_schema::DataType::Utf8, false),
    ]));
    let mut random = Random::new(4);
    let mut batch = |_| {
        let wide = |i: usize| {
            let letter = char::from(b'a' + random.below(20) as u8);
            let times = if i.is_multiple_of(4) { 10 } else { 20_000 + random.below(10_000) };
            format!("{}{i}", letter.to_string().repeat(times))
        };
        let texts: Vec<String> = (0..20).map(wide).collect();
        let numbers: Vec<i64> = (0..20).map(|_| random.below(1000) as i64).collect();
        let columns: [ArrayRef; 2] =
            [Arc::new(Int64Array::from(numbers)), Arc::new(StringArray::from_iter_values(texts))];
        RecordBatch::try_new(schema.clone(), columns.into()).unwrap()
    };
    let batches: Vec<RecordBatch> = (0..60).map(&mut batch).collect();
    let text = |batch: &RecordBatch| batch.column(1).as_string::<i32>().value_data().len() as u64;
    let bytes: u64 = batches.iter().map(text).sum();
    for threads in [1, 3] {
        // Runs of a megabyte are merged two at a time, or all at once. Only the small rows are
        // written by each merge.
        for fan_in_max in [2, 256] {
            let settings = Settings {
                threads,
                fan_in_max,
                page_bytes: Some(16 << 10),
                ..plain_settings(1 << 20)
            };
            let spilled = check(&schema, &batches, &settings, "");
            assert!(spilled > bytes && spilled < bytes * 3, "{spilled} of {bytes}, {settings:?}");
            let compressed = check(
                &schema,
                &batches,
                &Settings { compression: SpillCompression::Lz4, ..settings },
                "",
            );
            assert!(compressed < bytes / 8, "{compressed} of {bytes}");
        }
        let by = vec![SortColumn { column: 1, descending: true, nulls_first: false }];
        check(
            &schema,
            &batches,
            &Settings { threads, by, page_bytes: Some(16 << 10), ..plain_settings(1 << 20) },
            "",
        );
    }
}

#[test]
fn small_results_need_no_disk() {
    let mut random = Random::new(2);
    let (schema, rows) = numbers((0..60_000).map(|_| random.below(50) as i64));
    let batches: Vec<RecordBatch> = (0..60).map(|i| rows.slice(i * 1000, 1000)).collect();
    let settings = Settings { threads: 1, ..plain_settings(400 << 10) };
    assert!(check(&schema, &batches, &settings, "") > 0);
    let limit = Settings { limit: Some(20), ..settings.clone() };
    assert_eq!(check(&schema, &batches, &limit, ""), 0);
    let distinct = Settings { distinct: Distinct::Rows, ..settings };
    assert_eq!(check(&schema, &batches, &distinct, ""), 0);
}

#[test]
fn rows_beyond_the_limit_are_not_spilled() {
    let mut random = Random::new(3);
    let (schema, rows) = numbers((0..120_000).map(|_| random.next() as i64));
    let batches: Vec<RecordBatch> = (0..120).map(|i| rows.slice(i * 1000, 1000)).collect();
    for threads in [1, 3] {
        let settings = Settings { threads, ..plain_settings(400 << 10) };
        let all = check(&schema, &batches, &settings, "");
        // More rows than the budget holds.
        let limit = Settings { limit: Some(20_000), ..settings };
        let limited = check(&schema, &batches, &limit, "");
        assert!(limited > 0 && limited < all / 4 * 3, "{limited} of {all}");
    }
}

#[test]
fn sorted_rows_whose_runs_share_keys() {
    for (beginning, repeated) in [(0, 1), (0, 700), (24, 1), (24, 5000), (60, 1), (60, 700)] {
        let schema = Arc::new(Schema::new(vec![
            Field::new("s", arrow_schema::DataType::Utf8, false),
            Field::new("n", arrow_schema::DataType::Int64, false),
        ]));
        let text = |row: i64| format!("{}{:06}", "x".repeat(beginning), row / repeated);
        let columns: [ArrayRef; 2] = [
            Arc::new(StringArray::from_iter_values((0..30_000).map(text))),
            Arc::new(Int64Array::from_iter_values(0..30_000)),
        ];
        let rows = RecordBatch::try_new(schema.clone(), columns.into()).unwrap();
        let batches: Vec<RecordBatch> = (0..60).map(|i| rows.slice(i * 500, 500)).collect();
        for (memory_bytes, threads) in [(300 << 10, 1), (600 << 10, 3), (16 << 20, 2)] {
            for distinct in [Distinct::No, Distinct::Keys] {
                let limit = (repeated == 700).then_some(17_000);
                let settings =
                    Settings { distinct, threads, limit, ..plain_settings(memory_bytes) };
                check(&schema, &batches, &settings, &format!("{beginning} {repeated}"));
            }
        }
    }
}

#[test]
fn no_rows() {
    let (schema, rows) = numbers(0..0);
    check(&schema, &[rows], &plain_settings(64 << 10), "");
}

#[test]
fn batch_numbers_ascend() {
    let (schema, rows) = numbers(0..10);
    let options = Options::new(plain_settings(0).by, FixedBudget::new(1 << 20));
    let sorter = Sorter::new(schema_from_arrow(&schema).unwrap(), options).unwrap();
    let rows = batch_from_arrow(&rows).unwrap();
    let mut writer = sorter.writer();
    writer.append(4, &rows).unwrap();
    assert_eq!(writer.append(4, &rows).unwrap_err(), Error::Sequence { sequence: 4, expected: 5 });
    assert_eq!(
        writer.append(1 << 33, &rows).unwrap_err(),
        Error::Sequence { sequence: 1 << 33, expected: 5 }
    );
    let mut sorted = sorter.finish(1).unwrap();
    assert_eq!(writer.append(5, &rows).unwrap_err(), Error::Finished);
    assert_eq!(sorted.next().unwrap().unwrap().rows, 10);
    assert!(sorted.next().is_none());
}
