use super::*;

fn scan(sql: &str) -> TableScan {
    TableScan::parse(sql, true).unwrap()
}

fn key(column: &str) -> Key {
    Key { index: "PRIMARY".to_owned(), column: column.to_owned() }
}

#[test]
fn statements_that_are_table_scans() {
    let read = scan("SELECT a, lower(b) x FROM s.`T ``x` AS t WHERE a > 5 OR b IN ('x;') -- yes");
    assert_eq!(read.table, "s.`T ``x`");
    assert_eq!(read.names, (Some("s".to_owned()), "T `x".to_owned()));
    assert_eq!(
        read.key_range(&key("`id`"), Some("3"), Some("8")),
        "SELECT a, lower(b) x FROM s.`T ``x` AS t FORCE INDEX (PRIMARY) WHERE t.`id` >= 3 AND \
         t.`id` < 8 AND ( a > 5 OR b IN ('x;'))"
    );
    assert_eq!(
        read.count_range(&key("`id`"), None, Some("8")),
        "SELECT 1 FROM s.`T ``x` FORCE INDEX (PRIMARY) WHERE s.`T ``x`.`id` < 8"
    );
    let read = scan("select * from lineitem;  ");
    assert_eq!(read.names, (None, "lineitem".to_owned()));
    assert_eq!(
        read.key_range(&key("k"), None, None),
        "select * from lineitem FORCE INDEX (PRIMARY)"
    );
    assert_eq!(
        read.key_range(&key("k"), Some("'a'"), None),
        "select * from lineitem FORCE INDEX (PRIMARY) WHERE lineitem.k >= 'a'"
    );
    let other = Key { index: "`by k`".to_owned(), column: "`k`".to_owned() };
    let filtered = scan("SELECT a FROM t AS x WHERE b = 1 OR c = 2");
    assert_eq!(
        filtered.key_range(&other, None, Some("3")),
        "SELECT a FROM t AS x FORCE INDEX (`by k`) WHERE x.`k` < 3 AND ( b = 1 OR c = 2)"
    );
    assert_eq!(
        filtered.without_key(&other),
        "SELECT a FROM t AS x FORCE INDEX (`by k`) WHERE x.`k` IS NULL AND ( b = 1 OR c = 2)"
    );
    assert_eq!(
        filtered.in_order(&["`k`".to_owned(), "`l` DESC".to_owned()]),
        "SELECT a FROM t AS x WHERE ( b = 1 OR c = 2) ORDER BY x.`k`, x.`l` DESC"
    );
    assert_eq!(
        scan("SELECT b AS k FROM s.t -- all").in_order(&["`k`".to_owned()]),
        "SELECT b AS k FROM s.t ORDER BY t.`k`"
    );
    for sql in [
        "SELECT a FROM t # a comment; and more",
        "SELECT a FROM t /* FOR UPDATE */ WHERE b = 1",
        "SELECT (a + b) * 2, -c FROM t WHERE NOT (a = 1) AND (b, c) IN ((1, 2))",
        "SELECT CAST(a AS DECIMAL(9, 2)), CONVERT(b, CHAR(5)) FROM t",
        "SELECT CASE WHEN (a > 1) THEN 'x' ELSE (b) END FROM t",
        "SELECT a FROM t WHERE d > DATE '2024-01-01' AND d < '2025-01-01' + INTERVAL 1 DAY",
        "SELECT t.user, t.`order`, `limit` FROM t",
        "SELECT t.limit, `t` . `limit` FROM t WHERE t.limit > 1. AND t.limit > 1.e5",
        "SELECT a FROM t WHERE b = 'it\\'s; SELECT' AND c LIKE 'x%'",
        "SELECT SUBSTRING(a, 1, 2), IF(b IS NULL, 0, b) FROM t",
    ] {
        assert!(TableScan::parse(sql, true).is_ok(), "{sql}: {:?}", TableScan::parse(sql, true));
    }
}

