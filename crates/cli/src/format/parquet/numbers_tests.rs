//! Columns of numbers beside what the library writes for them.

use std::io::BufWriter;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Array, Decimal32Array, Decimal64Array, Decimal128Array, DurationSecondArray,
    Int8Array, Int16Array, Int32Array, Int64Array, RecordBatch, Time32MillisecondArray,
    Time64NanosecondArray, TimestampMicrosecondArray, new_null_array,
};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::Encoding;
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;

use super::super::{FileCompression, FileOptions, Sink, WriteError};
use super::tests::File;
use super::{ParquetSink, codec, properties};

const ROWS: i64 = 50_000;

/// A random number that is the same for each row in all runs.
fn random(row: i64) -> i64 {
    let mixed = (row as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) as i64
}

/// Some rows are NULL: a few, runs of them, or none.
fn is_null(row: i64, kind: usize) -> bool {
    match kind {
        0 => false,
        1 => random(row) % 200 == 0,
        2 => row / 30_000 == 0 || row % 7 < 4,
        _ => row % 100 < 50,
    }
}

/// Every type that is stored as a number, with values that repeat, that don't, and that rise.
fn columns(nulls: usize) -> Vec<(String, ArrayRef)> {
    let mut all: Vec<(String, ArrayRef)> = Vec::new();
    type Value = fn(i64) -> i64;
    let values: [(&str, Value); 5] = [
        ("few", |row| random(row) % 100),
        ("thousands", |row| random(row) % 9000 - 4500),
        ("distinct", random),
        ("rising", |row| row / 3),
        ("one", |_| 7),
    ];
    for (name, value) in values {
        let at = |row: i64| (!is_null(row, nulls)).then(|| value(row));
        let all64 = || (0..ROWS).map(at);
        let all32 = || all64().map(|value| value.map(|value| value as i32));
        let digits = |max: i64| all64().map(move |value| value.map(|value| value % max));
        let small = || digits(1_000_000_000).map(|value| value.map(|value| value as i32));
        let of_128 = |max: i64| digits(max).map(|value| value.map(i128::from));
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(all64().map(|value| value.map(|value| value as i8)).collect::<Int8Array>()),
            Arc::new(all64().map(|value| value.map(|value| value as i16)).collect::<Int16Array>()),
            Arc::new(all32().collect::<Int32Array>()),
            Arc::new(all64().collect::<Int64Array>()),
            Arc::new(all32().collect::<Date32Array>()),
            Arc::new(all32().collect::<Time32MillisecondArray>()),
            Arc::new(all64().collect::<Time64NanosecondArray>()),
            Arc::new(all64().collect::<TimestampMicrosecondArray>().with_timezone("UTC")),
            Arc::new(all64().collect::<DurationSecondArray>()),
            Arc::new(decimal(small().collect::<Decimal32Array>(), 9)),
            Arc::new(decimal(digits(1_000_000_000).collect::<Decimal64Array>(), 9)),
            Arc::new(decimal(digits(1_000_000_000_000).collect::<Decimal64Array>(), 18)),
            Arc::new(decimal(of_128(1_000_000_000).collect::<Decimal128Array>(), 7)),
            Arc::new(decimal(of_128(1_000_000_000_000).collect::<Decimal128Array>(), 15)),
            Arc::new(decimal(of_128(1_000_000_000_000).collect::<Decimal128Array>(), 30)),
        ];
        all.extend(
            arrays.into_iter().map(|array| (format!("{name} {}", array.data_type()), array)),
        );
    }
    all.push(("missing".to_owned(), new_null_array(&DataType::Int32, ROWS as usize)));
    all
}

fn decimal<T: arrow::datatypes::DecimalType>(
    array: arrow::array::PrimitiveArray<T>,
    precision: u8,
) -> arrow::array::PrimitiveArray<T> {
    array.with_precision_and_scale(precision, 2).unwrap()
}

