//! Statements that come again: their plans may be kept, their results must not change.

use std::sync::Arc;
use std::thread;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{Float64Type, Int64Type, TimestampNanosecondType};
use arrow::util::pretty::pretty_format_batches;
use dray_client::{Connection, QueryOptions};

use crate::common::Running;

fn read(connection: &mut Connection, sql: &str, options: &QueryOptions) -> Vec<RecordBatch> {
    connection.query(sql, options).unwrap().read_all().unwrap()
}

fn value(connection: &mut Connection, sql: &str) -> ArrayRef {
    read(connection, sql, &QueryOptions::default())[0].column(0).clone()
}

fn number(connection: &mut Connection, sql: &str) -> i64 {
    value(connection, sql).as_primitive::<Int64Type>().value(0)
}

#[test]
fn repeated_statements_have_the_same_rows() {
    let server = Running::start();
    let mut connection = server.connect();
    for sql in [
        "SELECT 1",
        "SELECT 1 AS a, 1 AS a",
        "SELECT * FROM one",
        "SELECT x + 1 FROM one WHERE x > 0",
        "SELECT x FROM one WHERE x > 1",
        "SELECT * FROM one WHERE false",
        "SELECT n, text FROM numbers WHERE n = 500000",
        "SELECT count(*) FROM (SELECT n FROM numbers LIMIT 3)",
        "SELECT n FROM numbers WHERE n < 4 ORDER BY n DESC",
        "SELECT x FROM one UNION ALL SELECT 7",
        "SELECT count(*), sum(n) FROM numbers",
        "SELECT a.x FROM one a JOIN one b ON a.x = b.x",
        "SELECT (SELECT max(n) FROM numbers) + x FROM one",
        "SELECT * FROM generate_series(1, 3)",
        "EXPLAIN SELECT 1",
    ] {
        let mut answer = || {
            let batches = read(&mut connection, sql, &QueryOptions::default());
            let text = pretty_format_batches(&batches).unwrap().to_string();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            // The order of rows is not defined.
            lines.sort_unstable();
            lines
        };
        let first = answer();
        (0..3).for_each(|_| assert_eq!(answer(), first, "{sql}"));
    }
}

#[test]
fn functions_that_depend_on_more_than_their_arguments_are_called_again() {
    let server = Running::start();
    let mut connection = server.connect();
    let mut now = || {
        let now = value(&mut connection, "SELECT CAST(now() AS TIMESTAMP(9))");
        now.as_primitive::<TimestampNanosecondType>().value(0)
    };
    let times = [now(), now(), now()];
    assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
    for sql in ["SELECT random()", "SELECT x + random() FROM one", "SELECT (SELECT random())"] {
        let mut random = || value(&mut connection, sql).as_primitive::<Float64Type>().value(0);
        assert_ne!(random(), random(), "{sql}");
    }
    assert_ne!(
        value(&mut connection, "SELECT uuid()").as_ref(),
        value(&mut connection, "SELECT uuid()").as_ref()
    );
    // Also where nothing but a filter calls them.
    let sql = "SELECT count(*) FROM numbers WHERE random() < 0.5";
    assert_ne!(number(&mut connection, sql), number(&mut connection, sql));
}

#[test]
fn values_of_parameters_belong_to_the_statement() {
    let server = Running::start();
    let mut connection = server.connect();
    let mut with = |value: ArrayRef| {
        let row = RecordBatch::try_from_iter([("1", value)]).unwrap();
        let options = QueryOptions { parameters: Some(row), ..QueryOptions::default() };
        read(&mut connection, "SELECT $1 AS v", &options)[0].column(0).clone()
    };
    for _ in 0..2 {
        for value in [1, 2, 3] {
            let value: ArrayRef = Arc::new(Int64Array::from(vec![value]));
            assert_eq!(&with(value.clone()), &value);
        }
        let text: ArrayRef = Arc::new(StringArray::from(vec!["1"]));
        assert_eq!(&with(text.clone()), &text);
        let null: ArrayRef = Arc::new(Int64Array::from(vec![None]));
        assert_eq!(with(null).null_count(), 1);
    }
    // A statement without values stays an error.
    let refused = connection.query("SELECT $1 AS v", &QueryOptions::default()).unwrap_err();
    assert_eq!(refused.sqlstate(), Some("07001"));
}

#[test]
fn errors_are_repeated_too() {
    let server = Running::start();
    let mut connection = server.connect();
    for sql in ["SELECT nothing", "SELECT fail_at(x, 1) FROM one", "SELECT 1 / (x - 1) FROM one"] {
        let mut failed = || {
            let options = QueryOptions::default();
            let read = connection.query(sql, &options).and_then(|mut all| all.read_all());
            read.unwrap_err().to_string()
        };
        let first = failed();
        (0..3).for_each(|_| assert_eq!(failed(), first, "{sql}"));
    }
    assert_eq!(number(&mut connection, "SELECT x FROM one"), 1);
}

#[test]
fn more_statements_than_are_kept_from_many_connections() {
    let server = Running::start();
    thread::scope(|scope| {
        for client in 0..4 {
            let server = &server;
            scope.spawn(move || {
                let mut connection = server.connect();
                for i in 0..1_500 {
                    // Some again and again, also at the same time; most only once.
                    let n = if i % 2 == 0 { i % 10 } else { i * 4 + client };
                    let found =
                        number(&mut connection, &format!("SELECT x + {n} FROM one WHERE x = 1"));
                    assert_eq!(found, n + 1);
                }
            });
        }
    });
}
