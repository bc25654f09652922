//! Plans under the snapshot of an earlier one, with a real PostgreSQL server: both see the same, or
//! the later one is an error.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

#[path = "../../postgres/tests/common/server.rs"]
mod postgres_server;

use std::time::Duration;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use dray_client::{
    ConnectOptions, Connection, Error, ErrorKind, Part, Plan, PlanOptions, QueryOptions, Verdict,
};
use dray_wire::partition::{DrayPart, PartDescriptor, PartSource, RandomId};
use postgres_server::Server;

const TABLES: &str = "CREATE TABLE orders (id int8 NOT NULL, text text);
    INSERT INTO orders SELECT i, repeat('x', 90) FROM generate_series(1, 60000) i;
    CREATE TABLE lines (id int8 NOT NULL, text text);
    INSERT INTO lines SELECT i, repeat('y', 90) FROM generate_series(1, 60000) i;
    CREATE TABLE parted (id int8, text text) PARTITION BY RANGE (id);
    CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (30000);
    CREATE TABLE high PARTITION OF parted FOR VALUES FROM (30000) TO (90000);
    INSERT INTO parted SELECT i, repeat('z', 90) FROM generate_series(1, 60000) i;
    CREATE TABLE few (id int8);
    INSERT INTO few VALUES (1), (2), (3);
    CREATE VIEW seen AS SELECT id FROM few;
    ANALYZE;";
const CHANGE: &str = "UPDATE orders SET id = id + 100000; UPDATE lines SET id = id + 100000;
    UPDATE parted SET text = 'new' WHERE id % 2 = 0; DELETE FROM parted WHERE id % 3 = 0;
    INSERT INTO parted SELECT i, 'new' FROM generate_series(1, 60000) i;
    UPDATE few SET id = id + 100000";

fn connect(uri: &str) -> Connection {
    Connection::connect(uri, &ConnectOptions::default()).unwrap()
}

fn options(earlier: Option<&Plan>) -> PlanOptions {
    let part = earlier.map(|plan| Part::decode(&plan.partitions()[0]).unwrap());
    PlanOptions { at_most: Some(3), snapshot: part, ..PlanOptions::default() }
}

fn plan_with(uri: &str, sql: &str, options: &PlanOptions) -> Result<Plan, Error> {
    let query = QueryOptions::default();
    connect(uri).partitions(sql, &query, options, &mut || Verdict::Continue)
}

fn plan(server: &Server, sql: &str, earlier: Option<&Plan>) -> Result<Plan, Error> {
    plan_with(&server.uri(), sql, &options(earlier))
}

/// The sum of the first column of all parts, and how many parts there are.
fn sum(plan: &Plan) -> (i64, usize) {
    let (mut total, mut receipts) = (0, Vec::new());
    for descriptor in plan.partitions() {
        let part = Part::decode(descriptor).unwrap();
        let mut connection = connect(part.uri());
        let mut results = connection.read_partition(&part, &QueryOptions::default()).unwrap();
        for batch in results.read_all().unwrap() {
            total += batch.column(0).as_primitive::<Int64Type>().values().iter().sum::<i64>();
        }
        receipts.extend(results.receipt());
    }
    plan.verify(&receipts).unwrap();
    (total, receipts.len())
}

fn refused(planned: Result<Plan, Error>, what: &str, sqlstate: Option<&str>) {
    let error = planned.map(|plan| format!("{} parts", plan.partitions().len())).unwrap_err();
    assert!(error.to_string().contains(what), "{error}");
    assert_eq!(error.sqlstate(), sqlstate, "{error}");
}

fn idle(server: &Server) -> String {
    server.sql("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in%'")
}

