//! Files with wrong metadata: each is an error, and no result lacks rows of its file.

use std::fs;
use std::io::Read;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Decimal128Array, Int64Array, LargeStringArray, ListArray, RecordBatch,
    StringArray,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::ipc;
use datafusion::arrow::ipc::CompressionType;
use datafusion::arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use datafusion::parquet::arrow::arrow_writer::ArrowWriterOptions;
use datafusion::parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowWriter, encode_arrow_schema};
use datafusion::parquet::basic::{BrotliLevel, Compression};
use datafusion::parquet::file::metadata::KeyValue;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::parquet::schema::parser::parse_message_type;
use datafusion::parquet::schema::types::SchemaDescriptor;
use datafusion::prelude::SessionContext;
use dray_server::catalog::{self, CatalogOptions};
use tempfile::TempDir;

const ROWS: i64 = 1234;

/// A table `t`, and its file.
struct Served {
    context: SessionContext,
    _folder: TempDir,
}

async fn open_with(
    name: &str,
    bytes: &[u8],
    change: impl FnOnce(&mut CatalogOptions),
) -> Result<Served, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    let tables = vec![format!("t={}", path.display()).parse().unwrap()];
    let mut options = CatalogOptions { tables, threads: 2, ..CatalogOptions::default() };
    change(&mut options);
    let context = catalog::open(&options).await.map_err(|error| error.to_string())?;
    Ok(Served { context, _folder: folder })
}

async fn open(name: &str, bytes: &[u8]) -> Result<Served, String> {
    open_with(name, bytes, |_| {}).await
}

/// The number of rows that a statement returns.
async fn rows(served: &Served, sql: &str) -> Result<usize, String> {
    let text = |error: datafusion::error::DataFusionError| error.to_string();
    let batches = served.context.sql(sql).await.map_err(text)?.collect().await.map_err(text)?;
    Ok(batches.iter().map(RecordBatch::num_rows).sum())
}

fn parquet(columns: RecordBatch, compression: Compression) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_dictionary_enabled(false)
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), columns.schema(), Some(properties)).unwrap();
    writer.write(&columns).unwrap();
    writer.into_inner().unwrap()
}

fn numbers() -> Vec<u8> {
    let ids = Arc::new(Int64Array::from_iter_values(0..ROWS)) as ArrayRef;
    parquet(RecordBatch::try_from_iter([("id", ids)]).unwrap(), Compression::UNCOMPRESSED)
}

/// A row count as the footer encodes it: the header of the next field, a 64-bit integer in zigzag
/// encoding, then `next`.
fn count(rows: u64, next: &[u8]) -> Vec<u8> {
    let zigzag = rows * 2;
    assert!((128..1 << 14).contains(&zigzag) || rows == 0);
    [&[0x16, (zigzag & 0x7F) as u8 | 0x80, (zigzag >> 7) as u8], next].concat()
}

/// Replaces each `from` by `to`. There must be at least one.
fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut out = bytes.to_vec();
    let places: Vec<usize> =
        (0..=bytes.len() - from.len()).filter(|at| bytes[*at..].starts_with(from)).collect();
    assert!(!places.is_empty(), "{from:02x?}");
    for at in places {
        out[at..at + to.len()].copy_from_slice(to);
    }
    out
}

/// The bytes after the count in a file's footer: the list of row groups.
const OF_FILE: &[u8] = &[0x19];

#[tokio::test]
async fn parquet_files_with_any_byte_of_their_footers_changed_are_opened_or_refused() {
    let file = numbers();
    let tail = &file[file.len() - 8..];
    let footer_bytes = u32::from_le_bytes(tail[..4].try_into().unwrap()) as usize;
    let hostile = [&b""[..], b"PAR1", b"PAR1PAR1", b"PAR1 no footer PAR1"].map(<[u8]>::to_vec);
    let changed = (file.len() - 8 - footer_bytes..file.len()).flat_map(|i| {
        [0x7f, 0xff].map(|byte| {
            let mut bad = file.clone();
            bad[i] = byte;
            bad
        })
    });
    for bad in hostile.into_iter().chain(changed) {
        if let Err(error) = open("t.parquet", &bad).await {
            assert!(!error.contains("panicked"), "{error}");
        }
    }
}

