//! The speed of sorting TPC-H's lineitem: `cargo run --release -p dray-sort --example sort_speed
//! [scale [threads [data/memory…]]]`.
//!
//! Each order is sorted with each ratio of data to memory. Spills are compressed when that is
//! faster, always (LZ4), or never. Printed are the seconds to take rows in, to merge them into
//! batches, and both; millions of rows a second; the bytes spilled, the most bytes reserved, and
//! the growth of resident memory. Rows are columns in memory before the sort, and each batch of the
//! result is dropped at once. Spill files are in the system's temporary folder.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement stops by them"
)]

use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use arrow_array::RecordBatch;
use dray_format::Batch;
use dray_format::arrow::{batch_from_arrow, schema_from_arrow};
use dray_sort::{FixedBudget, Options, SortColumn, Sorter, SpillCompression};
use tpchgen::generators::LineItemGenerator;
use tpchgen_arrow::LineItemArrow;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BATCH_ROWS: usize = 8 << 10;
/// The orders: their names, and the columns to sort by.
const ORDERS: [(&str, &[usize]); 3] =
    [("shipdate, orderkey", &[10, 0]), ("comment", &[15]), ("orderkey (as it is)", &[0])];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<f64>());
    let scale = arguments.next().transpose()?.unwrap_or(0.2);
    let threads = arguments.next().transpose()?.map_or(1, |threads| threads as usize);
    let mut shares = arguments.collect::<Result<Vec<f64>, _>>()?;
    if shares.is_empty() {
        shares = vec![0.25, 4.0];
    }
    let rows = LineItemArrow::new(LineItemGenerator::new(scale, 1, 1)).with_batch_size(BATCH_ROWS);
    let rows: Vec<RecordBatch> = rows.collect::<Result<_, _>>()?;
    let schema = schema_from_arrow(&rows[0].schema())?;
    let batches: Vec<Batch> = rows.iter().map(batch_from_arrow).collect::<Result<_, _>>()?;
    let count: usize = batches.iter().map(|batch| batch.rows).sum();
    let bytes: u64 = batches.iter().map(|batch| batch.plain_bytes(0, batch.rows)).sum();
    println!("{count} rows, {bytes} bytes as columns, {threads} threads");
    println!(
        "{:22}{:>12} {:11}{:>9}{:>9}{:>9}{:>11}{:>12}{:>14}{:>13}",
        "order",
        "data/memory",
        "compression",
        "in s",
        "out s",
        "both s",
        "M rows/s",
        "spilled MB",
        "reserved MB",
        "resident MB"
    );
    for (name, by) in ORDERS {
        let by: Vec<SortColumn> = by
            .iter()
            .map(|column| SortColumn { column: *column, descending: false, nulls_first: false })
            .collect();
        // Compression makes no difference to a sort in memory.
        let spills = |share: &&f64| **share > 1.0;
        let compressions = [SpillCompression::Lz4, SpillCompression::None];
        let compressed =
            shares.iter().filter(spills).flat_map(|share| compressions.map(|how| (share, how)));
        for (share, spill_compression) in
            shares.iter().map(|share| (share, SpillCompression::Auto)).chain(compressed)
        {
            let budget = FixedBudget::new((bytes as f64 / share) as usize);
            let options = Options {
                spill_folder: Some(std::env::temp_dir()),
                spill_compression,
                ..Options::new(by.clone(), budget.clone())
            };
            // Resets the peak of resident memory.
            std::fs::write("/proc/self/clear_refs", "5")?;
            let before = resident("VmRSS");
            let start = Instant::now();
            let sorter = Sorter::new(schema.clone(), options)?;
            let next = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        let mut writer = sorter.writer();
                        loop {
                            let number = next.fetch_add(1, Ordering::Relaxed);
                            let Some(batch) = batches.get(number) else { break };
                            writer.append(number as u64, batch).unwrap();
                        }
                        writer.finish().unwrap();
                    });
                }
            });
            let taken_in = start.elapsed().as_secs_f64();
            let progress = sorter.progress();
            let sorted = sorter.finish(threads)?;
            let found =
                sorted.map(|batch| batch.map(|batch| batch.rows)).sum::<Result<usize, _>>()?;
            assert_eq!(found, count);
            let both = start.elapsed().as_secs_f64();
            println!(
                "{name:22}{share:>12} {:11}{taken_in:>9.3}{:>9.3}{both:>9.3}{:>11.2}\
                 {:>12}{:>14}{:>13}",
                format!("{spill_compression:?}"),
                both - taken_in,
                count as f64 / both / 1e6,
                progress.spilled_bytes() >> 20,
                budget.peak() >> 20,
                resident("VmHWM").saturating_sub(before) >> 10
            );
        }
    }
    Ok(())
}

/// A line of `/proc/self/status`: memory of this process, in KiB.
fn resident(what: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
