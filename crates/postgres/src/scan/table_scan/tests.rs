use super::*;

#[test]
fn statements_that_are_table_scans() {
    let scan = TableScan::parse(
        "SELECT a, lower(b) FROM s.\"T x\" AS t WHERE a > 5 OR b IN ('x') -- yes",
        false,
    )
    .unwrap();
    assert_eq!((scan.table.as_str(), scan.qualifier.as_str()), ("s.\"T x\"", "t"));
    assert_eq!(scan.references.functions.iter().collect::<Vec<_>>(), ["lower"]);
    assert_eq!(
        scan.block_range(0, Some(8)),
        "SELECT a, lower(b) FROM s.\"T x\" AS t\nWHERE t.ctid OPERATOR(pg_catalog.>=) \
             '(0,0)'::pg_catalog.tid AND \
         t.ctid OPERATOR(pg_catalog.<) \
         '(8,0)'::pg_catalog.tid AND ( a > 5 OR b IN ('x')\n)"
    );
    let scan = TableScan::parse("select * from lineitem;", false).unwrap();
    assert_eq!(
        scan.block_range(3, None),
        "select * from lineitem\nWHERE lineitem.ctid OPERATOR(pg_catalog.>=) \
             '(3,0)'::pg_catalog.tid"
    );
    let scan = TableScan {
        only: true,
        ..TableScan::parse("SELECT a FROM /* b */ s . \"T x\" t", false).unwrap()
    };
    assert!(
        scan.block_range(3, None)
            .starts_with("SELECT a FROM /* b */ ONLY s . \"T x\" t\nWHERE t.ctid ")
    );
    for sql in [
        "SELECT a::text, CAST(b AS numeric(9, 2)), c::pg_catalog.int4 FROM t",
        "SELECT 1 FROM t WHERE a > '2024-01-01'::date \
             AND b < CAST('2024-01-01' AS timestamptz)",
        "SELECT a::varchar(5)[], NULL::date, '{2024-01-01}' :: date[] FROM t",
        "SELECT CAST(CAST(a AS text) AS json), a[1::int:2] FROM t",
    ] {
        assert!(TableScan::parse(sql, false).is_ok(), "{sql}");
    }
    let scan = TableScan::parse(
        "SELECT daterange(a, f(b)), tsrange(c), t.d, g(ARRAY[a, b]), h() FROM t",
        false,
    )
    .unwrap();
    assert_eq!(scan.references.casts.iter().collect::<Vec<_>>(), ["d", "f", "g", "h", "tsrange"]);
    let dates = |sql: &str| {
        TableScan::parse(sql, false)
            .map(|scan| scan.references.dates.into_iter().collect::<Vec<_>>())
    };
    assert_eq!(
        dates("SELECT a::date, t.B::time, CAST(c AS date) FROM t"),
        Ok(vec!["a".into(), "b".into(), "c".into()])
    );
    assert_eq!(
        dates("SELECT cast(t.\"D\" AS timestamptz), -e::mine.int4 FROM t"),
        Ok(vec!["D".into(), "e".into()])
    );
    assert_eq!(dates("SELECT a::text, CAST('2024-01-01' AS date) FROM t"), Ok(vec![]));
    let names = |sql: &str| {
        TableScan::parse(sql, false).unwrap().references.functions.into_iter().collect::<Vec<_>>()
    };
    // Only the server can tell a column from a function of the same name.
    assert_eq!(names("SELECT t.a, (t).\"B\"\"\" FROM s.t WHERE t . C > 1"), ["B\"", "a", "c"]);
    assert_eq!(names("SELECT \"\"\"F\"(a), LOWER(\"ö\") FROM s.t"), ["\"F", "lower"]);
    for sql in [
        "SELECT a FROM t WHERE b = 'knows nowhere' AND c = E'it''s'",
        "SELECT \"now\" FROM t",
        "SELECT a FROM t WHERE b = 'now or never'::text AND c = E'\\\\'::text",
        "SELECT a FROM t WHERE b LIKE E'%today\\\\%'::text ESCAPE '!' OR b IN ('now'::bpchar)",
        "SELECT a, (b IS DISTINCT FROM c) FROM t WHERE (a IS NOT DISTINCT FROM 5)",
    ] {
        assert!(TableScan::parse(sql, false).is_ok(), "{sql}");
    }
    let extract = TableScan::parse("SELECT extract(year FROM d) FROM t", false).unwrap();
    assert_eq!(extract.references.functions.iter().collect::<Vec<_>>(), ["extract"]);
}

