//! Files that change while they are served: a statement returns the original rows, or an error.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::arrow::ipc::writer::{FileWriter, StreamWriter};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::prelude::SessionContext;
use dray_server::catalog::{self, CatalogOptions};
use futures::StreamExt;

/// The content of a file: `rows` rows of a number, starting with `first`, and a text.
fn batch(first: i64, rows: i64) -> RecordBatch {
    let texts = (first..first + rows).map(|i| Some(format!("text {}", i % 1000)));
    RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from_iter_values(first..first + rows)) as ArrayRef),
        ("name", Arc::new(StringArray::from_iter(texts))),
    ])
    .unwrap()
}

const ENDINGS: [&str; 10] = [
    "parquet",
    "arrow",
    "arrows",
    "csv",
    "csv.gz",
    "csv.zst",
    "ndjson",
    "ndjson.gz",
    "json",
    "json.zst",
];

/// A file with these rows, in batches or row groups of a thousand.
fn bytes(ending: &str, first: i64, rows: i64) -> Vec<u8> {
    let batch = batch(first, rows);
    let parts = (0..rows).step_by(1000).map(|start| {
        let start = start as usize;
        batch.slice(start, 1000.min(rows as usize - start))
    });
    let (format, compression) = ending.split_once('.').unwrap_or((ending, ""));
    let mut out = Vec::new();
    match format {
        "parquet" => {
            let properties =
                WriterProperties::builder().set_max_row_group_row_count(Some(1000)).build();
            let mut writer =
                ArrowWriter::try_new(&mut out, batch.schema(), Some(properties)).unwrap();
            parts.for_each(|part| writer.write(&part).unwrap());
            writer.close().unwrap();
        }
        "arrow" => {
            let mut writer = FileWriter::try_new(&mut out, &batch.schema()).unwrap();
            parts.for_each(|part| writer.write(&part).unwrap());
            writer.finish().unwrap();
        }
        "arrows" => {
            let mut writer = StreamWriter::try_new(&mut out, &batch.schema()).unwrap();
            parts.for_each(|part| writer.write(&part).unwrap());
            writer.finish().unwrap();
        }
        "csv" => {
            datafusion::arrow::csv::Writer::new(&mut out).write(&batch).unwrap();
        }
        "ndjson" => {
            datafusion::arrow::json::LineDelimitedWriter::new(&mut out).write(&batch).unwrap();
        }
        "json" => {
            let mut writer = datafusion::arrow::json::ArrayWriter::new(&mut out);
            writer.write(&batch).unwrap();
            writer.finish().unwrap();
        }
        other => panic!("{other}"),
    }
    match compression {
        "" => out,
        "gz" => {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(&out).unwrap();
            encoder.finish().unwrap()
        }
        "zst" => zstd::encode_all(&out[..], 1).unwrap(),
        other => panic!("{other}"),
    }
}

async fn open(spec: &str) -> SessionContext {
    let tables = vec![spec.parse().unwrap()];
    catalog::open(&CatalogOptions { tables, threads: 2, ..CatalogOptions::default() })
        .await
        .unwrap()
}

/// The sum of the column of numbers.
async fn total(context: &SessionContext, sql: &str) -> Result<i64, String> {
    let text = |error: datafusion::error::DataFusionError| error.to_string();
    let batches = context.sql(sql).await.map_err(text)?.collect().await.map_err(text)?;
    let values = batches
        .iter()
        .flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().iter().flatten());
    Ok(values.sum())
}

const QUESTIONS: [&str; 4] = [
    "SELECT id FROM t",
    "SELECT count(*) FROM t",
    "SELECT max(id) FROM t",
    "SELECT id FROM t WHERE name = 'text 7'",
];

/// Waits until a change would alter the modification time.
fn tick() {
    std::thread::sleep(Duration::from_millis(25));
}

