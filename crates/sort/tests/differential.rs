//! Compares sorts with a reference that compares values, not keys (`reference/mod.rs`).
//!
//! `DRAY_SORT_ROUNDS=n` runs n rounds, and `DRAY_SORT_SEED=n` begins with seed n. A failure names
//! its seed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod reference;

use dray_format::{Batch, Column, Field, Schema, Type, Values};
use dray_sort::{Distinct, FixedBudget, Options, SortColumn, Sorter};
use reference::{Case, Draw, Limits, Outcome};

const ROUNDS: u64 = 1500;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap())
}

#[test]
fn sorts_are_those_of_the_reference() {
    let limits = Limits { rows: 4000, threads: 8, memory_bytes: 64 << 20 };
    let folder = tempfile::tempdir().unwrap();
    let first = setting("DRAY_SORT_SEED").unwrap_or(0);
    let default = if setting("DRAY_SORT_SEED").is_some() { 1 } else { ROUNDS };
    let rounds = setting("DRAY_SORT_ROUNDS").unwrap_or(default);
    let mut outcomes = [0; 3];
    for seed in first..first + rounds {
        let case = Case::draw(&mut Draw::new(&[], seed), limits);
        outcomes[match case.check(folder.path(), &format!("seed {seed}")) {
            Outcome::InMemory => 0,
            Outcome::Spilled => 1,
            Outcome::Refused => 2,
        }] += 1;
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    if rounds >= 100 {
        let [in_memory, spilled, refused] = outcomes;
        assert!(
            in_memory > rounds / 10 && spilled > rounds / 10 && refused < rounds / 50,
            "{outcomes:?}"
        );
    }
}

/// Sorts strings. Returns the numbers of their rows in order, and the bytes that were spilled.
fn sort(
    strings: &[Vec<u8>],
    distinct: Distinct,
    limit: Option<u64>,
    threads: usize,
    memory_bytes: usize,
) -> (Vec<u64>, u64) {
    let field = |name: &str, data_type| Field {
        name: name.into(),
        data_type,
        nullable: false,
        metadata: vec![],
    };
    let schema = Schema { fields: vec![field("s", Type::Binary), field("row", Type::UInt64)] };
    let folder = tempfile::tempdir().unwrap();
    let by = vec![SortColumn { column: 0, descending: false, nulls_first: false }];
    let options = Options {
        spill_folder: Some(folder.path().into()),
        batch_rows: 100,
        distinct,
        limit,
        ..Options::new(by, FixedBudget::new(memory_bytes))
    };
    let sorter = Sorter::new(schema, options).unwrap();
    let mut writer = sorter.writer();
    for (row, string) in strings.iter().enumerate() {
        let offsets = [0, string.len() as u32].map(u32::to_le_bytes).concat().into();
        let string = Values::Bytes { offsets, data: string.clone().into() };
        let number = Values::Fixed { width: 8, bytes: (row as u64).to_le_bytes().to_vec().into() };
        let columns = [string, number].map(|values| Column { rows: 1, validity: None, values });
        writer.append(row as u64, &Batch { rows: 1, columns: columns.into() }).unwrap();
    }
    writer.finish().unwrap();
    let progress = sorter.progress();
    let rows = |batch: Batch| match &batch.columns[1].values {
        Values::Fixed { bytes, .. } => {
            bytes.as_chunks().0.iter().map(|row| u64::from_le_bytes(*row)).collect::<Vec<_>>()
        }
        other => panic!("expected numbers, found {other:?}"),
    };
    let found = sorter.finish(threads).unwrap().flat_map(|batch| rows(batch.unwrap())).collect();
    (found, progress.spilled_bytes())
}

#[test]
fn keys_that_differ_at_an_offset_too_large_for_an_entry() {
    // The offset of an entry is at most 65,533 words.
    const DEEP: usize = 65_534 * 8;
    for beginning in [DEEP - 17, DEEP - 8, DEEP, DEEP + 9] {
        let string = |row: usize| {
            let mut string = vec![b'x'; beginning];
            string.extend([[3, 9, 1, 9, 2, 0][row % 6], b'y', (row % 2) as u8]);
            string
        };
        let strings: Vec<Vec<u8>> = (0..18).map(string).collect();
        let mut expected: Vec<usize> = (0..strings.len()).collect();
        expected.sort_by_key(|row| &strings[*row]);
        for (memory_bytes, threads) in [(256 << 20, 1), (24 << 20, 1), (256 << 20, 3)] {
            let expected: Vec<u64> = expected.iter().map(|row| *row as u64).collect();
            assert_eq!(
                sort(&strings, Distinct::No, None, threads, memory_bytes).0,
                expected,
                "{beginning} bytes are equal"
            );
        }
        expected.dedup_by_key(|row| &strings[*row]);
        let expected: Vec<u64> = expected.iter().map(|row| *row as u64).collect();
        assert_eq!(
            sort(&strings, Distinct::Keys, None, 1, 256 << 20).0,
            expected,
            "{beginning} bytes are equal"
        );
    }
}

#[test]
fn keys_that_are_in_several_runs_count_once_for_a_limit() {
    // Even keys come four times, in several runs, and then odd ones. The limit admits half of
    // these.
    let scattered = |i: usize| i * 1_999 % 3_000 * 2;
    let even = (0..4).flat_map(|_| (0..3_000).map(scattered));
    let strings: Vec<Vec<u8>> = even
        .chain((0..3_000).map(|i| scattered(i) + 1))
        .map(|key| format!("{key:08} and what takes room in a row").into_bytes())
        .collect();
    let mut expected: Vec<usize> = (0..strings.len()).collect();
    expected.sort_by_key(|row| &strings[*row]);
    expected.dedup_by_key(|row| &strings[*row]);
    expected.truncate(3_000);
    let expected: Vec<u64> = expected.iter().map(|row| *row as u64).collect();
    for threads in [1, 4] {
        let (found, spilled_bytes) =
            sort(&strings, Distinct::Keys, Some(3_000), threads, 300 << 10);
        assert!(spilled_bytes > 0);
        assert_eq!(found, expected);
    }
}