#[test]
fn statements_that_are_not() {
    for sql in [
        "SELECT 1",
        "SELECT * FROM a, b",
        "SELECT * FROM a JOIN b ON true",
        "SELECT * FROM a LEFT JOIN b ON true",
        "SELECT * FROM (SELECT 1) x",
        "SELECT * FROM (t)",
        "SELECT DISTINCT a FROM t",
        "SELECT a FROM t LIMIT 5",
        "SELECT a FROM t WHERE a > 1. LIMIT 5",
        "SELECT a FROM t WHERE a > 1.ORDER BY a",
        "SELECT a FROM t ORDER BY a",
        "SELECT a FROM t FOR UPDATE",
        "SELECT a FROM t LOCK IN SHARE MODE",
        "SELECT a FROM t UNION ALL SELECT b FROM u",
        "SELECT a FROM t WHERE a IN (SELECT b FROM u)",
        "SELECT a FROM t GROUP BY a",
        "SELECT a FROM t PARTITION (p0)",
        "SELECT a FROM t USE INDEX (x)",
        "SELECT a FROM t FOR SYSTEM_TIME ALL",
        "SELECT a INTO OUTFILE '/x' FROM t",
        "SELECT a FROM t INTO @x",
        "SELECT count(*) FROM t",
        "SELECT sum(a) OVER () FROM t",
        "SELECT rand() FROM t",
        "SELECT a FROM t WHERE b < now()",
        "SELECT a FROM t WHERE b < CURRENT_TIMESTAMP",
        "SELECT a FROM t WHERE b = current_user",
        "SELECT uuid(), a FROM t",
        "SELECT my_function(a) FROM t",
        "SELECT d.abs(a) FROM t",
        "SELECT `abs`(a) FROM t",
        "SELECT substr (a, 1) FROM t",
        "SELECT NEXT VALUE FOR s FROM t",
        "SELECT @x := a FROM t",
        "SELECT @@time_zone, a FROM t",
        "SELECT a FROM t WHERE a = ?",
        "SELECT a FROM t WHERE a = \"x\"",
        "SELECT a /*! , rand() */ FROM t",
        "SELECT a /*M! , rand() */ FROM t",
        "SELECT /*+ SET_VAR(sql_select_limit=10) */ a FROM t",
        "SELECT/*+ SET_VAR(sql_mode='ANSI_QUOTES') */a FROM t WHERE b = 'x'",
        "SELECT a FROM t; DELETE FROM t",
        "SELECT a FROM t WHERE b = 'x",
        "SELECT a FROM t AS u (b)",
        "SELECT a FROM x.y.t",
        "SELECT a FROM t WHERE",
        "WITH x AS (SELECT 1) SELECT * FROM x",
        "(SELECT a FROM t)",
        "INSERT INTO t VALUES (1)",
        "TABLE t",
        "",
    ] {
        assert!(TableScan::parse(sql, true).is_err(), "{sql}");
    }
    // Without escapes the string ends at its backslash.
    assert!(TableScan::parse("SELECT a FROM t WHERE b = '\\' OR now() > 'x'", false).is_err());
}

/// Those that one connection reads may have what other connections, or other ranges, see
/// differently.
#[test]
fn statements_for_an_order() {
    let in_order = |sql: &str| {
        let read = TableScan::parse_for_order(sql, true).unwrap();
        assert!(TableScan::parse(sql, true).is_err(), "{sql}");
        read.in_order(&["`k`".to_owned()])
    };
    for sql in [
        "SELECT rand(), now(), s.f(a), `f`(b), uuid () FROM t",
        "SELECT a, @v := @v + 1, @@version FROM t",
        "SELECT CURRENT_USER, a FROM t",
    ] {
        assert_eq!(in_order(sql), format!("{sql} ORDER BY t.`k`"));
    }
    for condition in ["a = ? AND b = \"it's\"", "MATCH (a) AGAINST (?)", "a < CURRENT_DATE"] {
        assert_eq!(
            in_order(&format!("SELECT a FROM t x WHERE {condition}")),
            format!("SELECT a FROM t x WHERE ( {condition}) ORDER BY x.`k`")
        );
    }
    for sql in [
        "SELECT count(*) FROM t",
        "SELECT MAX (a) FROM t WHERE b = ?",
        "SELECT DISTINCT a FROM t",
        "SELECT a FROM t WHERE b = ? LIMIT 5",
        "SELECT a FROM t WHERE b = ? FOR UPDATE",
        "SELECT a INTO @v FROM t",
        "SELECT a FROM t, u WHERE b = ?",
        "SELECT a FROM t WHERE a IN (SELECT b FROM u)",
        "SELECT a FROM \"t\"",
        "SELECT a FROM t; DELETE FROM t",
    ] {
        assert!(TableScan::parse_for_order(sql, true).is_err(), "{sql}");
    }
}

/// Statements of random pieces, some of them odd. Whatever is a scan stays one statement when it is
/// limited to a range, and no piece of it is lost.
#[test]
fn random_statements() {
    const PIECES: [&str; 32] = [
        "SELECT",
        "a",
        "*",
        "FROM",
        "t",
        "s.t",
        "AS",
        "WHERE",
        "(",
        ")",
        ",",
        "=",
        "'it''s'",
        "'\\'",
        "`x``y`",
        "\"q\"",
        "-- c\n",
        "--",
        "/* c */",
        "/*",
        "# c\n",
        "5e3",
        "größe",
        "ß",
        "'ß\\",
        ";",
        "?",
        "@",
        "AND",
        "abs(",
        "IN (",
        "\u{1f600}",
    ];
    let mut state = 1_u64;
    let mut next = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut scans = 0;
    for _ in 0..50_000 {
        let mut sql = String::from(if next(2) == 0 { "SELECT a FROM t WHERE " } else { "SELECT " });
        for _ in 0..next(7) {
            sql += PIECES[next(PIECES.len())];
            sql += [" ", ""][next(2)];
        }
        let escapes = next(2) == 0;
        let Ok(read) = TableScan::parse(&sql, escapes) else { continue };
        scans += 1;
        let limited = read.key_range(&key("`k`"), Some("1"), Some("2"));
        let before = tokens(&sql, escapes).unwrap();
        let after = tokens(&limited, escapes).unwrap();
        let mut rest = after.iter().map(|token| token.text);
        for token in before.iter().filter(|token| token.text != ";") {
            assert!(rest.any(|text| text == token.text), "{sql} {limited}");
        }
    }
    assert!(scans > 500, "{scans}");
}
