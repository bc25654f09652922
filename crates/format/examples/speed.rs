//! How fast one core encodes and decodes TPC-H's lineitem, column by column, and how small it gets:
//! `cargo run --release -p dray-format --example speed [COLUMN]`.
//!
//! GB/s are of decoded bytes; each figure is of processor time, over one chunk of 65,536 rows. What an encoder learns in its first
//! chunk (the symbols of strings) it has learned before the time is taken.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a measurement stops by them")]

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use dray_format::arrow::{batch_from_arrow, schema_from_arrow};
use dray_format::{Batch, Compression, Encoder, Limits, Schema, read};
use tpchgen::generators::LineItemGenerator;
use tpchgen_arrow::LineItemArrow;

const ROWS: usize = 1 << 16;
const RUNS: Duration = Duration::from_millis(500);

fn main() -> Result<(), Box<dyn Error>> {
    let only = std::env::args().nth(1);
    let rows: RecordBatch =
        LineItemArrow::new(LineItemGenerator::new(0.1, 1, 1)).with_batch_size(ROWS).next().ok_or("no rows")??;
    let schema = schema_from_arrow(&rows.schema())?;
    let batch = batch_from_arrow(&rows)?;
    println!("GB/s encode / decode, and the ratio");
    println!("{:16}{:>22}{:>22}{:>22}{:>22}", "", "light", "symbols", "lz4", "zstd:1");
    for (field, column) in schema.fields.iter().zip(&batch.columns) {
        if only.as_ref().is_none_or(|only| *only == field.name) {
            let schema = Schema { fields: vec![field.clone()] };
            measure(&field.name, &schema, &Batch { rows: batch.rows, columns: vec![column.clone()] })?;
        }
    }
    if only.is_none() {
        measure("all", &schema, &batch)?;
    }
    Ok(())
}

fn measure(name: &str, schema: &Schema, batch: &Batch) -> Result<(), Box<dyn Error>> {
    print!("{name:16}");
    let pieces = std::slice::from_ref(batch);
    for compression in [Compression::Light, Compression::Symbols, Compression::Lz4, Compression::Zstd(1)] {
        let mut encoder = Encoder::new(Arc::new(schema.clone()), false);
        let chunk = encoder.write(pieces, |_| compression, false)?;
        let bytes = chunk.to_bytes(0);
        let encode = processor_time(|| encoder.write(pieces, |_| compression, false))?;
        let decode = processor_time(|| read(&bytes, schema, &Limits::default()))?;
        let decoded = chunk.decoded_bytes() as f64;
        let ratio = decoded / chunk.chunk_bytes() as f64;
        print!("{:>8.2} /{:>6.2} {:>4.1}x", decoded / encode, decoded / decode, ratio);
    }
    println!();
    Ok(())
}

/// The processor time of a run in nanoseconds, on average over some: it does not count what other processes take.
fn processor_time<T>(mut run: impl FnMut() -> dray_format::Result<T>) -> Result<f64, Box<dyn Error>> {
    black_box(run()?);
    let (start, before) = (Instant::now(), processor_ns()?);
    let mut runs = 0.0;
    while start.elapsed() < RUNS {
        black_box(run()?);
        runs += 1.0;
    }
    Ok((processor_ns()? - before) / runs)
}

/// The time that this thread has run so far, from Linux.
fn processor_ns() -> Result<f64, Box<dyn Error>> {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(schedstat.split(' ').next().ok_or("no time in schedstat")?.parse()?)
}
