//! How fast one core encodes and decodes TPC-H's lineitem, column by column, and how small it gets:
//! `cargo run --release -p dray-format --example speed [COLUMN]`.
//!
//! GB/s are of decoded bytes; each figure is of processor time, over one chunk of 65,536 rows. What an encoder learns in its
//! first chunk (the symbols of strings) it has learned before the time is taken. The last line is of raw values
//! instead: a decimal counts 8 bytes, a string those of its text alone, everything else its width. Memory comes from the
//! allocator that the command line and the Python package use; the chunks' own is a few milliseconds old at most, so what the
//! system takes to hand out fresh pages is not in these figures.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a measurement stops by them")]

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use dray_format::arrow::{batch_from_arrow, schema_from_arrow};
use dray_format::{Batch, Compression, Encoder, Limits, Schema, Values, read};
use tpchgen::generators::LineItemGenerator;
use tpchgen_arrow::LineItemArrow;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
            let batch = Batch { rows: batch.rows, columns: vec![column.clone()] };
            measure(&field.name, &schema, &batch)?;
        }
    }
    if only.is_none() {
        let figures = measure("all", &schema, &batch)?;
        let raw = raw_bytes(&batch);
        print!("{:16}", "all, of raw");
        for figure in figures {
            figure.print(raw);
        }
        println!("\n{} raw bytes a row", raw / batch.rows as f64);
    }
    Ok(())
}

/// What one compression made of one batch, and how long it took.
struct Figure {
    chunk_bytes: f64,
    encode_ns: f64,
    decode_ns: f64,
}

impl Figure {
    /// Against so many bytes before.
    fn print(&self, bytes: f64) {
        let Self { chunk_bytes, encode_ns, decode_ns } = self;
        print!("{:>8.2} /{:>6.2} {:>4.1}x", bytes / encode_ns, bytes / decode_ns, bytes / chunk_bytes);
    }
}

fn measure(name: &str, schema: &Schema, batch: &Batch) -> Result<Vec<Figure>, Box<dyn Error>> {
    print!("{name:16}");
    let pieces = std::slice::from_ref(batch);
    let mut figures = Vec::new();
    for compression in [Compression::Light, Compression::Symbols, Compression::Lz4, Compression::Zstd(1)] {
        let mut encoder = Encoder::new(Arc::new(schema.clone()), false);
        let chunk = encoder.write(pieces, |_| compression, false)?;
        let bytes = chunk.to_bytes(0);
        let figure = Figure {
            chunk_bytes: chunk.chunk_bytes() as f64,
            encode_ns: processor_time(|| encoder.write(pieces, |_| compression, false))?,
            decode_ns: processor_time(|| read(&bytes, schema, &Limits::default()))?,
        };
        figure.print(chunk.decoded_bytes() as f64);
        figures.push(figure);
    }
    println!();
    Ok(figures)
}

/// The bytes of all values, however they lie in memory.
fn raw_bytes(batch: &Batch) -> f64 {
    let raw = batch.columns.iter().map(|column| match &column.values {
        Values::Fixed { width: 16, .. } => 8 * column.rows,
        Values::Fixed { width, .. } => width * column.rows,
        Values::Bytes { data, .. } => data.len(),
        _ => 0,
    });
    raw.sum::<usize>() as f64
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
