//! Tables: TPC-H lineitem, and the samples of real data in `lab/data`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_cast::cast;
use arrow_csv::ReaderBuilder;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use flate2::read::MultiGzDecoder;
use tpchgen::generators::LineItemGenerator;
use tpchgen_arrow::LineItemArrow;

use crate::Result;

/// The seed of every draw. `lab/data/sample.py` has the same seed, but another generator.
const SEED: u64 = 20190101;
/// Minimum and maximum rows of a contiguous run drawn from a sample.
const RUN_ROWS: (u64, u64) = (50, 500);
/// The names of the tables.
pub const NAMES: [&str; 3] = ["lineitem", "ontime", "pums"];

/// A table in two sizes.
pub struct Table {
    /// One of [`NAMES`].
    pub name: &'static str,
    /// Rows in the order of the file or the generator. Compression ratios are of these rows.
    pub sample: RecordBatch,
    /// Rows of about the requested size. For a sample they are drawn in contiguous runs.
    pub volume: RecordBatch,
}

impl Table {
    /// Loads a table with a volume of about `volume_bytes` ([`plain_bytes`]). Of lineitem,
    /// `sample_rows` rows are the sample.
    ///
    /// # Errors
    /// If a file cannot be read, or there is no such table.
    pub fn load(name: &str, volume_bytes: usize, sample_rows: usize) -> Result<Self> {
        Ok(match name {
            "lineitem" => {
                let volume = lineitem(volume_bytes, sample_rows)?;
                let sample = volume.slice(0, sample_rows);
                Self { name: NAMES[0], sample, volume }
            }
            "ontime" => Self::drawn(NAMES[1], "bts_ontime_2019_01.csv.gz", volume_bytes)?,
            "pums" => Self::drawn(NAMES[2], "pums_housing_or_189.csv.gz", volume_bytes)?,
            other => {
                return Err(format!("expected one of the tables {NAMES:?}, found {other}").into());
            }
        })
    }

    fn drawn(name: &'static str, file: &str, volume_bytes: usize) -> Result<Self> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../data");
        let sample = sample(&folder.join(format!("{name}.sql")), &folder.join(file))?;
        let mut random = Random(SEED);
        let mut runs = Vec::new();
        let mut bytes_left = volume_bytes as i64;
        let row_bytes = plain_bytes(&sample) as f64 / sample.num_rows() as f64;
        while bytes_left > 0 {
            let start = random.below(sample.num_rows() as u64) as usize;
            let rows = RUN_ROWS.0 + random.below(RUN_ROWS.1 - RUN_ROWS.0 + 1);
            let run = sample.slice(start, (rows as usize).min(sample.num_rows() - start));
            bytes_left -= (run.num_rows() as f64 * row_bytes) as i64;
            runs.push(run);
        }
        Ok(Self { name, volume: concat_batches(&sample.schema(), &runs)?, sample })
    }
}

/// TPC-H lineitem with 32-bit keys, as databases usually declare them.
fn lineitem(volume_bytes: usize, sample_rows: usize) -> Result<RecordBatch> {
    const ROW_BYTES: usize = 160;
    let rows = (volume_bytes / ROW_BYTES).max(sample_rows);
    // Keys grow with the scale factor, so it is at least 1 even if fewer rows are taken.
    let scale_factor = (rows as f64 / 5.9e6).max(1.0);
    let mut batches = Vec::new();
    let mut generated = 0;
    for batch in
        LineItemArrow::new(LineItemGenerator::new(scale_factor, 1, 1)).with_batch_size(1 << 16)
    {
        let batch = batch?;
        generated += batch.num_rows();
        batches.push(narrowed(&batch)?);
        if generated >= rows {
            break;
        }
    }
    let first = batches.first().ok_or("lineitem has no rows")?;
    Ok(concat_batches(&first.schema(), &batches)?.slice(0, rows.min(generated)))
}

fn narrowed(batch: &RecordBatch) -> Result<RecordBatch> {
    let mut fields = Vec::new();
    let mut arrays = Vec::new();
    for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
        let data_type = match field.data_type() {
            DataType::Int64 => DataType::Int32,
            DataType::Utf8View => DataType::Utf8,
            other => other.clone(),
        };
        arrays.push(cast(array, &data_type)?);
        fields.push(Field::new(field.name(), data_type, field.is_nullable()));
    }
    Ok(RecordBatch::try_new(Schema::new(fields).into(), arrays)?)
}

