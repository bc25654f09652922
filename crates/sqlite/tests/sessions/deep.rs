//! Statements that make SQLite recurse: errors or results, and no overflow of the stack, which
//! would end the server.

use crate::file::{File, refusal, run, statement};

/// A subquery in a subquery, so often: `SELECT * FROM (SELECT * FROM (…))`, of a template.
fn nested(template: &str, levels: usize, innermost: &str) -> String {
    let (before, behind) = template.split_once("{}").unwrap();
    format!("{}{innermost}{}", before.repeat(levels), behind.repeat(levels))
}

#[test]
fn patterns_with_many_wildcards_are_refused() {
    let file = File::new("CREATE TABLE t (x)");
    for (operator, one) in [("LIKE", "%a"), ("GLOB", "*a")] {
        let text = |count| format!("replace(hex(zeroblob({count})), '00', 'a')");
        let pattern = |count| format!("replace(hex(zeroblob({count})), '00', '{one}')");
        let sql = |count| format!("SELECT {} {operator} {}", text(count), pattern(count));
        let (_, message) = refusal(&file, &sql(25_000));
        assert!(message.contains("pattern too complex"), "{operator}: {message}");
        file.with_session(false, |session| run(session, &statement(&sql(500))).unwrap());
    }
}

#[test]
fn a_statement_comes_alone() {
    let file = File::new("CREATE TABLE t (x)");
    for sql in ["SELECT 1; SELECT 2".to_owned(), "SELECT 1;".repeat(100_000)] {
        let (sqlstate, message) = refusal(&file, &sql);
        assert_eq!(sqlstate, "42601", "{message}");
        assert!(message.contains("comes alone"), "{message}");
    }
    let end = "; /* nothing */ ;\n-- more\n".repeat(50_000);
    file.with_session(false, |session| {
        for sql in ["SELECT 1", "SELECT 1;", &format!("{end} SELECT 1 {end}")] {
            assert_eq!(run(session, &statement(sql)).unwrap().rows(), 1);
        }
    });
    for sql in ["", ";;", "-- nothing"] {
        assert!(refusal(&file, sql).1.contains("empty"), "{sql}");
    }
}

#[test]
fn nested_statements_fit_the_stack() {
    let file = File::new("CREATE TABLE t (x); INSERT INTO t VALUES (1)");
    let sum = "+1".repeat(990);
    let union = " UNION SELECT 1".repeat(499);
    let union_all = " UNION ALL SELECT x FROM t LIMIT 9 OFFSET 0";
    for (what, sql) in [
        ("expressions", nested("({})", 2000, "1")),
        ("an expression of 1000 levels", format!("SELECT 1{sum}")),
        ("negations", format!("SELECT {}1", "- ".repeat(5000))),
        ("subqueries", nested("SELECT * FROM ({})", 900, "SELECT x FROM t")),
        ("with limits", nested("SELECT * FROM ({} LIMIT 3)", 900, "SELECT x FROM t")),
        ("scalar subqueries", nested("SELECT ({})", 900, "SELECT x FROM t")),
        ("conditions", nested("SELECT 1 WHERE EXISTS ({})", 900, "SELECT x FROM t")),
        ("unions", nested(&format!("SELECT * FROM ({{}}){union}"), 300, "SELECT 1")),
        ("all", nested(&format!("SELECT * FROM ({{}}{union_all})"), 300, "SELECT x FROM t")),
        ("sums", nested(&format!("SELECT * FROM (SELECT ({{}}){sum})"), 300, "SELECT 1")),
        ("joins", format!("SELECT 1 FROM {}t{}", "(".repeat(900), ")".repeat(900))),
        ("tables", format!("SELECT count(*) FROM t{}", " JOIN t USING (x)".repeat(60))),
        ("WITH", nested("WITH a AS ({}) SELECT * FROM a", 900, "SELECT 1 AS x")),
        ("JSON", format!("SELECT json('{}{}')", "[".repeat(100_000), "]".repeat(100_000))),
        ("paths", format!("SELECT json_set('{{}}', '$.a{}', 1)", "[0]".repeat(100_000))),
        ("functions", nested("abs({})", 2000, "1")),
        ("CASE", nested("CASE WHEN 1 THEN {} END", 2000, "1")),
    ] {
        let sql = if sql.starts_with(['S', 'W']) { sql } else { format!("SELECT {sql}") };
        let ended = file.with_session(false, |session| {
            let ended = run(session, &statement(&sql)).map(|answer| answer.rows());
            assert_eq!(run(session, &statement("SELECT 1")).unwrap().rows(), 1);
            ended
        });
        if let Err(error) = ended {
            assert!(["42000", "54001"].contains(&&*error.sqlstate), "{what}: {error:?}");
        }
    }
}

/// Views whose columns are known are compiled within each other, however many.
#[test]
fn views_in_views_fit_the_stack() {
    let sum = format!("x{} AS x", "+1".repeat(100));
    let union = " UNION SELECT 1".repeat(20);
    for (column, rest, views) in
        [("x", "", 500), ("x", " LIMIT 2", 500), ("x", &union, 100), (&sum, "", 100)]
    {
        check_views(column, rest, views);
    }
}

/// Makes views of which each reads the one before, and reads some of them.
fn check_views(column: &str, rest: &str, views: usize) {
    let file = File::new("CREATE TABLE v0 (x); INSERT INTO v0 VALUES (1)");
    file.with_session(true, |session| {
        run(session, &statement("BEGIN")).unwrap();
        for view in 1..=views {
            let sql = format!("CREATE VIEW v{view} AS SELECT {column} FROM v{}{rest}", view - 1);
            run(session, &statement(&sql)).unwrap();
            if view % (views / 4) == 0
                && let Err(error) = run(session, &statement(&format!("SELECT x FROM v{view}")))
            {
                assert!(["42000", "54001"].contains(&&*error.sqlstate), "{error:?}");
                return;
            }
        }
    });
}

/// Triggers and cascades are compiled within each other.
#[test]
fn triggers_in_triggers_fit_the_stack() {
    const TABLES: usize = 2000;
    let key = "x INTEGER PRIMARY KEY";
    let mut sql = format!("BEGIN; CREATE TABLE t0 ({key}); CREATE TABLE p0 ({key});");
    for table in 1..TABLES {
        let before = table - 1;
        sql += &format!(
            "CREATE TABLE t{table} ({key}); CREATE TRIGGER g{table} AFTER INSERT ON t{before} \
             BEGIN INSERT INTO t{table} SELECT new.x; END; CREATE TABLE p{table} ({key} REFERENCES \
             p{before} ON UPDATE CASCADE ON DELETE CASCADE);"
        );
    }
    let file = File::new(&format!("{sql} INSERT INTO p0 VALUES (1); COMMIT;"));
    for sql in ["INSERT INTO t0 VALUES (1)", "DELETE FROM p0", "UPDATE p0 SET x = 2"] {
        for writable in [false, true] {
            let error = file.with_session(writable, |session| run(session, &statement(sql)));
            let error = error.unwrap_err();
            assert!(error.message.contains("too deep"), "{sql}: {error:?}");
        }
    }
}
