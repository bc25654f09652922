//! The memory and the speed of a sort of rows like TPC-H's lineitem: `cargo run --release -p
//! dray-sort --example resident -- [--memory 128MiB] [--threads 2] [--rows 6000000] [--key
//! int|date|comment] [--order random|sorted|reversed|nearly|blocks] [--limit N] [--narrow]
//! [--trace]`.
//!
//! Batches share a few columns, except for the one that they are sorted by, so that the source
//! takes little time and memory. Each batch of the result is dropped at once. Printed are resident
//! memory before the sort, its peak, and by how much the peak exceeds both the start and the
//! budget.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement stops by them"
)]

use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dray_format::{Batch, Column, Field, Schema, Type, Values};
use dray_sort::{ByteSize, FixedBudget, Options, SortColumn, Sorter};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BATCH_ROWS: usize = 8 << 10;
/// The number of batches with different columns besides the one that is sorted by.
const BATCHES: usize = 8;
const ORDERKEY: usize = 0;
const SHIPDATE: usize = 10;
const COMMENT: usize = 15;
const DAYS: u64 = 2526;

struct Arguments {
    memory: u64,
    threads: usize,
    rows: usize,
    key: String,
    order: String,
    limit: Option<u64>,
    narrow: bool,
    trace: bool,
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let mut read = Arguments {
        memory: 128 << 20,
        threads: 2,
        rows: 6_000_000,
        key: "int".into(),
        order: "random".into(),
        limit: None,
        narrow: false,
        trace: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--memory" => read.memory = value()?.parse::<ByteSize>()?.0,
            "--threads" => read.threads = value()?.parse()?,
            "--rows" => read.rows = value()?.parse()?,
            "--key" => read.key = value()?,
            "--order" => read.order = value()?,
            "--limit" => read.limit = Some(value()?.parse()?),
            "--narrow" => read.narrow = true,
            "--trace" => read.trace = true,
            _ => return Err(format!("what is {word}?").into()),
        }
    }
    Ok(read)
}

/// Random bits that depend on a number.
fn mix(number: u64) -> u64 {
    let mixed = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

fn schema(narrow: bool) -> Schema {
    let decimal = || Type::Decimal128 { precision: 15, scale: 2 };
    let types = [
        ("orderkey", Type::Int64),
        ("partkey", Type::Int64),
        ("suppkey", Type::Int64),
        ("linenumber", Type::Int32),
        ("quantity", decimal()),
        ("extendedprice", decimal()),
        ("discount", decimal()),
        ("tax", decimal()),
        ("returnflag", Type::Utf8),
        ("linestatus", Type::Utf8),
        ("shipdate", Type::Date32),
        ("commitdate", Type::Date32),
        ("receiptdate", Type::Date32),
        ("shipinstruct", Type::Utf8),
        ("shipmode", Type::Utf8),
        ("comment", Type::Utf8),
    ];
    let fields = types.map(|(name, data_type)| Field {
        name: name.into(),
        data_type,
        nullable: false,
        metadata: vec![],
    });
    Schema { fields: fields.into_iter().take(if narrow { 1 } else { usize::MAX }).collect() }
}

fn fixed(width: usize, values: impl Iterator<Item = u64>) -> Column {
    let bytes: Vec<u8> = values
        .flat_map(|value| {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&value.to_le_bytes());
            bytes.into_iter().take(width)
        })
        .collect();
    Column {
        rows: bytes.len() / width,
        validity: None,
        values: Values::Fixed { width, bytes: bytes.into() },
    }
}

fn strings(values: impl Iterator<Item = String>) -> Column {
    let (mut offsets, mut data) = (vec![0u32], Vec::new());
    for value in values {
        data.extend_from_slice(value.as_bytes());
        offsets.push(data.len() as u32);
    }
    let bytes: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
    Column {
        rows: offsets.len() - 1,
        validity: None,
        values: Values::Bytes { offsets: bytes.into(), data: data.into() },
    }
}

/// A text of syllables that a number picks.
fn comment(number: u64) -> String {
    const SYLLABLES: [&str; 8] = ["fu", "ri", "ous", "ly ", "regu", "lar ", "depo", "sits "];
    let count = 5 + number % 8;
    (0..count).map(|i| SYLLABLES[(mix(number + i) % 8) as usize]).chain([" carefully"]).collect()
}

fn template(number: usize, narrow: bool) -> Batch {
    let row = |row: usize| mix((number * BATCH_ROWS + row) as u64);
    let rows = || (0..BATCH_ROWS).map(row);
    let pick = |texts: &'static [&'static str]| {
        strings(rows().map(|n| texts[n as usize % texts.len()].to_owned()))
    };
    let mut columns = vec![
        fixed(8, rows()),
        fixed(8, rows().map(|n| n % 200_000)),
        fixed(8, rows().map(|n| n % 10_000)),
        fixed(4, rows().map(|n| n % 7)),
        fixed(16, rows().map(|n| n % 5000)),
        fixed(16, rows().map(|n| n % 10_000_000)),
        fixed(16, rows().map(|n| n % 11)),
        fixed(16, rows().map(|n| n % 9)),
        pick(&["A", "N", "R"]),
        pick(&["O", "F"]),
        fixed(4, rows().map(|n| n % DAYS)),
        fixed(4, rows().map(|n| n % DAYS)),
        fixed(4, rows().map(|n| n % DAYS)),
        pick(&["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"]),
        pick(&["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"]),
        strings(rows().map(comment)),
    ];
    columns.truncate(if narrow { 1 } else { usize::MAX });
    Batch { rows: BATCH_ROWS, columns }
}

