//! Partial aggregates with a real PostgreSQL server: each part aggregates its own rows, and what
//! is not such an aggregate is never divided.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

#[path = "../../postgres/tests/common/server.rs"]
mod postgres_server;

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use dray_client::{
    ConnectOptions, Connection, Error, Part, Plan, PlanOptions, QueryOptions, Verdict,
};
use dray_wire::partition::{PartDescriptor, PartSource};
use postgres_server::Server;

/// `many` has groups in all parts, groups in one part, NULLs, and blocks without rows.
const TABLES: &str =
    "CREATE TABLE many (id int4 NOT NULL, third int4, own int4, x int8, text text);
    INSERT INTO many SELECT i, nullif(i % 3, 0), i / 20000, nullif(i % 7, 3) * i - 90000,
        repeat('x', i % 90) FROM generate_series(1, 60000) i;
    DELETE FROM many WHERE id BETWEEN 20000 AND 39999;
    CREATE TABLE parted (id int4, third int4, text text) PARTITION BY RANGE (id);
    CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (30000);
    CREATE TABLE high PARTITION OF parted FOR VALUES FROM (30000) TO (90000);
    INSERT INTO parted SELECT i, i % 3, repeat('y', 200) FROM generate_series(1, 60000) i;
    CREATE TABLE few (id int4);
    INSERT INTO few VALUES (1), (2), (3);
    CREATE VIEW seen AS SELECT * FROM many;
    CREATE FUNCTION plus(int4) RETURNS int4 IMMUTABLE LANGUAGE sql AS 'SELECT $1 + 1';
    CREATE FUNCTION dice(int4) RETURNS int4 VOLATILE LANGUAGE sql AS 'SELECT $1';
    CREATE AGGREGATE longest(text) (SFUNC = text_larger, STYPE = text);
    ANALYZE;";

fn connect(uri: &str) -> Connection {
    Connection::connect(uri, &ConnectOptions::default()).unwrap()
}

fn try_plan(uri: &str, sql: &str, partial: bool) -> Result<Plan, Error> {
    let options = PlanOptions { at_most: Some(4), partial, ..PlanOptions::default() };
    let query = QueryOptions::default();
    connect(uri).partitions(sql, &query, &options, &mut || Verdict::Continue)
}

