//! Tests with well-behaved clients.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, AsArray, Decimal128Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};

use crate::common::Running;
use dray_client::{
    AsyncConnection, Checksums, CompressionChoice, ConnectOptions, Connection, ErrorKind, Known,
    Limits, QueryOptions, Report, StringLayout,
};

fn sum(batches: &[RecordBatch]) -> i64 {
    batches
        .iter()
        .flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().iter())
        .sum()
}

const ALL: i64 = 999_999 * 1_000_000 / 2;

#[test]
fn every_transport_and_compression_brings_the_same_rows() {
    let server = Running::start();
    for uri in [&server.tcp, &server.unix] {
        let mut connection = Connection::connect(uri, &ConnectOptions::default()).unwrap();
        for compression in ["auto", "none", "light", "lz4", "zstd:1"] {
            let options = QueryOptions {
                compression: compression.parse().unwrap(),
                ..QueryOptions::default()
            };
            let mut results = connection.query("SELECT * FROM numbers", &options).unwrap();
            let batches = results.read_all().unwrap();
            assert_eq!(sum(&batches), ALL, "{uri} {compression}");
            let (last, others) = batches.split_last().unwrap();
            assert!(others.iter().all(|batch| batch.num_rows() >= 65_536) && last.num_rows() > 0);
            let texts = batches.iter().flat_map(|batch| {
                let n = batch.column(0).as_primitive::<Int64Type>().values().iter();
                n.zip(batch.column(1).as_string::<i32>())
                    .map(|(n, text)| text == Some(format!("row {n}").as_str()))
            });
            assert!(texts.into_iter().all(|same| same));
            let stats = results.stats();
            assert_eq!(stats.rows, 1_000_000);
            assert_eq!(stats.server.unwrap().rows, 1_000_000);
            assert!(stats.wire_bytes > 0 && stats.decoded_bytes >= 1_000_000 * 8);
            if compression == "light" {
                assert!(stats.wire_bytes * 3 < stats.decoded_bytes * 2, "{stats:?}");
            }
        }
    }
}

#[test]
fn small_chunks_are_joined_and_bound_what_is_sent() {
    let server = Running::start();
    let mut connection = server.connect();
    let limits = Limits { chunk_bytes_max: 4096, ..Limits::default() };
    let options = QueryOptions { limits, ..QueryOptions::default() };
    let mut results = connection.query("SELECT * FROM numbers WHERE n < 200000", &options).unwrap();
    let batches = results.read_all().unwrap();
    assert_eq!(sum(&batches), 199_999 * 200_000 / 2);
    assert!(batches[..batches.len() - 1].iter().all(|batch| batch.num_rows() >= 65_536));
    assert!(results.stats().chunks > 1000);
}

#[test]
fn parameters_of_many_types() {
    let server = Running::start();
    let mut connection = server.connect();
    let row = RecordBatch::try_from_iter([
        ("1", Arc::new(Int64Array::from(vec![41])) as ArrayRef),
        ("2", Arc::new(StringArray::from(vec!["it's"])) as ArrayRef),
        (
            "3",
            Arc::new(Decimal128Array::from(vec![1250]).with_precision_and_scale(9, 2).unwrap())
                as ArrayRef,
        ),
        ("4", Arc::new(arrow::array::Date32Array::from(vec![Some(19000)])) as ArrayRef),
    ])
    .unwrap();
    let options = QueryOptions { parameters: Some(row.clone()), ..QueryOptions::default() };
    let sql = "SELECT $1 + 1 AS a, $2 AS b, $3 AS c, $4 AS d, (SELECT count(*) FROM numbers WHERE \
         n < $1) AS e";
    let batches = connection.query(sql, &options).unwrap().read_all().unwrap();
    let batch = &batches[0];
    assert_eq!(batch.column(0).as_primitive::<Int64Type>().value(0), 42);
    assert_eq!(batch.column(1).as_string::<i32>().value(0), "it's");
    assert_eq!(batch.column(2).as_ref(), row.column(2).as_ref());
    assert_eq!(batch.column(3).as_ref(), row.column(3).as_ref());
    assert_eq!(batch.column(4).as_primitive::<Int64Type>().value(0), 41);
    let error = connection.query("SELECT $1", &QueryOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Query, "{error}");
}

