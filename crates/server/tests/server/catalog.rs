//! Serves real small files of every kind, and checks what SQL sees of them.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, DictionaryArray, Int8Array, Int64Array, RecordBatch,
    StringArray, StringViewArray, TimestampMicrosecondArray,
};
use datafusion::arrow::csv::WriterBuilder;
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema};
use datafusion::arrow::ipc::CompressionType;
use datafusion::arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use datafusion::execution::TaskContext;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::physical_plan::{ExecutionPlan, collect, collect_partitioned};
use datafusion::prelude::SessionContext;
use dray_server::catalog::{self, CatalogOptions, MEMORY_BATCH_ROWS};
use tempfile::TempDir;

fn options<S: AsRef<str>>(tables: impl IntoIterator<Item = S>) -> CatalogOptions {
    CatalogOptions {
        tables: tables.into_iter().map(|spec| spec.as_ref().parse().unwrap()).collect(),
        tpch_scale: None,
        in_memory: false,
        memory_bytes: None,
        spill_dir: None,
        threads: 2,
        ..CatalogOptions::default()
    }
}

async fn open<S: AsRef<str>>(tables: impl IntoIterator<Item = S>) -> SessionContext {
    catalog::open(&options(tables)).await.unwrap()
}

async fn open_error<S: AsRef<str>>(tables: impl IntoIterator<Item = S>) -> String {
    match catalog::open(&options(tables)).await {
        Ok(_) => panic!("expected an error"),
        Err(error) => error.to_string(),
    }
}

/// The result as CSV, without a header.
async fn query(ctx: &SessionContext, sql: &str) -> Result<String, String> {
    let frame =
        ctx.sql_with_options(sql, catalog::query_options()).await.map_err(|e| e.to_string())?;
    let batches = frame.collect().await.map_err(|e| e.to_string())?;
    let mut text = Vec::new();
    let mut writer = WriterBuilder::new().with_header(false).build(&mut text);
    for batch in &batches {
        writer.write(batch).unwrap();
    }
    drop(writer);
    Ok(String::from_utf8(text).unwrap())
}

async fn tables(ctx: &SessionContext) -> String {
    let sql =
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1";
    query(ctx, sql).await.unwrap().trim().replace('\n', " ")
}

/// Files to serve.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Four columns of `rows` rows; strings as views if asked, missing at every third row.
fn sample(rows: i64, views: bool) -> RecordBatch {
    let names: Vec<Option<String>> =
        (0..rows).map(|i| (i % 3 != 2).then(|| format!("naïve string {i}"))).collect();
    let names: ArrayRef = if views {
        Arc::new(StringViewArray::from_iter(names))
    } else {
        Arc::new(StringArray::from_iter(names))
    };
    let prices = Decimal128Array::from_iter_values((0..rows).map(|i| i128::from(i) * 101))
        .with_precision_and_scale(15, 2)
        .unwrap();
    let times = TimestampMicrosecondArray::from_iter_values((0..rows).map(|i| i * 1_000_001))
        .with_timezone("UTC");
    RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from_iter_values(0..rows)) as ArrayRef),
        ("name", names),
        ("price", Arc::new(prices)),
        ("at", Arc::new(times)),
    ])
    .unwrap()
}

const SAMPLE_5: &str = "\
0,naïve string 0,0.00,1970-01-01T00:00:00Z
1,naïve string 1,1.01,1970-01-01T00:00:01.000001Z
2,,2.02,1970-01-01T00:00:02.000002Z
3,naïve string 3,3.03,1970-01-01T00:00:03.000003Z
4,naïve string 4,4.04,1970-01-01T00:00:04.000004Z
";

fn parquet(batch: &RecordBatch, compression: Compression) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_max_row_group_row_count(Some(50_000));
    let mut writer =
        ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.build())).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