/// The rows of a CSV file, with the types of a `CREATE TABLE` statement that has one column per
/// line.
fn sample(declaration: &Path, file: &Path) -> Result<RecordBatch> {
    let schema = declared(&std::fs::read_to_string(declaration)?)?;
    let open = || -> Result<_> { Ok(MultiGzDecoder::new(File::open(file)?)) };
    let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
    if ends_with_comma(open()?)? {
        // Each line ends with a comma, but no column follows it.
        fields.push(Field::new("nothing", DataType::Utf8, true).into());
    }
    let reader =
        ReaderBuilder::new(Arc::new(Schema::new(fields))).with_header(true).build(open()?)?;
    let batches = reader.collect::<Result<Vec<_>, _>>()?;
    let first = batches.first().ok_or("the sample has no rows")?;
    let rows = concat_batches(&first.schema(), &batches)?;
    let arrays = rows.columns()[..schema.fields().len()].to_vec();
    Ok(RecordBatch::try_new(schema, arrays)?)
}

fn ends_with_comma(file: impl std::io::Read) -> Result<bool> {
    let mut header = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(file), &mut header)?;
    Ok(header.trim_end().ends_with(','))
}

fn declared(sql: &str) -> Result<SchemaRef> {
    let mut fields = Vec::new();
    for line in sql.lines().filter(|line| line.starts_with("    ")) {
        let line = line.trim().trim_end_matches([',', ';', ')']);
        let (name, declared) = line.split_once(' ').ok_or("a column without a type")?;
        let (declared, nullable) = match declared.strip_suffix(" NOT NULL") {
            Some(declared) => (declared, false),
            None => (declared, true),
        };
        let data_type = match declared {
            "integer" => DataType::Int32,
            "bigint" => DataType::Int64,
            "date" => DataType::Date32,
            "text" => DataType::Utf8,
            // The type's closing parenthesis may have been trimmed with the statement's.
            _ => {
                match declared.strip_prefix("numeric(").and_then(|digits| digits.split_once(',')) {
                    Some((precision, scale)) => DataType::Decimal128(
                        precision.parse()?,
                        scale.trim_end_matches(')').parse()?,
                    ),
                    None => {
                        return Err(
                            format!("columns of type {declared} are not in the study").into()
                        );
                    }
                }
            }
        };
        fields.push(Field::new(name, data_type, nullable));
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// The size of rows in Arrow's layout, the base of every GB/s and ratio: values, offsets, and the
/// bitmaps of columns with missing values.
pub fn plain_bytes(rows: &RecordBatch) -> usize {
    rows.columns().iter().map(column_bytes).sum()
}

fn column_bytes(array: &Arc<dyn Array>) -> usize {
    use arrow_array::cast::AsArray;
    let rows = array.len();
    let values = match array.data_type().primitive_width() {
        Some(width) => rows * width,
        None => match array.as_string_opt::<i32>() {
            Some(strings) => {
                (rows + 1) * 4
                    + (strings.value_offsets()[rows] - strings.value_offsets()[0]).unsigned_abs()
                        as usize
            }
            None => 0,
        },
    };
    values + if array.null_count() > 0 { rows.div_ceil(8) } else { 0 }
}

/// All rows in chunks of nearly equal size, at most `chunk_bytes` each.
pub fn cut_evenly(rows: &RecordBatch, chunk_bytes: usize, row_bytes: f64) -> Vec<RecordBatch> {
    let total = rows.num_rows();
    let chunk_rows = ((chunk_bytes as f64 / row_bytes) as usize).clamp(1, total);
    let even = total.div_ceil(total.div_ceil(chunk_rows));
    (0..total).step_by(even).map(|from| rows.slice(from, even.min(total - from))).collect()
}

/// The first rows in at most `count` chunks of `chunk_bytes`, without an incomplete last chunk.
pub fn cut(
    rows: &RecordBatch,
    chunk_bytes: usize,
    row_bytes: f64,
    count: usize,
) -> Vec<RecordBatch> {
    let total = rows.num_rows();
    let chunk_rows = ((chunk_bytes as f64 / row_bytes) as usize).clamp(1, total);
    (0..(total / chunk_rows).min(count)).map(|i| rows.slice(i * chunk_rows, chunk_rows)).collect()
}

/// SplitMix64, which gives the same numbers on every machine.
pub struct Random(pub u64);

impl Random {
    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % bound
    }
}
