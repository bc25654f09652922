//! Declared types and names that other programs have written.

use arrow_array::cast::AsArray;
use arrow_schema::DataType;
use dray_driver::Driver;
use dray_sqlite::Sqlite;

use crate::file::{File, run, statement};

/// GeoPackages have such columns. SQLite's rule gives them the affinity INTEGER.
#[test]
fn a_type_that_contains_int_by_accident() {
    let file = File::new(
        "CREATE TABLE p (id INTEGER PRIMARY KEY, geom POINT);
        INSERT INTO p (geom) VALUES (NULL), (x'4750'), (x'47500001')",
    );
    file.with_session(false, |session| {
        let answer = run(session, &statement("SELECT geom FROM p ORDER BY id")).unwrap();
        let schema = answer.schema.unwrap();
        assert_eq!(schema.field(0).data_type(), &DataType::Binary);
        assert_eq!(schema.field(0).metadata()["dray:sqlite:type"], "POINT");
        let values = answer.batches[0].column(0).as_binary::<i32>();
        assert_eq!(values.iter().collect::<Vec<_>>()[1..], [Some(&b"GP"[..]), Some(b"GP\0\x01")]);
    });
}

/// What keeps a file of these statements from being opened, if it does. Where they have a tilde
/// behind `caf`, the file has a byte that is no UTF-8.
fn refusal(sql: &str) -> Option<String> {
    let file = File::new(sql);
    let mut bytes = std::fs::read(file.path()).unwrap();
    let found: Vec<usize> =
        (0..bytes.len() - 3).filter(|at| bytes[*at..].starts_with(b"caf~")).collect();
    assert!(!found.is_empty());
    found.iter().for_each(|at| bytes[at + 3] = 0xe9);
    std::fs::write(file.path(), bytes).unwrap();
    let source = Sqlite::new("notes", &format!("sqlite:{}", file.path().display()), false).unwrap();
    source.open(&mut || true).err().map(|error| error.message)
}

#[test]
fn names_that_are_not_utf8_are_refused() {
    for (sql, what) in [
        ("CREATE TABLE \"caf~\" (x)", "the table caf\\xe9 has a name that is not UTF-8; rename it"),
        ("CREATE TABLE t (\"caf~\")", "the table t has a column whose name or type is not UTF-8"),
        ("CREATE TABLE t (x \"caf~\")", "the table t has a column whose name or type is not UTF-8"),
        ("CREATE TABLE t (x); CREATE VIEW v AS SELECT x AS \"caf~\" FROM t", "the view v has a"),
        (
            "CREATE TABLE t (x); CREATE VIEW \"caf~\" AS SELECT x FROM t",
            "the view caf\\xe9 has a name",
        ),
    ] {
        let refused = refusal(sql).unwrap_or_default();
        assert!(refused.contains(what), "{sql}: {refused}");
    }
    for sql in ["CREATE TABLE t (x DEFAULT 'caf~')", "CREATE TABLE t (x, CHECK (x <> 'caf~'))"] {
        assert_eq!(refusal(sql), None, "{sql}");
    }
}
