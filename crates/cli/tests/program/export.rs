//! `dray export`: the file is complete or does not exist.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use arrow::compute::concat_batches;
use arrow::ipc::reader::{FileReader, StreamReader};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;

const SERIES: &str = "SELECT value, 'row ' || value AS text FROM generate_series(1, 300000)";

fn read(path: &Path) -> RecordBatch {
    let file = File::open(path).unwrap();
    let (schema, batches): (_, Vec<_>) = match path.extension().unwrap().to_str().unwrap() {
        "parquet" => {
            let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
            (arrow::array::RecordBatchReader::schema(&reader), reader.map(Result::unwrap).collect())
        }
        "arrows" => {
            let reader = StreamReader::try_new(file, None).unwrap();
            (reader.schema(), reader.map(Result::unwrap).collect())
        }
        _ => {
            let reader = FileReader::try_new(file, None).unwrap();
            (reader.schema(), reader.map(Result::unwrap).collect())
        }
    };
    concat_batches(&schema, &batches).unwrap()
}

#[test]
fn every_format_holds_every_value() {
    let fixture = Fixture::start();
    for name in ["a.parquet", "a.arrow", "a.feather", "a.arrows"] {
        let path = fixture.path(name);
        let output = fixture.export("SELECT * FROM goods", &path, &[]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(stderr(&output).contains("5 rows"), "{}", stderr(&output));
        assert_eq!(read(&path).columns(), goods().columns(), "{name}");
        let output = fixture.export(SERIES, &path, &["--quiet"]);
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
        let series = read(&path);
        assert_eq!(series.num_rows(), 300_000);
        let value: i128 = series
            .column(0)
            .as_any()
            .downcast_ref::<Int64Array>()
            .unwrap()
            .values()
            .iter()
            .map(|v| i128::from(*v))
            .sum();
        assert_eq!(value, 300_000 * 300_001 / 2);
    }
    for (name, format) in [("a.csv", "csv"), ("a.ndjson", "json"), ("a.json", "json")] {
        let path = fixture.path(name);
        assert!(fixture.export("SELECT * FROM goods", &path, &[]).status.success());
        let printed = stdout(&fixture.query("SELECT * FROM goods", &["--format", format]));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), printed);
    }
    for compression in ["none", "lz4", "snappy", "gzip", "zstd:9"] {
        let path = fixture.path("b.parquet");
        let more = ["--file-compression", compression, "--row-group-rows", "1000"];
        assert!(fixture.export("SELECT * FROM goods", &path, &more).status.success());
        assert_eq!(read(&path).columns(), goods().columns());
    }
    // The mode is that of any new file, and no other file remains.
    assert_eq!(fixture.path("a.parquet").metadata().unwrap().permissions().mode() & 0o600, 0o600);
    assert_eq!(fixture.leftovers(), Vec::<String>::new());
}

#[test]
fn a_result_without_rows_is_a_file() {
    let fixture = Fixture::start();
    for name in ["a.parquet", "a.arrow", "a.arrows"] {
        let path = fixture.path(name);
        assert!(fixture.export("SELECT * FROM goods WHERE id = 0", &path, &[]).status.success());
        let batch = read(&path);
        assert_eq!((batch.num_rows(), batch.num_columns()), (0, 8));
    }
}

#[test]
fn a_file_is_replaced_only_at_success() {
    let fixture = Fixture::start();
    let path = fixture.path("a.csv");
    std::fs::write(&path, "precious").unwrap();
    let kept = |output: &Output, expected: i32| {
        let (code, error) = failure(output);
        assert_eq!(code, expected, "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        assert_eq!(fixture.leftovers(), Vec::<String>::new());
    };
    kept(&fixture.export("SELEC", &path, &[]), 1);
    // The export fails midway.
    kept(
        &fixture.export(
            "SELECT 1 / (value - 200000) AS x FROM generate_series(1, 300000)",
            &path,
            &[],
        ),
        1,
    );
    kept(&fixture.export("SELECT * FROM nested", &path, &[]), 4);
    kept(&fixture.export("SELECT 1", &fixture.path("a.xlsx"), &[]), 2);
    kept(&fixture.export("SELECT 1", &fixture.path("a.csv"), &["--file-compression", "zstd"]), 2);
    kept(&fixture.export("SELECT 1", &fixture.path("missing/a.csv"), &[]), 4);
    kept(&fixture.export("SELECT 1", &fixture.path("dray.sock/a.csv"), &[]), 4);
    let folder = fixture.path("folder.csv");
    std::fs::create_dir(&folder).unwrap();
    kept(&fixture.export("SELECT 1", &folder, &[]), 4);
    assert!(fixture.export("SELECT 1 AS one", &path, &[]).status.success());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n1\n");
    // The mode is kept too; meanwhile the temporary file is private.
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    let running = fixture.endless_export(&path);
    let aside = fixture.path(&fixture.leftovers()[0]);
    assert_eq!(aside.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    running.interrupt();
    running.wait();
    for mode in [0o600, 0o640, 0o666, 0o444] {
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        assert!(fixture.export("SELECT 1 AS one", &path, &[]).status.success());
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, mode);
    }
    // A link stays a link.
    let link = fixture.path("link.csv");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(fixture.export("SELECT 2 AS two", &link, &[]).status.success());
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "two\n2\n");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o444);
    std::fs::remove_file(&path).unwrap();
    let (code, error) = failure(&fixture.export("SELECT 3", &link, &[]));
    assert_eq!((code, error.contains("a link to a file that is not there")), (4, true), "{error}");
    assert!(link.is_symlink() && !path.exists());
}