#[test]
fn statements_around_a_table_scan() {
    let range_of_t = "WHERE t.ctid OPERATOR(pg_catalog.>=) '(3,0)'::pg_catalog.tid";
    let scan = TableScan::parse(
        "SELECT \"a\" FROM (SELECT * FROM s.t -- all\n) AS q WHERE (\"a\" > 5) -- few",
        false,
    )
    .unwrap();
    assert_eq!((scan.table.as_str(), scan.qualifier.as_str()), ("s.t", "t"));
    assert_eq!(
        scan.block_range(3, None),
        format!("SELECT \"a\" FROM (SELECT * FROM s.t\n{range_of_t}\n) AS q WHERE (\"a\" > 5)")
    );
    assert!(scan.references.computes);
    // What all levels refer to.
    let scan = TableScan::parse(
        "SELECT f(x) FROM (SELECT g(a) AS x, c FROM t WHERE h(b) OR c) q WHERE i(c)",
        false,
    )
    .unwrap();
    assert_eq!(scan.references.functions.iter().collect::<Vec<_>>(), ["f", "g", "h", "i"]);
    assert_eq!(
        scan.block_range(3, None),
        format!(
            "SELECT f(x) FROM (SELECT g(a) AS x, c FROM t\n{range_of_t} AND ( h(b) OR c\n)\n) \
             q WHERE i(c)"
        )
    );
    let scan = TableScan {
        only: true,
        ..TableScan::parse(
            "SELECT b FROM (SELECT * FROM (SELECT a AS b FROM t WHERE a) x\n) AS q WHERE b",
            false,
        )
        .unwrap()
    };
    assert_eq!(
        scan.block_range(3, None),
        format!(
            "SELECT b FROM (SELECT * FROM (SELECT a AS b FROM ONLY t\n{range_of_t} AND ( a\n)\n\
             ) x\n) AS q WHERE b"
        )
    );
    let sql = "SELECT g, count(*) FROM (SELECT a % 5 AS g FROM t) q WHERE g > 1 GROUP BY g";
    let scan = TableScan::parse_aggregate(sql, false).unwrap();
    assert!(scan.aggregates && TableScan::parse(sql, false).is_err());
    assert_eq!(
        scan.block_range(3, None),
        format!(
            "SELECT g, count(*) FROM (SELECT a % 5 AS g FROM t\n{range_of_t}\n) q WHERE g > 1 \
             GROUP BY g"
        )
    );
    // The server tells the types of the table's own columns.
    let dates = |sql: &str| TableScan::parse(sql, false).map(|scan| scan.references.dates);
    for list in ["*", "a::date AS b, d"] {
        let sql = format!("SELECT 1 FROM (SELECT {list} FROM t WHERE d::date > '2020-1-1') q");
        assert!(dates(&sql).unwrap().contains("d"), "{sql}");
    }
    let sql = "SELECT c::date FROM (SELECT * FROM t WHERE d::date > '2020-1-1') q";
    assert_eq!(dates(sql).unwrap().into_iter().collect::<Vec<_>>(), ["c", "d"]);
}