#[test]
fn a_parameter_keeps_its_extension_type() {
    let server = Running::start();
    let bytes = arrow::array::FixedSizeBinaryArray::try_from_iter([[7u8; 16]].into_iter()).unwrap();
    let uuid = HashMap::from([("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned())]);
    let field = Field::new("1", DataType::FixedSizeBinary(16), false).with_metadata(uuid.clone());
    let row =
        RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::new(bytes)]).unwrap();
    let options = QueryOptions { parameters: Some(row.clone()), ..QueryOptions::default() };
    let mut connection = server.connect();
    let batches =
        connection.query("SELECT $1 AS id WHERE $1 = $1", &options).unwrap().read_all().unwrap();
    assert_eq!(batches[0].column(0), row.column(0));
    assert_eq!(batches[0].schema().field(0).metadata(), &uuid);
}

/// Memory that a pipe refers to must not change before the client has read it.
#[test]
fn a_slow_reader_gets_what_was_sent() {
    let server = Running::start();
    let mut slow = server.connect();
    let options = QueryOptions { checksums: Checksums::On, ..QueryOptions::default() };
    let sql = "SELECT n, n * 3 AS m, repeat(text, 5) AS t FROM numbers";
    let mut results = slow.query(sql, &options).unwrap();
    let mut rows = 0;
    while let Some(batch) = results.next_batch().unwrap() {
        rows += batch.num_rows();
        // Reuses memory that the server has freed.
        let mut other = server.connect();
        let mut others = other
            .query("SELECT n * 7, text || text FROM numbers", &QueryOptions::default())
            .unwrap();
        assert!(!others.read_all().unwrap().is_empty());
    }
    assert_eq!(rows, 1_000_000);
}

#[test]
fn strings_as_the_client_wants_them() {
    let server = Running::start();
    let mut connection = server.connect();
    let layouts = [
        (StringLayout::Offsets, DataType::Utf8),
        (StringLayout::LargeOffsets, DataType::LargeUtf8),
        (StringLayout::Views, DataType::Utf8View),
    ];
    for (strings, expected) in layouts {
        let options = QueryOptions { strings, ..QueryOptions::default() };
        let batches = connection
            .query("SELECT text FROM numbers ORDER BY n LIMIT 3", &options)
            .unwrap()
            .read_all()
            .unwrap();
        assert_eq!(batches[0].column(0).data_type(), &expected);
        let text = arrow::compute::cast(batches[0].column(0), &DataType::Utf8).unwrap();
        assert_eq!(
            text.as_string::<i32>().iter().flatten().collect::<Vec<_>>(),
            ["row 0", "row 1", "row 2"]
        );
    }
}

#[test]
fn the_estimate_comes_before_and_progress_during() {
    let server = Running::start();
    let mut connection = server.connect();
    let plan_only = QueryOptions { plan_only: true, ..QueryOptions::default() };
    let mut results = connection.query("SELECT * FROM numbers", &plan_only).unwrap();
    assert_eq!(results.progress().estimate.rows, Known::Exact(1_000_000));
    assert!(results.next_batch().unwrap().is_none());
    drop(results);
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let watch = seen.clone();
    let watch = Box::new(move |progress: &dray_client::Progress| {
        watch.lock().unwrap().push(progress.rows_read);
        dray_client::Verdict::Continue
    });
    // 1,000,000 rows in batches of 8192, a millisecond each: long enough for several progress
    // messages.
    let sql = "SELECT count(slow(n)), sum(slow(n)), max(slow(n)), min(slow(n)), avg(slow(n)) FROM \
         numbers WHERE slow(n) >= 0";
    let mut results =
        Connection::query_with(&mut connection, sql, &QueryOptions::default(), Some(watch))
            .unwrap();
    assert_eq!(results.read_all().unwrap()[0].num_rows(), 1);
    let seen = seen.lock().unwrap();
    assert!(seen.iter().any(|rows| *rows > 0 && *rows < 1_000_000), "{seen:?}");
}

#[test]
fn a_dropped_result_cancels_and_leaves_the_connection_usable() {
    let server = Running::start();
    let mut connection = server.connect();
    for _ in 0..3 {
        let sql = "SELECT a.n FROM numbers a CROSS JOIN numbers b";
        let mut results = connection.query(sql, &QueryOptions::default()).unwrap();
        assert!(results.next_batch().unwrap().unwrap().num_rows() >= 65_536);
        drop(results);
        assert!(connection.is_usable());
    }
    server.wait_for("statements_failed_total", 3.0);
    let batches =
        connection.query("SELECT 7", &QueryOptions::default()).unwrap().read_all().unwrap();
    assert_eq!(batches[0].column(0).as_primitive::<Int64Type>().value(0), 7);
}

#[test]
fn a_watch_cancels_a_statement_that_has_no_rows_yet() {
    let server = Running::start();
    let mut connection = server.connect();
    let sql = "SELECT sum(value) FROM generate_series(1, 1000000000000)";
    let mut looks = 0;
    let watch = Box::new(move |_: &dray_client::Progress| {
        looks += 1;
        if looks < 3 { dray_client::Verdict::Continue } else { dray_client::Verdict::Cancel }
    });
    let mut results =
        Connection::query_with(&mut connection, sql, &QueryOptions::default(), Some(watch))
            .unwrap();
    assert_eq!(results.next_batch().unwrap_err().kind(), ErrorKind::Cancelled);
    drop(results);
    assert!(connection.is_usable());
    server.wait_for("statements_failed_total", 1.0);
}

#[test]
fn many_connections_at_a_time() {
    let server = Running::start();
    std::thread::scope(|scope| {
        for i in 0..20 {
            let server = &server;
            scope.spawn(move || {
                let mut connection = server.connect();
                for round in 0..5 {
                    let sql = format!("SELECT n FROM numbers WHERE n % 20 = {i}");
                    let batches = connection
                        .query(&sql, &QueryOptions::default())
                        .unwrap()
                        .read_all()
                        .unwrap();
                    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
                    assert_eq!(rows, 50_000, "{i} {round}");
                }
            });
        }
    });
    server.wait_for("connections_open", 0.0);
    assert_eq!(server.count("statements_total"), 100.0);
    assert_eq!(server.count("rows_sent_total"), 5_000_000.0);
}

#[test]
fn a_graceful_stop_lets_transfers_finish() {
    let mut server = Running::start();
    let mut connection = server.connect();
    let idle = server.connect();
    let mut results = connection.query("SELECT * FROM numbers", &QueryOptions::default()).unwrap();
    let first = results.next_batch().unwrap().unwrap();
    server.ask_to_stop();
    std::thread::sleep(Duration::from_millis(100));
    let mut batches = results.read_all().unwrap();
    batches.push(first);
    assert_eq!(sum(&batches), ALL);
    drop(results);
    drop(idle);
    server.wait_for_end();
    assert!(!server.socket_path().exists());
    assert!(Connection::connect(&server.tcp, &ConnectOptions::default()).is_err());
}

#[test]
fn metrics_are_served() {
    use std::io::{Read, Write};
    let server =
        Running::start_with(|options| options.metrics = Some("127.0.0.1:0".parse().unwrap()));
    server.assert_serves();
    server.wait_for("statements_total", 1.0);
    let mut stream = std::net::TcpStream::connect(server.metrics_address.unwrap()).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    assert!(
        page.starts_with("HTTP/1.1 200 OK") && page.contains("\ndray_statements_total 1\n"),
        "{page}"
    );
}

/// Behind a proxy a client over loopback may be anywhere, so the transfer adapts, and reports how.
#[test]
fn a_transfer_to_another_host_adapts() {
    let server = Running::start_with(|options| options.behind_proxy = true);
    let mut connection = Connection::connect(&server.tcp, &ConnectOptions::default()).unwrap();
    for _ in 0..3 {
        let mut results =
            connection.query("SELECT * FROM numbers", &QueryOptions::default()).unwrap();
        assert_eq!(sum(&results.read_all().unwrap()), ALL);
        let stats = results.stats();
        assert_eq!((stats.compression, stats.checksums), (CompressionChoice::Auto, true));
        let encoded: u64 = stats.report.columns.iter().map(|column| column.decoded_bytes).sum();
        let decoded: u64 = stats.profile.columns.iter().map(|column| column.decoded_bytes).sum();
        assert_eq!((stats.report.columns.len(), encoded), (2, decoded));
        assert!(stats.report.columns.iter().all(|column| column.encode_ns > 0));
        assert!(stats.profile.columns.iter().all(|column| column.decode_ns > 0));
        assert!(!stats.report.prices.is_empty());
        assert!(stats.report.prices.is_sorted_by_key(|price| price.at_ms));
    }
    assert!(server.count("byte_price_nanoseconds") > 0.0);
    assert!(server.count("encoded_bytes_total") >= 3e6 * 16.0);
    // A small result is sent without compression and without a report.
    let mut results =
        connection.query("SELECT * FROM numbers LIMIT 100", &QueryOptions::default()).unwrap();
    results.read_all().unwrap();
    let stats = results.stats();
    assert_eq!(stats.report, Report::default());
    assert!(
        stats.profile.columns.iter().all(|column| column.encodings.is_empty()),
        "{:?}",
        stats.profile
    );
}

#[test]
fn compression_follows_the_link() {
    let server = Running::start();
    let mut connection = server.connect();
    let mut results = connection.query("SELECT 1", &QueryOptions::default()).unwrap();
    results.read_all().unwrap();
    assert_eq!(results.stats().compression, CompressionChoice::None);
    assert!(!results.stats().checksums);
    let mut connection = Connection::connect(&server.tcp, &ConnectOptions::default()).unwrap();
    let mut results = connection.query("SELECT 1", &QueryOptions::default()).unwrap();
    results.read_all().unwrap();
    assert!(!results.stats().checksums, "loopback leaves no host");
}

#[tokio::test]
async fn an_asynchronous_program() {
    let server = Running::start();
    let mut connection =
        AsyncConnection::connect(&server.unix, ConnectOptions::default()).await.unwrap();
    let mut results =
        connection.query("SELECT * FROM numbers", QueryOptions::default()).await.unwrap();
    let mut batches = Vec::new();
    while let Some(batch) = results.next_batch().await.unwrap() {
        batches.push(batch);
    }
    assert_eq!(sum(&batches), ALL);
    assert_eq!(results.stats().rows, 1_000_000);
    // Dropping a result cancels the statement, and the connection stays usable.
    let endless = "SELECT a.n FROM numbers a CROSS JOIN numbers b";
    let mut results = connection.query(endless, QueryOptions::default()).await.unwrap();
    assert!(results.next_batch().await.unwrap().is_some());
    drop(results);
    let error = connection.query("SELECT nothing", QueryOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Query, "{error}");
    let mut results = connection.query("SELECT 7", QueryOptions::default()).await.unwrap();
    assert_eq!(results.next_batch().await.unwrap().unwrap().num_rows(), 1);
    assert!(results.next_batch().await.unwrap().is_none());
    assert!(results.next_batch().await.unwrap().is_none());
}
