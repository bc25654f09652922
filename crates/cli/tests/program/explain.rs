//! `dray explain`, as text and as JSON.

use super::*;

const SERIES: &str = "SELECT value, 'row' AS text FROM generate_series(1, 300000)";

#[test]
fn it_says_where_the_time_and_the_bytes_went() {
    let fixture = Fixture::start();
    let text = stdout(&run(&["explain", &fixture.uri, SERIES, "--compression", "light"]));
    let words = [
        "expected ",
        "300,000 rows",
        "compression light",
        "connect",
        "plan",
        "execute",
        "encode",
        "queue",
    ];
    let more = ["socket", "receive", "decode", "value", "Int64", "text", "Utf8", "advice "];
    for word in words.iter().chain(&more) {
        assert!(text.contains(word), "no {word} in\n{text}");
    }
    assert!(text.starts_with("expected "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    // Columns with long names and types, which need no decoding.
    let sql = "SELECT value AS a_name_that_is_longer_than_a_name_should_be, \
               make_array(value, value + 1) AS list, \
               named_struct('one', value, 'another', 'text', 'more', value) AS structure \
               FROM generate_series(1, 300000)";
    let text = stdout(&run(&["explain", &fixture.uri, sql]));
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.contains("structure") && text.contains(" dec"), "{text}");
    let rates = text.split(['│', '\n']).filter_map(|cell| cell.trim().parse::<f64>().ok());
    assert!(rates.into_iter().all(|rate| rate <= 100.0), "{text}");
}

#[test]
fn its_json_adds_up() {
    let fixture = Fixture::start();
    let text = stdout(&run(&[
        "explain",
        &fixture.uri,
        SERIES,
        "--format",
        "json",
        "--compression",
        "zstd:5",
    ]));
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["rows"], 300_000);
    assert_eq!(report["compression"], "zstd:5");
    let columns = report["columns"].as_array().unwrap();
    assert_eq!(columns.len(), 2);
    let wire: u64 = columns.iter().map(|column| column["wire_bytes"].as_u64().unwrap()).sum();
    assert!(wire > 0 && wire <= report["wire_bytes"].as_u64().unwrap(), "{text}");
    let decoded: u64 = columns.iter().map(|column| column["decoded_bytes"].as_u64().unwrap()).sum();
    assert!(decoded >= 300_000 * 8, "{text}");
    assert!(!columns[0]["encodings"].as_array().unwrap().is_empty(), "{text}");
    let seconds = report["seconds"].as_object().unwrap();
    assert!(seconds.values().all(|seconds| seconds.as_f64().unwrap() >= 0.0), "{text}");
    assert!(!report["advice"].as_str().unwrap().is_empty());
}

#[test]
fn a_plan_runs_nothing() {
    let fixture = Fixture::start();
    let sql = "SELECT id, name FROM goods";
    let text = stdout(&run(&["explain", &fixture.uri, sql, "--plan"]));
    assert!(text.starts_with("expected   5 rows"), "{text}");
    assert!(text.contains("id     │ Int64\n"), "{text}");
    let text = stdout(&run(&["explain", &fixture.uri, sql, "--plan", "--format", "json"]));
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["estimate"]["rows"], serde_json::json!({ "value": 5, "exact": true }));
    assert_eq!(report["columns"][1]["name"], "name");
    assert_eq!(fixture.metric("dray_rows_sent_total"), 0);
    let (code, _) = failure(&run(&["explain", &fixture.uri, "SELECT * FROM nowhere"]));
    assert_eq!(code, 1);
}

#[test]
fn an_interrupt_cancels_at_the_server() {
    let fixture = Fixture::start();
    let running = Running::start(&["explain", &fixture.uri, ENDLESS, "--quiet"]);
    fixture.wait_for_metric("dray_chunks_sent_total", 1);
    running.interrupt();
    let (code, error) = running.wait();
    assert_eq!((code, error.as_str()), (Some(130), "dray: interrupted\n"));
    fixture.wait_for_metric("dray_statements_failed_total", 1);
}
