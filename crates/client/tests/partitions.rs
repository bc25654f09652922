//! Plans of partitions with a real PostgreSQL server: every part is the planner's rows or an error.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

#[path = "../../postgres/tests/common/server.rs"]
mod postgres_server;

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{Int32Type, Int64Type};
use dray_client::{
    ConnectOptions, Connection, Error, ErrorKind, Part, Plan, PlanOptions, QueryOptions, Verdict,
};
use dray_wire::partition::PartDescriptor;
use postgres_server::Server;

const TABLES: &str = "CREATE TABLE many (id int4 NOT NULL, text text, amount numeric(12, 2));
    INSERT INTO many SELECT i, repeat('x', i % 90), i / 100.0 FROM generate_series(1, 60000) i;
    CREATE TABLE parted (id int4, text text) PARTITION BY RANGE (id);
    CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (30000);
    CREATE TABLE high PARTITION OF parted FOR VALUES FROM (30000) TO (90000);
    INSERT INTO parted SELECT i, repeat('y', 200) FROM generate_series(1, 60000) i;
    CREATE TABLE few (id int4);
    INSERT INTO few VALUES (1), (2), (3);
    CREATE VIEW seen AS SELECT id FROM many WHERE id % 2 = 0;
    CREATE MATERIALIZED VIEW kept AS SELECT id FROM few;
    ANALYZE;";

fn connect(uri: &str) -> Connection {
    Connection::connect(uri, &ConnectOptions::default()).unwrap()
}

fn plan_with(server: &Server, sql: &str, options: &PlanOptions) -> Result<Plan, Error> {
    let query = QueryOptions::default();
    connect(&server.uri()).partitions(sql, &query, options, &mut || Verdict::Continue)
}

fn plan(server: &Server, sql: &str) -> Plan {
    plan_with(server, sql, &PlanOptions { at_most: Some(4), ..PlanOptions::default() }).unwrap()
}

/// The rows of a part, and its receipt.
fn read(descriptor: &[u8]) -> Result<(Vec<RecordBatch>, Vec<u8>), Error> {
    let part = Part::decode(descriptor)?;
    let mut connection = connect(part.uri());
    let mut results = connection.read_partition(&part, &QueryOptions::default())?;
    let batches = results.read_all()?;
    let receipt = results.receipt().expect("a receipt at the end");
    drop(results);
    assert!(!connection.is_in_transaction(), "the part's transaction ends with it");
    Ok((batches, receipt))
}