fn batch(nulls: usize) -> RecordBatch {
    let (names, arrays): (Vec<_>, Vec<_>) = columns(nulls).into_iter().unzip();
    let may_be_null = |array: &ArrayRef| nulls > 0 || array.null_count() > 0;
    let field = |(name, array): (&String, &ArrayRef)| {
        Field::new(name, array.data_type().clone(), may_be_null(array))
    };
    let fields: Vec<Field> = names.iter().zip(&arrays).map(field).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

/// The batch as a file of one row group.
fn written(batch: &RecordBatch, compression: FileCompression) -> Bytes {
    let options = FileOptions { compression: Some(compression), ..FileOptions::default() };
    written_as(&batch.schema(), batch, options).unwrap()
}

/// The batch as a file of this schema.
pub(super) fn written_as(
    schema: &SchemaRef,
    batch: &RecordBatch,
    options: FileOptions,
) -> Result<Bytes, WriteError> {
    let file = File::default();
    let out = BufWriter::new(file.clone());
    let mut sink = Box::new(ParquetSink::start(out, schema, options)?);
    for from in (0..batch.num_rows()).step_by(7001) {
        sink.write(&batch.slice(from, 7001.min(batch.num_rows() - from)))?;
    }
    sink.finish()?;
    Ok(file.bytes().into())
}

pub(super) fn written_by_library(batch: &RecordBatch, compression: FileCompression) -> Bytes {
    let properties = properties(codec(Some(compression)).unwrap());
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes.into()
}

pub(super) fn read(bytes: &Bytes) -> (Arc<ParquetMetaData>, RecordBatch) {
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    let reader =
        ParquetRecordBatchReaderBuilder::try_new_with_options(bytes.clone(), options).unwrap();
    let (metadata, schema) = (reader.metadata().clone(), reader.schema().clone());
    let batches: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
    (metadata, concat_batches(&schema, &batches).unwrap())
}

#[test]
fn values_and_statistics_are_those_of_the_library() {
    for (nulls, compression) in [
        (0, FileCompression::Snappy),
        (1, FileCompression::Zstd(1)),
        (2, FileCompression::Lz4),
        (3, FileCompression::None),
    ] {
        let batch = batch(nulls);
        let bytes = written(&batch, compression);
        let (metadata, found) = read(&bytes);
        assert_eq!(found, batch);
        let expected_bytes = written_by_library(&batch, compression);
        let (expected, _) = read(&expected_bytes);
        let columns = metadata.row_group(0).columns().iter();
        for (column, expected) in columns.zip(expected.row_group(0).columns()) {
            let name = column.column_path();
            assert_eq!(column.statistics(), expected.statistics(), "{name}");
            assert_eq!(column.num_values(), expected.num_values(), "{name}");
            let levels = ColumnChunkMetaData::definition_level_histogram;
            assert_eq!(levels(column), levels(expected), "{name}");
            assert_eq!(column.compression(), expected.compression(), "{name}");
        }
        // Less than the library's, and each page is in the index.
        assert!(bytes.len() < expected_bytes.len() * 21 / 20);
        let indexes = metadata.offset_index().unwrap()[0].iter();
        assert!(indexes.clone().all(|index| (3..=5).contains(&index.page_locations.len())));
        assert_eq!(indexes.len(), batch.num_columns());
    }
}

#[test]
fn page_statistics_are_those_of_the_rows() {
    let batch = batch(2);
    let (metadata, _) = read(&written(&batch, FileCompression::Snappy));
    let number = batch.schema().index_of("rising Int64").unwrap();
    let index = &metadata.column_index().unwrap()[0][number];
    let ColumnIndexMetaData::INT64(index) = index else { panic!("{index:?}") };
    let of_page = |page: i64| {
        let rows = (page * 20_000..((page + 1) * 20_000).min(ROWS)).filter(|row| !is_null(*row, 2));
        Some((rows.clone().min()? / 3, rows.max()? / 3))
    };
    let least: Vec<_> = index.min_values_iter().map(|least| least.copied()).collect();
    let greatest: Vec<_> = index.max_values_iter().map(|greatest| greatest.copied()).collect();
    let pages: Vec<_> =
        least.into_iter().zip(greatest).map(|(least, most)| least.zip(most)).collect();
    assert_eq!(pages, (0..3).map(of_page).collect::<Vec<_>>());
    assert_eq!(pages[0], None);
    assert!(format!("{index:?}").contains("ASCENDING"));
}

#[test]
fn a_dictionary_ends_when_it_is_full() {
    // The first rows are few values, the others are all different.
    let value = |row: i64| if row < 30_000 { row % 10 } else { random(row) };
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values((0..300_000).map(value)));
    let batch = RecordBatch::try_from_iter([("n", values)]).unwrap();
    let (metadata, found) = read(&written(&batch, FileCompression::Snappy));
    assert_eq!(found, batch);
    let encodings: Vec<Encoding> = metadata.row_group(0).column(0).encodings().collect();
    assert_eq!(encodings, [Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY]);
    assert!(metadata.row_group(0).column(0).dictionary_page_offset().is_some());
}

#[test]
fn dictionaries_are_left_out_where_they_do_not_pay() {
    let batch = batch(1);
    let (metadata, _) = read(&written(&batch, FileCompression::Snappy));
    for column in metadata.row_group(0).columns() {
        let name = column.column_path().string();
        // Small integers repeat, and the library has no dictionaries of large decimals.
        if ["Int8", "Int16", "(30, 2)"].iter().any(|end| name.ends_with(end)) {
            continue;
        }
        let has_dictionary = column.dictionary_page_offset().is_some();
        match name.split(' ').next() {
            Some("few" | "thousands" | "one") => assert!(has_dictionary, "{name}"),
            Some("distinct" | "missing") => assert!(!has_dictionary, "{name}"),
            _ => {}
        }
    }
}