fn arrow_file(batch: &RecordBatch, compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let mut writer =
        FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

fn arrow_stream(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

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
async fn csv_of_every_kind() {
    let folder = Folder::new();
    let csv = "id,name,price,ok,day,at\n\
               1,\"a, \"\"b\"\"\",1.50,true,2024-02-29,2024-02-29 12:00:00\n\
               2,,,,,\n\
               3,\"two\nlines\",1e3,FALSE,1999-12-31,2024-02-29T12:00:00.123456\n";
    let zstd = zstd::encode_all(csv.as_bytes(), 1).unwrap();
    let specs = [
        folder.write("plain.csv", csv),
        folder.write("upper.CSV", csv),
        folder.write("crlf.csv", csv.replace("\n2", "\r\n2").replace("\n3", "\r\n3")),
        folder.write("bom.csv", format!("\u{feff}{csv}")),
        folder.write("packed.csv.gz", gzip(csv.as_bytes())),
        folder.write("packed2.csv.zst", zstd),
        folder
            .write("tabs.tsv", csv.replace("a, ", "a; ").replace(',', "\t").replace("a; ", "a, ")),
    ];
    for in_memory in [false, true] {
        let ctx = catalog::open(&CatalogOptions { in_memory, ..options(&specs) }).await.unwrap();
        assert_eq!(tables(&ctx).await, "bom crlf packed packed2 plain tabs upper");
        for table in tables(&ctx).await.split(' ') {
            assert_eq!(
                query(&ctx, &format!("SELECT * FROM {table} ORDER BY id")).await.unwrap(),
                "1,\"a, \"\"b\"\"\",1.5,true,2024-02-29,2024-02-29T12:00:00\n\
                 2,,,,,\n\
                 3,\"two\nlines\",1000.0,false,1999-12-31,2024-02-29T12:00:00.123456\n",
                "{table}"
            );
            assert_eq!(
                query(&ctx, &format!("SELECT sum(id) FROM {table} WHERE name IS NOT NULL"))
                    .await
                    .unwrap(),
                "4\n"
            );
        }
    }
}

#[tokio::test]
async fn csv_types_hold_for_all_rows() {
    let folder = Folder::new();
    let mut csv = String::from("whole,day,second,late\n");
    for _ in 0..20_000 {
        csv.push_str("1,2024-01-01,2024-01-01T00:00:00,\n");
    }
    csv.push_str("1.5,2024-01-01T10:00:00,2024-01-01T00:00:00.25,here\n");
    let ctx = open([folder.write("t.csv", csv)]).await;
    assert_eq!(
        query(&ctx, "SELECT * FROM t WHERE whole > 1").await.unwrap(),
        "1.5,2024-01-01T10:00:00,2024-01-01T00:00:00.250,here\n"
    );
}

#[tokio::test]
async fn csv_types_hold_for_all_files() {
    let folder = Folder::new();
    // A float holds neither file's values.
    folder.write("t/a.csv", "n,z\n9007199254740993,2024-01-01T00:00:00Z\n");
    folder.write("t/b.csv", "n,z\n0.5,2024-01-01T00:00:00\n");
    let ctx = open([format!("t={}", folder.path("t"))]).await;
    let expected = "0.5,2024-01-01T00:00:00\n9007199254740993,2024-01-01T00:00:00Z\n";
    assert_eq!(query(&ctx, "SELECT n, z FROM t ORDER BY n").await.unwrap(), expected);
    let whole = parquet(
        &RecordBatch::try_from_iter([(
            "n",
            Arc::new(Int64Array::from(vec![9007199254740993])) as ArrayRef,
        )])
        .unwrap(),
        Compression::SNAPPY,
    );
    let half = Arc::new(datafusion::arrow::array::Float64Array::from(vec![0.5])) as ArrayRef;
    let half = parquet(&RecordBatch::try_from_iter([("n", half)]).unwrap(), Compression::SNAPPY);
    folder.write("p/a.parquet", whole);
    folder.write("p/b.parquet", half);
    let error = open_error([format!("p={}", folder.path("p"))]).await;
    assert!(error.contains("column 'n' is Int64 and Float64"), "{error}");
}

#[tokio::test]
async fn csv_without_a_header() {
    let folder = Folder::new();
    let path = folder.write("t.csv", "1,x\n2,y\n");
    for in_memory in [false, true] {
        let ctx =
            catalog::open(&CatalogOptions { csv_no_header: true, in_memory, ..options([&path]) })
                .await
                .unwrap();
        let sql = "SELECT column_1 + 1, column_2 FROM t ORDER BY 1";
        assert_eq!(query(&ctx, sql).await.unwrap(), "2,x\n3,y\n");
    }
}

#[tokio::test]
async fn frames_and_members_are_all_read() {
    let folder = Folder::new();
    let (first, second) = ("a\n1\n", "2\n3\n");
    let zstd = |text: &str| zstd::encode_all(text.as_bytes(), 1).unwrap();
    let specs = [
        folder.write("z.csv.zst", [zstd(first), zstd(second)].concat()),
        folder.write("g.csv.gz", [gzip(first.as_bytes()), gzip(second.as_bytes())].concat()),
        folder.write("j.json.zst", [zstd("[{\"a\":1},"), zstd("{\"a\":2},{\"a\":3}]")].concat()),
    ];
    let ctx = open(&specs).await;
    for table in ["z", "g", "j"] {
        assert_eq!(
            query(&ctx, &format!("SELECT sum(a) FROM {table}")).await.unwrap(),
            "6\n",
            "{table}"
        );
    }
}

#[tokio::test]
async fn the_server_lists_its_tables() {
    let folder = Folder::new();
    let csv = folder.write("c.csv", "a,b\n1,x\n2,y\n");
    folder.write("p/a.parquet", parquet(&sample(5, false), Compression::SNAPPY));
    folder.write("p/b.parquet", parquet(&sample(7, false), Compression::SNAPPY));
    let arrow = folder.write("r.arrow", arrow_file(&sample(3, false), None));
    let spec = format!("p={}", folder.path("p"));
    let sql = "SELECT table_name, rows, bytes > 10, files, columns FROM dray.tables";
    let ctx = open([&csv, &spec, &arrow]).await;
    let four = "\"id Int64, name Utf8, price Decimal128(15, 2), at Timestamp(µs, \"\"UTC\"\")\"";
    let listed = query(&ctx, sql).await.unwrap();
    assert_eq!(
        listed,
        format!("c,2,true,1,\"a Int64, b Utf8\"\np,12,true,2,{four}\nr,,true,1,{four}\n")
    );
    let ctx =
        catalog::open(&CatalogOptions { in_memory: true, ..options([&arrow]) }).await.unwrap();
    assert_eq!(query(&ctx, sql).await.unwrap(), format!("r,3,true,1,{four}\n"));
}

/// No type may change what is in the file.
#[tokio::test]
async fn csv_types_change_no_value() {
    let folder = Folder::new();
    let cases = [
        ("postal", "Utf8", vec!["01234", "98765"]),
        ("code", "Utf8", vec!["007.5", "1"]),
        ("huge", "Utf8", vec!["9223372036854775808", "1"]),
        ("whole", "Int64", vec!["9223372036854775807", "-9223372036854775808", "0"]),
        ("mixed", "Utf8", vec!["9007199254740993", "0.5"]),
        ("float", "Float64", vec!["1", "-0", "2.5e-3", ".5", "NaN"]),
        ("range", "Utf8", vec!["1e999", "1"]),
        ("dash", "Utf8", vec!["-", "1"]),
        ("dots", "Utf8", vec!["1.2.3", "1"]),
        ("day", "Date32", vec!["2024-02-29", "1969-12-31"]),
        ("no_day", "Utf8", vec!["2024-02-30", "2024-01-01"]),
        ("at", "Timestamp(ms)", vec!["2024-02-29T01:02:03", "2024-02-29 01:02:03.5", "2024-02-29"]),
        (
            "zoned",
            "Timestamp(s, \"UTC\")",
            vec!["2024-02-29T01:02:03Z", "2024-02-29T01:02:03+02:00"],
        ),
        ("zones", "Utf8", vec!["2024-02-29T01:02:03Z", "2024-02-29T01:02:03"]),
        ("far", "Utf8", vec!["9999-12-31T00:00:00", "2024-02-29T01:02:03"]),
        ("flag", "Boolean", vec!["true", "False"]),
        ("answer", "Utf8", vec!["true", "1"]),
    ];
    for (name, expected, values) in cases {
        let csv = format!(
            "v,i\n{}",
            values.iter().map(|value| format!("{value},1\n,2\n")).collect::<String>()
        );
        let ctx = open([folder.write(&format!("{name}.csv"), csv)]).await;
        let batches = ctx
            .sql(&format!("SELECT v FROM {name} ORDER BY v"))
            .await
            .unwrap()
            .collect()
            .await
            .unwrap();
        assert_eq!(batches[0].schema().field(0).data_type().to_string(), expected, "{name}");
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(rows, 2 * values.len(), "{name}");
        if expected == "Utf8" {
            for value in values {
                let sql = format!("SELECT count(*) FROM {name} WHERE v = '{value}'");
                assert_eq!(query(&ctx, &sql).await.unwrap(), "1\n", "{name} {value}");
            }
        }
    }
}

#[tokio::test]
async fn csv_that_changes_after_its_types_were_learnt_fails() {
    let folder = Folder::new();
    let path = folder.write("t.csv", "a,b\n1,x\n2,y\n");
    let ctx = open([&path]).await;
    fs::write(&path, "a,b\n1,x\noops,y\n").unwrap();
    let error = query(&ctx, "SELECT a FROM t").await.unwrap_err();
    assert!(
        error.contains("file 't/t.csv' had 12 bytes when its table was opened, and now has 15"),
        "{error}"
    );
}

#[tokio::test]
async fn a_wide_csv_with_a_trailing_comma() {
    let folder = Folder::new();
    let header: String = (1..=109).map(|i| format!("\"C{i}\",")).collect();
    let row: String =
        (1..=109).map(|i| if i % 2 == 0 { ",".into() } else { format!("{i},") }).collect();
    let csv = format!("{header}\n{row}\n{row}\n");
    let ctx = open([folder.write("bts_2019.csv.gz", gzip(csv.as_bytes()))]).await;
    let batches = ctx.sql("SELECT * FROM bts_2019").await.unwrap().collect().await.unwrap();
    assert_eq!((batches[0].num_rows(), batches[0].num_columns()), (2, 110));
    assert_eq!(
        query(&ctx, "SELECT \"C1\", \"C2\", \"C109\", column_110 FROM bts_2019").await.unwrap(),
        "1,,109,\n1,,109,\n"
    );
}

#[tokio::test]
async fn strings_that_are_not_utf8_are_one_clear_error() {
    let folder = Folder::new();
    let mut late = b"id,name\n".to_vec();
    for i in 0..5000 {
        late.extend(format!("{i},name {i}\n").bytes());
    }
    late.extend(b"5000,caf\xe9\n");
    for (name, bytes) in [
        ("latin1.csv", b"id,name\n1,caf\xe9\n".to_vec()),
        ("header.csv", b"id,caf\xe9\n1,x\n".to_vec()),
        // Each half is no text, though both together would be.
        ("split.csv", b"a,b\nx\xc3,\xa9y\n".to_vec()),
        ("late.csv", late.clone()),
        ("late.csv.gz", gzip(&late)),
        ("lines.json", b"{\"a\":\"caf\xe9\"}\n".to_vec()),
    ] {
        let path = folder.write(name, bytes);
        let error = open_error([&path]).await;
        assert!(error.starts_with(&format!("can't read '{path}': ")), "{error}");
        assert!(error.to_lowercase().contains("utf-8"), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[tokio::test]
async fn json_of_every_kind() {
    let folder = Folder::new();
    let lines = "{\"id\":1,\"name\":\"a\",\"tags\":[\"x\",\"y\"],\"at\":{\"x\":1}}\n\
                 {\"id\":2,\"name\":null,\"at\":{\"x\":2,\"y\":true}}\n\
                 {\"id\":3,\"price\":2.5}\n";
    let array = format!(" [{}]\n", lines.trim().replace('\n', ","));
    let specs = [
        folder.write("a.json", lines),
        folder.write("b.ndjson", lines),
        folder.write("c.jsonl", lines),
        folder.write("d.json", &array),
        folder.write("e.ndjson.gz", gzip(lines.as_bytes())),
        folder.write("f.json.gz", gzip(array.as_bytes())),
        folder.write("g.json.zst", zstd::encode_all(lines.as_bytes(), 1).unwrap()),
    ];
    for in_memory in [false, true] {
        let ctx = catalog::open(&CatalogOptions { in_memory, ..options(&specs) }).await.unwrap();
        for table in ["a", "b", "c", "d", "e", "f", "g"] {
            assert_eq!(
                query(
                    &ctx,
                    &format!(
                        "SELECT id, name, price, tags[2], at['x'], at['y'] FROM {table} ORDER BY id"
                    )
                )
                .await
                .unwrap(),
                "1,a,,y,1,\n2,,,,2,true\n3,,2.5,,,\n",
                "{table}"
            );
        }
    }
}

#[tokio::test]
async fn json_types_hold_for_all_rows() {
    let folder = Folder::new();
    let mut lines = "{\"a\":1}\n".repeat(5000);
    lines.push_str("{\"a\":1.5,\"late\":\"here\"}\n");
    let ctx = open([folder.write("t.json", lines)]).await;
    assert_eq!(query(&ctx, "SELECT a, late FROM t WHERE a > 1").await.unwrap(), "1.5,here\n");
}

#[tokio::test]
async fn json_keeps_all_digits() {
    let folder = Folder::new();
    let large = "{\"a\":9223372036854775807,\"b\":-9223372036854775808,\"c\":\"99999999999999999999\",\"d\":1e30}\n";
    let ctx = open([folder.write("t.json", large)]).await;
    let expected = "9223372036854775807,-9223372036854775808,99999999999999999999,1e30\n";
    assert_eq!(query(&ctx, "SELECT * FROM t").await.unwrap(), expected);
    for (name, text, found) in [
        (
            "beyond.json",
            "{\"a\":1}\n{\"a\":9223372036854775808}\n",
            "line 2, column 6: the integer 9223372036854775808 ",
        ),
        (
            "array.json",
            "[{\"a\":1},\n {\"a\":[-9223372036854775809]}]",
            "line 2, column 8: the integer -9223372036854775809 ",
        ),
        (
            "float.json",
            "{\"a\":1.5}\n{\"a\":9007199254740993}\n",
            "row 2: 'a' is 9007199254740993, ",
        ),
        (
            "nested.json",
            "{\"a\":{\"b\":[9007199254740993]}}\n{\"a\":{\"b\":[0.5]}}\n",
            "row 1: 'a.b' is 9007199254740993, ",
        ),
    ] {
        let error = open_error([folder.write(name, text)]).await;
        assert!(error.contains(found) && error.contains(name), "{error}");
    }
    let gzipped = folder.write("z.json.gz", gzip(b"{\"a\":18446744073709551616}\n"));
    assert!(open_error([gzipped]).await.contains("line 1, column 6: "));
    // In one file there are integers, in the other one fractions.
    folder.write("both/a.json", "{\"a\":1.5}\n");
    folder.write("both/b.json", "{\"a\":1}\n");
    let ctx = open([format!("both={}/", folder.path("both"))]).await;
    assert_eq!(query(&ctx, "SELECT a FROM both ORDER BY a").await.unwrap(), "1.0\n1.5\n");
    for (first, second) in [("a", "b"), ("b", "a")] {
        folder.write(&format!("{first}/{first}.json"), "{\"a\":9007199254740993}\n");
        folder.write(&format!("{first}/{second}.json"), "{\"a\":0.5}\n");
        let error = open_error([format!("{first}={}/", folder.path(first))]).await;
        assert!(
            error.contains("column 'a' has integers beyond 2^53 in one and fractions in the other"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn csv_times_with_too_many_digits_are_text() {
    let folder = Folder::new();
    let ctx =
        open([folder.write("t.csv", "a\n2020-01-01 00:00:00.1234567891\n2020-01-01 00:00:00\n")])
            .await;
    assert_eq!(
        query(&ctx, "SELECT a FROM t WHERE a LIKE '%91'").await.unwrap(),
        "2020-01-01 00:00:00.1234567891\n"
    );
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

#[tokio::test]
async fn folders() {
    let folder = Folder::new();
    let first = parquet(&sample(5, false), Compression::SNAPPY);
    folder.write("lake/Line Items.parquet", &first);
    folder.write("lake/orders.csv", "o\n1\n");
    folder.write("lake/README.md", "no data");
    folder.write("lake/_SUCCESS", "");
    folder.write("lake/nothing/here.txt", "no data");
    folder.write("lake/parts/deep/b.parquet", &first);
    folder.write("lake/parts/a.parquet", &first);
    folder.write("lake/written.parquet/part-0.parquet", &first);
    folder.write("lake/written.parquet/_SUCCESS", "");
    folder.write("lake/written.parquet/.part-0.parquet.crc", "x");

    let ctx = open([folder.path("lake")]).await;
    assert_eq!(tables(&ctx).await, "line_items orders parts written");
    assert_eq!(query(&ctx, "SELECT count(*) FROM parts").await.unwrap(), "10\n");
    assert_eq!(query(&ctx, "SELECT * FROM written ORDER BY id").await.unwrap(), SAMPLE_5);

    let ctx = open([format!("All={}/", folder.path("lake/parts"))]).await;
    assert_eq!(tables(&ctx).await, "all");
    let ctx = open([folder.path("lake/written.parquet")]).await;
    assert_eq!(tables(&ctx).await, "written");

    let error = open_error([format!("mixed={}", folder.path("lake"))]).await;
    assert!(error.contains("of different kinds"), "{error}");
}

#[tokio::test]
async fn key_value_folders_add_columns() {
    let folder = Folder::new();
    for (year, month, rows) in [(2023, "12", 3), (2024, "01", 5)] {
        let name = format!("sales/year={year}/month={month}/part 0.parquet");
        folder.write(&name, parquet(&sample(rows, false), Compression::SNAPPY));
        folder.write(&format!("text/year={year}/x.csv"), "a,b\n1,2\n");
    }
    for in_memory in [false, true] {
        let options = options([folder.path("sales"), format!("t={}", folder.path("text"))]);
        let ctx = catalog::open(&CatalogOptions { in_memory, ..options }).await.unwrap();
        let sql = "SELECT year + 1, month, count(*), sum(id) FROM sales GROUP BY 1, 2 ORDER BY 1";
        assert_eq!(query(&ctx, sql).await.unwrap(), "2024,12,3,3\n2025,01,5,10\n");
        assert_eq!(query(&ctx, "SELECT a, b FROM t WHERE year = 2024").await.unwrap(), "1,2\n");
    }
    for stray in ["sales/year=2024/month=01/other/x.parquet", "sales/x.parquet"] {
        let path = folder.write(stray, parquet(&sample(1, false), Compression::SNAPPY));
        let error = open_error([folder.path("sales")]).await;
        assert!(error.contains("different key=value folders"), "{error}");
        fs::remove_file(path).unwrap();
    }
}

#[tokio::test]
async fn files_of_one_table_must_go_together() {
    let folder = Folder::new();
    folder.write("same/a.csv", "a,b\n1,\n");
    folder.write("same/b.csv", "a,b\n1.5,2024-01-01\n");
    folder.write("same/c.csv", "");
    folder.write("swapped/a.csv", "a,b\n1,2\n");
    folder.write("swapped/b.csv", "b,a\n1,2\n");
    folder.write("json/a.json", "{\"a\":1}\n");
    folder.write("json/b.json", "{\"b\":2}\n");
    folder.write("clash/a.json", "{\"a\":1}\n");
    folder.write("clash/b.json", "{\"a\":\"x\"}\n");
    folder.write("arrow/a.arrow", arrow_file(&sample(1, false), None));
    folder.write("arrow/b.arrow", arrow_file(&sample(1, true), None));
    folder.write("parquet/a.parquet", parquet(&sample(2, false), Compression::SNAPPY));
    let narrow = sample(2, false).project(&[2, 0]).unwrap();
    folder.write("parquet/b.parquet", parquet(&narrow, Compression::SNAPPY));

    let named = |name: &str| format!("t={}", folder.path(name));
    let ctx = open([named("same")]).await;
    assert_eq!(query(&ctx, "SELECT * FROM t ORDER BY a").await.unwrap(), "1.0,\n1.5,2024-01-01\n");
    for (name, expected) in [
        ("json", "only the first has a column 'a'"),
        ("parquet", "only the first has a column 'name'"),
        ("clash", "column 'a' is Int64 and Utf8"),
    ] {
        let error = open_error([named(name)]).await;
        assert!(error.contains("can't be one table: ") && error.contains(expected), "{error}");
        assert!(error.contains("/a.") && error.contains("/b."), "{error}");
    }
    let union = |name| CatalogOptions { union_by_name: true, ..options([named(name)]) };
    let ctx = catalog::open(&union("json")).await.unwrap();
    assert_eq!(query(&ctx, "SELECT a, b FROM t ORDER BY a").await.unwrap(), "1,\n,2\n");
    let ctx = catalog::open(&union("parquet")).await.unwrap();
    assert_eq!(
        query(&ctx, "SELECT id, name, price FROM t ORDER BY id, name NULLS LAST").await.unwrap(),
        "0,naïve string 0,0.00\n0,,0.00\n1,naïve string 1,1.01\n1,,1.01\n"
    );
    for (name, expected) in
        [("swapped", "their header lines differ"), ("arrow", "their columns or types differ")]
    {
        let error = open_error([named(name)]).await;
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn paths_with_unusual_characters() {
    let folder = Folder::new();
    for name in ["a b.csv", "100%.csv", "x[1]*?.csv", "naïve.csv", "q#&=.csv"] {
        let path = folder.write(name, "a\n1\n");
        let ctx = open([format!("t={path}")]).await;
        assert_eq!(query(&ctx, "SELECT a FROM t").await.unwrap(), "1\n", "{name}");
    }
}

#[tokio::test]
async fn each_mistake_is_one_clear_sentence() {
    let folder = Folder::new();
    fs::create_dir(folder.path("empty")).unwrap();
    let csv = folder.write("one/x.csv", "a\n1\n");
    let json = folder.write("two/X.json", "{\"a\":1}\n");
    let cases = [
        (vec![folder.path("missing.csv")], "no file or folder '"),
        (vec![folder.write("notes.txt", "hello")], "has none of the known endings"),
        (vec![folder.write("notes", "hello")], "has none of the known endings"),
        (vec![folder.path("empty")], "holds no Parquet, CSV, JSON or Arrow files"),
        (vec![folder.write("empty.csv", "")], "is empty, so its columns are unknown"),
        (vec![folder.write("empty.json", "")], "is empty, so its columns are unknown"),
        (vec![csv, json], "both give the table name 'x'; name one of them with NAME=PATH"),
        (vec![folder.write("--.csv", "a\n")], "can't be a table name"),
        (vec![folder.write("bad.parquet", "no parquet")], "can't read '"),
        (vec![folder.write("empty.parquet", "")], "is empty, so its columns are unknown"),
        (vec![folder.write("bad.arrow", "no arrow at all")], "can't read '"),
        (vec![folder.write("short.arrow", "ARROW1")], "can't read '"),
        (vec![folder.write("empty.arrow", "")], "is empty, so its columns are unknown"),
        (vec![folder.write("bad.json", "{\"a\":1}\n{oops")], "can't read '"),
        (vec![folder.write("bad.csv.gz", "a,b\n1,2\n")], "can't read '"),
        (vec![folder.write("ragged.csv", "a,b\n1,2\n1,2,3\n")], "can't read '"),
        (
            vec![folder.write("twice.csv", "a,b,a\n1,2,3\n")],
            "has two columns named 'a'; rename one of them",
        ),
    ];
    for (specs, expected) in cases {
        let error = open_error(&specs).await;
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
    for scale in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
        let options = CatalogOptions { tpch_scale: Some(scale), ..options::<&str>([]) };
        let error = catalog::open(&options).await.err().unwrap().to_string();
        assert!(error.starts_with("expected a TPC-H scale factor"), "{error}");
    }
    let options =
        CatalogOptions { spill_dir: Some(folder.path("missing").into()), ..options::<&str>([]) };
    let error = catalog::open(&options).await.err().unwrap().to_string();
    assert!(
        error.ends_with("missing': entity not found; create this folder or name another"),
        "{error}"
    );
}

#[tokio::test]
async fn only_queries() {
    let folder = Folder::new();
    let path = folder.write("t.csv", "a\n1\n");
    let ctx = open([&path]).await;
    for sql in [
        "SHOW TABLES",
        "SHOW COLUMNS FROM t",
        "DESCRIBE t",
        "EXPLAIN SELECT * FROM t",
        "EXPLAIN ANALYZE SELECT * FROM t",
        "SELECT now(), 'x'::varchar",
    ] {
        assert!(!query(&ctx, sql).await.unwrap().is_empty(), "{sql}");
    }
    let out = folder.path("out.csv");
    for sql in [
        format!("COPY t TO '{out}'"),
        format!("EXPLAIN ANALYZE COPY t TO '{out}'"),
        "INSERT INTO t VALUES (2)".into(),
        "DELETE FROM t".into(),
        "UPDATE t SET a = 2".into(),
        "CREATE TABLE u AS SELECT 1".into(),
        "CREATE VIEW u AS SELECT 1".into(),
        format!("CREATE EXTERNAL TABLE u STORED AS CSV LOCATION '{path}'"),
        "DROP TABLE t".into(),
        "SET datafusion.execution.batch_size = 1".into(),
        "PREPARE p AS SELECT 1".into(),
        "BEGIN".into(),
    ] {
        let error = query(&ctx, &sql).await.unwrap_err();
        assert!(
            error.contains("not supported") || error.contains("Unsupported SQL statement"),
            "{sql}: {error}"
        );
    }
    assert!(
        query(&ctx, &format!("SELECT * FROM '{path}'")).await.unwrap_err().contains("not found")
    );
    assert!(!Path::new(&out).exists());
    assert_eq!(query(&ctx, "SELECT * FROM t").await.unwrap(), "1\n");
    assert!(query(&ctx, "SELECT now()").await.unwrap().trim().ends_with('Z'));
}

/// What the plan has written to disk.
fn spilled_bytes(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let own = plan.metrics().and_then(|metrics| metrics.spilled_bytes()).unwrap_or(0);
    own + plan.children().into_iter().map(spilled_bytes).sum::<usize>()
}

#[tokio::test]
async fn queries_spill_within_the_memory_they_are_given() {
    let folder = Folder::new();
    let options = CatalogOptions {
        tpch_scale: Some(0.05),
        memory_bytes: Some(24 << 20),
        spill_dir: Some(folder.0.path().to_owned()),
        ..options::<&str>([])
    };
    let ctx = catalog::open(&options).await.unwrap();
    let sql = "SELECT * FROM lineitem ORDER BY l_comment, l_orderkey, l_linenumber";
    let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    let batches = collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 299_814);
    let comments = batches.iter().flat_map(|batch| batch["l_comment"].as_string::<i32>().iter());
    assert!(comments.is_sorted());
    assert!(spilled_bytes(&plan) > 24 << 20);
    assert_eq!(ctx.runtime_env().memory_pool.reserved(), 0);
}

#[tokio::test]
async fn tables_in_memory_keep_order_and_hold_large_tight_batches() {
    let folder = Folder::new();
    let rows = 200_000;
    let path = folder.write("t.parquet", parquet(&sample(rows, true), Compression::SNAPPY));
    folder.write("two/a.parquet", parquet(&sample(70_000, true), Compression::SNAPPY));
    folder.write("two/b.parquet", parquet(&sample(130_000, true), Compression::SNAPPY));
    let two = format!("two={}", folder.path("two"));
    let options =
        CatalogOptions { in_memory: true, tpch_scale: Some(0.05), ..options([path, two]) };
    let ctx = catalog::open(&options).await.unwrap();

    for (table, key, rows) in
        [("t", "id", rows), ("two", "id", rows), ("lineitem", "l_orderkey", 299_814)]
    {
        let frame = ctx.table(table).await.unwrap();
        let plan = frame.create_physical_plan().await.unwrap();
        let whole = ctx.copied_config().with_batch_size(MEMORY_BATCH_ROWS);
        let task = Arc::new(TaskContext::from(&ctx.state()).with_session_config(whole));
        let parts = collect_partitioned(plan, task).await.unwrap();
        assert_eq!(parts.len(), 2, "{table}");
        // Each of the two threads that read or generated the table ends with one short batch.
        let sizes: Vec<usize> = parts.iter().flatten().map(RecordBatch::num_rows).collect();
        assert!(sizes.iter().all(|rows| *rows <= MEMORY_BATCH_ROWS), "{table}: {sizes:?}");
        assert!(
            sizes.iter().filter(|rows| **rows < MEMORY_BATCH_ROWS).count() <= 2,
            "{table}: {sizes:?}"
        );
        let mut keys: Vec<i64> = Vec::new();
        for part in &parts {
            assert!(!part.is_empty(), "{table}");
            for batch in part {
                keys.extend(
                    batch.column_by_name(key).unwrap().as_primitive::<Int64Type>().values(),
                );
                for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
                    assert_ne!(column.data_type(), &DataType::Utf8View);
                    let data = column.to_data();
                    let bytes: usize = data.buffers().iter().map(|buffer| buffer.len()).sum();
                    let allocated: usize =
                        data.buffers().iter().map(|buffer| buffer.capacity()).sum();
                    assert!(
                        allocated <= bytes + 256,
                        "{table}.{}: {allocated} for {bytes}",
                        field.name()
                    );
                }
            }
        }
        assert_eq!(keys.len(), rows as usize, "{table}");
        match table {
            "two" => assert!(keys == Vec::from_iter((0..70_000).chain(0..130_000))),
            _ => assert!(keys.is_sorted(), "{table}"),
        }
    }
}

/// The answers are those of the TPC-H tools at this scale factor.
#[tokio::test]
async fn tpch_gives_the_known_answers() {
    let folder = Folder::new();
    let mut csv = format!("{}\n", tpchgen::csv::LineItemCsv::header());
    for row in tpchgen::generators::LineItemGenerator::new(0.01, 1, 1).iter() {
        csv.push_str(&format!("{}\n", tpchgen::csv::LineItemCsv::new(row)));
    }
    let spec = format!("lines={}", folder.write("lines.csv", csv));
    for threads in [1, 3] {
        let options = CatalogOptions { tpch_scale: Some(0.01), threads, ..options([&spec]) };
        let ctx = catalog::open(&options).await.unwrap();
        for (table, rows) in [
            ("lineitem", 60_175),
            ("orders", 15_000),
            ("partsupp", 8_000),
            ("part", 2_000),
            ("customer", 1_500),
            ("supplier", 100),
            ("nation", 25),
            ("region", 5),
        ] {
            assert_eq!(
                query(&ctx, &format!("SELECT count(*) FROM {table}")).await.unwrap(),
                format!("{rows}\n")
            );
        }
        let q1 = "SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), \
                  sum(l_extendedprice * (1 - l_discount)), count(*) FROM lineitem \
                  WHERE l_shipdate <= date '1998-09-02' GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 1";
        assert_eq!(
            query(&ctx, q1).await.unwrap(),
            "A,F,380456.00,532348211.65,505822441.4861,14876\n"
        );
        let q6 = "SELECT sum(l_extendedprice * l_discount) FROM lineitem WHERE l_shipdate >= date '1994-01-01' \
                  AND l_shipdate < date '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24";
        assert_eq!(query(&ctx, q6).await.unwrap(), "1193053.2253\n");

        let columns = "l_orderkey, l_partkey, l_suppkey, CAST(l_linenumber AS bigint), CAST(l_quantity AS double), \
                       CAST(l_extendedprice AS double), CAST(l_discount AS double), CAST(l_tax AS double), \
                       l_returnflag, l_linestatus, l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, \
                       l_shipmode, l_comment";
        for (a, b) in [("lineitem", "lines"), ("lines", "lineitem")] {
            let sql = format!(
                "SELECT count(*) FROM (SELECT {columns} FROM {a} EXCEPT ALL SELECT {columns} FROM {b})"
            );
            assert_eq!(query(&ctx, &sql).await.unwrap(), "0\n");
        }
    }
}
