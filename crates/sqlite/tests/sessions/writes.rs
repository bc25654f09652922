//! Statements that write, and return what they have written.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use dray_driver::{Estimate, Sink, Stopped};

use crate::file::{File, run, statement};

/// A sink of which nobody wants the rows.
struct Left;

impl Sink for Left {
    fn begin(&mut self, _schema: SchemaRef, _estimate: Estimate) -> Result<(), Stopped> {
        Ok(())
    }

    fn batch(&mut self, _batch: RecordBatch) -> Result<(), Stopped> {
        Err(Stopped)
    }

    fn is_stopped(&self) -> bool {
        true
    }

    fn watch(&self) -> Box<dyn Fn() -> bool + Send> {
        Box::new(|| false)
    }
}

fn count(file: &File) -> i64 {
    file.elsewhere().query_row("SELECT count(*) FROM t", (), |row| row.get(0)).unwrap()
}

#[test]
fn rows_that_are_not_passed_on_are_not_written() {
    let file = File::new("CREATE TABLE t (a)");
    file.with_session(true, |session| {
        let mixed = statement("INSERT INTO t VALUES (1), ('x'), (3) RETURNING a");
        let error = run(session, &mixed).unwrap_err();
        assert!(error.message.contains("row 2: x is a TEXT"), "{error:?}");
        assert_eq!(count(&file), 0);
        let few =
            statement("WITH n(i) AS (VALUES (1), (2)) INSERT INTO t SELECT i FROM n RETURNING a");
        session.run(&few, &mut Left).unwrap();
        assert_eq!(count(&file), 0);
        let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200000)
            INSERT INTO t SELECT i FROM n RETURNING a";
        session.run(&statement(many), &mut Left).unwrap();
        assert_eq!(count(&file), 0);
        assert_eq!(run(session, &few).unwrap().rows(), 2);
        assert_eq!(count(&file), 2);
        assert_eq!(run(session, &statement("DELETE FROM t RETURNING a")).unwrap().rows(), 2);
        assert_eq!(count(&file), 0);
    });
}

#[test]
fn a_transaction_stays_the_clients() {
    let file = File::new("CREATE TABLE t (a)");
    file.with_session(true, |session| {
        run(session, &statement("BEGIN")).unwrap();
        run(session, &statement("INSERT INTO t VALUES (0) RETURNING a")).unwrap();
        assert_eq!(count(&file), 0);
        run(session, &statement("COMMIT")).unwrap();
        assert_eq!(count(&file), 1);
    });
}

/// The mode of a journal can't be changed in a transaction.
#[test]
fn pragmas_are_in_no_transaction() {
    let file = File::new("CREATE TABLE t (a)");
    file.with_session(true, |session| {
        for sql in ["PRAGMA journal_mode = WAL", "-- a\n/* b */; pragma journal_mode = delete"] {
            assert_eq!(run(session, &statement(sql)).unwrap().rows(), 1, "{sql}");
        }
    });
}