/// Like `repeated_no_annotation.parquet` of Apache's test files: its footer declares no rows, and
/// it has six. The engine uses the declared number as the limit of a batch, and returns nothing.
#[tokio::test]
async fn parquet_footers_that_count_other_rows_than_their_row_groups_are_refused() {
    let file = numbers();
    let context = open("good.parquet", &file).await.unwrap();
    assert_eq!(rows(&context, "SELECT id FROM t").await, Ok(ROWS as usize));
    for said in [0, 1233, 1235] {
        let bad = replace(&file, &count(ROWS as u64, OF_FILE), &count(said, OF_FILE));
        let error = open("bad.parquet", &bad).await.err().unwrap();
        let expected = format!(
            "its footer declares {said} rows, and its row groups have 1234; rewrite the file"
        );
        assert!(error.contains(&expected), "{error}");
    }
}

#[tokio::test]
async fn parquet_pages_with_other_rows_than_their_footers_are_an_error() {
    let file = numbers();
    // All counts in the footer: of the file, the row group and the column.
    let bad = replace(&file, &count(ROWS as u64, &[]), &count(ROWS as u64 + 1, &[]));
    let context = open("bad.parquet", &bad).await.unwrap();
    for sql in ["SELECT id FROM t", "SELECT sum(id) FROM t", "SELECT * FROM t ORDER BY id"] {
        let error = rows(&context, sql).await.expect_err(sql);
        assert!(error.contains("declare 1235 rows, and their pages have 1234"), "{sql}: {error}");
    }
    let error =
        open_with("bad.parquet", &bad, |options| options.in_memory = true).await.err().unwrap();
    assert!(error.contains("1235 rows"), "{error}");
    // Only the column's count.
    let bad = replace(&file, &count(ROWS as u64, &[0x16]), &count(ROWS as u64 + 1, &[0x16]));
    let error = open("bad.parquet", &bad).await.err().unwrap();
    assert!(error.contains("has 1234 rows, and its column 'id' has 1235 values"), "{error}");
}

/// A file with a column that is stored as `stored` says, and whose Arrow schema says `claimed`.
fn parquet_as(array: ArrayRef, stored: &str, claimed: DataType) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter_with_nullable([("c", array, true)]).unwrap();
    let message = parse_message_type(&format!("message m {{ optional {stored}; }}")).unwrap();
    let schema = encode_arrow_schema(&Schema::new(vec![Field::new("c", claimed, true)]));
    let schema = KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), schema);
    let options = ArrowWriterOptions::new()
        .with_parquet_schema(SchemaDescriptor::new(Arc::new(message)))
        .with_skip_arrow_metadata(true)
        .with_properties(
            WriterProperties::builder().set_key_value_metadata(Some(vec![schema])).build(),
        );
    let mut writer =
        ArrowWriter::try_new_with_options(Vec::new(), batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

/// The library panics over the first ones, and would read the last one as other numbers.
#[tokio::test]
async fn parquet_columns_that_are_not_what_their_arrow_schema_says_are_refused() {
    let decimals = |precision, scale| -> ArrayRef {
        let values = Decimal128Array::from(vec![Some(125), None, Some(-350)]);
        Arc::new(values.with_precision_and_scale(precision, scale).unwrap())
    };
    let dictionary = |values| DataType::Dictionary(Box::new(DataType::Int8), Box::new(values));
    let bits: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None]));
    let digits_12 = "fixed_len_byte_array(6) c (DECIMAL(12,2))";
    let digits_7 = "fixed_len_byte_array(4) c (DECIMAL(7,2))";
    let refused = [
        (decimals(12, 2), "int64 c (DECIMAL(12,2))", DataType::Decimal32(7, 2)),
        (decimals(9, 2), "int64 c (DECIMAL(9,2))", DataType::Decimal32(9, 2)),
        (decimals(12, 2), digits_12, DataType::Decimal32(7, 2)),
        (bits, "boolean c", dictionary(DataType::Boolean)),
        (decimals(7, 2), digits_7, dictionary(DataType::Decimal32(7, 3))),
        (decimals(7, 2), digits_7, DataType::Decimal32(7, 3)),
    ];
    for (array, stored, claimed) in refused {
        let file = parquet_as(array, stored, claimed.clone());
        let error = open("bad.parquet", &file).await.err();
        let expected = format!(", which is no {claimed}, as its Arrow schema says");
        assert!(
            error.as_ref().is_some_and(|error| error.contains(&expected)),
            "{stored}: {error:?}"
        );
    }
    let read = [
        (decimals(7, 2), digits_7, DataType::Decimal32(7, 2)),
        (decimals(12, 2), digits_12, DataType::Decimal64(12, 2)),
        (decimals(12, 2), digits_12, DataType::Decimal256(12, 2)),
        (decimals(9, 2), "int32 c (DECIMAL(9,2))", dictionary(DataType::Decimal128(9, 2))),
    ];
    for (array, stored, claimed) in read {
        let context = open("good.parquet", &parquet_as(array, stored, claimed)).await.unwrap();
        assert_eq!(rows(&context, "SELECT c FROM t").await, Ok(3), "{stored}");
    }
}

