//! Values and rows that are too long.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, RecordBatch};
use dray_driver::{ErrorKind, Session, Statement};

use crate::file::{File, run, statement};

/// The words of the error that something is over a limit.
fn refusal(session: &mut dyn Session, statement: &Statement) -> String {
    let error = run(session, statement).unwrap_err();
    assert_eq!((error.kind, error.sqlstate.as_str()), (ErrorKind::Limit, "54000"), "{error:?}");
    error.message
}

#[test]
fn a_row_has_a_limit() {
    let file = File::new("CREATE TABLE t (x)");
    file.with_session(false, |session| {
        let blobs = ["randomblob(100000)"; 10].join(", ");
        let mut limited = statement(&format!("SELECT {blobs}"));
        limited.limits.row_bytes_max = 1_000_000;
        assert_eq!(run(session, &limited).unwrap().rows(), 1);
        limited.limits.row_bytes_max -= 1;
        assert!(refusal(session, &limited).contains("row 1 has more than 999999 bytes"));
        limited.sql = "SELECT x'00' AS x UNION ALL SELECT zeroblob(1000000)".to_owned();
        assert!(refusal(session, &limited).contains("row 2 has more than 999999 bytes"));
        assert_eq!(run(session, &statement("SELECT 1")).unwrap().rows(), 1);
    });
}

#[test]
fn a_value_has_a_limit() {
    let file = File::new("CREATE TABLE t (x)");
    let value = vec![0; 300_000_000];
    let value: ArrayRef = Arc::new(BinaryArray::from(vec![value.as_slice()]));
    let mut length = statement("SELECT length(?)");
    length.parameters = Some(RecordBatch::try_from_iter([("1", value)]).unwrap());
    file.with_session(false, |session| {
        for long in [statement("SELECT length(zeroblob(300000000))"), length] {
            assert!(refusal(session, &long).contains("too big"));
        }
    });
}