#[test]
fn plans_see_the_same() {
    const ALL: i64 = 60_000 * 60_001 / 2;
    let server = Server::start(&[], None);
    server.sql(TABLES);
    let first = plan(&server, "SELECT id FROM orders", None).unwrap();
    server.sql(CHANGE);
    for (sql, expected, parts) in [
        ("SELECT id FROM lines", ALL, 3),
        ("SELECT id, text FROM parted", ALL, 3),
        ("SELECT sum(id)::int8 FROM lines WHERE id < 100000", ALL, 1),
        ("SELECT id FROM few", 6, 1),
        ("SELECT id FROM seen", 6, 1),
        ("SELECT f.id FROM few f JOIN orders o USING (id)", 6, 1),
    ] {
        let second = plan(&server, sql, Some(&first)).unwrap();
        assert_eq!(sum(&second), (expected, parts), "{sql}");
        // Without it, the plan sees the change.
        assert_ne!(sum(&plan(&server, sql, None).unwrap()).0, expected, "{sql}");
    }
    // Each plan holds the snapshot itself, and can hand it on.
    let second = plan(&server, "SELECT id FROM lines", Some(&first)).unwrap();
    first.release();
    let third = plan(&server, "SELECT id FROM few", Some(&second)).unwrap();
    second.release();
    assert_eq!(idle(&server), "1");
    assert_eq!(sum(&third), (6, 1));
    assert_eq!(idle(&server), "0");
    refused(
        plan(&server, "SELECT id FROM few", Some(&third)),
        "the earlier plan's snapshot is gone",
        Some("72000"),
    );
}

#[test]
fn a_snapshot_that_has_ended() {
    let server = Server::start(&[], None);
    server.sql(TABLES);
    let sql = "SELECT id FROM lines";
    let lease = Duration::from_secs(3);
    let short = PlanOptions { lease, ..options(None) };
    let first = plan_with(&server.uri(), "SELECT id FROM few", &short).unwrap();
    let second = plan(&server, sql, Some(&first)).unwrap();
    std::thread::sleep(lease + Duration::from_millis(300));
    refused(plan(&server, sql, Some(&first)), "the earlier plan's lease ended", Some("72000"));
    // The lease of the second plan is its own.
    assert_eq!(sum(&plan(&server, sql, Some(&second)).unwrap()).1, 3);
    let gone = "the earlier plan's snapshot is gone";
    server.sql(
        "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity \
         WHERE state LIKE 'idle in%'",
    );
    refused(plan(&server, sql, Some(&second)), gone, Some("72000"));
    // The name of a snapshot alone is not enough: this one has another digest.
    let of_older = plan(&server, "SELECT id FROM few", None).unwrap();
    server.sql(CHANGE);
    let newer = plan(&server, "SELECT id FROM few", None).unwrap();
    let mut mixed = PartDescriptor::decode(&of_older.partitions()[0]).unwrap();
    let other = PartDescriptor::decode(&newer.partitions()[0]).unwrap();
    let source = |part: &PartDescriptor| match &part.source {
        PartSource::Postgres(of_server) => of_server.clone(),
        _ => panic!("a part of PostgreSQL"),
    };
    let mut of_server = source(&mixed);
    of_server.snapshot.name = source(&other).snapshot.name;
    mixed.source = PartSource::Postgres(of_server);
    let part = Part::decode(&mixed.encode().unwrap()).unwrap();
    let mixed = PlanOptions { snapshot: Some(part), ..PlanOptions::default() };
    refused(
        plan_with(&server.uri(), sql, &mixed),
        "the snapshot is not the planner's",
        Some("72000"),
    );
    drop((first, second, of_older, newer));
    assert_eq!(idle(&server), "0");
}

#[test]
fn other_servers() {
    let server = Server::start(&[], None);
    server.sql(TABLES);
    server.sql("CREATE DATABASE elsewhere");
    let first = plan(&server, "SELECT id FROM few", None).unwrap();
    let another = "this is another server or database than the earlier plan's";
    let elsewhere = format!("postgresql://postgres@127.0.0.1:{}/elsewhere", server.port);
    refused(plan_with(&elsewhere, "SELECT 1", &options(Some(&first))), another, Some("72000"));
    let other = Server::start(&[], None);
    refused(plan(&other, "SELECT 1", Some(&first)), another, Some("72000"));
    // Another user may plan under it.
    server.sql("CREATE ROLE other LOGIN; GRANT SELECT ON lines TO other");
    server.sql(CHANGE);
    let uri = server.uri().replace("postgres@", "other@");
    let second = plan_with(&uri, "SELECT id FROM lines", &options(Some(&first))).unwrap();
    let part = Part::decode(&second.partitions()[0]).unwrap();
    let mut reader = connect(part.uri());
    let mut results = reader.read_partition(&part, &QueryOptions::default()).unwrap();
    let least = results.read_all().unwrap()[0].column(0).as_primitive::<Int64Type>().value(0);
    assert_eq!(least, 1);
}