#[test]
fn statements_around_others() {
    for sql in [
        "SELECT a FROM (SELECT a FROM t LIMIT 5) q",
        "SELECT a FROM (SELECT a FROM t OFFSET 5) q",
        "SELECT a FROM (SELECT a FROM t ORDER BY a) q",
        "SELECT a FROM (SELECT DISTINCT a FROM t) q",
        "SELECT a FROM (SELECT a FROM t GROUP BY a) q",
        "SELECT a FROM (SELECT sum(a) OVER () AS a FROM t) q",
        "SELECT a FROM (SELECT a FROM t FOR UPDATE) q",
        "SELECT a FROM (SELECT a FROM t UNION ALL SELECT a FROM t) q",
        "SELECT a FROM (SELECT a FROM t) q UNION ALL SELECT 1",
        "SELECT a FROM (SELECT t.a FROM t JOIN u ON true) q",
        "SELECT a FROM (SELECT a FROM t, u) q",
        "SELECT a FROM (SELECT a FROM ONLY t) q",
        "SELECT a FROM (SELECT a FROM t WHERE a IN (SELECT 1)) q",
        "SELECT a FROM (SELECT a FROM t WHERE a = $1) q",
        "SELECT a FROM (SELECT a FROM t WHERE d < 'now') q",
        "SELECT a FROM (SELECT current_date AS a FROM t) q",
        "SELECT a FROM (SELECT a FROM t) q WHERE a < 'now'",
        "SELECT a, current_user FROM (SELECT a FROM t) q",
        "SELECT a FROM (SELECT a FROM t) q LIMIT 5",
        "SELECT a FROM (SELECT a FROM t) q ORDER BY a",
        "SELECT a FROM (SELECT a FROM t) q GROUP BY a",
        "SELECT DISTINCT a FROM (SELECT a FROM t) q",
        "SELECT a FROM (SELECT a FROM t) q, u",
        "SELECT a FROM (SELECT a FROM t) q JOIN u ON true",
        "SELECT a FROM u, (SELECT a FROM t) q",
        "SELECT a FROM (SELECT a FROM t) q, (SELECT b FROM t) r",
        "SELECT a FROM LATERAL (SELECT a FROM t) q",
        "SELECT a FROM (SELECT a FROM t) q (a)",
        "SELECT a FROM (SELECT a FROM t)",
        "SELECT a FROM ((SELECT a FROM t)) q",
        "SELECT a FROM (TABLE t) q",
        "SELECT a FROM (VALUES (1)) q",
        "SELECT a FROM (SELECT 1 AS a) q",
        "SELECT a FROM (SELECT a FROM t; SELECT 1) q",
        "SELECT a FROM (SELECT a FROM f(1)) q",
        "SELECT a, (SELECT 1) FROM (SELECT a FROM t) q",
        "SELECT a FROM (SELECT a FROM t) q WHERE a IN (SELECT 1 FROM u)",
        "SELECT a FROM (SELECT * FROM (SELECT * FROM (SELECT a FROM t) x) y) z",
        // What the column is that the name belongs to is not known.
        "SELECT d::date FROM (SELECT a AS d FROM t) q",
        "SELECT d::date FROM (SELECT *, a AS d FROM t) q",
        "SELECT d::date FROM (SELECT d FROM t) q",
        "SELECT CAST(d AS date) FROM (SELECT * FROM (SELECT a AS d FROM t) x) q",
        "SELECT a FROM (SELECT lower(a)::date AS a FROM t) q",
    ] {
        assert!(TableScan::parse(sql, false).is_err(), "{sql}");
    }
    for sql in [
        "SELECT sum(n) FROM (SELECT count(*) AS n FROM t GROUP BY a) q",
        "SELECT count(*) FROM (SELECT a FROM t LIMIT 5) q",
        "SELECT count(*) FROM (SELECT a FROM t) q HAVING true",
    ] {
        assert!(TableScan::parse_aggregate(sql, false).is_err(), "{sql}");
    }
    // Of these, the server tells that they aggregate or return sets.
    for (sql, name) in [
        ("SELECT n FROM (SELECT count(*) AS n FROM t) q", "count"),
        ("SELECT a FROM (SELECT unnest(a) AS a FROM t) q", "unnest"),
    ] {
        let names = TableScan::parse(sql, false).unwrap().references.functions;
        assert!(names.contains(name), "{sql}");
    }
    let sql = "SELECT max(n) FROM (SELECT count(*) AS n FROM t) q";
    let references = TableScan::parse_aggregate(sql, false).unwrap().references;
    assert!(references.functions.contains("count") && !references.aggregates.contains("count"));
    let deep = "SELECT a FROM (".repeat(10_000) + "t" + &")".repeat(10_000);
    assert!(TableScan::parse(&deep, false).is_err());
}