/// The rank of row `row` among `rows` rows in the column that is sorted by.
fn rank(order: &str, row: usize, rows: usize) -> u64 {
    let (row, rows) = (row as u64, rows as u64);
    match order {
        "random" => mix(row),
        "sorted" => row,
        "reversed" => rows - row,
        // One row in a hundred is out of order.
        "nearly" if mix(row).is_multiple_of(100) => mix(mix(row)) % rows,
        "nearly" => row,
        // Each batch is sorted, and batches overlap.
        "blocks" => {
            row % BATCH_ROWS as u64 * (rows / BATCH_ROWS as u64)
                + mix(row / BATCH_ROWS as u64) % 1000
        }
        _ => panic!("what is {order}?"),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = &arguments()?;
    let Arguments { memory, threads, rows, key, order, limit, narrow, trace } = arguments;
    let batches: Vec<Batch> = (0..BATCHES).map(|number| template(number, *narrow)).collect();
    let row_bytes = batches[0].plain_bytes(0, BATCH_ROWS) / BATCH_ROWS as u64;
    let make = |number: usize| {
        let mut batch = batches[number % BATCHES].clone();
        let ranks = (0..BATCH_ROWS).map(|row| rank(order, number * BATCH_ROWS + row, *rows));
        match key.as_str() {
            "int" => batch.columns[ORDERKEY] = fixed(8, ranks),
            "date" if order == "random" => {
                batch.columns[SHIPDATE] = fixed(4, ranks.map(|rank| rank % DAYS))
            }
            "date" => {
                batch.columns[SHIPDATE] = fixed(4, ranks.map(|rank| rank * DAYS / *rows as u64))
            }
            "comment" => batch.columns[COMMENT] = strings(ranks.map(comment)),
            _ => panic!("what is {key}?"),
        }
        batch
    };
    let by = match key.as_str() {
        "date" => SHIPDATE,
        "comment" => COMMENT,
        _ => ORDERKEY,
    };
    let by = vec![SortColumn { column: by, descending: false, nulls_first: false }];
    let budget = FixedBudget::new(*memory as usize);
    let options = Options {
        spill_folder: Some(std::env::temp_dir()),
        limit: *limit,
        ..Options::new(by, budget.clone())
    };
    drop(make(0));
    // Resets the peak of resident memory.
    std::fs::write("/proc/self/clear_refs", "5")?;
    let before = status("VmRSS");
    let ended = AtomicBool::new(false);
    let start = Instant::now();
    let (taken_in, spilled, found) = std::thread::scope(|scope| {
        if *trace {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    let at = start.elapsed().as_secs_f64();
                    let (anon, taken) = (status("RssAnon") >> 10, budget.reserved() >> 20);
                    println!("{at:8.2} s: {anon:6} MiB resident, {taken:6} MiB reserved");
                    std::thread::sleep(Duration::from_millis(100));
                }
            });
        }
        let measured = sort(arguments, options, &make, start);
        ended.store(true, Ordering::Relaxed);
        measured
    });
    let both = start.elapsed().as_secs_f64();
    let count = rows.div_ceil(BATCH_ROWS) * BATCH_ROWS;
    assert_eq!(found, count.min(limit.map_or(usize::MAX, |limit| limit as usize)));
    let peak = status("VmHWM");
    let over = (peak as i64 - before as i64 - (memory >> 10) as i64) / 1024;
    println!(
        "{key} {order}, {} MiB of columns, memory {} MiB, threads {threads}: \
         in {taken_in:.2} s, out {:.2} s, {:.2} M rows/s, \
         spilled {} MiB, reserved {} MiB, resident {} MiB before, {} at most, \
         {over} above the budget, {} after",
        (count as u64 * row_bytes) >> 20,
        memory >> 20,
        both - taken_in,
        count as f64 / both / 1e6,
        spilled >> 20,
        budget.peak() >> 20,
        before >> 10,
        peak >> 10,
        status("VmRSS") >> 10,
    );
    Ok(())
}

/// Returns the seconds until all rows were taken in, the bytes spilled, and the rows of the result.
fn sort(
    arguments: &Arguments,
    options: Options,
    make: &(impl Fn(usize) -> Batch + Sync),
    start: Instant,
) -> (f64, u64, usize) {
    let sorter = Sorter::new(schema(arguments.narrow), options).unwrap();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads {
            scope.spawn(|| {
                let mut writer = sorter.writer();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number * BATCH_ROWS >= arguments.rows {
                        break;
                    }
                    writer.append(number as u64, &make(number)).unwrap();
                }
                writer.finish().unwrap();
            });
        }
    });
    let taken_in = start.elapsed().as_secs_f64();
    let sorted = sorter.finish(arguments.threads).unwrap();
    let (mut last, mut found) = (Vec::new(), 0);
    let mut sorted = sorted;
    for batch in sorted.by_ref() {
        let batch = batch.unwrap();
        found += batch.rows;
        if let Values::Fixed { width: 8, bytes } = &batch.columns[0].values
            && arguments.key == "int"
        {
            let keys = bytes.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes));
            let keys: Vec<i64> = last.into_iter().chain(keys).collect();
            assert!(keys.is_sorted());
            last = keys.last().copied().into_iter().collect();
        } else {
            last = Vec::new();
        }
    }
    let spilled = sorted.spilled_bytes();
    (taken_in, spilled, found)
}

/// A line of `/proc/self/status`: memory of this process, in KiB.
fn status(what: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
