//! `dray sort` of decimals, which Parquet files store in several ways.

use arrow::array::{Array, AsArray, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::{Decimal128Type, Schema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::Encoding;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, SchemaDescriptor};

use super::*;

/// How the columns are stored, with their digits. The library's byte arrays have the least length.
const COLUMNS: [(&str, &str, u8, i8); 10] = [
    ("a", "int32", 7, 2),
    ("b", "int64", 7, 2),
    ("c", "int32", 9, 9),
    ("d", "int64", 18, 3),
    ("e", "fixed_len_byte_array(4)", 9, 0),
    ("f", "fixed_len_byte_array(5)", 11, 1),
    ("g", "fixed_len_byte_array(8)", 18, 2),
    ("h", "fixed_len_byte_array(16)", 38, 4),
    ("i", "int32", 1, 0),
    ("j", "fixed_len_byte_array(1)", 1, 1),
];
const ROWS: i64 = 20_000;

/// The ends of the digits, numbers of both signs, many equal ones, and NULLs.
fn value(row: i64, column: usize, digits: u8) -> Option<i128> {
    let greatest = 10_i128.pow(digits.into()) - 1;
    let mixed = i128::from((row + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64) >> 5);
    match (row + column as i64) % 11 {
        0 => None,
        1 => Some(greatest),
        2 => Some(-greatest),
        3 => Some(mixed % 3),
        _ => Some(mixed.wrapping_mul(mixed) % (greatest + 1) * mixed.signum()),
    }
}

fn rows() -> RecordBatch {
    let column = |(number, (_, _, digits, scale)): (usize, &(&str, &str, u8, i8))| {
        let values = (0..ROWS).map(|row| value(row, number, *digits)).collect::<Decimal128Array>();
        Arc::new(values.with_precision_and_scale(*digits, *scale).unwrap()) as ArrayRef
    };
    let mut arrays: Vec<_> = COLUMNS.iter().enumerate().map(column).collect();
    arrays.push(Arc::new(Int64Array::from_iter_values(0..ROWS)));
    let names = COLUMNS.iter().map(|column| column.0).chain(["row"]);
    let fields: Vec<Field> = names
        .zip(&arrays)
        .map(|(name, array)| Field::new(name, array.data_type().clone(), true))
        .collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

/// The rows as a file that stores them as [`COLUMNS`] say.
fn write(path: &Path, batch: &RecordBatch) {
    write_with(path, batch, WriterProperties::default());
}

fn write_with(path: &Path, batch: &RecordBatch, properties: WriterProperties) {
    let column = |(name, stored, digits, scale): &(&str, &str, u8, i8)| {
        format!("optional {stored} {name} (DECIMAL({digits},{scale}));")
    };
    let columns: String = COLUMNS.iter().map(column).collect();
    let message = format!("message m {{ {columns} optional int64 row; }}");
    let schema = SchemaDescriptor::new(Arc::new(parse_message_type(&message).unwrap()));
    let options = ArrowWriterOptions::new()
        .with_parquet_schema(schema)
        .with_skip_arrow_metadata(true)
        .with_properties(properties);
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new_with_options(file, batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

/// The rows by a column of decimals, NULLs last, or first if it is descending.
fn expected(batch: &RecordBatch, column: usize, descending: bool) -> RecordBatch {
    let values = batch.column(column).as_primitive::<Decimal128Type>();
    let mut order: Vec<u32> = (0..batch.num_rows() as u32).collect();
    let key = |row: &u32| {
        let row = *row as usize;
        (values.is_null(row), values.value(row))
    };
    order.sort_by(|a, b| match descending {
        true => key(b).cmp(&key(a)),
        false => key(a).cmp(&key(b)),
    });
    take_record_batch(batch, &UInt32Array::from(order)).unwrap()
}

fn read_back(path: &Path) -> RecordBatch {
    let file = File::open(path).unwrap();
    let (schema, batches): (_, Vec<RecordBatch>) =
        if path.extension().is_some_and(|ending| ending == "parquet") {
            let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
            (reader.schema().clone(), reader.build().unwrap().map(Result::unwrap).collect())
        } else {
            let reader = arrow::ipc::reader::FileReader::try_new(file, None).unwrap();
            (reader.schema(), reader.map(Result::unwrap).collect())
        };
    concat_batches(&schema, &batches).unwrap()
}

fn sort(folder: &TempDir, inputs: &[&str], output: &str, more: &[&str]) -> RecordBatch {
    let path = |name: &&str| folder.path().join(name).display().to_string();
    let inputs: Vec<String> = inputs.iter().map(path).collect();
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    let output = folder.path().join(output);
    let spill = folder.path().to_str().unwrap();
    let to = ["--spill", spill, "-o", output.to_str().unwrap()];
    let ran = run(&[&["sort"], &inputs[..], &to, more].concat());
    assert!(ran.status.success(), "{}", stderr(&ran));
    read_back(&output)
}

#[test]
fn decimals_keep_their_order_and_type_however_they_are_stored() {
    let folder = tempfile::tempdir().unwrap();
    let batch = rows();
    write(&folder.path().join("in.parquet"), &batch);
    for (number, (name, ..)) in COLUMNS.iter().enumerate() {
        for descending in [false, true] {
            let expected = expected(&batch, number, descending);
            let by = format!("{name}{}", if descending { ":desc" } else { "" });
            for (output, memory, more) in [
                ("out.parquet", "1GiB", &[][..]),
                ("out.parquet", "2MiB", &["--file-compression", "snappy"]),
                ("out.parquet", "1GiB", &["--file-compression", "gzip"]),
                ("out.arrow", "1GiB", &[]),
            ] {
                let more = [&["--by", &by, "--memory", memory], more].concat();
                let found = sort(&folder, &["in.parquet"], output, &more);
                assert_eq!(found, expected, "{more:?}");
            }
        }
    }
}

/// Those in 4 and 8 bytes are read as integers where their pages allow it.
#[test]
fn decimals_in_fixed_bytes_may_have_any_encoding() {
    let folder = tempfile::tempdir().unwrap();
    let batch = rows();
    for encoding in [Encoding::PLAIN, Encoding::BYTE_STREAM_SPLIT, Encoding::DELTA_BYTE_ARRAY] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for has_dictionary in [false, true] {
                let mut properties = WriterProperties::builder()
                    .set_writer_version(version)
                    .set_dictionary_enabled(has_dictionary)
                    .set_dictionary_page_size_limit(20_000)
                    .set_data_page_row_count_limit(3000)
                    .set_max_row_group_row_count(Some(7000));
                for column in ["e", "g"] {
                    let column = ColumnPath::from(column);
                    properties = properties.set_column_encoding(column, encoding);
                }
                write_with(&folder.path().join("in.parquet"), &batch, properties.build());
                for column in [4, 6] {
                    let more = ["--by", COLUMNS[column].0];
                    let found = sort(&folder, &["in.parquet"], "out.parquet", &more);
                    let expected = expected(&batch, column, false);
                    assert_eq!(found, expected, "{encoding} {version:?} {has_dictionary}");
                }
            }
        }
    }
}

#[test]
fn files_that_store_decimals_differently_are_sorted_together() {
    let folder = tempfile::tempdir().unwrap();
    let batch = rows();
    let path = |name: &str| folder.path().join(name);
    write(&path("own.parquet"), &batch);
    // The library's own choice of 4, 8 or 16 bytes.
    write_parquet(&path("library.parquet"), &batch);
    let arrow = File::create(path("wide.arrow")).unwrap();
    let mut writer = arrow::ipc::writer::FileWriter::try_new(arrow, &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    for second in ["own.parquet", "library.parquet", "wide.arrow"] {
        let both = concat_batches(&batch.schema(), [&batch, &batch]).unwrap();
        let found = sort(&folder, &["own.parquet", second], "out.parquet", &["--by", "d"]);
        assert_eq!(found, expected(&both, 3, false), "{second}");
    }
    // In one folder.
    std::fs::create_dir(path("all")).unwrap();
    std::fs::copy(path("own.parquet"), path("all/a.parquet")).unwrap();
    std::fs::copy(path("library.parquet"), path("all/b.parquet")).unwrap();
    let both = concat_batches(&batch.schema(), [&batch, &batch]).unwrap();
    let found = sort(&folder, &["all"], "out.parquet", &["--by", "c:desc"]);
    assert_eq!(found, expected(&both, 2, true));
}

/// A file may have a decimal of more digits than its type. It is no other number afterwards.
#[test]
fn a_decimal_that_no_longer_fits_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut columns = rows().columns().to_vec();
    let schema = rows().schema();
    let too_large: Decimal128Array = (0..ROWS).map(|row| Some(i128::from(row) << 30)).collect();
    columns[1] = Arc::new(too_large.with_precision_and_scale(7, 2).unwrap());
    let batch = RecordBatch::try_new(schema, columns).unwrap();
    write(&folder.path().join("in.parquet"), &batch);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let ran = run(&["sort", &path("in.parquet"), "--by", "b", "-o", &path("out.parquet")]);
    assert!(!ran.status.success());
    assert!(stderr(&ran).contains("has more digits than Decimal"), "{}", stderr(&ran));
    // Other formats have room for it.
    let found = sort(&folder, &["in.parquet"], "out.arrow", &["--by", "b"]);
    assert_eq!(found, batch);
}