fn rows(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

/// Reads all parts; the ids in ascending order.
fn read_all(plan: &Plan) -> (Vec<i32>, Vec<Vec<u8>>) {
    let (mut ids, mut receipts) = (Vec::new(), Vec::new());
    for descriptor in plan.partitions() {
        let (batches, receipt) = read(descriptor).unwrap();
        for batch in &batches {
            ids.extend(batch.column(0).as_primitive::<Int32Type>().values());
        }
        receipts.push(receipt);
    }
    ids.sort_unstable();
    (ids, receipts)
}

fn refused(result: Result<(Vec<RecordBatch>, Vec<u8>), Error>, what: &str) {
    let error = result.map(|_| "rows").unwrap_err();
    assert!(error.to_string().contains(what), "{error}");
}

#[test]
fn a_table_in_parts() {
    let server = Server::start(&[], None);
    server.sql(TABLES);
    for sql in ["SELECT * FROM many", "SELECT id, text FROM parted", "SELECT id FROM many"] {
        let plan = plan(&server, sql);
        assert_eq!((plan.partitions().len(), plan.reason()), (4, None), "{sql}");
        let expected: u64 = plan.estimates().iter().map(|part| part.rows.value().unwrap()).sum();
        assert!((30_000..150_000).contains(&expected), "{expected} rows expected");
        // Nobody sees what happens after the plan.
        server.sql(
            "INSERT INTO many SELECT 0, 'new', 1 FROM generate_series(1, 1000);
            UPDATE many SET text = 'changed' WHERE id % 3 = 0; DELETE FROM many WHERE id = 0;
            INSERT INTO parted VALUES (0, 'new'); DELETE FROM parted WHERE id = 0",
        );
        let (ids, receipts) = read_all(&plan);
        assert_eq!(ids, (1..=60_000).collect::<Vec<_>>(), "{sql}");
        let proof = plan.verify(&receipts).unwrap();
        assert_eq!((proof.rows, proof.parts), (60_000, 4));
        // The lease ends with the proof.
        assert!(plan.is_released());
        refused(read(&plan.partitions()[0]), "the plan's snapshot is gone");
        assert_eq!(
            server.sql("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in%'"),
            "0"
        );
    }
}

#[test]
fn the_proof_does_not_depend_on_the_parts() {
    let server = Server::start(&[], None);
    server.sql(TABLES);
    let proofs = [1, 2, 3, 8].map(|at_most| {
        let options = PlanOptions { at_most: Some(at_most), ..PlanOptions::default() };
        let plan = plan_with(&server, "SELECT * FROM many", &options).unwrap();
        assert!(plan.partitions().len() <= at_most as usize);
        let (_, receipts) = read_all(&plan);
        let proof = plan.verify(&receipts).unwrap();
        (proof.rows, proof.digest)
    });
    assert!(proofs.iter().all(|proof| *proof == proofs[0]), "{proofs:?}");
}

#[test]
fn statements_of_one_part() {
    let server = Server::start(&[], None);
    server.sql(TABLES);
    for (sql, reason, count) in [
        ("SELECT count(*)::int4 FROM many", "it calls count", 1),
        ("SELECT a.id FROM many a JOIN few b USING (id)", "more than the filtered rows", 3),
        ("SELECT id FROM seen", "a view", 30_000),
        ("SELECT id FROM kept", "a view", 3),
        ("SELECT id FROM few", "small", 3),
        ("VALUES (1), (2)", "not a plain SELECT", 2),
        ("WITH a AS (SELECT id FROM few) TABLE a;", "not a plain SELECT", 3),
    ] {
        let plan = plan(&server, sql);
        let why = plan.reason().unwrap_or_default();
        assert!(plan.partitions().len() == 1 && why.contains(reason), "{sql}: {why}");
        server.sql("INSERT INTO few VALUES (4)");
        let (batches, receipt) = read(&plan.partitions()[0]).unwrap();
        assert_eq!(rows(&batches), count, "{sql}");
        assert_eq!(plan.verify(&[receipt]).unwrap().rows, count as u64);
        server.sql("DELETE FROM few WHERE id = 4");
    }
}

#[test]
fn parameters_travel_with_the_part() {
    let server = Server::start(&[], None);
    server.sql(TABLES);
    let row = RecordBatch::try_from_iter([
        ("a", std::sync::Arc::new(Int64Array::from(vec![59_998])) as _),
        ("b", std::sync::Arc::new(StringArray::from(vec!["it's \\ x"])) as _),
    ]);
    let query = QueryOptions { parameters: Some(row.unwrap()), ..QueryOptions::default() };
    let sql = "SELECT id::int8, $2::text AS t FROM many WHERE id > $1";
    let plan = connect(&server.uri())
        .partitions(sql, &query, &PlanOptions::default(), &mut || Verdict::Continue)
        .unwrap();
    assert!(plan.reason().unwrap().contains("parameters"));
    let (batches, receipt) = read(&plan.partitions()[0]).unwrap();
    let ids = batches[0].column(0).as_primitive::<Int64Type>();
    assert_eq!(ids.values(), &[59_999, 60_000]);
    assert_eq!(batches[0].column(1).as_string::<i32>().value(0), "it's \\ x");
    plan.verify(&[receipt]).unwrap();
}

#[test]
fn a_part_is_read_again() {
    let server = Server::start(&[], None);
    server.sql(TABLES);
    let plan = plan(&server, "SELECT id, text FROM many");
    let (first, receipt) = read(&plan.partitions()[2]).unwrap();
    // A reader that stops in the middle has no receipt, and its connection is free.
    let part = Part::decode(&plan.partitions()[2]).unwrap();
    let mut connection = connect(part.uri());
    let options = QueryOptions { batch_rows: 100, ..QueryOptions::default() };
    let mut results = connection.read_partition(&part, &options).unwrap();
    assert!(results.next_batch().unwrap().is_some() && results.receipt().is_none());
    results.cancel();
    assert!(results.receipt().is_none());
    assert_eq!(results.next_batch().unwrap_err().kind(), ErrorKind::Cancelled);
    drop(results);
    assert!(connection.is_usable() && !connection.is_in_transaction());
    server.sql("DELETE FROM many WHERE id % 2 = 0");
    let mut results = connection.read_partition(&part, &options).unwrap();
    assert_eq!(rows(&results.read_all().unwrap()), rows(&first));
    let again = results.receipt().unwrap();
    assert_ne!(receipt, again, "each reading has its own");
    drop(results);
    assert_eq!(receipt[..48], again[..48], "the same rows have the same digest");
    let (_, mut receipts) = read_all(&plan);
    receipts.push(again);
    let error = plan.verify(&receipts).unwrap_err();
    assert_eq!(error.message(), "part 2 was read twice, with the same rows");
    assert!(!plan.is_released());
    receipts.pop();
    assert_eq!(plan.verify(&receipts).unwrap().rows, 60_000);
}

/// A transaction that stayed open would give later statements the plan's snapshot.
#[test]
fn a_part_that_is_not_read_leaves_no_transaction() {
    let server = Server::start(&[], None);
    server.sql(TABLES);
    let mut connection = connect(&server.uri());
    let query = QueryOptions::default();
    let many = plan(&server, "SELECT id FROM many");
    let row =
        RecordBatch::try_from_iter([("a", std::sync::Arc::new(Int64Array::from(vec![1])) as _)]);
    let with_value = QueryOptions { parameters: Some(row.unwrap()), ..query.clone() };
    let other = connection
        .partitions(
            "SELECT id FROM few WHERE id > $1",
            &with_value,
            &PlanOptions::default(),
            &mut || Verdict::Continue,
        )
        .unwrap();
    // A value for a statement without parameters, which the client refuses.
    let mut surplus = PartDescriptor::decode(&many.partitions()[0]).unwrap();
    surplus.parameters = PartDescriptor::decode(&other.partitions()[0]).unwrap().parameters;
    let surplus = Part::decode(&surplus.encode().unwrap()).unwrap();
    let error = connection.read_partition(&surplus, &query).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Query, "{error}");
    assert!(connection.is_usable() && !connection.is_in_transaction());
    // All rows of a part without columns have arrived before the first is asked for.
    let nothing = plan(&server, "SELECT FROM few");
    let part = Part::decode(&nothing.partitions()[0]).unwrap();
    drop(connection.read_partition(&part, &query).unwrap());
    assert!(connection.is_usable() && !connection.is_in_transaction());
    // What divides a plan means nothing to a reader.
    let part = Part::decode(&many.partitions()[0]).unwrap();
    let mut by = query.clone();
    by.postgres.partition_by = Some("id".to_owned());
    let mut results = connection.read_partition(&part, &by).unwrap();
    assert!(rows(&results.read_all().unwrap()) > 0 && results.receipt().is_some());
    drop(results);
    assert!(!connection.is_in_transaction());
}

