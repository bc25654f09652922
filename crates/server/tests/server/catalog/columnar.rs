//! Parquet and Arrow.

use datafusion::arrow::array::{DictionaryArray, Int8Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::parquet::data_type::{Int96, Int96Type};
use datafusion::parquet::file::writer::SerializedFileWriter;
use datafusion::parquet::schema::parser::parse_message_type;

use super::*;

#[tokio::test]
async fn parquet_and_arrow_of_every_kind() {
    let folder = Folder::new();
    let mut specs = Vec::new();
    for views in [false, true] {
        let batch = sample(5, views);
        for (name, compression) in [
            ("none", Compression::UNCOMPRESSED),
            ("snappy", Compression::SNAPPY),
            ("lz4", Compression::LZ4_RAW),
            ("gzip", Compression::GZIP(Default::default())),
            ("zstd", Compression::ZSTD(Default::default())),
        ] {
            specs.push(
                folder.write(&format!("{name}_{views}.parquet"), parquet(&batch, compression)),
            );
        }
        specs.push(folder.write(&format!("file_{views}.arrow"), arrow_file(&batch, None)));
        let lz4 = arrow_file(&batch, Some(CompressionType::LZ4_FRAME));
        specs.push(folder.write(&format!("feather_{views}.feather"), lz4));
        let zstd = arrow_file(&batch, Some(CompressionType::ZSTD));
        specs.push(folder.write(&format!("file_zstd_{views}.ipc"), zstd));
        specs.push(folder.write(&format!("stream_{views}.arrows"), arrow_stream(&batch)));
        specs.push(folder.write(&format!("stream2_{views}.arrow"), arrow_stream(&batch)));
    }
    for in_memory in [false, true] {
        let ctx = catalog::open(&CatalogOptions { in_memory, ..options(&specs) }).await.unwrap();
        for spec in &specs {
            let name = Path::new(spec).file_stem().unwrap().to_str().unwrap();
            assert_eq!(
                query(&ctx, &format!("SELECT * FROM {name} ORDER BY id")).await.unwrap(),
                SAMPLE_5,
                "{name}"
            );
            assert_eq!(
                query(&ctx, &format!("SELECT price FROM {name} WHERE id = 4")).await.unwrap(),
                "4.04\n"
            );
            let schema = ctx.table(name).await.unwrap().schema().as_arrow().clone();
            let is_arrow_view = !in_memory && name.ends_with("true") && !spec.ends_with("parquet");
            let string = if is_arrow_view { DataType::Utf8View } else { DataType::Utf8 };
            assert_eq!(schema.field(1).data_type(), &string, "{name}");
            let batches = ctx.table(name).await.unwrap().collect().await.unwrap();
            assert_eq!(batches[0].column(1).data_type(), &string, "{name}");
        }
    }
}

#[tokio::test]
async fn extension_types_are_kept() {
    let folder = Folder::new();
    let json = Field::new("j", DataType::Utf8, true)
        .with_metadata([("ARROW:extension:name".to_owned(), "arrow.json".to_owned())].into());
    let schema = Arc::new(Schema::new(vec![json]));
    let batch =
        RecordBatch::try_new(schema, vec![Arc::new(StringArray::from(vec!["{}"]))]).unwrap();
    let specs = [
        folder.write("a.parquet", parquet(&batch, Compression::SNAPPY)),
        folder.write("b.arrow", arrow_file(&batch, None)),
    ];
    for in_memory in [false, true] {
        let ctx = catalog::open(&CatalogOptions { in_memory, ..options(&specs) }).await.unwrap();
        for table in ["a", "b"] {
            let batches =
                ctx.sql(&format!("SELECT j FROM {table}")).await.unwrap().collect().await.unwrap();
            assert_eq!(
                batches[0].schema().field(0).extension_type_name(),
                Some("arrow.json"),
                "{table}"
            );
        }
    }
}

#[tokio::test]
async fn dictionaries_of_many_batches_are_united() {
    let folder = Folder::new();
    let batch = |number: usize| {
        let keys = Int8Array::from_iter((0..100).map(|key| (key % 7 != 3).then_some(key)));
        let words = StringArray::from_iter_values(
            (0..100).map(|word| format!("word {}", number * 100 + word)),
        );
        let words = DictionaryArray::new(keys, Arc::new(words));
        RecordBatch::try_from_iter_with_nullable([("word", Arc::new(words) as ArrayRef, true)])
            .unwrap()
    };
    let mut stream = StreamWriter::try_new(Vec::new(), &batch(0).schema()).unwrap();
    (0..5).for_each(|number| stream.write(&batch(number)).unwrap());
    let path = folder.write("t.arrows", stream.into_inner().unwrap());
    for number in 0..5 {
        let mut file = FileWriter::try_new(Vec::new(), &batch(0).schema()).unwrap();
        file.write(&batch(number)).unwrap();
        folder.write(&format!("files/{number}.arrow"), file.into_inner().unwrap());
    }
    let files = format!("t={}/", folder.path("files"));
    for (path, in_memory) in [(&path, false), (&path, true), (&files, false), (&files, true)] {
        let ctx = catalog::open(&CatalogOptions { in_memory, ..options([path]) }).await.unwrap();
        let words = query(&ctx, "SELECT word FROM t WHERE word LIKE 'word %' AND word <> 'word 0'")
            .await
            .unwrap();
        assert_eq!(words.lines().count(), 5 * 86 - 1, "{words}");
        assert!(words.contains("word 1\n") && words.contains("word 499\n"), "{words}");
        assert_eq!(query(&ctx, "SELECT count(*), count(word) FROM t").await.unwrap(), "500,430\n");
    }
}

/// Days since 1970-01-01, and nanoseconds of the day.
type Instant = (i32, u64);

const YEAR_1: Instant = (-719_162, 0);
const YEAR_2024: Instant = (19_723, 3_600_000_000_000);
const YEAR_9999: Instant = (2_932_896, 86_399_999_999_000);
const NANOSECOND: Instant = (19_723, 1);

/// A file with a list of timestamps for each row, and the first one of each list beside it. There
/// is a row group for each slice.
fn int96_file(groups: &[&[&[Instant]]]) -> Vec<u8> {
    let int96 = |(day, nanoseconds): Instant| {
        let mut value = Int96::new();
        let day = (day + 2_440_588).cast_unsigned();
        value.set_data(nanoseconds as u32, (nanoseconds >> 32) as u32, day);
        value
    };
    let schema = "message m {
        optional int96 at;
        required group within { optional group all (LIST) {
            repeated group list { optional int96 element; }
        } }
    }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties.into()).unwrap();
    for lists in groups {
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let firsts: Vec<_> = lists.iter().filter_map(|list| list.first()).copied().collect();
        let firsts: Vec<_> = firsts.into_iter().map(int96).collect();
        let levels: Vec<_> = lists.iter().map(|list| i16::from(!list.is_empty())).collect();
        column.typed::<Int96Type>().write_batch(&firsts, Some(&levels), None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let values: Vec<_> = lists.iter().flat_map(|list| list.iter().copied()).collect();
        let values: Vec<_> = values.into_iter().map(int96).collect();
        let (mut levels, mut repetitions) = (Vec::new(), Vec::new());
        for list in *lists {
            for i in 0..list.len().max(1) {
                levels.push(if list.is_empty() { 0 } else { 3 });
                repetitions.push(i16::from(i > 0));
            }
        }
        let typed = column.typed::<Int96Type>();
        typed.write_batch(&values, Some(&levels), Some(&repetitions)).unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

#[tokio::test]
async fn int96_timestamps_keep_their_values() {
    let folder = Folder::new();
    let far: &[&[&[Instant]]] = &[&[&[YEAR_2024], &[]], &[&[YEAR_9999], &[YEAR_1, YEAR_2024]]];
    let fine: &[&[&[Instant]]] = &[&[&[NANOSECOND, YEAR_2024]]];
    let nested: &[&[&[Instant]]] = &[&[&[YEAR_2024, YEAR_9999]]];
    let specs = [
        folder.write("far.parquet", int96_file(far)),
        folder.write("fine.parquet", int96_file(fine)),
        folder.write("nested.parquet", int96_file(nested)),
        format!("two={}", folder.path("two")),
        folder.path("keys"),
    ];
    folder.write("two/a.parquet", int96_file(&[&[&[YEAR_2024]]]));
    folder.write("two/b.parquet", int96_file(far));
    folder.write("keys/k=1/a.parquet", int96_file(far));
    folder.write("keys/k=2/a.parquet", int96_file(&[&[&[YEAR_2024]]]));
    let first = "2024-01-01T01:00:00";
    let sorted = "0001-01-01T00:00:00\n2024-01-01T01:00:00\n9999-12-31T23:59:59.999999\n";
    for in_memory in [false, true] {
        let ctx = catalog::open(&CatalogOptions { in_memory, ..options(&specs) }).await.unwrap();
        for (sql, expected) in [
            ("SELECT at FROM far WHERE at IS NOT NULL ORDER BY at", sorted),
            ("SELECT DISTINCT at FROM two WHERE at IS NOT NULL ORDER BY at", sorted),
            ("SELECT DISTINCT at FROM keys WHERE at IS NOT NULL ORDER BY at", sorted),
            (
                "SELECT at FROM far WHERE at > arrow_cast('9000-01-01', 'Timestamp(us)')",
                "9999-12-31T23:59:59.999999\n",
            ),
            (
                "SELECT at FROM keys WHERE at < arrow_cast('1000-01-01', 'Timestamp(us)')",
                "0001-01-01T00:00:00\n",
            ),
            (
                "SELECT min(at), max(at) FROM far",
                "0001-01-01T00:00:00,9999-12-31T23:59:59.999999\n",
            ),
            ("SELECT within['all'][2] FROM nested", "9999-12-31T23:59:59.999999\n"),
            ("SELECT at FROM fine", "2024-01-01T00:00:00.000000001\n"),
            ("SELECT count(*) FROM far WHERE at IS NULL", "1\n"),
        ] {
            assert_eq!(query(&ctx, sql).await.unwrap(), expected, "{sql}");
        }
        let found = query(&ctx, "SELECT within['all'][2] FROM fine").await.unwrap();
        assert!(found.starts_with(first), "{found}");
        for (table, unit) in [("far", "µs"), ("nested", "µs"), ("two", "µs"), ("fine", "ns")] {
            let field = ctx.table(table).await.unwrap().schema().as_arrow().field(0).clone();
            assert_eq!(field.data_type().to_string(), format!("Timestamp({unit})"), "{table}");
        }
    }
    folder.write("mixed/a.parquet", int96_file(far));
    folder.write("mixed/b.parquet", int96_file(fine));
    for (spec, column) in [
        (folder.write("both.parquet", int96_file(&[&[&[YEAR_9999], &[NANOSECOND]]])), "'at'"),
        (
            folder.write(
                "both_nested.parquet",
                int96_file(&[&[&[YEAR_2024, YEAR_9999, NANOSECOND]]]),
            ),
            "'within.all.list.element'",
        ),
        (format!("mixed={}", folder.path("mixed")), "'at'"),
    ] {
        let error = open_error([spec]).await;
        let expected = format!(
            "nanoseconds do not hold all timestamps (INT96) of column {column}, and microseconds \
             not those of column {column}"
        );
        assert!(error.contains(&expected), "{error}");
    }
}