fn plan(server: &Server, sql: &str) -> Plan {
    try_plan(&server.uri(), sql, true).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn read(descriptor: &[u8]) -> Result<(Vec<RecordBatch>, Vec<u8>), Error> {
    let part = Part::decode(descriptor)?;
    let mut connection = connect(part.uri());
    let mut results = connection.read_partition(&part, &QueryOptions::default())?;
    let batches = results.read_all()?;
    let receipt = results.receipt().expect("a receipt at the end");
    Ok((batches, receipt))
}

/// Rows of bigint columns.
type Rows = Vec<Vec<Option<i64>>>;

fn rows(batches: &[RecordBatch]) -> Rows {
    let mut rows = Vec::new();
    for batch in batches {
        for at in 0..batch.num_rows() {
            let value = |column: &std::sync::Arc<dyn Array>| {
                let values = column.as_primitive::<Int64Type>();
                values.is_valid(at).then(|| values.value(at))
            };
            rows.push(batch.columns().iter().map(value).collect());
        }
    }
    rows
}

/// What is made of a column of the parts.
#[derive(Clone, Copy)]
enum Column {
    Group,
    Sum,
    Least,
    Greatest,
}

impl Column {
    fn combine(self, one: Option<i64>, other: Option<i64>) -> Option<i64> {
        match (one, other) {
            (Some(one), Some(other)) => Some(match self {
                Self::Group => one,
                Self::Sum => one + other,
                Self::Least => one.min(other),
                Self::Greatest => one.max(other),
            }),
            _ => one.or(other),
        }
    }
}

/// The result that the parts have together, in the order of its groups.
fn combine(parts: &[Rows], columns: &[Column]) -> Rows {
    let groups = columns.iter().take_while(|column| matches!(column, Column::Group)).count();
    let mut combined = BTreeMap::<Vec<Option<i64>>, Vec<Option<i64>>>::new();
    for row in parts.iter().flatten() {
        let group = combined.entry(row[..groups].to_vec());
        let _ = group
            .and_modify(|found| {
                for ((found, value), column) in found.iter_mut().zip(row).zip(columns) {
                    *found = column.combine(*found, *value);
                }
            })
            .or_insert_with(|| row.clone());
    }
    combined.into_values().collect()
}

/// The server's own rows, NULLs first.
fn expected(server: &Server, sql: &str, groups: usize) -> Rows {
    let order = (1..=groups).map(|i| format!("{i} NULLS FIRST")).collect::<Vec<_>>().join(", ");
    let sql = if groups == 0 { sql.to_owned() } else { format!("{sql} ORDER BY {order}") };
    let value = |text: &str| (!text.is_empty()).then(|| text.parse().unwrap());
    server.sql(&sql).lines().map(|line| line.split('|').map(value).collect()).collect()
}

fn read_all(plan: &Plan) -> (Vec<Rows>, Vec<Vec<u8>>) {
    let read = plan.partitions().iter().map(|part| read(part).unwrap());
    read.map(|(batches, receipt)| (rows(&batches), receipt)).unzip()
}

const STATEMENTS: &[(&str, &[Column])] = {
    use Column::{Greatest, Group, Least, Sum};
    &[
        ("SELECT count(*) FROM many", &[Sum]),
        (
            "SELECT third::int8, count(*), count(x), CAST(sum(x) AS bigint), min(x), max(x)::int8 \
             FROM many GROUP BY third",
            &[Group, Sum, Sum, Sum, Least, Greatest],
        ),
        (
            "SELECT own::int8 AS own, plus(third)::int8 AS p, count(*) AS c FROM many AS m -- all\n\
             WHERE m.text LIKE 'x%' OR x IS NULL -- of them\nGROUP BY own, plus(third);",
            &[Group, Group, Sum],
        ),
        ("SELECT sum(id), max(x), count(*) FROM many WHERE id < 100", &[Sum, Greatest, Sum]),
        ("SELECT sum(id), max(x), count(x) FROM many WHERE id < 0", &[Sum, Greatest, Sum]),
        ("SELECT third::int8, max(x) FROM many WHERE id < 0 GROUP BY third", &[Group, Greatest]),
        ("SELECT third::int8 FROM many GROUP BY third", &[Group]),
        ("SELECT id::int8, sum(third) FROM parted GROUP BY id", &[Group, Sum]),
        (
            "SELECT third::int8, count(text), min(id)::int8 FROM parted GROUP BY third",
            &[Group, Sum, Least],
        ),
    ]
};

#[test]
fn parts_aggregate_their_own_rows() {
    let server = Server::start(&[], None);
    server.sql(TABLES);
    for (sql, columns) in STATEMENTS {
        let groups = columns.iter().filter(|column| matches!(column, Column::Group)).count();
        let before = expected(&server, sql.trim_end_matches(';'), groups);
        let plan = plan(&server, sql);
        assert_eq!((plan.partitions().len(), plan.reason()), (4, None), "{sql}");
        // Nobody sees what happens after the plan.
        server.sql(
            "INSERT INTO many SELECT 1, 7, 8, 9, 'x' FROM generate_series(1, 1000);
            UPDATE many SET x = x + 1, third = 5 WHERE id % 3 = 0; DELETE FROM many WHERE id < 50;
            UPDATE parted SET third = 4 WHERE id % 2 = 0; INSERT INTO parted VALUES (0, 9)",
        );
        let (parts, receipts) = read_all(&plan);
        assert_eq!(combine(&parts, columns), before, "{sql}");
        let travelled: usize = parts.iter().map(Vec::len).sum();
        if groups == 0 {
            assert_eq!(travelled, 4, "{sql}: one row of each part");
        }
        // The same part has the same rows each time.
        let (batches, again) = read(&plan.partitions()[2]).unwrap();
        assert_eq!(rows(&batches).len(), parts[2].len());
        assert_eq!(again[..48], receipts[2][..48], "{sql}");
        let proof = plan.verify(&receipts).unwrap();
        assert_eq!((proof.rows, proof.parts), (travelled as u64, 4), "{sql}");
    }
}

#[test]
fn only_groups_travel() {
    let server = Server::start(&[], None);
    server.sql(TABLES);
    let plan = plan(&server, "SELECT own::int8, count(*) FROM many GROUP BY own");
    let (parts, _) = read_all(&plan);
    // The rows were inserted in the order of `own`, and a third of them was deleted.
    let groups = parts.iter().map(|part| part.iter().map(|row| row[0].unwrap()).collect());
    let groups = groups.map(|mut own: Vec<_>| {
        own.sort_unstable();
        own
    });
    let groups = groups.collect::<Vec<_>>();
    assert!(groups[0] == [0] && groups[3].contains(&2), "{groups:?}");
    assert!(groups.iter().all(|own| own.len() <= 2), "{groups:?}");
    let by_ctid = "SELECT count(DISTINCT (own, (ctid::text::point)[0]::int8 * 4 / \
                   (pg_relation_size('many') / 8192))) FROM many";
    let travelled: usize = parts.iter().map(Vec::len).sum();
    let most: usize = server.sql(by_ctid).parse().unwrap();
    assert!(travelled.abs_diff(most) <= 1, "{travelled} rows, {most} groups of quarters");
}

/// What is no such aggregate is one part, with the statement's own rows, or an error.
#[test]
fn other_statements_are_not_divided() {
    let server = Server::start(&[], None);
    server.sql(TABLES);
    const FORM: &str = "it is no aggregate of one table";
    const MORE: &str = "it is more than the filtered rows";
    for (sql, reason) in [
        ("SELECT id FROM many", FORM),
        ("SELECT count(DISTINCT third) FROM many", MORE),
        ("SELECT DISTINCT third, count(*) FROM many GROUP BY third", MORE),
        ("SELECT count(*) FILTER (WHERE id > 5) FROM many", FORM),
        ("SELECT third, count(*) FROM many GROUP BY third ORDER BY third", MORE),
        ("SELECT third, count(*) FROM many GROUP BY third LIMIT 2", MORE),
        ("SELECT third, count(*) FROM many GROUP BY third OFFSET 1", MORE),
        ("SELECT third, count(*) FROM many GROUP BY third HAVING count(*) > 5", MORE),
        ("SELECT count(*) OVER (), id FROM many", MORE),
        ("SELECT count(*), sum(count(*)) OVER () FROM many GROUP BY third", MORE),
        ("SELECT third, own, count(*) FROM many GROUP BY ROLLUP (third, own)", FORM),
        ("SELECT third, own, count(*) FROM many GROUP BY CUBE (third, own)", FORM),
        ("SELECT third, count(*) FROM many GROUP BY GROUPING SETS ((third), ())", FORM),
        ("SELECT count(*) FROM many WHERE id IN (SELECT id FROM few)", MORE),
        ("SELECT count(*) FROM many WHERE id IN (TABLE few)", MORE),
        ("SELECT count(*) FROM many, few", "it does not read one table"),
        ("SELECT count(*) FROM (SELECT * FROM many LIMIT 5) m", "it"),
        ("SELECT count(*) FROM seen", "a view"),
        ("SELECT count(*) FROM few", "the table is small"),
        ("SELECT count(*) + 1 FROM many", FORM),
        ("SELECT sum(id) / count(*) FROM many", FORM),
        ("SELECT avg(id) FROM many", FORM),
        ("SELECT avg(id), count(*) FROM many", "it calls avg"),
        ("SELECT string_agg(text, ''), count(*) FROM many", "it calls string_agg"),
        ("SELECT longest(text), count(*) FROM many", "it calls longest"),
        ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id), count(*) FROM many", MORE),
        ("SELECT sum(dice(id)) FROM many", "it calls dice"),
        ("SELECT dice(third), count(*) FROM many GROUP BY dice(third)", "it calls dice"),
        ("SELECT count(*) FROM many WHERE dice(id) > 5", "it calls dice"),
        ("SELECT random() > 2, count(*) FROM many GROUP BY 1", "it calls random"),
        ("SELECT count(*), now() FROM many", "it calls now"),
        ("SELECT count(*), generate_series(1, 3) FROM many", "it calls generate_series"),
        ("SELECT count(*) FROM many TABLESAMPLE SYSTEM (100)", MORE),
        ("SELECT count(*) FROM ONLY many", "it reads ONLY a table"),
        ("SELECT count(*) FROM many UNION ALL SELECT 1", MORE),
        ("WITH m AS (SELECT * FROM many) SELECT count(*) FROM m", "not a plain SELECT"),
        ("VALUES (1)", "not a plain SELECT"),
    ] {
        let plan = plan(&server, sql);
        let why = plan.reason().unwrap_or_default();
        assert!(plan.partitions().len() == 1 && why.contains(reason), "{sql}: {why}");
        let (batches, receipt) = read(&plan.partitions()[0]).unwrap();
        let found: usize = batches.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(found, server.sql(sql).lines().count(), "{sql}");
        assert_eq!(plan.verify(&[receipt]).unwrap().rows, found as u64, "{sql}");
    }
    for sql in [
        "SELECT third, count(*) FROM many",
        "SELECT sum(sum(id)) FROM many",
        "SELECT count(*) FROM many WHERE count(*) > 1",
        "SELECT count(*) FROM many GROUP BY count(*)",
        "SELECT count(*) INTO u FROM many",
        "DELETE FROM many",
    ] {
        assert!(try_plan(&server.uri(), sql, true).is_err(), "{sql}");
    }
}