/// What happens to a table between the snapshot and the plan.
#[test]
fn tables_that_have_changed() {
    let server = Server::start(&[], None);
    for (sql, change) in [
        ("SELECT id FROM lines", "TRUNCATE lines"),
        ("SELECT id FROM lines", "ALTER TABLE lines ADD x int4 DEFAULT random()"),
        ("SELECT id FROM lines", "ALTER TABLE lines DROP text; ALTER TABLE lines ADD text text"),
        ("SELECT id FROM lines", "DROP TABLE lines; CREATE TABLE lines AS SELECT id FROM few"),
        ("SELECT id FROM few", "TRUNCATE few"),
        ("SELECT count(*) FROM seen", "TRUNCATE few"),
        ("SELECT id FROM seen", "CREATE OR REPLACE VIEW seen AS SELECT -id AS id FROM few"),
        ("SELECT id FROM parted", "TRUNCATE low"),
        ("SELECT id FROM parted", "ALTER TABLE parted DETACH PARTITION low"),
        ("SELECT count(*) FROM parted", "ALTER TABLE parted DETACH PARTITION low"),
        (
            "SELECT id FROM parted",
            "ALTER TABLE few ADD text text;
             ALTER TABLE parted ATTACH PARTITION few FOR VALUES FROM (-9) TO (0)",
        ),
        ("SELECT id FROM made", "CREATE TABLE made AS SELECT id FROM few"),
    ] {
        server.sql("DROP TABLE IF EXISTS orders, lines, parted, low, few, made CASCADE");
        server.sql(TABLES);
        let first = plan(&server, "SELECT id FROM orders", None).unwrap();
        // No rows of these keep the partition from being attached.
        server.sql("UPDATE few SET id = -id");
        server.sql(change);
        refused(
            plan(&server, sql, Some(&first)),
            "after the earlier plan's snapshot was taken",
            None,
        );
        // It does not hurt the snapshot, nor others.
        assert_eq!(sum(&plan(&server, "SELECT id FROM orders", Some(&first)).unwrap()).1, 3);
        assert!(plan(&server, sql, None).is_ok(), "{sql} after {change}");
    }
}

#[test]
fn what_does_not_change_rows() {
    let server = Server::start(&[], None);
    server.sql(TABLES);
    let first = plan(&server, "SELECT id FROM orders", None).unwrap();
    server.sql("CREATE INDEX ON lines (text); ANALYZE lines; GRANT SELECT ON lines TO PUBLIC");
    server.sql("VACUUM lines");
    assert_eq!(sum(&plan(&server, "SELECT id FROM lines", Some(&first)).unwrap()).1, 3);
}

/// Whoever waits to change a table waits for the earlier plan, so nobody waits behind it for long.
#[test]
fn a_table_that_somebody_waits_for() {
    let server = Server::start(&[], None);
    server.sql(TABLES);
    let first = plan(&server, "SELECT id FROM lines", None).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| server.sql("TRUNCATE lines"));
        let asked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
        while server.sql(asked) == "0" {
            std::thread::sleep(Duration::from_millis(20));
        }
        refused(
            plan(&server, "SELECT id FROM lines", Some(&first)),
            "another session waits to change a table",
            Some("55P03"),
        );
        assert_eq!(sum(&plan(&server, "SELECT id FROM few", Some(&first)).unwrap()), (6, 1));
        drop(first);
        waiting.join().unwrap();
    });
}

#[test]
fn a_part_of_another_kind_of_server() {
    let server = Server::start(&[], None);
    let dray = PartDescriptor {
        plan: RandomId([1; 16]),
        index: 0,
        count: 1,
        deadline_us: u64::MAX,
        rows: None,
        bytes: None,
        has_password: false,
        uri: "dray://localhost".to_owned().into(),
        sql: "SELECT 1".to_owned(),
        parameters: Vec::new(),
        schema: dray_format::Schema::default(),
        source: PartSource::Dray(DrayPart { pass: "pass-00".to_owned().into(), ticket: vec![1] }),
    };
    let part = Part::decode(&dray.encode().unwrap()).unwrap();
    let options = PlanOptions { snapshot: Some(part), ..PlanOptions::default() };
    let error = plan_with(&server.uri(), "SELECT 1", &options).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.message().contains("of a Dray server, and this is PostgreSQL"), "{error}");
}
