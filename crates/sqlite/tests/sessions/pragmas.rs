//! Pragmas of a source that is writable: those that reach beyond file and connection are refused.

use crate::file::{File, run, statement};

/// Pragmas that SQLite has, here or in other builds, with values that do something.
const REFUSED: &[&str] = &[
    "hard_heap_limit",
    "hard_heap_limit = 1",
    "soft_heap_limit = 1",
    "soft_heap_limit(1)",
    "main.hard_heap_limit = 1",
    "\"HARD_heap_limit\" = 1",
    "temp_store_directory",
    "temp_store_directory = '/tmp'",
    "data_store_directory = '/tmp'",
    "lock_proxy_file = '/tmp/x'",
    "busy_timeout = 2000000000",
    "cache_size = -2000000000",
    "default_cache_size = 2000000000",
    "cache_spill = 0",
    "cell_size_check = 0",
    "journal_mode = off",
    "journal_mode = memory",
    "journal_mode = m",
    "journal_mode = ''",
    "locking_mode = exclusive",
    "mmap_size = 2000000000",
    "schema_version = 7",
    "temp_store = memory",
    "threads = 8",
    "trusted_schema = 1",
    "writable_schema = 1",
    "writable_schema = reset",
    "activate_extensions = 'x'",
    "key = 'x'",
    "vdbe_trace = 1",
    "no_such_pragma",
];

#[test]
fn pragmas_that_reach_beyond_the_file_are_refused() {
    let file = File::new("CREATE TABLE t (x); INSERT INTO t VALUES (1)");
    for pragma in REFUSED {
        file.with_session(true, |session| {
            let error = run(session, &statement(&format!("PRAGMA {pragma}"))).unwrap_err();
            assert_eq!(error.sqlstate, "25006", "{pragma}: {error:?}");
            let function = format!("SELECT * FROM pragma_{pragma}");
            assert!(pragma.contains(' ') || run(session, &statement(&function)).is_err());
        });
        let long = statement("SELECT max(length(randomblob(1000000))) FROM t");
        file.with_session(false, |session| assert_eq!(run(session, &long).unwrap().rows(), 1));
    }
}

#[test]
fn pragmas_of_file_and_connection_are_taken() {
    let file = File::new("CREATE TABLE t (x)");
    for pragma in [
        "journal_mode = WAL",
        "wal_checkpoint(TRUNCATE)",
        "wal_autocheckpoint = 10",
        "journal_mode = truncate",
        "foreign_keys = 1",
        "foreign_keys",
        "synchronous = NORMAL",
        "user_version = 3",
        "application_id = 4",
        "auto_vacuum = 1",
        "optimize",
        "incremental_vacuum(3)",
        "integrity_check",
        "table_info(t)",
        "busy_timeout",
    ] {
        let pragma = statement(&format!("PRAGMA {pragma}"));
        file.with_session(true, |session| run(session, &pragma).unwrap());
    }
    file.with_session(false, |session| {
        let version = run(session, &statement("SELECT user_version FROM pragma_user_version"));
        assert_eq!(version.unwrap().rows(), 1);
    });
}