fn replace(path: &Path, bytes: &[u8]) {
    let other = path.with_extension("other");
    fs::write(&other, bytes).unwrap();
    fs::rename(&other, path).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_changed_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for ending in ENDINGS {
        let path = folder.path().join(format!("t.{ending}"));
        let old = bytes(ending, 0, 3000);
        // The new file has the same length as the old one, if possible.
        let new = bytes(ending, 3_000, 3000);
        type Change<'a> = (&'a str, Box<dyn Fn(&Path) + 'a>, &'a str);
        let changes: [Change<'_>; 7] = [
            ("removed", Box::new(|path| fs::remove_file(path).unwrap()), "was removed or renamed"),
            (
                "renamed",
                Box::new(|path| fs::rename(path, path.with_extension("old")).unwrap()),
                "was removed or renamed",
            ),
            ("replaced", Box::new(|path| replace(path, &new)), "was replaced by another one"),
            (
                "replaced by a copy",
                Box::new(|path| replace(path, &old)),
                "was replaced by another one",
            ),
            (
                "cut",
                Box::new(|path| {
                    File::options().write(true).open(path).unwrap().set_len(900).unwrap()
                }),
                "and now has 900",
            ),
            (
                "appended to",
                Box::new(|path| {
                    File::options().append(true).open(path).unwrap().write_all(&old).unwrap();
                }),
                "and now has",
            ),
            (
                "written to",
                Box::new(|path| {
                    let mut file = File::options().write(true).open(path).unwrap();
                    file.write_all(&new[..old.len().min(new.len())]).unwrap();
                }),
                "was written to",
            ),
        ];
        for (change, make, expected) in changes {
            // Whether an earlier statement has cached statistics and footers.
            for is_warm in if ending == "parquet" { vec![false, true] } else { vec![true] } {
                fs::write(&path, &old).unwrap();
                let context = open(&format!("t={}", path.display())).await;
                if is_warm {
                    assert_eq!(total(&context, QUESTIONS[0]).await, Ok(2999 * 1500), "{ending}");
                    assert_eq!(total(&context, QUESTIONS[1]).await, Ok(3000), "{ending}");
                    assert_eq!(total(&context, QUESTIONS[2]).await, Ok(2999), "{ending}");
                    assert_eq!(
                        total(&context, QUESTIONS[3]).await,
                        Ok(7 + 1007 + 2007),
                        "{ending}"
                    );
                }
                tick();
                make(&path);
                for sql in QUESTIONS {
                    let error =
                        total(&context, sql).await.expect_err(&format!("{ending} {change}: {sql}"));
                    assert!(
                        error.contains(&format!("'t/t.{ending}'")),
                        "{ending} {change}: {error}"
                    );
                    assert!(error.contains(expected), "{ending} {change}: {error}");
                }
            }
        }
    }
}

/// A scan reads the file several times. Rows from after a change must not appear.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_changes_during_a_scan_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for ending in ENDINGS {
        let path = folder.path().join(format!("t.{ending}"));
        let old = bytes(ending, 0, 200_000);
        for is_cut in [true, false] {
            fs::write(&path, &old).unwrap();
            let context = open(&format!("t={}", path.display())).await;
            let plan =
                context.sql("SELECT * FROM t").await.unwrap().create_physical_plan().await.unwrap();
            let mut stream =
                datafusion::physical_plan::execute_stream(plan, context.task_ctx()).unwrap();
            let mut rows = stream.next().await.unwrap().unwrap().num_rows();
            let file = File::options().write(true).open(&path).unwrap();
            if is_cut {
                file.set_len(old.len() as u64 / 2).unwrap();
            } else {
                // The same bytes: only the modification time differs.
                (&file).write_all(&old[..1]).unwrap();
            }
            let error = loop {
                match stream.next().await {
                    Some(Ok(batch)) => rows += batch.num_rows(),
                    Some(Err(error)) => break error.to_string(),
                    // A file that was read completely before the change gives the original rows.
                    None => {
                        assert_eq!(rows, 200_000, "{ending}");
                        assert!(old.len() < 1 << 20, "{ending} is too short to be read in parts");
                        break "file 't/ is whole".to_owned();
                    }
                }
            };
            assert!(error.contains("file 't/"), "{ending}: {error}");
        }
    }
}