/// Both formats of Arrow files, with a schema of one column and a declared byte order.
fn arrow_of(endianness: ipc::Endianness) -> (Vec<u8>, Vec<u8>) {
    use flatbuffers::FlatBufferBuilder;
    fn schema<'a>(
        b: &mut FlatBufferBuilder<'a>,
        order: ipc::Endianness,
    ) -> flatbuffers::WIPOffset<ipc::Schema<'a>> {
        let name = b.create_string("a");
        let children = b.create_vector::<flatbuffers::WIPOffset<ipc::Field<'_>>>(&[]);
        let mut int = ipc::IntBuilder::new(b);
        int.add_bitWidth(32);
        int.add_is_signed(true);
        let int = int.finish();
        let mut field = ipc::FieldBuilder::new(b);
        field.add_name(name);
        field.add_nullable(true);
        field.add_type_type(ipc::Type::Int);
        field.add_type_(int.as_union_value());
        field.add_children(children);
        let field = field.finish();
        let fields = b.create_vector(&[field]);
        let mut schema = ipc::SchemaBuilder::new(b);
        schema.add_endianness(order);
        schema.add_fields(fields);
        schema.finish()
    }
    let mut b = FlatBufferBuilder::new();
    let header = schema(&mut b, endianness);
    let mut message = ipc::MessageBuilder::new(&mut b);
    message.add_version(ipc::MetadataVersion::V5);
    message.add_header_type(ipc::MessageHeader::Schema);
    message.add_header(header.as_union_value());
    let message = message.finish();
    b.finish(message, None);
    let mut header = b.finished_data().to_vec();
    header.resize(header.len().next_multiple_of(8), 0);
    let mut stream = [&[0xFF; 4], &(header.len() as u32).to_le_bytes()[..], &header].concat();
    let start = stream.clone();
    stream.extend([0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0]);

    let mut b = FlatBufferBuilder::new();
    let header = schema(&mut b, endianness);
    let blocks = b.create_vector::<ipc::Block>(&[]);
    let mut footer = ipc::FooterBuilder::new(&mut b);
    footer.add_version(ipc::MetadataVersion::V5);
    footer.add_schema(header);
    footer.add_recordBatches(blocks);
    let footer = footer.finish();
    b.finish(footer, None);
    let footer = b.finished_data();
    let file = [b"ARROW1\0\0", &start[..], footer, &(footer.len() as u32).to_le_bytes(), b"ARROW1"]
        .concat();
    (file, stream)
}

#[tokio::test]
async fn big_endian_arrow_is_refused() {
    let (file, stream) = arrow_of(ipc::Endianness::Little);
    for (name, bytes) in [("a.arrow", file), ("b.arrows", stream)] {
        assert_eq!(
            rows(&open(name, &bytes).await.unwrap(), "SELECT a FROM t").await,
            Ok(0),
            "{name}"
        );
    }
    let (file, stream) = arrow_of(ipc::Endianness::Big);
    for (name, bytes) in [("a.arrow", file), ("b.arrows", stream)] {
        let error = open(name, &bytes).await.err().unwrap();
        assert!(
            error.contains("is big-endian, and this program only reads little-endian Arrow"),
            "{name}: {error}"
        );
    }
}

/// A list of NULL lists, as Arrow C++ writes it: the empty strings have offsets of zero, as many as
/// the lists.
fn missing_lists(rows: usize) -> RecordBatch {
    let item = Arc::new(Field::new("item", DataType::LargeUtf8, true));
    let nulls = datafusion::arrow::buffer::NullBuffer::new_null(rows);
    let offsets = OffsetBuffer::new(vec![0i32; rows + 1].into());
    let texts = Arc::new(LargeStringArray::new_null(0)) as ArrayRef;
    let lists = ListArray::new(item, offsets, texts, Some(nulls));
    RecordBatch::try_from_iter([("a", Arc::new(lists) as ArrayRef)]).unwrap()
}

