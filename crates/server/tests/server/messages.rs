//! Error messages: one sentence, an SQLSTATE, and nothing that is meant for the engine's
//! developers.

use crate::common::Running;
use dray_client::{Connection, Error, ErrorKind, QueryOptions};

/// Statements that fail, with their SQLSTATEs.
const FAILING: &[(&str, &str)] = &[
    // Syntax.
    ("42601", "SELEC 1"),
    ("42601", "SELECT 'a"),
    ("42601", "SELECT * FROM"),
    ("42601", "SELECT (1"),
    ("42601", "SELECT n FROM numbers GROUP"),
    ("42601", "SELECT n FROM numbers WHERE 1 < n < 3"),
    ("42601", "SELECT 1 UNION SELECT 1, 2"),
    // Names.
    ("42P01", "SELECT * FROM nowhere"),
    ("42P01", "SELECT * FROM public.nowhere"),
    ("42P01", "SELECT * FROM a.b.nowhere"),
    ("42P01", "SELECT * FROM numbers JOIN nowhere USING (n)"),
    ("42703", "SELECT m FROM numbers"),
    ("42703", "SELECT numbers.m FROM numbers"),
    ("42703", "SELECT N2 FROM numbers WHERE \"Text\" = 'a'"),
    ("42703", "SELECT n FROM numbers ORDER BY m"),
    ("42703", "SELECT x.n FROM numbers"),
    ("42702", "SELECT n FROM numbers a, numbers b"),
    ("42883", "SELECT foo(1)"),
    ("42883", "SELECT summ(n) FROM numbers"),
    ("42883", "SELECT sum(text) FROM numbers"),
    ("42883", "SELECT abs('a', 'b')"),
    // Types.
    ("42804", "SELECT n + text FROM (SELECT [1] AS n, 'a' AS text)"),
    ("42803", "SELECT n, count(*) FROM numbers"),
    ("42803", "SELECT n FROM numbers GROUP BY text"),
    ("42803", "SELECT n FROM numbers WHERE sum(n) > 1"),
    // Values.
    ("22012", "SELECT 1 / 0"),
    ("22012", "SELECT n / (n - n) FROM numbers"),
    ("22012", "SELECT n % (n - n) FROM numbers"),
    ("22003", "SELECT CAST(300 AS TINYINT)"),
    ("22003", "SELECT CAST(n * 1000000 AS INT) FROM numbers"),
    ("22003", "SELECT CAST(12345.6 AS DECIMAL(3, 1))"),
    ("22003", "SELECT 9223372036854775807 + 1"),
    ("22003", "SELECT -9223372036854775808 - 1"),
    ("22003", "SELECT 4611686018427387904 * 2"),
    ("22003", "SELECT -(n - 9223372036854775807 - 2) FROM numbers WHERE n = 1"),
    ("22003", "SELECT -9223372036854775808 / -1"),
    ("22003", "SELECT n + 9223372036854775807 FROM numbers WHERE n = 1"),
    ("22003", "SELECT a + 1 FROM (SELECT 9223372036854775807 AS a) AS t"),
    ("22003", "SELECT n FROM numbers WHERE n + 9223372036854775800 < 0"),
    ("22003", "SELECT sum(n + 9223372036854775700) FROM numbers"),
    ("22003", "SELECT sum(a) FROM (VALUES (9223372036854775807), (1)) AS t (a)"),
    ("22003", "SELECT sum(a) OVER (ORDER BY a) FROM (VALUES (9223372036854775807), (1)) AS t (a)"),
    (
        "22003",
        "SELECT sum(a) OVER (ORDER BY a ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM (VALUES \
         (9223372036854775807), (1)) AS t (a)",
    ),
    (
        "22003",
        "SELECT sum(DISTINCT a), count(DISTINCT b) FROM (VALUES (9223372036854775807, 1), (1, 2)) \
         AS t (a, b)",
    ),
    ("22003", "SELECT abs(-9223372036854775808)"),
    ("22003", "SELECT CAST(127 AS TINYINT) + CAST(1 AS TINYINT)"),
    ("22003", "SELECT CAST(2147483647 AS INT) * CAST(2 AS INT)"),
    ("22003", "SELECT CAST(0 AS INT UNSIGNED) - CAST(1 AS INT UNSIGNED)"),
    ("22003", "SELECT CAST('99999999999999999999999999999999999999' AS DECIMAL(38, 0)) + 1"),
    (
        "22003",
        "SELECT sum(a) FROM (SELECT CAST('99999999999999999999999999999999999999' AS DECIMAL(38, \
         0)) AS a FROM numbers) AS t",
    ),
    ("22003", "SELECT 1 << 64"),
    ("22003", "SELECT 1 >> -1"),
    ("22003", "SELECT CAST(1e19 AS BIGINT)"),
    ("22003", "SELECT CAST('NaN'::DOUBLE AS BIGINT)"),
    ("22003", "SELECT CAST(9223372036854775807 AS INT)"),
    ("22003", "SELECT CAST(-1 AS BIGINT UNSIGNED)"),
    ("22003", "SELECT factorial(21)"),
    ("22003", "SELECT lcm(9223372036854775807, 9223372036854775806)"),
    ("22008", "SELECT DATE '9999-12-31' + INTERVAL '300000 years'"),
    ("22008", "SELECT CAST(9223372036854775807 AS TIMESTAMP)"),
    ("22008", "SELECT to_timestamp(9223372036854775807)"),
    ("22P02", "SELECT CAST('abc' AS INT)"),
    ("22P02", "SELECT CAST(text AS INT) FROM numbers"),
    ("22P02", "SELECT CAST('maybe' AS BOOLEAN)"),
    ("22007", "SELECT DATE 'yesterday'"),
    ("22007", "SELECT CAST(text AS TIMESTAMP) FROM numbers"),
    ("22007", "SELECT TIMESTAMP '2024-13-01'"),
    ("22007", "SELECT INTERVAL 'soon'"),
    ("2201B", "SELECT regexp_replace(text, '(', '') FROM numbers"),
    ("2201B", "SELECT * FROM numbers WHERE text ~ '['"),
    ("21000", "SELECT (SELECT n FROM numbers)"),
    ("22025", "SELECT 'a' LIKE 'a!' ESCAPE '!'"),
    // Unsupported statements.
    ("25006", "CREATE TABLE t (a INT)"),
    ("25006", "DROP TABLE numbers"),
    ("25006", "INSERT INTO numbers VALUES (1, 'a')"),
    ("25006", "DELETE FROM numbers"),
    ("25006", "COPY numbers TO '/tmp/x.csv'"),
    ("0A000", "SET datafusion.execution.batch_size = 1"),
    (
        "0A000",
        "SELECT * FROM numbers a, LATERAL (SELECT a.n + count(*) FROM numbers b WHERE b.n < a.n \
         LIMIT 1) c",
    ),
    ("0A000", "SELECT n FROM numbers WHERE text SIMILAR TO 'a' ESCAPE 'x'"),
    // Parameters.
    ("07001", "SELECT $1"),
    ("07001", "SELECT * FROM numbers WHERE n = $1 AND text = $2"),
    // Memory.
    ("53200", "SELECT range(0, 2000000000)"),
    ("53200", "SELECT rpad(text, 2000000000) FROM numbers"),
    ("53200", "SELECT array_agg(repeat(text, 2000)) FROM numbers"),
    // Functions that fail.
    ("XX000", "SELECT fail_at(n, 5) FROM numbers"),
];