/// Only root may change the owner of a file.
#[test]
fn a_file_that_is_replaced_keeps_its_owner() {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return;
    }
    let fixture = Fixture::start();
    let path = fixture.path("a.csv");
    std::fs::write(&path, "precious").unwrap();
    std::os::unix::fs::chown(&path, Some(12), Some(34)).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    assert!(fixture.export("SELECT 1 AS one", &path, &[]).status.success());
    let metadata = path.metadata().unwrap();
    assert_eq!((metadata.uid(), metadata.gid(), metadata.mode() & 0o777), (12, 34, 0o640));
}

/// Its entries can't be synced.
#[test]
fn a_folder_that_may_not_be_read_gets_the_file() {
    let fixture = Fixture::start();
    let folder = fixture.path("closed");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, Permissions::from_mode(0o300)).unwrap();
    let path = folder.join("a.csv");
    let mut command = program();
    if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
        // Root without the right to read all the same.
        let program = std::mem::replace(&mut command, Command::new("setpriv"));
        let none = "-dac_override,-dac_read_search";
        command.args(["--bounding-set", none, "--inh-caps", none]).arg(program.get_program());
        command.args(program.get_args());
    }
    command.args(["export", &fixture.uri, "SELECT 1 AS one", "-o", path.to_str().unwrap()]);
    for _new_and_replaced in 0..2 {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n1\n");
    }
    std::fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_server_that_dies_leaves_no_file() {
    let fixture = Fixture::start();
    let path = fixture.path("a.csv");
    let running = fixture.endless_export(&path);
    fixture.server.signal("KILL");
    let (code, error) = running.wait();
    assert_eq!((code, error.lines().count()), (Some(3), 1), "{error}");
    assert!(!path.exists());
    assert_eq!(fixture.leftovers(), Vec::<String>::new());
}

#[test]
fn an_interrupt_leaves_no_file_and_cancels_at_the_server() {
    let fixture = Fixture::start();
    for (failed, name) in [(1, "a.csv"), (2, "a.parquet"), (3, "a.arrow")] {
        let path = fixture.path(name);
        let running =
            Running::start(&["export", &fixture.uri, ENDLESS, "-o", path.to_str().unwrap()]);
        wait_until("chunks are sent", || {
            fixture.metric("dray_chunks_sent_total") > 20 * (failed - 1)
        });
        wait_until("the file is there", || !fixture.leftovers().is_empty());
        running.interrupt();
        let (code, error) = running.wait();
        assert_eq!((code, error.as_str()), (Some(130), "dray: interrupted\n"));
        assert!(!path.exists());
        assert_eq!(fixture.leftovers(), Vec::<String>::new());
        fixture.wait_for_metric("dray_statements_failed_total", failed);
    }
}

#[test]
fn a_full_disk_leaves_no_file() {
    let fixture = Fixture::start();
    for name in ["a.csv", "a.ndjson", "a.parquet", "a.arrow", "a.arrows"] {
        let path = fixture.path(name);
        // A limit on file sizes. Its signal is ignored, so that writes fail like on a full disk.
        let script = "trap '' XFSZ; ulimit -f 100; exec \"$@\"";
        let program = env!("CARGO_BIN_EXE_dray");
        let arguments = [
            "-c",
            script,
            "sh",
            program,
            "export",
            &fixture.uri,
            ENDLESS,
            "-o",
            path.to_str().unwrap(),
        ];
        let (code, error) = failure(&Command::new("sh").args(arguments).output().unwrap());
        assert_eq!((code, error.contains("File too large")), (4, true), "{error}");
        assert!(!path.exists());
        assert_eq!(fixture.leftovers(), Vec::<String>::new());
    }
    assert_eq!(stdout(&fixture.query("SELECT 1 AS one", &[])), "one\n1\n");
}
