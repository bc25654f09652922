//! `dray copy`: what it says of a query that fails. Python tests what is written.

#[path = "../../../postgres/tests/common/server.rs"]
mod postgres_server;

use self::postgres_server::Server as Postgres;
use super::*;

#[test]
fn a_query_that_fails_has_the_exit_code_of_its_own() {
    let (fixture, target) = (Fixture::start(), Postgres::start(&[], None));
    let to = target.uri();
    let midway = "SELECT 1 / (value - 200000) AS x FROM generate_series(1, 300000)";
    let (code, error) = failure(&run(&["copy", &fixture.uri, midway, &to, "-t", "numbers"]));
    assert_eq!(code, 1, "{error}");
    assert!(error.starts_with("dray: the source of the rows failed: division by zero"), "{error}");
    let running = Running::start(&["copy", &fixture.uri, ENDLESS, &to, "-t", "numbers"]);
    fixture.wait_for_metric("dray_chunks_sent_total", 20);
    fixture.server.signal("KILL");
    let (code, error) = running.wait();
    assert_eq!((code, error.lines().count()), (Some(3), 1), "{error}");
    assert!(error.starts_with("dray: the source of the rows failed: the "), "{error}");
    assert_eq!(target.sql("SELECT count(*) FROM pg_tables WHERE tablename = 'numbers'"), "0");
}
