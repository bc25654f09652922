//! Measures how fast one core makes pages of TPC-H's lineitem, verifies them, makes columns of them
//! again and copies their objects in a random order: `cargo run --release -p dray-page --example
//! pages`.
//!
//! Each figure is the median of runs over 262,144 rows, in nanoseconds per row and GB/s of extents.
//! `nullable` are the same rows with every tenth value of each column missing; `customers` are
//! customers with their orders in a list.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement stops by them"
)]

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use dray_format::arrow::{batch_from_arrow, schema_from_arrow};
use dray_format::{Batch, Bitmap, Checksum, Column, Field, Schema, Type, Values};
use dray_page::{ColumnsBuilder, Layout, Object, PAGE_BYTES, PageBuilder, VerifiedPage};
use tpchgen::generators::LineItemGenerator;
use tpchgen_arrow::LineItemArrow;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BATCH_ROWS: usize = 1 << 16;
const BATCHES: usize = 4;
const RUNS: Duration = Duration::from_millis(1500);

fn main() -> Result<(), Box<dyn Error>> {
    let rows = LineItemArrow::new(LineItemGenerator::new(0.1, 1, 1)).with_batch_size(BATCH_ROWS);
    let rows: Vec<RecordBatch> = rows.take(BATCHES).collect::<Result<_, _>>()?;
    let schema = schema_from_arrow(&rows[0].schema())?;
    let batches: Vec<Batch> = rows.iter().map(batch_from_arrow).collect::<Result<_, _>>()?;
    println!(
        "{:12}{:>8}{:>18}{:>18}{:>18}{:>18}{:>18}{:>18}",
        "ns/row GB/s",
        "bytes",
        "build",
        "verify",
        "+ checksum",
        "to columns",
        "copy, random",
        "columns, random"
    );
    measure("lineitem", &schema, &batches)?;
    let gaps = |column: &Column| Column {
        validity: Some(every_tenth_missing(column.rows)),
        ..column.clone()
    };
    let sparse: Vec<Batch> = batches
        .iter()
        .map(|batch| Batch { rows: batch.rows, columns: batch.columns.iter().map(gaps).collect() })
        .collect();
    let nullable = |field: &Field| Field { nullable: true, ..field.clone() };
    measure("nullable", &Schema { fields: schema.fields.iter().map(nullable).collect() }, &sparse)?;
    let (schema, orders) = customers(&schema, &batches);
    measure("customers", &schema, &orders)?;
    Ok(())
}

fn every_tenth_missing(rows: usize) -> Bitmap {
    let bits = (0..rows.div_ceil(8))
        .map(|byte| (0..8).fold(0, |bits, i| bits | u8::from((byte * 8 + i) % 10 != 9) << i));
    Bitmap { bytes: bits.collect::<Vec<u8>>().into(), offset: 0, len: rows }
}

/// Lists of up to 31 rows each, beside a number.
fn customers(schema: &Schema, batches: &[Batch]) -> (Schema, Vec<Batch>) {
    let field = |name: &str, data_type| Field {
        name: name.into(),
        data_type,
        nullable: false,
        metadata: vec![],
    };
    let item = field("item", Type::Struct(schema.fields.clone()));
    let fields = vec![field("key", Type::Int64), field("orders", Type::List(Box::new(item)))];
    let lists = batches.iter().map(|batch| {
        let mut offsets = vec![0u32];
        while (*offsets.last().unwrap() as usize) < batch.rows {
            let length = offsets.len() as u32 * 7 % 32;
            offsets.push((offsets.last().unwrap() + length).min(batch.rows as u32));
        }
        let rows = offsets.len() - 1;
        let keys = (0..rows as u64).flat_map(u64::to_le_bytes).collect::<Vec<u8>>().into();
        let offsets = offsets.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>().into();
        let items = Column {
            rows: batch.rows,
            validity: None,
            values: Values::Struct(batch.columns.clone()),
        };
        let lists = Values::List { offsets, child: Box::new(items) };
        let columns = [Values::Fixed { width: 8, bytes: keys }, lists];
        Batch {
            rows,
            columns: columns.map(|values| Column { rows, validity: None, values }).into(),
        }
    });
    (Schema { fields }, lists.collect())
}

fn measure(name: &str, schema: &Schema, batches: &[Batch]) -> Result<(), Box<dyn Error>> {
    let layout = Layout::new(schema.clone())?;
    let build = |checksum| {
        let mut builder = PageBuilder::new(layout.clone(), PAGE_BYTES, checksum)?;
        batches.iter().try_for_each(|batch| builder.append(batch))?;
        Ok(builder.finish())
    };
    let (pages, summed) = (build(Checksum::None)?, build(Checksum::Crc32c)?);
    let mut order: Vec<Object<'_>> = pages.iter().flat_map(VerifiedPage::objects).collect();
    let (rows, bytes) =
        (order.len() as f64, order.iter().map(|object| object.bytes().len()).sum::<usize>() as f64);
    print!("{name:12}{:>8.1}", bytes / rows);
    let verify = |pages: &[VerifiedPage]| {
        pages
            .iter()
            .try_for_each(|page| VerifiedPage::verify(&layout, page.bytes().clone()).map(drop))
    };
    let figures = |ns: f64| print!("{:>11.1}{:>7.2}", ns / rows, bytes / ns);
    figures(median(|| build(Checksum::None))?);
    figures(median(|| verify(&pages))?);
    figures(median(|| verify(&summed))?);
    figures(median(|| columns(&layout, &order))?);
    let mut state = 1u64;
    for i in (1..order.len()).rev() {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        order.swap(i, (state >> 33) as usize % (i + 1));
    }
    figures(median(|| {
        let mut builder = PageBuilder::new(layout.clone(), PAGE_BYTES, Checksum::None)?;
        order.iter().try_for_each(|object| builder.copy(*object))?;
        Ok(builder.finish())
    })?);
    figures(median(|| columns(&layout, &order))?);
    println!();
    Ok(())
}

fn columns(layout: &Arc<Layout>, objects: &[Object<'_>]) -> dray_page::Result<Vec<Batch>> {
    let mut builder = ColumnsBuilder::new(layout.clone(), u64::MAX);
    let batch = |objects: &[Object<'_>]| {
        builder.append(objects.iter().copied())?;
        Ok(builder.finish())
    };
    objects.chunks(BATCH_ROWS).map(batch).collect()
}

/// The median time of a run in nanoseconds. Processor time is counted in steps of milliseconds,
/// which is too coarse for a run.
fn median<T>(mut run: impl FnMut() -> dray_page::Result<T>) -> Result<f64, Box<dyn Error>> {
    black_box(run()?);
    let start = Instant::now();
    let mut times = Vec::new();
    while start.elapsed() < RUNS || times.len() < 5 {
        let before = Instant::now();
        let made = black_box(run()?);
        times.push(before.elapsed().as_nanos() as f64);
        drop(made);
    }
    times.sort_unstable_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
