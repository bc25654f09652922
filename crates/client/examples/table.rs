//! The client's cost of a table of TPC-H's lineitem, from the bytes of its chunks to Arrow: `cargo
//! run --release -p dray-client --example table [SCALE [ROWS]]`, with ROWS in a chunk.
//!
//! Each run makes a new table in fresh memory. The output has medians of the reading thread's
//! processor time for a row, its decode rate, page faults, and the peak memory beyond the memory
//! before; and the mean processor time of all threads, one of which touches memory ahead. The kinds
//! of compression take turns.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement stops by them"
)]

use std::error::Error;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use dray_client::{CompressionChoice, CopyDecoder, Limits, StringLayout};
use dray_format::arrow::{batch_from_arrow, schema_from_arrow};
use dray_format::{Checksum, ChunkKind, Compression, Encoder};
use dray_wire::{Estimate, Finished, ServerSession, Started};
use tpchgen::generators::LineItemGenerator;
use tpchgen_arrow::LineItemArrow;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const RUNS: usize = 9;
/// The unit of a process's processor time in /proc.
const TICK_NS: f64 = 1e7;
const KINDS: [Compression; 4] =
    [Compression::None, Compression::Light, Compression::Symbols, Compression::Zstd(1)];

fn main() -> Result<(), Box<dyn Error>> {
    let argument =
        |i: usize, default: f64| std::env::args().nth(i).map_or(Ok(default), |text| text.parse());
    let (scale, chunk_rows) = (argument(1, 0.3)?, argument(2, 65_536.0)? as usize);
    let rows = LineItemArrow::new(LineItemGenerator::new(scale, 1, 1)).with_batch_size(chunk_rows);
    let batches: Vec<RecordBatch> = rows.collect::<Result<_, _>>()?;
    let tables = KINDS.map(|kind| Frames::of(&batches, kind).unwrap());
    drop(batches);
    let mut runs = KINDS.map(|_| Vec::new());
    for _ in 0..RUNS {
        for (table, runs) in tables.iter().zip(&mut runs) {
            runs.push(table.read()?);
        }
    }
    println!(
        "{:10}{:>10}{:>12}{:>10}{:>10}{:>12}",
        "", "ns/row", "of all", "GB/s", "faults", "peak MB"
    );
    for ((kind, table), runs) in KINDS.iter().zip(&tables).zip(&runs) {
        let median = |figure: fn(&Run) -> f64| {
            let mut figures: Vec<f64> = runs.iter().map(figure).collect();
            figures.sort_by(f64::total_cmp);
            figures[RUNS / 2]
        };
        let (rows, reader_ns) = (table.rows as f64, median(|run| run.reader_ns));
        println!(
            "{:10}{:>10.1}{:>12.1}{:>10.2}{:>10.0}{:>12.1}",
            format!("{kind:?}"),
            reader_ns / rows,
            runs.iter().map(|run| run.all_ns).sum::<f64>() / RUNS as f64 / rows,
            table.decoded_bytes / reader_ns,
            median(|run| run.faults),
            median(|run| run.peak_bytes) / 1e6,
        );
    }
    let decoded = tables[0].decoded_bytes;
    println!("{} rows, {:.1} MB decoded", tables[0].rows, decoded / 1e6);
    Ok(())
}

/// The frames of a result, as PostgreSQL's extension sends them.
struct Frames {
    frames: Vec<Vec<u8>>,
    rows: u64,
    decoded_bytes: f64,
}

struct Run {
    reader_ns: f64,
    all_ns: f64,
    faults: f64,
    peak_bytes: f64,
}

impl Frames {
    fn of(batches: &[RecordBatch], kind: Compression) -> Result<Self, Box<dyn Error>> {
        let schema = Arc::new(schema_from_arrow(&batches[0].schema())?);
        let mut session = ServerSession::running(1);
        let mut frame = Vec::new();
        let started = Started {
            statement: 1,
            query: 0,
            schema: schema.clone(),
            estimate: Estimate::default(),
            compression: CompressionChoice::Auto,
            checksums: false,
            plan_ns: 0,
        };
        session.started(&started, &mut frame)?;
        let mut encoder = Encoder::new(schema, Checksum::None);
        let (mut frames, mut rows, mut decoded_bytes) = (Vec::new(), 0, 0.0);
        for batch in batches {
            let chunk = encoder.write(&[batch_from_arrow(batch)?], |_| kind, ChunkKind::Regular)?;
            rows += u64::from(chunk.rows());
            decoded_bytes += chunk.decoded_bytes() as f64;
            for part in session.chunk(chunk, &mut frame)? {
                frame.extend_from_slice(&part);
            }
            frames.push(std::mem::take(&mut frame));
        }
        session.finished(Finished::default(), &mut frame)?;
        frames.push(frame);
        Ok(Self { frames, rows, decoded_bytes })
    }

    fn read(&self) -> Result<Run, Box<dyn Error>> {
        // Waits until the pool has returned the free blocks of the last run to the system.
        std::thread::sleep(Duration::from_millis(2100));
        fs::write("/proc/self/clear_refs", "5")?;
        let ([faults, ticks @ ..], memory, start) =
            (stat([10, 14, 15])?, memory_bytes("VmRSS")?, reader_ns()?);
        let mut decoder = CopyDecoder::of_frames(Limits::default(), StringLayout::default());
        for frame in &self.frames {
            decoder.push(frame)?;
        }
        let (_, table) = decoder.finish(None)?;
        let reader_ns = reader_ns()? - start;
        let [faults_after, ticks_after @ ..] = stat([10, 14, 15])?;
        let run = Run {
            reader_ns,
            all_ns: (ticks_after.iter().sum::<f64>() - ticks.iter().sum::<f64>()) * TICK_NS,
            faults: faults_after - faults,
            peak_bytes: memory_bytes("VmHWM")? - memory,
        };
        assert_eq!(table.iter().map(|batch| batch.num_rows() as u64).sum::<u64>(), self.rows);
        Ok(run)
    }
}

/// Fields of proc_pid_stat(5) by their numbers.
fn stat<const N: usize>(numbers: [usize; N]) -> Result<[f64; N], Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // Field 2, the name, may have spaces.
    let fields: Vec<&str> =
        stat.rsplit_once(')').ok_or("no name in stat")?.1.split_whitespace().collect();
    Ok(numbers.map(|number| fields[number - 3].parse().unwrap()))
}

/// The processor time of this thread so far.
fn reader_ns() -> Result<f64, Box<dyn Error>> {
    let schedstat = fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(schedstat.split(' ').next().ok_or("no time in schedstat")?.parse()?)
}

fn memory_bytes(name: &str) -> Result<f64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(name)).ok_or("no such memory")?;
    Ok(line.split_whitespace().nth(1).ok_or("no figure")?.parse::<f64>()? * 1024.0)
}