fn stream(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

fn ids(range: std::ops::Range<i64>) -> RecordBatch {
    let ids = Arc::new(Int64Array::from_iter_values(range)) as ArrayRef;
    RecordBatch::try_from_iter([("id", ids)]).unwrap()
}

/// A scan of ranges would not find a batch outside of the file.
#[tokio::test]
async fn arrow_footers_with_wrong_offsets_are_refused() {
    let mut writer = FileWriter::try_new(Vec::new(), &ids(0..0).schema()).unwrap();
    (0..3).for_each(|batch| writer.write(&ids(batch * 100..(batch + 1) * 100)).unwrap());
    let file = writer.into_inner().unwrap();
    let served = open("t.arrow", &file).await.unwrap();
    assert_eq!(rows(&served, "SELECT id FROM t").await, Ok(300));

    let footer_bytes = file[file.len() - 10..file.len() - 6].try_into().unwrap();
    let start = file.len() - 10 - u32::from_le_bytes(footer_bytes) as usize;
    let footer = ipc::root_as_footer(&file[start..file.len() - 10]).unwrap();
    let blocks: Vec<ipc::Block> = footer.recordBatches().unwrap().iter().copied().collect();
    // Blocks lie in the footer as they are.
    let at = start + file[start..].windows(24).position(|bytes| bytes == blocks[1].0).unwrap();
    for (offset, expected) in [
        (1 << 40, "has a message beyond its end"),
        (-8, "has a message beyond its end"),
        (i64::MAX, "has a message beyond its end"),
        (blocks[0].offset(), "has a footer whose record batches overlap"),
        (blocks[2].offset() - 8, "has a footer whose record batches overlap"),
    ] {
        let mut bad = file.clone();
        bad[at..at + 8].copy_from_slice(&offset.to_le_bytes());
        let error = open("t.arrow", &bad).await.err();
        assert!(error.as_ref().is_some_and(|error| error.contains(expected)), "{error:?}");
    }
}

#[tokio::test]
async fn bytes_behind_the_end_of_an_arrow_stream_are_refused() {
    let (first, second) = (stream(&ids(0..10)), stream(&ids(10..30)));
    let served = open("t.arrows", &first).await.unwrap();
    assert_eq!(rows(&served, "SELECT id FROM t").await, Ok(10));
    for rest in [&second[..], &[0; 8], &[0]] {
        let error = open("t.arrows", &[&first, rest].concat()).await.err().unwrap();
        let expected = format!(
            "has {} bytes behind the end of its stream; serve several streams as the files of one \
             folder",
            rest.len()
        );
        assert!(error.contains(&expected), "{error}");
    }
    // Writers may leave the end out.
    let open_ended = &first[..first.len() - 8];
    let served = open("t.arrows", open_ended).await.unwrap();
    assert_eq!(rows(&served, "SELECT id FROM t").await, Ok(10));
    // The second schema is no batch.
    let served = open("t.arrows", &[open_ended, &second].concat()).await.unwrap();
    assert!(rows(&served, "SELECT id FROM t").await.is_err());
}

/// A message of another type is no end, and no batch without rows.
#[tokio::test]
async fn arrow_messages_without_a_type_are_refused() {
    let mut file = FileWriter::try_new(Vec::new(), &ids(0..0).schema()).unwrap();
    (0..2).for_each(|_| file.write(&ids(0..40)).unwrap());
    let batch = ipc::MessageHeader::RecordBatch.0;
    for (name, bytes) in
        [("t.arrow", file.into_inner().unwrap()), ("t.arrows", stream(&ids(0..80)))]
    {
        let mut refused = 0;
        for at in (0..bytes.len()).filter(|at| bytes[*at] == batch) {
            let mut bad = bytes.clone();
            bad[at] = ipc::MessageHeader::NONE.0;
            let found = match open(name, &bad).await {
                Ok(served) => rows(&served, "SELECT id FROM t").await,
                Err(error) => Err(error),
            };
            match found {
                Ok(found) => assert_eq!(found, 80, "{name}: {at}"),
                Err(_) => refused += 1,
            }
        }
        assert!(refused > 0, "{name}");
    }
}

#[tokio::test]
async fn arrow_buffers_of_odd_lengths_are_read() {
    for count in [2, 50, 52] {
        let bytes = stream(&missing_lists(count));
        // The offset and length of each buffer: the lists' validity and offsets, the strings'
        // validity and offsets.
        let offsets_bytes = ((count + 1) * 4) as i64;
        let is_of_offsets =
            |field: &[u8]| field[8..] == offsets_bytes.to_le_bytes() && field[..8] != [0; 8];
        let at = bytes.windows(16).rposition(is_of_offsets).unwrap();
        // The strings share the lists' offsets.
        let mut odd = bytes.clone();
        odd.copy_within(at..at + 16, at + 32);
        for bytes in [&bytes, &odd] {
            let served = open("t.arrows", bytes).await.unwrap();
            assert_eq!(
                rows(&served, "SELECT a FROM t WHERE a IS NULL").await,
                Ok(count),
                "{count}"
            );
        }
    }
}

/// Truncated and flipped files give an error or rows. They must not panic beyond their statement,
/// or exceed the memory limit.
#[tokio::test]
async fn arrow_files_with_any_byte_changed_are_read_or_refused() {
    let texts = Arc::new(StringArray::from_iter((0..40).map(|i| Some(format!("{i}"))))) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("a", texts)]).unwrap();
    let options =
        IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD)).unwrap();
    let mut writer =
        FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let file = writer.into_inner().unwrap();
    let step = if std::env::var_os("DRAY_TEST_ROUNDS").is_some() { 1 } else { 23 };
    for (name, bytes) in [("t.arrow", file), ("t.arrows", stream(&batch))] {
        for at in (0..bytes.len()).step_by(step) {
            for bits in [0x80, 0x7F] {
                let mut bad = bytes.clone();
                bad[at] ^= bits;
                let Ok(context) = open(name, &bad).await else { continue };
                let _ = rows(&context, "SELECT a FROM t").await;
            }
            if let Ok(served) = open(name, &bytes[..at]).await {
                // A stream may end between messages.
                assert!(matches!(rows(&served, "SELECT a FROM t").await, Ok(0 | 40) | Err(_)));
            }
        }
    }
}