/// Nothing is inferred from the statement.
#[test]
fn aggregates_are_whole_unless_asked() {
    let server = Server::start(&[], None);
    server.sql(TABLES);
    for (sql, columns) in STATEMENTS {
        let plan = try_plan(&server.uri(), sql, false).unwrap();
        assert_eq!(plan.partitions().len(), 1, "{sql}");
        let groups = columns.iter().filter(|column| matches!(column, Column::Group)).count();
        let (parts, _) = read_all(&plan);
        let expected = expected(&server, sql.trim_end_matches(';'), groups);
        assert_eq!(combine(&parts, columns), expected, "{sql}");
        assert_eq!(parts[0].len(), expected.len(), "{sql}");
    }
}

/// Functions of the user's may have the names of aggregates.
#[test]
fn names_that_are_not_the_servers() {
    let server = Server::start(&[], None);
    server.sql(TABLES);
    server.sql(
        "CREATE SCHEMA mine;
        CREATE AGGREGATE mine.sum(int4) (SFUNC = int4larger, STYPE = int4);
        CREATE FUNCTION mine.max(int8, int8) RETURNS int8 IMMUTABLE LANGUAGE sql AS 'SELECT $1';",
    );
    let hidden = server.uri();
    let first = format!("{hidden}?options=-c%20search_path%3Dmine,pg_catalog,public");
    let last = format!("{hidden}?options=-c%20search_path%3Dpublic,mine");
    for (sql, name) in [
        ("SELECT sum(id) FROM many", "sum"),
        ("SELECT max(x) FROM many", "max"),
        ("SELECT mine.sum(id), count(*) FROM many", ""),
    ] {
        for uri in [&first, &last] {
            let plan = try_plan(uri, sql, true).unwrap();
            let why = plan.reason().unwrap_or_default();
            assert!(plan.partitions().len() == 1 && why.contains(name), "{sql}: {why}");
        }
    }
    for sql in ["SELECT sum(id) FROM many", "SELECT pg_catalog.max(x), count(*) FROM many"] {
        assert_eq!(plan(&server, sql).partitions().len(), 4, "{sql}");
    }
    let plan = try_plan(&first, "SELECT count(*) FROM many", true).unwrap();
    assert_eq!(plan.partitions().len(), 4);
}

