//! Sorts records of sortbenchmark.org, 10 bytes of key and 90 of value, and checks them as its
//! valsort does: by their order, their number, the number of duplicate keys, and the sum of their
//! hashes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use dray_format::{Batch, Column, Field, Schema, Type, Values};
use dray_sort::{FixedBudget, MemoryBudget, Options, Result, SortColumn, Sorter};

const KEY_BYTES: usize = 10;
const VALUE_BYTES: usize = 90;
const RECORDS: u64 = 200_000;
const BATCH_RECORDS: u64 = 1000;
/// A tenth of the bytes of all records.
const MEMORY_BYTES: usize = 2 << 20;

/// A permutation of all numbers in random order (splitmix64).
fn scatter(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// The key of a record, one of `keys` keys.
fn key(number: u64, keys: u64) -> [u8; KEY_BYTES] {
    let which = if keys < RECORDS { scatter(number) % keys } else { number };
    let mut key = [0; KEY_BYTES];
    key[..8].copy_from_slice(&scatter(which).to_le_bytes());
    key[8..].copy_from_slice(&scatter(!which).to_le_bytes()[..2]);
    key
}

/// The value of a record: its number, and bytes that depend on it.
fn value(number: u64) -> [u8; VALUE_BYTES] {
    let words = std::iter::once(number).chain((1..).map(|i| scatter(number + i * RECORDS)));
    let mut value = [0; VALUE_BYTES];
    value
        .chunks_mut(8)
        .zip(words)
        .for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]));
    value
}

fn schema(is_fixed: bool) -> Schema {
    let field = |name: &str, bytes: usize| {
        let data_type = if is_fixed { Type::FixedBinary(bytes as u32) } else { Type::Binary };
        Field { name: name.into(), data_type, nullable: false, metadata: vec![] }
    };
    Schema { fields: vec![field("key", KEY_BYTES), field("value", VALUE_BYTES)] }
}

fn column(is_fixed: bool, width: usize, bytes: Vec<u8>) -> Column {
    let rows = bytes.len() / width;
    let bytes = bytes.into();
    let offsets = || {
        (0..=rows).flat_map(|row| ((row * width) as u32).to_le_bytes()).collect::<Vec<u8>>().into()
    };
    let values = if is_fixed {
        Values::Fixed { width, bytes }
    } else {
        Values::Bytes { offsets: offsets(), data: bytes }
    };
    Column { rows, validity: None, values }
}

fn batch(number: u64, keys: u64, is_fixed: bool) -> Batch {
    let numbers = || number * BATCH_RECORDS..(number + 1) * BATCH_RECORDS;
    let keys =
        column(is_fixed, KEY_BYTES, numbers().flat_map(|number| key(number, keys)).collect());
    let values = column(is_fixed, VALUE_BYTES, numbers().flat_map(value).collect());
    Batch { rows: BATCH_RECORDS as usize, columns: vec![keys, values] }
}

/// The value of a row.
fn bytes(column: &Column, row: usize) -> &[u8] {
    match &column.values {
        Values::Fixed { width, bytes } => &bytes[row * width..][..*width],
        Values::Bytes { offsets, data } => {
            let offset =
                |i: usize| u32::from_le_bytes(offsets[4 * i..][..4].try_into().unwrap()) as usize;
            &data[offset(row)..offset(row + 1)]
        }
        other => panic!("expected bytes, found {other:?}"),
    }
}

/// The summary of records that valsort makes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Summary {
    records: u64,
    equal_keys: u64,
    hashes: u128,
}

impl Summary {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        let mut hasher = DefaultHasher::new();
        hasher.write(key);
        hasher.write(value);
        self.records += 1;
        self.hashes += u128::from(hasher.finish());
    }
}

fn summary_of_input(keys: u64) -> Summary {
    let mut summary = Summary::default();
    let mut different = HashSet::new();
    for number in 0..RECORDS {
        let key = key(number, keys);
        summary.add(&key, &value(number));
        different.insert(key);
    }
    summary.equal_keys = RECORDS - different.len() as u64;
    summary
}

/// Also checks that equal keys are in the order of their records, which valsort does not.
fn summary_of_output(batches: impl Iterator<Item = Result<Batch>>) -> Summary {
    let mut summary = Summary::default();
    let mut before: Option<(Vec<u8>, u64)> = None;
    for batch in batches {
        let batch = batch.unwrap();
        for row in 0..batch.rows {
            let (key, value) = (bytes(&batch.columns[0], row), bytes(&batch.columns[1], row));
            assert_eq!((key.len(), value.len()), (KEY_BYTES, VALUE_BYTES));
            summary.add(key, value);
            let found = (key.to_vec(), u64::from_le_bytes(value[..8].try_into().unwrap()));
            if let Some(before) = before {
                assert!(before < found, "record {}: {found:?} behind {before:?}", summary.records);
                summary.equal_keys += u64::from(before.0 == found.0);
            }
            before = Some(found);
        }
    }
    summary
}

fn check(keys: u64, is_fixed: bool) {
    let expected = summary_of_input(keys);
    assert_eq!(expected.equal_keys, RECORDS - keys.min(RECORDS));
    for threads in [1, 2, 4] {
        let folder = tempfile::tempdir().unwrap();
        let budget = FixedBudget::new(MEMORY_BYTES);
        let by = vec![SortColumn { column: 0, descending: false, nulls_first: false }];
        let options = Options {
            spill_folder: Some(folder.path().into()),
            fan_in_max: 8,
            batch_rows: 1000,
            ..Options::new(by, budget.clone())
        };
        let sorter = Sorter::new(schema(is_fixed), options).unwrap();
        let next = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let mut writer = sorter.writer();
                    let numbers = || {
                        Some(next.fetch_add(1, Ordering::Relaxed))
                            .filter(|n| n * BATCH_RECORDS < RECORDS)
                    };
                    while let Some(number) = numbers() {
                        writer.append(number, &batch(number, keys, is_fixed)).unwrap();
                    }
                    writer.finish().unwrap();
                });
            }
        });
        assert!(sorter.progress().spilled_bytes() > RECORDS * (KEY_BYTES + VALUE_BYTES) as u64 / 2);
        assert_eq!(
            summary_of_output(sorter.finish(threads).unwrap()),
            expected,
            "{threads} threads"
        );
        assert_eq!(budget.reserved(), 0);
        assert!(budget.peak() <= budget.bytes_max());
    }
}

#[test]
fn different_keys_of_fixed_width() {
    check(RECORDS, true);
}

#[test]
fn different_keys_of_any_width() {
    check(RECORDS, false);
}

#[test]
fn many_equal_keys_of_fixed_width() {
    check(100, true);
}

#[test]
fn many_equal_keys_of_any_width() {
    check(100, false);
}