/// The file is replaced all the time: each result is that of one version, or an error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_never_of_two_files() {
    let folder = tempfile::tempdir().unwrap();
    let rounds =
        std::env::var("DRAY_TEST_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(20);
    for ending in ["parquet", "arrow", "csv", "ndjson"] {
        let path = folder.path().join(format!("t.{ending}"));
        let versions = [bytes(ending, 0, 20_000), bytes(ending, 20_000, 20_000)];
        fs::write(&path, &versions[0]).unwrap();
        let ended = Arc::new(AtomicBool::new(false));
        let writer = std::thread::spawn({
            let (path, ended) = (path.clone(), Arc::clone(&ended));
            move || {
                for round in 0usize.. {
                    if ended.load(Ordering::Relaxed) {
                        break;
                    }
                    match round % 4 {
                        0 | 2 => replace(&path, &versions[round / 2 % 2]),
                        _ => fs::write(&path, &versions[round / 2 % 2]).unwrap(),
                    }
                    // Often before the server has opened the file.
                    std::thread::sleep(Duration::from_millis(round as u64 * 7 % 60));
                }
            }
        });
        let sums = [19_999 * 10_000, (20_000..40_000).sum::<i64>()];
        let mut errors = 0;
        for _ in 0..rounds {
            let tables = vec![format!("t={}", path.display()).parse().unwrap()];
            let options = CatalogOptions { tables, threads: 2, ..CatalogOptions::default() };
            let Ok(context) = catalog::open(&options).await else { continue };
            for _ in 0..5 {
                match total(&context, "SELECT id FROM t").await {
                    Ok(sum) => assert!(sums.contains(&sum), "{ending}: {sum}"),
                    Err(_) => errors += 1,
                }
            }
        }
        ended.store(true, Ordering::Relaxed);
        writer.join().unwrap();
        println!("{ending}: {errors} errors");
    }
}

fn touch(path: PathBuf, time: SystemTime) {
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

#[tokio::test]
async fn folders_keep_the_files_that_they_had() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, first| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes("parquet", first, 1000)).unwrap();
    };
    for (spec, first, second, third) in [
        ("plain", "plain/a.parquet", "plain/deep/b.parquet", "plain/c.parquet"),
        ("keys", "keys/k=1/a.parquet", "keys/k=2/b.parquet", "keys/k=1/c.parquet"),
    ] {
        write(first, 0);
        write(second, 1000);
        let context = open(&format!("t={}", folder.path().join(spec).display())).await;
        let all = (0..2000).sum::<i64>();
        assert_eq!(total(&context, "SELECT id FROM t").await, Ok(all));
        write(third, 2000);
        assert_eq!(total(&context, "SELECT id FROM t").await, Ok(all));
        assert_eq!(total(&context, "SELECT count(*) FROM t").await, Ok(2000));
        let again = open(&format!("t={}", folder.path().join(spec).display())).await;
        assert_eq!(total(&again, "SELECT id FROM t").await, Ok((0..3000).sum::<i64>()));

        touch(folder.path().join(second), SystemTime::now() - Duration::from_secs(60));
        for sql in QUESTIONS {
            let error = total(&context, sql).await.expect_err(sql);
            assert!(
                error.contains(&format!(
                    "file 't/{}' was written to",
                    second.split_once('/').unwrap().1
                )),
                "{error}"
            );
        }
        fs::remove_file(folder.path().join(second)).unwrap();
        let error = total(&context, "SELECT count(*) FROM t").await.unwrap_err();
        assert!(error.contains("was removed or renamed"), "{error}");
        if spec == "keys" {
            // The other file has not changed.
            assert_eq!(
                total(&context, "SELECT id FROM t WHERE k = 1").await,
                Ok((0..1000).sum::<i64>())
            );
        }
    }
}

#[tokio::test]
async fn explain_tells_no_paths() {
    let folder = tempfile::tempdir().unwrap();
    for ending in ENDINGS {
        let path = folder.path().join(format!("t.{ending}"));
        fs::write(&path, bytes(ending, 0, 10)).unwrap();
        let context = open(&format!("t={}", path.display())).await;
        for verb in ["EXPLAIN", "EXPLAIN VERBOSE", "EXPLAIN ANALYZE", "EXPLAIN ANALYZE VERBOSE"] {
            let plan = context
                .sql(&format!("{verb} SELECT * FROM t WHERE id > 3"))
                .await
                .unwrap()
                .collect()
                .await
                .unwrap();
            let text =
                datafusion::arrow::util::pretty::pretty_format_batches(&plan).unwrap().to_string();
            assert!(text.contains(&format!("t/t.{ending}")), "{text}");
            assert!(!text.contains(folder.path().file_name().unwrap().to_str().unwrap()), "{text}");
        }
    }
}
