//! Tables that another program changes while a session is open.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::DataType;
use dray_driver::Statement;

use crate::file::{File, run, statement};

const MADE: &str = "CREATE TABLE t (a INTEGER, b TEXT); INSERT INTO t VALUES (1, 'one')";

#[test]
fn a_table_that_was_replaced_has_its_new_columns() {
    for change in [
        "DROP TABLE t; CREATE TABLE t (b TEXT, a INTEGER, c REAL);
            INSERT INTO t VALUES ('two', 2, 0.5)",
        "ALTER TABLE t ADD COLUMN c REAL DEFAULT 0.5",
        "ALTER TABLE t DROP COLUMN b",
        "ALTER TABLE t RENAME COLUMN b TO z",
        "DROP TABLE t; CREATE TABLE t (a TEXT, b BLOB); INSERT INTO t VALUES ('x', x'00')",
        "DROP TABLE t; CREATE TABLE t (c REAL)",
        "DROP TABLE t; CREATE VIEW t AS SELECT 1.5 AS a, x'00' AS b",
    ] {
        let file = File::new(MADE);
        file.with_session(false, |session| {
            let sql = "SELECT * FROM t";
            assert_eq!(run(session, &statement(sql)).unwrap().names(), ["a", "b"]);
            file.elsewhere().execute_batch(change).unwrap();
            // What a session that has never seen the old table says.
            let fresh = file.with_session(false, |new| run(new, &statement(sql)).unwrap());
            let answer = run(session, &statement(sql)).unwrap();
            assert_eq!(answer.schema, fresh.schema, "{change}");
            assert_eq!(answer.batches, fresh.batches, "{change}");
        });
    }
}

#[test]
fn a_plan_has_the_new_columns() {
    let file = File::new(MADE);
    file.with_session(false, |session| {
        let plan = Statement { plan_only: true, ..statement("SELECT * FROM t") };
        assert_eq!(run(session, &plan).unwrap().names(), ["a", "b"]);
        let change = "DROP TABLE t; CREATE TABLE t (b INTEGER, a TEXT, c REAL)";
        file.elsewhere().execute_batch(change).unwrap();
        let answer = run(session, &plan).unwrap();
        assert_eq!(answer.names(), ["b", "a", "c"]);
        let types = [DataType::Int64, DataType::Utf8, DataType::Float64];
        assert!(answer.schema.unwrap().fields().iter().map(|f| f.data_type()).eq(&types));
        assert_eq!(answer.batches, []);
    });
}

#[test]
fn written_rows_come_under_the_new_names() {
    let file = File::new(MADE);
    file.with_session(true, |session| {
        let returning = statement("INSERT INTO t SELECT * FROM t RETURNING *");
        assert_eq!(run(session, &returning).unwrap().names(), ["a", "b"]);
        let change = "DROP TABLE t; CREATE TABLE t (b INTEGER); INSERT INTO t VALUES (7)";
        file.elsewhere().execute_batch(change).unwrap();
        let answer = run(session, &returning).unwrap();
        assert_eq!(answer.names(), ["b"]);
        let values = answer.batches[0].column(0).as_primitive::<Int64Type>();
        assert_eq!(values.values(), &[7]);
    });
}
