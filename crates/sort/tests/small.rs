//! Small sorts with several threads, in memory and on disk, with few enough rows for `make miri`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use dray_format::{Batch, Bitmap, Column, Field, Schema, Type, Values};
use dray_sort::{Distinct, FixedBudget, Options, SortColumn, Sorter};

const BATCHES: u64 = 6;
const BATCH_ROWS: u64 = 16;
/// Makes rows large at little cost for an interpreter.
const FILLER_BYTES: usize = 1000;

/// One of twenty numbers, of which one is null.
fn number(row: u64) -> Option<i64> {
    Some((row * 7919 % 20) as i64 - 10).filter(|number| *number != 3)
}

/// The result: nulls first, then numbers ascending, and equal numbers in the order of their rows.
fn expected() -> Vec<(Option<i64>, u64)> {
    let mut rows: Vec<(Option<i64>, u64)> =
        (0..BATCHES * BATCH_ROWS).map(|row| (number(row), row)).collect();
    rows.sort_unstable();
    rows
}

fn schema() -> Schema {
    let field = |name: &str, data_type, nullable| Field {
        name: name.into(),
        data_type,
        nullable,
        metadata: vec![],
    };
    let fields = vec![
        field("number", Type::Int64, true),
        field("row", Type::Int64, false),
        field("filler", Type::Binary, false),
    ];
    Schema { fields }
}

fn i64s(values: impl Iterator<Item = i64>) -> Values {
    Values::Fixed { width: 8, bytes: values.flat_map(i64::to_le_bytes).collect::<Vec<u8>>().into() }
}

fn batch(sequence: u64) -> Batch {
    let rows = BATCH_ROWS as usize;
    let numbered = || sequence * BATCH_ROWS..(sequence + 1) * BATCH_ROWS;
    let mut bits = vec![0u8; rows.div_ceil(8)];
    numbered()
        .map(number)
        .enumerate()
        .for_each(|(i, number)| bits[i / 8] |= u8::from(number.is_some()) << (i % 8));
    let validity = Some(Bitmap { bytes: bits.into(), offset: 0, len: rows });
    let offsets = (0..=rows)
        .flat_map(|row| ((row * FILLER_BYTES) as u32).to_le_bytes())
        .collect::<Vec<u8>>()
        .into();
    let filler = Values::Bytes { offsets, data: vec![b'x'; rows * FILLER_BYTES].into() };
    let columns = vec![
        Column { rows, validity, values: i64s(numbered().map(|row| number(row).unwrap_or(0))) },
        Column { rows, validity: None, values: i64s(numbered().map(|row| row as i64)) },
        Column { rows, validity: None, values: filler },
    ];
    Batch { rows, columns }
}

fn rows_of(batch: &Batch) -> Vec<(Option<i64>, u64)> {
    let [numbers, rows, _] = &batch.columns[..] else { panic!("not three columns") };
    let at = |column: &Column, i: usize| {
        let Values::Fixed { bytes, .. } = &column.values else { panic!("not numbers: {column:?}") };
        i64::from_le_bytes(bytes[8 * i..][..8].try_into().unwrap())
    };
    (0..batch.rows)
        .map(|i| (numbers.is_valid(i).then(|| at(numbers, i)), at(rows, i) as u64))
        .collect()
}

/// Sorts with two writers and two merging threads.
fn sort(memory_bytes: usize, distinct: Distinct) -> (Vec<(Option<i64>, u64)>, u64) {
    let folder = tempfile::tempdir().unwrap();
    let budget = FixedBudget::new(memory_bytes);
    let by = vec![SortColumn { column: 0, descending: false, nulls_first: true }];
    let options = Options {
        spill_folder: Some(folder.path().into()),
        page_bytes: Some(4096),
        fan_in_max: 2,
        batch_rows: 8,
        distinct,
        ..Options::new(by, budget.clone())
    };
    let sorter = Sorter::new(schema(), options).unwrap();
    std::thread::scope(|scope| {
        for first in 0..2 {
            let mut writer = sorter.writer();
            scope.spawn(move || {
                (first..BATCHES)
                    .step_by(2)
                    .for_each(|sequence| writer.append(sequence, &batch(sequence)).unwrap());
                writer.finish().unwrap();
            });
        }
    });
    let spilled = sorter.progress().spilled_bytes();
    let found = sorter.finish(2).unwrap().flat_map(|batch| rows_of(&batch.unwrap())).collect();
    assert_eq!(budget.reserved(), 0);
    (found, spilled)
}

#[test]
fn in_memory() {
    let (found, spilled) = sort(1 << 20, Distinct::No);
    assert_eq!((found, spilled), (expected(), 0));
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn on_disk() {
    let (found, spilled) = sort(64 << 10, Distinct::No);
    assert_eq!(found, expected());
    assert!(spilled > 0);
}

#[test]
fn the_first_of_each() {
    let mut firsts = expected();
    firsts.dedup_by_key(|(number, _)| *number);
    assert_eq!(sort(1 << 20, Distinct::Keys).0, firsts);
}
