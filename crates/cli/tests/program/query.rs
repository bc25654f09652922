//! `dray query`: formats and failures.

use std::io::{Cursor, Write};
use std::process::Stdio;

use arrow::compute::concat_batches;
use arrow::ipc::reader::StreamReader;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;

const GOODS: &str = "SELECT * FROM goods ORDER BY id";
/// `goods` sorted by `id`: the largest and the smallest integer swap places.
const ORDER: [u32; 5] = [4, 0, 1, 2, 3];

fn sorted_goods() -> RecordBatch {
    arrow::compute::take_record_batch(&goods(), &UInt32Array::from(ORDER.to_vec())).unwrap()
}

#[test]
fn csv_keeps_every_value() {
    let fixture = Fixture::start();
    let expected = "\
id,name,price,day,at,flag,ratio,blob
-9223372036854775808,Größe 日本,0.10,1970-01-02,1970-01-01T00:00:00.000001Z,,3.0,
1,plain,1234567890123.45,1970-01-01,1970-01-01T00:00:00Z,true,0.1,00ff
2,\"\",-0.01,2024-01-31,2024-01-31T12:30:00.123456Z,false,1e300,\"\"
3,,,,,,,
9223372036854775807,\"a,\"\"b\"\"\nc\",0.00,1969-12-31,1969-12-31T23:59:59.999999Z,true,-2.5,61
";
    assert_eq!(stdout(&fixture.query(GOODS, &["--format", "csv"])), expected);
    // CSV is the default in a pipe.
    assert_eq!(stdout(&fixture.query(GOODS, &[])), expected);
    // A result without rows is just the header; a NULL is an empty line.
    assert_eq!(stdout(&fixture.query("SELECT id, name FROM goods WHERE id = 0", &[])), "id,name\n");
    assert_eq!(stdout(&fixture.query("SELECT NULL AS nothing", &[])), "nothing\n\n");
}

#[test]
fn json_keeps_every_value() {
    let fixture = Fixture::start();
    let text = stdout(&fixture.query(GOODS, &["--format", "json"]));
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 5);
    // Compare as text, since a parser may convert it to a float.
    assert!(text.lines().nth(1).unwrap().contains("\"price\":1234567890123.45,"), "{text}");
    assert_eq!(lines[0]["id"], i64::MIN);
    assert_eq!(lines[2]["name"], "");
    assert_eq!(lines[2]["at"], "2024-01-31T12:30:00.123456Z");
    assert_eq!(lines[2]["blob"], "");
    assert_eq!(lines[1]["blob"], "00ff");
    assert!(
        lines[3].as_object().unwrap().iter().all(|(name, value)| name == "id" || value.is_null()),
        "{text}"
    );
    assert_eq!(lines[4]["name"], "a,\"b\"\nc");
    let text = stdout(&fixture.query("SELECT * FROM nested", &["--format", "json"]));
    let expected = "{\"list\":[1,null],\"point\":{\"x\":7}}\n\
                    {\"list\":null,\"point\":{\"x\":null}}\n\
                    {\"list\":[],\"point\":{\"x\":9}}\n";
    assert_eq!(text, expected);
}