#[test]
fn the_lease_ends() {
    let server = Server::start(&[], None);
    server.sql(TABLES);
    let lease = Duration::from_secs(3);
    let options = PlanOptions { at_most: Some(2), lease, ..PlanOptions::default() };
    let plan = plan_with(&server, "SELECT id FROM many", &options).unwrap();
    let one = plan_with(&server, "SELECT count(*) FROM many", &options).unwrap();
    // Reading that has begun goes on.
    let part = Part::decode(&plan.partitions()[0]).unwrap();
    let mut connection = connect(part.uri());
    let query = QueryOptions { batch_rows: 10, batch_bytes: 10, ..QueryOptions::default() };
    let mut results = connection.read_partition(&part, &query).unwrap();
    assert!(results.next_batch().unwrap().is_some());
    std::thread::sleep(lease + Duration::from_millis(300));
    for descriptor in [&plan.partitions()[1], &one.partitions()[0]] {
        refused(read(descriptor), "the plan's lease ended");
    }
    // The server ends the planners' transactions.
    let idle = "SELECT count(*) FROM pg_stat_activity \
                WHERE state = 'idle in transaction' AND query LIKE 'EXPLAIN%'";
    let deadline = Instant::now() + Duration::from_secs(20);
    while server.sql(idle) != "0" {
        assert!(Instant::now() < deadline, "the server keeps the transactions");
        std::thread::sleep(Duration::from_millis(50));
    }
    let left = rows(&results.read_all().unwrap());
    assert!(left > 20_000 && results.receipt().is_some(), "{left}");
    drop(plan);
}

