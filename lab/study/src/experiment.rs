//! The experiments: their rows, chunks and formats.

use arrow_array::RecordBatch;

use crate::Result;
use crate::codec::AnyCodec;
use crate::data::{Table, cut, cut_evenly, plain_bytes};
use crate::measure::Case;
use crate::{chunk_size, compressors, integers, nulls, row_major, serialization, strings};

/// The experiments, in the order of the report.
pub const EXPERIMENTS: [&str; 7] =
    ["chunk-size", "row-major", "compressors", "integers", "serialization", "strings", "nulls"];
/// The chunk-size experiment measures about this many bytes of each size, but at least two chunks
/// and at most [`CHUNKS_MAX`].
const CHUNK_SIZE_BYTES: usize = 24 << 20;
const CHUNKS_MAX: usize = 1000;

/// The columns and formats of an experiment that sends chunks over links.
///
/// # Errors
/// If the experiment sends none, or a format does not support the columns.
pub fn formats(
    experiment: &str,
    rows: &RecordBatch,
) -> Result<(RecordBatch, Vec<(String, AnyCodec)>)> {
    let rows = if experiment == "integers" { integers::project(rows)? } else { rows.clone() };
    let schema = rows.schema();
    let formats = match experiment {
        "chunk-size" => chunk_size::cases(&schema)?,
        "compressors" => compressors::cases(&schema)?,
        "integers" => integers::cases(&schema)?,
        "serialization" => serialization::cases(&schema)?,
        other => return Err(format!("the experiment {other} sends no chunks over links").into()),
    };
    Ok((rows, formats))
}

/// The cases of an experiment on one table, in chunks of `chunk_bytes` unless the experiment
/// chooses the size.
///
/// # Errors
/// If there is no such experiment, or a format does not support the columns.
pub fn cases(experiment: &str, table: &Table, chunk_bytes: usize) -> Result<Vec<Case>> {
    match experiment {
        "chunk-size" => chunk_sizes(table),
        "row-major" => {
            let formats = row_major::cases(&table.sample.schema());
            let case = |(name, codec)| Case {
                experiment: "row-major",
                data: table.name.to_owned(),
                name,
                chunk_bytes: None,
                chunks: vec![table.sample.clone()],
                sample: Vec::new(),
                codec,
            };
            Ok(formats.into_iter().map(case).collect())
        }
        "compressors" | "integers" | "serialization" => {
            let (rows, formats) = formats(experiment, &table.sample)?;
            let name =
                EXPERIMENTS.iter().find(|name| **name == experiment).ok_or("no such experiment")?;
            Ok(in_chunks(name, table.name, &rows, chunk_bytes, formats))
        }
        "strings" => string_columns(table, chunk_bytes),
        "nulls" => missing_values(table, chunk_bytes),
        other => {
            Err(format!("expected one of the experiments {EXPERIMENTS:?}, found {other}").into())
        }
    }
}

/// A case for each format, all on the same chunks.
fn in_chunks(
    experiment: &'static str,
    data: &str,
    rows: &RecordBatch,
    chunk_bytes: usize,
    formats: Vec<(String, AnyCodec)>,
) -> Vec<Case> {
    let row_bytes = plain_bytes(rows) as f64 / rows.num_rows() as f64;
    let chunks = cut_evenly(rows, chunk_bytes, row_bytes);
    let case = |(name, codec)| Case {
        experiment,
        data: data.to_owned(),
        name,
        chunk_bytes: Some(chunk_bytes),
        chunks: chunks.clone(),
        sample: Vec::new(),
        codec,
    };
    formats.into_iter().map(case).collect()
}

fn chunk_sizes(table: &Table) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    let row_bytes = plain_bytes(&table.volume) as f64 / table.volume.num_rows() as f64;
    for chunk_bytes in chunk_size::SIZES {
        if 2 * chunk_bytes > plain_bytes(&table.volume) {
            continue;
        }
        let count = (CHUNK_SIZE_BYTES / chunk_bytes).clamp(2, CHUNKS_MAX);
        let chunks = cut(&table.volume, chunk_bytes, row_bytes, count);
        let sample = cut_evenly(&table.sample, chunk_bytes, row_bytes);
        for (name, codec) in chunk_size::cases(&table.volume.schema())? {
            cases.push(Case {
                experiment: "chunk-size",
                data: table.name.to_owned(),
                name,
                chunk_bytes: Some(chunk_bytes),
                chunks: chunks.clone(),
                sample: sample.clone(),
                codec,
            });
        }
    }
    Ok(cases)
}

fn string_columns(table: &Table, chunk_bytes: usize) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (column, widths) in strings::COLUMNS {
        let Ok(index) = table.sample.schema().index_of(column) else { continue };
        let rows = table.sample.project(&[index])?;
        let row_bytes = plain_bytes(&rows) as f64 / rows.num_rows() as f64;
        for (name, codec, width) in strings::cases(&rows.schema(), widths)? {
            // A layout with wider rows has fewer of them in a chunk of the same size.
            let row_bytes = width.map_or(row_bytes, |width| row_bytes.max(width as f64));
            let chunks = cut_evenly(&rows, chunk_bytes, row_bytes);
            cases.push(Case {
                experiment: "strings",
                data: column.to_owned(),
                name,
                chunk_bytes: Some(chunk_bytes),
                chunks,
                sample: Vec::new(),
                codec,
            });
        }
    }
    Ok(cases)
}

fn missing_values(table: &Table, chunk_bytes: usize) -> Result<Vec<Case>> {
    if table.name != "lineitem" {
        return Ok(in_chunks(
            "nulls",
            table.name,
            &table.sample,
            chunk_bytes,
            nulls::cases(&table.sample.schema())?,
        ));
    }
    let mut cases = Vec::new();
    for share in nulls::SHARES {
        let rows = nulls::with_missing(&table.sample, share)?;
        let formats = nulls::cases(&rows.schema())?;
        cases.extend(in_chunks("nulls", &format!("{share} %"), &rows, chunk_bytes, formats));
    }
    Ok(cases)
}