#[test]
fn arrow_and_parquet_keep_every_value() {
    let fixture = Fixture::start();
    for (table, expected) in [("goods ORDER BY id", sorted_goods()), ("nested", nested())] {
        let sql = format!("SELECT * FROM {table}");
        let output = fixture.query(&sql, &["--format", "arrow"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let reader = StreamReader::try_new(Cursor::new(output.stdout), None).unwrap();
        let schema = reader.schema();
        let batches: Vec<_> = reader.map(Result::unwrap).collect();
        assert_eq!(concat_batches(&schema, &batches).unwrap().columns(), expected.columns());

        let output = fixture.query(&sql, &["--format", "parquet"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes_of(output.stdout))
            .unwrap()
            .build()
            .unwrap();
        let batches: Vec<_> = reader.map(Result::unwrap).collect();
        assert_eq!(
            concat_batches(&batches[0].schema(), &batches).unwrap().columns(),
            expected.columns()
        );
    }
}

/// The Parquet reader needs a file.
fn bytes_of(bytes: Vec<u8>) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    file
}

#[test]
fn a_table_shows_the_first_rows_and_counts_all() {
    let fixture = Fixture::start();
    let text = stdout(&fixture.query(
        "SELECT id, name, price FROM goods ORDER BY id",
        &["--format", "table", "--rows", "3"],
    ));
    let expected = "                  id │ name       │            price
─────────────────────┼────────────┼─────────────────
-9223372036854775808 │ Größe 日本 │             0.10
                   1 │ plain      │ 1234567890123.45
                   2 │            │            -0.01
… 2 more rows (5 in all)
";
    assert_eq!(text, expected);
    // The planner does not know how many rows pass a filter.
    let sql = "SELECT value FROM generate_series(1, 300000) WHERE value % 3 = 0";
    let text = stdout(&fixture.query(sql, &["--format", "table"]));
    assert!(text.ends_with("… 99,960 more rows (100,000 in all)\n"), "{text}");
    let text = stdout(&fixture.query("SELECT 1 AS one, NULL AS none", &["--format", "table"]));
    assert!(text.ends_with("  1 │ NULL\n1 row\n"), "{text}");
}

#[test]
fn parameters_have_types() {
    let fixture = Fixture::start();
    let query = |sql: &str, values: &[&str]| {
        let arguments: Vec<&str> = values.iter().flat_map(|value| ["--param", value]).collect();
        stdout(&fixture.query(sql, &arguments))
            .lines()
            .skip(1)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(query("SELECT id FROM goods WHERE id = $1", &["2"]), ["2"]);
    assert_eq!(query("SELECT id FROM goods WHERE price = $1", &["decimal:-0.01"]), ["2"]);
    assert_eq!(query("SELECT id FROM goods WHERE day = $1", &["date:2024-01-31"]), ["2"]);
    assert_eq!(
        query(
            "SELECT id FROM goods WHERE at = $1",
            &["timestamptz:2024-01-31T13:30:00.123456+01:00"]
        ),
        ["2"]
    );
    assert_eq!(query("SELECT id FROM goods WHERE name = $1", &["plain"]), ["1"]);
    assert_eq!(
        query("SELECT id FROM goods WHERE flag = $1 AND id > $2", &["true", "-5"]),
        ["1", "9223372036854775807"]
    );
    assert_eq!(
        query("SELECT $1 AS a, $2 AS b, $3 AS c", &["text:42", "NULL", "-1.5"]),
        ["42,,-1.5"]
    );
    let (code, error) = failure(&fixture.query("SELECT $1", &["--param", "int:x"]));
    assert_eq!((code, error.contains("--param $1")), (2, true), "{error}");
    let (code, error) = failure(&fixture.query("SELECT $1", &[]));
    assert_eq!((code, error.contains("parameter")), (1, true), "{error}");
}

#[test]
fn a_statement_comes_from_a_file_or_standard_input() {
    let fixture = Fixture::start();
    let path = fixture.path("statement.sql");
    std::fs::write(&path, "-- a comment\nSELECT 1 AS one\n").unwrap();
    assert_eq!(
        stdout(&run(&["query", &fixture.uri, "--file", path.to_str().unwrap()])),
        "one\n1\n"
    );
    let mut command = program();
    command.args(["query", &fixture.uri, "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"SELECT 2 AS two").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"two\n2\n");
}

#[test]
fn failures_are_one_sentence_and_a_code() {
    let fixture = Fixture::start();
    let (code, error) = failure(&fixture.query("SELEC 1", &[]));
    assert_eq!(code, 1, "{error}");
    let (code, error) =
        failure(&fixture.query("SELECT 1 / (value - 5) FROM generate_series(1, 9)", &[]));
    assert_eq!(code, 1, "{error}");
    let (code, error) = failure(&fixture.query("SELECT * FROM nested", &[]));
    assert_eq!((code, error.contains("use json")), (4, true), "{error}");
    let (code, error) = failure(&fixture.query("SELECT 1", &["--timeout", "0"]));
    assert_eq!(code, 2, "{error}");
    let (code, error) = failure(&run(&["query", "localhost", "SELECT 1"]));
    assert_eq!((code, error.contains("dray://")), (2, true), "{error}");
    let (code, error) = failure(&run(&["query", "dray+unix:///nowhere", "SELECT 1"]));
    assert_eq!((code, error.contains("dray serve")), (3, true), "{error}");
    assert_eq!(run(&["query", &fixture.uri]).status.code(), Some(2));
    assert_eq!(
        run(&["query", &fixture.uri, "SELECT 1", "--compression", "xz"]).status.code(),
        Some(2)
    );
    // A row above the user's limit; the error names the size that is needed.
    let sql = "SELECT repeat('x', 100000) AS x";
    let limits = ["--chunk-bytes-max", "8KiB", "--row-bytes-max", "16KiB"];
    let (code, error) = failure(&fixture.query(sql, &limits));
    assert_eq!(code, 1, "{error}");
    // The server still answers.
    assert_eq!(stdout(&fixture.query("SELECT 1 AS one", &[])), "one\n1\n");
}

#[test]
fn a_full_disk_and_a_reader_that_leaves() {
    let fixture = Fixture::start();
    for format in ["csv", "json", "arrow", "parquet", "table"] {
        let mut command = program();
        command
            .args(["query", &fixture.uri, GOODS, "--format", format])
            .stdout(File::options().write(true).open("/dev/full").unwrap());
        let (code, error) = failure(&command.output().unwrap());
        assert_eq!((code, error.contains("No space left")), (4, true), "{format}: {error}");
    }
    let mut running = Running::start(&["query", &fixture.uri, ENDLESS, "--format", "csv"]);
    let mut line = String::new();
    BufReader::new(running.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "value,double\n");
    assert_eq!(running.wait(), (Some(0), String::new()));
    fixture.wait_for_metric("dray_statements_failed_total", 1);
}

#[test]
fn an_interrupt_cancels_at_the_server() {
    let fixture = Fixture::start();
    let mut running = Running::start(&["query", &fixture.uri, ENDLESS, "--format", "json"]);
    let mut reader = BufReader::new(running.0.stdout.take().unwrap());
    reader.read_line(&mut String::new()).unwrap();
    running.interrupt();
    // The program may be blocked in a write until its output is read.
    std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
    assert_eq!(running.wait(), (Some(130), "dray: interrupted\n".to_owned()));
    fixture.wait_for_metric("dray_statements_failed_total", 1);

    // A statement that computes and sends nothing.
    let sql = "SELECT count(DISTINCT value % 1000) FROM generate_series(1, 100000000000)";
    let running = Running::start(&["query", &fixture.uri, sql]);
    fixture.wait_for_metric("dray_connections_total", 2);
    running.interrupt();
    let (code, _) = running.wait();
    assert_eq!(code, Some(130));
    fixture.wait_for_metric("dray_statements_failed_total", 2);
    assert_eq!(stdout(&fixture.query("SELECT 1 AS one", &[])), "one\n1\n");
}