#[test]
fn statements_that_are_not() {
    for sql in [
        "SELECT 1",
        "SELECT * FROM a, b",
        "SELECT * FROM a JOIN b ON true",
        "SELECT * FROM f(1)",
        "SELECT * FROM (SELECT 1) x",
        "SELECT DISTINCT a FROM t",
        "SELECT a FROM t LIMIT 5",
        "SELECT a FROM t ORDER BY a",
        "SELECT a FROM t FOR UPDATE",
        "SELECT a FROM t UNION ALL SELECT b FROM u",
        "SELECT a FROM t WHERE a IN (SELECT b FROM u)",
        "SELECT a FROM t WHERE a IN (TABLE u)",
        "SELECT sum(a) OVER () FROM t",
        "SELECT a FROM t GROUP BY a",
        "SELECT a FROM t TABLESAMPLE SYSTEM (1)",
        "SELECT a FROM ONLY t",
        "SELECT a FROM t AS t (b)",
        "SELECT a, current_date FROM t",
        "SELECT a FROM t WHERE d = 'today'",
        "SELECT a FROM t WHERE d = ' Today 12:00'",
        "SELECT a FROM t WHERE d = E'now'",
        "SELECT a FROM t WHERE d = E'n\\o\\x77'",
        "SELECT a FROM t WHERE d = 'no'\n'w'",
        "SELECT a FROM t WHERE d = $$NOW$$",
        "SELECT a FROM t WHERE d = $_$tomorrow$_$",
        "SELECT a FROM t WHERE r && '[yesterday,)'",
        "SELECT a FROM t WHERE d = 'now'::text::date",
        "SELECT a FROM t WHERE d = ('now'::text)::date",
        "SELECT a FROM t WHERE d = ('now'::text || '')::date",
        "SELECT a FROM t WHERE d = CAST('now'::text AS date)",
        "SELECT a FROM t WHERE d = ('{now}'::text[]::date[])[1]",
        "SELECT a FROM t WHERE d = 'now'::text.moment",
        "SELECT a FROM t WHERE d = E'\\\\now'::mine.text",
        "SELECT a FROM t WHERE d = 'now'::date",
        "SELECT a FROM t WHERE a IS DISTINCT FROM 5",
        "SELECT a FROM t WHERE (a DISTINCT FROM 5)",
        "SELECT f(DISTINCT a) FROM t",
        "SELECT U&\"f\"(a) FROM t",
        "SELECT a FROM t WHERE d = u&'no\\0077'",
        "SELECT Ärger(a) FROM t",
        "SELECT t.größe FROM t",
        "SELECT f(a)::date, (a)::date FROM t",
        "SELECT a COLLATE b :: date FROM t",
        "SELECT CASE WHEN a THEN b ELSE c END::date FROM t",
        "SELECT (t).a::date, s.t.a::date FROM t",
        "SELECT s.t.a::date FROM t",
        "SELECT a[1]::date, f(a)::date FROM t",
        "SELECT a::text::timestamp FROM t",
        "SELECT ('to' || 'day')::timestamp FROM t",
        "SELECT lower(a)::\"date\"[] FROM t",
        "SELECT lower(a)::regclass, lower(a)::mine.text FROM t",
        "SELECT CAST(-a AS timestamptz) FROM t",
        "SELECT CAST(a + b AS timestamptz) FROM t",
        "SELECT CAST(a || t.b AS timestamptz) FROM t",
        "SELECT cast ( (a || b) AS pg_catalog.date ) FROM t",
        "SELECT CAST('a' || b AS time) FROM t",
        "SELECT JSON_VALUE(a, '$' RETURNING date) FROM t",
        "SELECT a FROM t WHERE a = $1",
        "WITH x AS (SELECT 1) SELECT * FROM x",
        "INSERT INTO t VALUES (1)",
        "TABLE t",
        "SELECT a FROM t; SELECT 1",
    ] {
        assert!(TableScan::parse(sql, false).is_err(), "{sql}");
    }
}
