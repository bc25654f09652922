//! Measures how fast one core encodes and decodes TPC-H's lineitem, column by column, and how small
//! it gets: `cargo run --release -p dray-format --example speed [COLUMN]`. With `speed FILE.arrow`
//! it prints bytes and nanoseconds for the rows of an Arrow file as JSON.
//!
//! GB/s are of decoded bytes and processor time, for one chunk of 65,536 rows. Symbols of strings
//! are trained before the measurement. The last line is of raw values instead: a decimal counts 8
//! bytes, a string the bytes of its text, everything else its width. Memory comes from the
//! allocator of the command line and the Python package, and is reused within milliseconds: the
//! time that the system takes to hand out new pages is not in these figures.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement stops by them"
)]

use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_ipc::reader::FileReader;
use dray_format::arrow::{batch_from_arrow, schema_from_arrow};
use dray_format::{Batch, Checksum, ChunkKind, Compression, Encoder, Limits, Schema, Values, read};
use serde_json::json;
use tpchgen::generators::LineItemGenerator;
use tpchgen_arrow::LineItemArrow;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROWS: usize = 1 << 16;
const COMPRESSIONS: [(&str, Compression); 4] = [
    ("light", Compression::Light),
    ("symbols", Compression::Symbols),
    ("lz4", Compression::Lz4),
    ("zstd:1", Compression::Zstd(1)),
];
const RUNS: Duration = Duration::from_millis(500);

fn main() -> Result<(), Box<dyn Error>> {
    let only = std::env::args().nth(1);
    if let Some(path) = only.as_ref().filter(|argument| argument.ends_with(".arrow")) {
        return measure_file(path);
    }
    let rows: RecordBatch = LineItemArrow::new(LineItemGenerator::new(0.1, 1, 1))
        .with_batch_size(ROWS)
        .next()
        .ok_or("no rows")??;
    let schema = schema_from_arrow(&rows.schema())?;
    let batch = batch_from_arrow(&rows)?;
    println!("GB/s encode / decode, and the ratio");
    print!("{:16}", "");
    COMPRESSIONS.iter().for_each(|(name, _)| print!("{name:>22}"));
    println!();
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

/// All rows of a file as one chunk.
fn measure_file(path: &str) -> Result<(), Box<dyn Error>> {
    let batches = FileReader::try_new(File::open(path)?, None)?;
    let schema = batches.schema();
    let rows =
        arrow_select::concat::concat_batches(&schema, &batches.collect::<Result<Vec<_>, _>>()?)?;
    let (schema, batch) = (schema_from_arrow(&schema)?, batch_from_arrow(&rows)?);
    let mut all = serde_json::Map::new();
    for (name, compression) in COMPRESSIONS {
        let Figure { chunk_bytes, encode_ns, decode_ns } =
            Figure::of(&schema, &batch, compression)?;
        let figure = json!({"bytes": chunk_bytes, "encode_ns": encode_ns, "decode_ns": decode_ns});
        all.insert(name.into(), figure);
    }
    println!("{}", serde_json::Value::from(all));
    Ok(())
}

/// Size and times of one batch with one compression.
struct Figure {
    chunk_bytes: f64,
    encode_ns: f64,
    decode_ns: f64,
}

impl Figure {
    fn of(
        schema: &Schema,
        batch: &Batch,
        compression: Compression,
    ) -> Result<Self, Box<dyn Error>> {
        let pieces = std::slice::from_ref(batch);
        let mut encoder = Encoder::new(Arc::new(schema.clone()), Checksum::None);
        let chunk = encoder.write(pieces, |_| compression, ChunkKind::Regular)?;
        let bytes = chunk.to_bytes(0);
        Ok(Self {
            chunk_bytes: chunk.chunk_bytes() as f64,
            encode_ns: processor_time(|| {
                encoder.write(pieces, |_| compression, ChunkKind::Regular)
            })?,
            decode_ns: processor_time(|| read(&bytes, schema, &Limits::default()))?,
        })
    }

    /// Prints the figure relative to this many bytes.
    fn print(&self, bytes: f64) {
        let Self { chunk_bytes, encode_ns, decode_ns } = self;
        print!(
            "{:>8.2} /{:>6.2} {:>4.1}x",
            bytes / encode_ns,
            bytes / decode_ns,
            bytes / chunk_bytes
        );
    }
}

fn measure(name: &str, schema: &Schema, batch: &Batch) -> Result<Vec<Figure>, Box<dyn Error>> {
    print!("{name:16}");
    let mut figures = Vec::new();
    let decoded = Encoder::new(Arc::new(schema.clone()), Checksum::None)
        .write(std::slice::from_ref(batch), |_| Compression::None, ChunkKind::Regular)?
        .decoded_bytes();
    for (_, compression) in COMPRESSIONS {
        let figure = Figure::of(schema, batch, compression)?;
        figure.print(decoded as f64);
        figures.push(figure);
    }
    println!();
    Ok(figures)
}

/// The raw bytes of all values.
fn raw_bytes(batch: &Batch) -> f64 {
    let raw = batch.columns.iter().map(|column| match &column.values {
        Values::Fixed { width: 16, .. } => 8 * column.rows,
        Values::Fixed { width, .. } => width * column.rows,
        Values::Bytes { data, .. } => data.len(),
        _ => 0,
    });
    raw.sum::<usize>() as f64
}

/// The mean processor time of a run in nanoseconds. It does not count other processes.
fn processor_time<T>(
    mut run: impl FnMut() -> dray_format::Result<T>,
) -> Result<f64, Box<dyn Error>> {
    black_box(run()?);
    let (start, before) = (Instant::now(), processor_ns()?);
    let mut runs = 0.0;
    while start.elapsed() < RUNS {
        black_box(run()?);
        runs += 1.0;
    }
    Ok((processor_ns()? - before) / runs)
}

/// The processor time of this thread so far, from Linux.
fn processor_ns() -> Result<f64, Box<dyn Error>> {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(schedstat.split(' ').next().ok_or("no time in schedstat")?.parse()?)
}