fn failed(connection: &mut Connection, sql: &str) -> Option<Error> {
    match connection.query(sql, &QueryOptions::default()) {
        Err(error) => Some(error),
        Ok(mut results) => results.read_all().err(),
    }
}

/// What is wrong with a message, if anything.
fn flaw(text: &str) -> Option<&'static str> {
    let low = text.to_lowercase();
    let has = |part: &str| low.contains(part);
    match () {
        () if has("datafusion") => Some("the engine's name"),
        () if has("arrow error") || has("arrow_") || has("primitivearray") => {
            Some("Arrow's internals")
        }
        () if low.replacen("syntax error", "", 1).contains(" error: ") || has("caused by") => {
            Some("a prefix")
        }
        () if has(" { ") || has("some(") || has("none)") || has("field {") => {
            Some("a structure's dump")
        }
        () if has("/root") || has("/tmp") || has("/home") || has(".rs:") || has("file://") => {
            Some("a path")
        }
        () if has("backtrace") || has("github.com") || has("bug") => Some("words for developers"),
        () if text.contains('\n') => Some("several lines"),
        () if text.starts_with(|c: char| c.is_ascii_uppercase())
            && text.chars().nth(1).is_some_and(|c| c.is_ascii_lowercase()) =>
        {
            Some("a capital at the beginning")
        }
        () if text.ends_with('.') => Some("a full stop"),
        () => None,
    }
}

#[test]
fn failing_statements_say_why() {
    let server = Running::start_with(|options| options.catalog.memory_bytes = Some(256 << 20));
    let mut connection = server.connect();
    let mut wrong = Vec::new();
    for (sqlstate, sql) in FAILING {
        let Some(error) = failed(&mut connection, sql) else {
            wrong.push(format!("{sql}\n    did not fail"));
            continue;
        };
        let found = error.sqlstate().unwrap_or("none").to_owned();
        let (text, kind) = (error.message().to_owned(), error.kind());
        if found != *sqlstate {
            wrong.push(format!("{sql}\n    {found} instead of {sqlstate}: {kind:?}: {text}"));
        }
        if let Some(flaw) = flaw(&text).or_else(|| flaw(error.hint().unwrap_or_default())) {
            wrong.push(format!("{sql}\n    has {flaw}: {text:?} {:?}", error.hint()));
        }
        if kind == ErrorKind::Internal {
            wrong.push(format!("{sql}\n    is taken for a defect: {text}"));
        }
        if let Ok(file) = std::env::var("DRAY_TEST_MESSAGES") {
            use std::io::Write;
            let mut file =
                std::fs::OpenOptions::new().append(true).create(true).open(file).unwrap();
            writeln!(file, "{found} {kind:?} | {sql}\n    {text} | {:?}", error.hint()).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), FAILING.len(), wrong.join("\n"));
}