#[test]
fn tables_that_change_are_locked_or_refused() {
    let server = Server::start(&[], None);
    server.sql(TABLES);
    let plan_of_parts = plan(&server, "SELECT id FROM parted");
    let plan_of_join = plan(&server, "SELECT a.id FROM parted a, few");
    for change in [
        "TRUNCATE few",
        "TRUNCATE low",
        "DROP TABLE few",
        "ALTER TABLE few ADD x int4 DEFAULT random()",
    ] {
        let failed =
            std::panic::catch_unwind(|| server.sql(&format!("SET lock_timeout = 100; {change}")));
        assert!(failed.is_err(), "{change}");
    }
    // A partition with old rows would be in some parts and not in others.
    server.sql(
        "CREATE TABLE more AS SELECT i AS id, 'old' AS text FROM generate_series(90000, 90100) i;
        ALTER TABLE parted ATTACH PARTITION more FOR VALUES FROM (90000) TO (99999)",
    );
    for plan in [&plan_of_parts, &plan_of_join] {
        refused(
            read(&plan.partitions()[0]),
            "the tables of the statement are not those of the plan",
        );
    }
    // A table of the same name that comes first on the search path.
    let plan = plan(&server, "SELECT count(*)::int4 AS id FROM few");
    server.sql("CREATE SCHEMA postgres; CREATE TABLE postgres.few (id int4)");
    refused(read(&plan.partitions()[0]), "the tables of the statement are not those of the plan");
}

#[test]
fn a_look_that_fails_leaves_nothing_behind() {
    let server = Server::start(&[], None);
    server.sql(TABLES);
    let define = |body: &str| {
        server.sql(&format!(
            "CREATE OR REPLACE FUNCTION folded(int4) RETURNS int4 IMMUTABLE LANGUAGE plpgsql \
             AS 'BEGIN {body}; END'"
        ))
    };
    define("RETURN $1");
    let row = RecordBatch::try_from_iter([("p", Arc::new(Int64Array::from(vec![7])) as _)]);
    let query = QueryOptions { parameters: Some(row.unwrap()), ..QueryOptions::default() };
    let sql = "SELECT id FROM many WHERE id = folded($1)";
    let plan = connect(&server.uri())
        .partitions(sql, &query, &PlanOptions::default(), &mut || Verdict::Continue)
        .unwrap();
    let part = Part::decode(&plan.partitions()[0]).unwrap();
    let mut connection = connect(part.uri());
    for fails in [true, false, true, false] {
        // The server calls the function when it plans the statement with this value.
        define(if fails { "RAISE EXCEPTION ''now it fails''" } else { "RETURN $1" });
        let read = connection.read_partition(&part, &QueryOptions::default());
        match fails {
            true => assert!(read.map(drop).unwrap_err().to_string().contains("now it fails")),
            false => assert_eq!(rows(&read.unwrap().read_all().unwrap()), 1),
        }
    }
}

#[test]
fn other_sessions_and_servers() {
    let server = Server::start(&[], None);
    server.sql(TABLES);
    server.sql("CREATE ROLE other LOGIN; GRANT SELECT ON many TO other");
    let of_parts = plan(&server, "SELECT id FROM many");
    let refused_by = |uri: &str, what: &str| {
        let part = Part::decode(&of_parts.partitions()[0]).unwrap();
        let mut connection = connect(uri);
        let result = connection.read_partition(&part, &QueryOptions::default()).map(drop);
        let error = result.unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
        assert!(connection.is_usable() && !connection.is_in_transaction());
    };
    let uri = server.uri();
    refused_by(&uri.replace("postgres@", "other@"), "current_user is \"other\"");
    refused_by(&format!("{uri}?options=-c%20timezone%3DAsia/Tokyo"), "TimeZone is \"Asia/Tokyo\"");
    server.sql("CREATE DATABASE elsewhere");
    refused_by(
        &format!("postgresql://postgres@127.0.0.1:{}/elsewhere", server.port),
        "the part's server is another one",
    );
    let other = Server::start(&[], None);
    refused_by(&other.uri(), "the part's server is another one");
    // The planner's session must be one that others can stand in for.
    for (before, what) in [
        ("BEGIN", "a transaction is open"),
        ("CREATE TEMP TABLE many (id int4)", "other sessions may not see"),
        ("SET search_path TO pg_catalog", "other sessions may not see"),
    ] {
        let mut connection = connect(&uri);
        connection.query(before, &QueryOptions::default()).unwrap().read_all().unwrap();
        let planned = connection.partitions(
            "SELECT id FROM many",
            &QueryOptions::default(),
            &PlanOptions::default(),
            &mut || Verdict::Continue,
        );
        let error = planned.map(drop).unwrap_err();
        assert!(error.kind() == ErrorKind::Usage && error.to_string().contains(what), "{error}");
    }
    for (sql, what) in [
        ("DELETE FROM many", "only queries become partitions"),
        ("SELECT 1; SELECT 2", "one statement"),
        ("SELECT nothing FROM many", "nothing"),
    ] {
        let error = plan_with(&server, sql, &PlanOptions::default()).map(drop).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
    }
}