#[tokio::test]
async fn what_unpacks_to_more_than_a_batch_may_hold_is_not_unpacked() {
    let text = "0".repeat(30 << 20);
    let texts = Arc::new(StringArray::from_iter_values([&text, &text, &text])) as ArrayRef;
    let ids = Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("id", ids), ("long", texts)]).unwrap();
    let file = parquet(batch, Compression::BROTLI(BrotliLevel::default()));
    assert!(file.len() < 1 << 20, "{}", file.len());
    let context = open_with("t.parquet", &file, |options| options.memory_bytes = Some(1 << 20))
        .await
        .unwrap();
    let error = rows(&context, "SELECT long FROM t").await.unwrap_err();
    assert!(error.contains("column 'long' of file 't/t.parquet' unpacks to 9437"), "{error}");
    assert!(error.contains("for 3 rows, more than a batch may hold"), "{error}");
    assert_eq!(rows(&context, "SELECT id FROM t").await, Ok(3));
}

#[tokio::test]
async fn text_whose_rows_do_not_end_is_refused() {
    let bomb = zstd::encode_all(std::io::repeat(b'x').take(300 << 20), 1).unwrap();
    for name in ["t.csv.zst", "t.ndjson.zst"] {
        let error = open_with(name, &bomb, |options| options.memory_bytes = Some(1 << 20))
            .await
            .err()
            .unwrap();
        assert!(
            error.contains("a batch exceeds the 67108864 bytes that memory allows"),
            "{name}: {error}"
        );
    }
}

#[tokio::test]
async fn json_arrays_without_an_end_are_refused() {
    let array = "[{\"a\":1},{\"a\":2},{\"a\":3}]";
    assert_eq!(
        rows(&open("t.json", array.as_bytes()).await.unwrap(), "SELECT a FROM t").await,
        Ok(3)
    );
    for bad in ["[{\"a\":1},{\"a\":2}", "[{\"a\":1},{\"a\":2},", "[{\"a\":1}] {\"a\":2}"] {
        let error = open("t.json", bad.as_bytes()).await.err().unwrap();
        assert!(error.contains("JSON array"), "{error}");
    }
}
