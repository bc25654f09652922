//! The speed of sorting rows of few columns in memory: `cargo run --release -p dray-sort --example
//! narrow_speed [rows [threads [rounds]]]`.
//!
//! Printed are the seconds to take rows in, to sort them, to read the result, and all together:
//! the median of the rounds by that. Rows are random, and each batch of the result is dropped at
//! once.

#![allow(clippy::unwrap_used, reason = "a measurement stops by it")]

use std::error::Error;
use std::time::Instant;

use dray_format::{Batch, Column, Field, Schema, Type, Values};
use dray_sort::{FixedBudget, Options, SortColumn, Sorter};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BATCH_ROWS: usize = 64 << 10;
const MEMORY_BYTES: usize = 8 << 30;

/// Columns, how many of them are the key, and how a random number becomes a value.
type Case = (&'static str, &'static [Type], usize, fn(u64) -> u64);

const CASES: [Case; 6] = [
    ("int64", &[Type::Int64], 1, |random| random),
    ("int64 below 1,000,000", &[Type::Int64], 1, |random| random % 1_000_000),
    ("int32, int32 beside", &[Type::Int32, Type::Int32], 1, |random| random),
    ("int64, float64 beside", &[Type::Int64, Type::Float64], 1, |random| random),
    (
        "int32, int32 below 100, float64 beside",
        &[Type::Int32, Type::Int32, Type::Float64],
        2,
        |r| r % 100,
    ),
    ("three int64", &[Type::Int64, Type::Int64, Type::Int64], 3, |random| random),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let rows = arguments.next().transpose()?.unwrap_or(10_000_000);
    let threads = arguments.next().transpose()?.unwrap_or(2);
    let rounds = arguments.next().transpose()?.unwrap_or(5);
    println!("{rows} rows, {threads} threads");
    println!("{:40}{:>9}{:>9}{:>9}{:>9}", "columns", "in s", "sort s", "out s", "all s");
    for (name, types, keys, value) in CASES {
        let (schema, batches) = data(types, value, rows);
        let mut times = (0..rounds)
            .map(|_| sort(&schema, &batches, keys, threads))
            .collect::<Result<Vec<_>, _>>()?;
        times.sort_by(|a, b| a.iter().sum::<f64>().total_cmp(&b.iter().sum()));
        let [taken, sorted, read] = times[times.len() / 2];
        let all = taken + sorted + read;
        println!("{name:40}{taken:>9.3}{sorted:>9.3}{read:>9.3}{all:>9.3}");
    }
    Ok(())
}

/// Batches of random values.
fn data(types: &[Type], value: fn(u64) -> u64, rows: usize) -> (Schema, Vec<Batch>) {
    let field = |(number, data_type): (usize, &Type)| Field {
        name: format!("c{number}"),
        data_type: data_type.clone(),
        nullable: false,
        metadata: vec![],
    };
    let schema = Schema { fields: types.iter().enumerate().map(field).collect() };
    let mut state = 7u64;
    let mut random = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    };
    let batches = (0..rows).step_by(BATCH_ROWS).map(|from| {
        let rows = BATCH_ROWS.min(rows - from);
        let column = |data_type: &Type| {
            let width = data_type.width().unwrap();
            let numbers =
                (0..rows).flat_map(|_| value(random()).to_le_bytes().into_iter().take(width));
            let bytes = numbers.collect::<Vec<u8>>().into();
            Column { rows, validity: None, values: Values::Fixed { width, bytes } }
        };
        Batch { rows, columns: types.iter().map(column).collect() }
    });
    let batches = batches.collect();
    (schema, batches)
}

/// The seconds to take rows in, to sort them, and to read the result.
fn sort(
    schema: &Schema,
    batches: &[Batch],
    keys: usize,
    threads: usize,
) -> Result<[f64; 3], Box<dyn Error>> {
    let by = |column| SortColumn { column, descending: false, nulls_first: false };
    let options = Options::new((0..keys).map(by).collect(), FixedBudget::new(MEMORY_BYTES));
    let began = Instant::now();
    let sorter = Sorter::new(schema.clone(), options)?;
    std::thread::scope(|scope| {
        let work = |number: usize, mut writer: dray_sort::Writer| {
            for (sequence, batch) in batches.iter().enumerate().skip(number).step_by(threads) {
                writer.append(sequence as u64, batch)?;
            }
            writer.finish()
        };
        let spawn = |number| {
            let writer = sorter.writer();
            scope.spawn(move || work(number, writer))
        };
        let threads: Vec<_> = (0..threads).map(spawn).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap())
    })?;
    let taken = began.elapsed().as_secs_f64();
    let sorted = sorter.finish(threads)?;
    let finished = began.elapsed().as_secs_f64();
    let mut rows = 0;
    for batch in sorted {
        rows += batch?.rows;
    }
    assert_eq!(rows, batches.iter().map(|batch| batch.rows).sum::<usize>());
    Ok([taken, finished - taken, began.elapsed().as_secs_f64() - finished])
}