/// An index can answer some aggregates by itself.
#[test]
fn an_index_is_quicker() {
    let server = Server::start(&[], None);
    server.sql(TABLES);
    server.sql("CREATE INDEX ON many (x); CREATE INDEX ON many (id)");
    server.sql("VACUUM ANALYZE many");
    for sql in ["SELECT max(x) FROM many", "SELECT count(*) FROM many WHERE id = 5"] {
        let plan = plan(&server, sql);
        assert!(plan.partitions().len() == 1 && plan.reason().unwrap().contains("index"), "{sql}");
    }
    let (sql, columns) = STATEMENTS[1];
    let plan = plan(&server, sql);
    assert_eq!(plan.partitions().len(), 4);
    assert_eq!(combine(&read_all(&plan).0, columns), expected(&server, sql, 1));
}

/// A reader does not take one kind of part for the other.
#[test]
fn descriptors_say_what_a_part_is() {
    let server = Server::start(&[], None);
    server.sql(TABLES);
    let changed = |descriptor: &[u8], partial: bool| {
        let mut part = PartDescriptor::decode(descriptor).unwrap();
        let PartSource::Postgres(of_table) = &mut part.source else { panic!("of PostgreSQL") };
        let range = of_table.range.as_mut().expect("a range");
        assert_ne!(range.partial, partial);
        range.partial = partial;
        part.encode().unwrap()
    };
    for sql in ["SELECT count(*) FROM many", "SELECT third, count(*) FROM many GROUP BY third"] {
        let plan = plan(&server, sql);
        let error = read(&changed(&plan.partitions()[0], false)).map(drop).unwrap_err();
        let what = error.to_string();
        assert!(
            what.contains("plans the part in another way") || what.contains("divide"),
            "{what}"
        );
    }
    let plan = try_plan(&server.uri(), "SELECT id FROM many", false).unwrap();
    let error = read(&changed(&plan.partitions()[0], true)).map(drop).unwrap_err();
    assert!(error.to_string().contains("does not divide the plan's statement"), "{error}");
}
