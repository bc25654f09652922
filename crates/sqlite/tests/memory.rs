//! The memory of SQLite, which a process has once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

#[path = "sessions/file.rs"]
#[allow(dead_code, reason = "other tests use all of it")]
mod file;

use dray_driver::ErrorKind;

use self::file::{File, run, statement};

#[test]
fn sqlite_has_a_limit_of_memory() {
    let file = File::new("CREATE TABLE t (x)");
    file.with_session(false, |session| {
        let blobs = ["randomblob(268000000)"; 100].join(", ");
        let error = run(session, &statement(&format!("SELECT {blobs}"))).unwrap_err();
        assert_eq!((error.kind, error.sqlstate.as_str()), (ErrorKind::Resources, "53200"));
        assert!(error.message.contains("out of memory"), "{error:?}");
        assert_eq!(run(session, &statement("SELECT 1")).unwrap().rows(), 1);
    });
}