/// SQL that the engine alone would not support.
#[test]
fn sql_as_others_have_it() {
    let server = Running::start();
    let mut connection = server.connect();
    let mut count = |sql: &str| {
        let batches = connection
            .query(sql, &QueryOptions::default())
            .and_then(|mut results| results.read_all());
        batches
            .unwrap_or_else(|error| panic!("{sql}: {error}"))
            .iter()
            .map(|batch| batch.num_rows())
            .sum::<usize>()
    };
    for sql in [
        "SELECT TIMESTAMP '9999-12-31 23:59:59.999999'",
        "SELECT 1 WHERE TIMESTAMP '0001-01-01' < TIMESTAMP '9999-12-31'",
        "SELECT CAST('1066-10-14' AS TIMESTAMP)",
        "SELECT 1 WHERE CAST(86400 AS TIMESTAMP) = TIMESTAMP '1970-01-02'",
        "SELECT 1 WHERE '100%' LIKE '%!%' ESCAPE '!' AND 'a' NOT LIKE '!%' ESCAPE '!'",
        "SELECT 1 WHERE 'A_b' ILIKE 'a#_B' ESCAPE '#' AND NOT 'Axb' ILIKE 'a#_B' ESCAPE '#'",
        "SELECT 1 WHERE sign(-5) = -1 AND ceiling(1.5) = 2",
        "SELECT 1 WHERE (true IS DISTINCT FROM true OR true) AND 2 ^ 3 ^ 2 = 64 AND -2 ^ 2 = 4 AND \
         1 | 2 & 2 = 2",
        "SELECT 1 WHERE 1 NOTNULL AND NOT 1 ISNULL AND NOT EXISTS (SELECT 1 WHERE false)",
        "SELECT 1 WHERE '1' || 1 + 2 = '13' AND 'abc' LIKE 'a%' = true",
        "SELECT 1 WHERE 12345678901234567890123 - 12345678901234567890122 = 1 AND \
         -9223372036854775809 + 1 = -9223372036854775808",
        "SELECT 1 WHERE 'abc' SIMILAR TO 'a(b|x)_' AND 'abc' NOT SIMILAR TO 'b' AND 'a.c' SIMILAR \
         TO 'a.%'",
        "SELECT 1 WHERE CAST(1.5 AS INT) = 2 AND CAST(2.5 AS INT) = 2 AND CAST(-0.6 AS BIGINT) = \
         -1 AND TRY_CAST(1.7 AS INT) = 2",
        "SELECT 1 WHERE CAST(CAST(2.5 AS DECIMAL(5, 2)) AS INT) = 3 AND CAST(CAST(-1.49 AS \
         DECIMAL(5, 2)) AS INT) = -1",
        "SELECT 1 WHERE DATE '2020-01-01' + INTERVAL '1 hour' = TIMESTAMP '2020-01-01 01:00:00'",
        "SELECT 1 WHERE INTERVAL '25 hours' + DATE '2020-01-01' > DATE '2020-01-02'",
        "SELECT 1 FROM (SELECT DATE '2020-01-01' AS d) AS t WHERE d - INTERVAL '1 second' < d",
        "SELECT 1 WHERE arrow_typeof(DATE '2020-01-01' + INTERVAL '1 day') = 'Date32'",
        "SELECT 1 WHERE TIMESTAMP '2020-01-01 00:00:00.1234567' = TIMESTAMP '2020-01-01 \
         00:00:00.123457'",
        "SELECT 1 WHERE TIMESTAMP '2019-12-31 23:59:59.9999999999' = TIMESTAMP '2020-01-01'",
        // Columns without NULLs.
        "SELECT a FROM (SELECT value + 1 AS a, value * value AS b FROM generate_series(1, 3)) AS t \
         WHERE a + b = 3",
        "SELECT count(*) FROM generate_series(1, 9) GROUP BY value - value ORDER BY value - value",
        "SELECT 1 WHERE arrow_cast(127, 'Int8') = 127 AND arrow_typeof(arrow_cast(1, 'Int8')) = \
         'Int8'",
        "SELECT 1 WHERE -9223372036854775808 % -1 = 0 AND 9223372036854775807 - 1 + 1 = \
         9223372036854775807",
        "SELECT sum(a) FROM (VALUES (9223372036854775807), (1), (-1)) AS t (a) HAVING sum(a) = \
         9223372036854775807",
        "SELECT n, n, count(*), count(*) FROM numbers WHERE n = 1 GROUP BY n",
        "SELECT *, n FROM numbers ORDER BY n LIMIT 1",
    ] {
        assert_eq!(count(sql), 1, "{sql}");
    }
}

#[test]
fn columns_of_one_name_keep_it() {
    let server = Running::start();
    let mut connection = server.connect();
    let mut results = connection
        .query("SELECT n, n, text AS \"N\", 1 AS n FROM numbers LIMIT 1", &QueryOptions::default())
        .unwrap();
    let batches = results.read_all().unwrap();
    let names: Vec<_> =
        batches[0].schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["n", "n", "N", "n"]);
}
