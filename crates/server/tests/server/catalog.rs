//! Tests of the catalog: small files of every kind, and their content as SQL tables.

mod columnar;
mod csv;
mod folders;
mod json;
mod memory;
mod statistics;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, Decimal128Array, Int64Array, RecordBatch, StringArray, StringViewArray,
    TimestampMicrosecondArray,
};
use datafusion::arrow::csv::WriterBuilder;
use datafusion::arrow::ipc::CompressionType;
use datafusion::arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::prelude::SessionContext;
use dray_server::catalog::{self, CatalogOptions};
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

/// A temporary folder with files to serve.
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

/// Four columns of `rows` rows. Strings are NULL in every third row, and views if `views`.
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
