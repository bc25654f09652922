//! Hostile and unlucky clients: what they receive, and that the server goes on serving.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

mod common;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use common::Running;
use dray_client::{
    ConnectOptions, Connection, ErrorKind, Limits, PlanOptions, QueryOptions, Verdict,
};
use dray_wire::{
    Checksums, ClientSession, CompressionChoice, FRAME_HEADER_BYTES, Query, RowLayout, ServerEvent,
    Unfit,
};

/// A hand-made hello: `spec/protocol.md` section 7.
const HELLO: &[u8] = b"\x11\0\0\0\x01\0\0\0DRAY\x02\0\x02\0\0\0\0\0\x01\0\0\0t";
const ERROR: u8 = 0x86;

fn raw(server: &Running) -> UnixStream {
    let stream = UnixStream::connect(server.socket_path()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// The kind and payload of the next frame; None if the server has closed the connection.
fn frame(stream: &mut UnixStream) -> Option<(u8, Vec<u8>)> {
    let mut header = [0; 8];
    stream.read_exact(&mut header).ok()?;
    let mut payload =
        vec![0; u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize];
    stream.read_exact(&mut payload).ok()?;
    Some((header[4], payload))
}

/// Asserts that the server answers with an error that contains `part`, and closes.
fn assert_refused(stream: &mut UnixStream, part: &str) {
    let (kind, payload) = frame(stream).expect("an error before the end");
    let text = String::from_utf8_lossy(&payload).into_owned();
    assert_eq!(kind, ERROR, "{text}");
    assert!(text.contains(part), "{text}");
    assert!(frame(stream).is_none());
}

fn kind_of(connection: &mut Connection, sql: &str) -> (ErrorKind, String) {
    let options = QueryOptions::default();
    let error = match connection.query(sql, &options) {
        Err(error) => error,
        Ok(mut results) => results.read_all().unwrap_err(),
    };
    (error.kind(), error.to_string())
}

#[test]
fn greetings_that_are_none() {
    let server = Running::start();
    let mut version = HELLO.to_vec();
    version[12..16].copy_from_slice(&[9, 0, 12, 0]);
    let mut magic = HELLO.to_vec();
    magic[8] = b'X';
    let cases: [(&[u8], &str); 6] = [
        (b"GET / HTTP/1.1\r\n\r\n", "instead of a frame header"),
        (&version, "versions 9 to 12"),
        (&magic, "magic"),
        (b"\xff\xff\xff\xff\x01\0\0\0", "over the limit"),
        (b"\x00\0\0\0\x01\0\0\0", "end in field"),
        (b"\x04\0\0\0\x03\0\0\0\x01\0\0\0", "out of turn"),
    ];
    for (bytes, part) in cases {
        let mut stream = raw(&server);
        stream.write_all(bytes).unwrap();
        assert_refused(&mut stream, part);
    }
    server.assert_serves();
}

/// A client has to know which sources have them; the server's own tables do not.
#[test]
fn unfit_values_of_a_table() {
    let server = Running::start();
    let mut stream = raw(&server);
    let mut session = ClientSession::default();
    let mut answer = |session: &mut ClientSession, request: &[u8]| {
        stream.write_all(request).unwrap();
        let mut header = [0; FRAME_HEADER_BYTES];
        stream.read_exact(&mut header).unwrap();
        let frame = session.frame(&header).unwrap();
        let mut payload = vec![0; frame.payload_bytes as usize];
        stream.read_exact(&mut payload).unwrap();
        session.message(frame, &payload).unwrap()
    };
    let mut hello = Vec::new();
    session.hello("", "test", "", &mut hello).unwrap();
    assert!(matches!(answer(&mut session, &hello), ServerEvent::Welcome(_)));
    let mut query = Vec::new();
    let asked = Query {
        statement: 0,
        sql: "SELECT 1".to_owned(),
        parameters: Vec::new(),
        limits: Limits::default(),
        chunk_rows: 0,
        compression: CompressionChoice::Auto,
        checksums: Checksums::Auto,
        plan_only: false,
        layout: RowLayout::Chunks,
        estimate: false,
        unfit: Unfit::Text,
    };
    session.query(asked, &mut query).unwrap();
    let ServerEvent::Error(error) = answer(&mut session, &query) else { panic!("not an error") };
    assert_eq!((error.statement, error.sqlstate.as_str()), (1, "0A000"), "{}", error.message);
    server.assert_serves();
}

#[test]
fn tokens() {
    let server = Running::start_with(|options| options.token = Some("open sesame".into()));
    let connect = |token: Option<&str>| {
        Connection::connect(
            &server.tcp,
            &ConnectOptions { token: token.map(Into::into), ..ConnectOptions::default() },
        )
    };
    for wrong in [None, Some("open sesam"), Some("open sesame!"), Some("")] {
        let error = connect(wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Authentication, "{error}");
        assert!(error.hint().unwrap().contains("DRAY_TOKEN"), "{error}");
    }
    assert!(connect(Some("open sesame")).is_ok());
    assert_eq!(server.count("connections_refused_total"), 4.0);
}

#[test]
fn an_open_address_needs_a_token() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let catalog = dray_server::catalog::CatalogOptions {
        tables: Vec::new(),
        tpch_scale: None,
        in_memory: false,
        memory_bytes: None,
        spill_dir: None,
        threads: 1,
        ..dray_server::catalog::CatalogOptions::default()
    };
    let mut options = dray_server::ServeOptions::new(catalog);
    options.listen = vec!["0.0.0.0:0".parse().unwrap()];
    let Err(error) = runtime.block_on(dray_server::Server::open(options)) else {
        panic!("opened without a token")
    };
    assert!(error.to_string().contains("--token-file"), "{error}");
}

#[test]
fn lengths_that_would_allocate_gigabytes() {
    let server = Running::start();
    // Many queries that announce 16 MiB and send nothing: the server must not allocate for them.
    let before = resident_bytes();
    let mut waiting = Vec::new();
    for _ in 0..200 {
        let mut stream = raw(&server);
        stream.write_all(HELLO).unwrap();
        assert_eq!(frame(&mut stream).unwrap().0, 0x81);
        stream.write_all(b"\0\0\0\x01\x02\0\0\0").unwrap();
        waiting.push(stream);
    }
    std::thread::sleep(Duration::from_millis(200));
    assert!(resident_bytes() < before + (200 << 20), "{before} then {}", resident_bytes());
    // A length field beyond the end of its message.
    let mut stream = raw(&server);
    stream.write_all(HELLO).unwrap();
    frame(&mut stream).unwrap();
    stream.write_all(b"\x08\0\0\0\x02\0\0\0\x01\0\0\0\xff\xff\xff\xff").unwrap();
    assert_refused(&mut stream, "end in field sql");
    server.assert_serves();
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

#[test]
fn random_bytes_after_the_greeting() {
    let server = Running::start();
    let mut seed = 0x9E37_79B9_7F4A_7C15u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for round in 0..200 {
        let mut stream = raw(&server);
        stream.write_all(HELLO).unwrap();
        frame(&mut stream).unwrap();
        let mut bytes: Vec<u8> = (0..random() % 200).map(|_| random() as u8).collect();
        if round % 2 == 0 {
            // A valid frame of an allowed kind, with an invalid payload.
            let mut framed = vec![bytes.len() as u8, 0, 0, 0, [2, 3, 5][round % 3], 0, 0, 0];
            framed.append(&mut bytes);
            bytes = framed;
        }
        // The server may close the connection during the write.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        while frame(&mut stream).is_some() {}
    }
    server.assert_serves();
    server.wait_for("connections_open", 0.0);
}

#[test]
fn a_client_that_says_nothing_is_sent_away() {
    let server = Running::start_with(|options| options.hello_timeout = Duration::from_millis(200));
    let mut silent = raw(&server);
    assert_refused(&mut silent, "no hello");
    server.assert_serves();
}

#[test]
fn a_client_that_reads_nothing_costs_little_and_is_given_up() {
    let server = Running::start_with(|options| options.stall_timeout = Duration::from_millis(500));
    let mut connection = server.connect();
    let limits = Limits { chunk_bytes_max: 1 << 20, ..Limits::default() };
    let options = QueryOptions { limits, ..QueryOptions::default() };
    let mut results =
        connection.query("SELECT a.* FROM numbers a CROSS JOIN numbers b", &options).unwrap();
    server.wait_for("statements_failed_total", 1.0);
    // What was already sent arrives, then an error, and never an end that looks complete.
    let error = loop {
        match results.next_batch() {
            Ok(batch) => assert!(batch.is_some()),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
    server.assert_serves();
}

#[test]
fn a_client_that_vanishes_stops_its_statement() {
    let server = Running::start();
    for sql in [
        "SELECT a.* FROM numbers a CROSS JOIN numbers b",
        "SELECT sum(value) FROM generate_series(1, 1000000000000)",
    ] {
        let failed = server.count("statements_failed_total");
        let mut stream = raw(&server);
        stream.write_all(HELLO).unwrap();
        frame(&mut stream).unwrap();
        stream.write_all(&query(1, sql)).unwrap();
        assert_eq!(frame(&mut stream).unwrap().0, 0x82);
        drop(stream);
        server.wait_for("statements_failed_total", failed + 1.0);
    }
    server.wait_for("connections_open", 0.0);
    server.assert_serves();
}

/// A hand-made query: `spec/protocol.md` section 2.
fn query(statement: u32, sql: &str) -> Vec<u8> {
    let mut payload = statement.to_le_bytes().to_vec();
    payload.extend_from_slice(&(sql.len() as u32).to_le_bytes());
    payload.extend_from_slice(sql.as_bytes());
    payload.extend_from_slice(&0u32.to_le_bytes());
    for limit in [1u64 << 20, 1 << 26, 1 << 28] {
        payload.extend_from_slice(&limit.to_le_bytes());
    }
    payload.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0]);
    let mut out = (payload.len() as u32).to_le_bytes().to_vec();
    out.extend_from_slice(&[2, 0, 0, 0]);
    out.append(&mut payload);
    out
}

#[test]
fn a_second_query_ends_the_connection() {
    let server = Running::start();
    let mut stream = raw(&server);
    stream.write_all(HELLO).unwrap();
    frame(&mut stream).unwrap();
    stream
        .write_all(&query(1, "SELECT sum(value) FROM generate_series(1, 1000000000000)"))
        .unwrap();
    assert_eq!(frame(&mut stream).unwrap().0, 0x82);
    stream.write_all(&query(2, "SELECT 1")).unwrap();
    loop {
        match frame(&mut stream) {
            Some((0x84, _)) => {}
            Some((kind, payload)) => {
                assert_eq!(kind, ERROR);
                assert!(String::from_utf8_lossy(&payload).contains("while a statement is running"));
            }
            None => break,
        }
    }
    server.assert_serves();
}

#[test]
fn sql_that_fails_says_why_and_leaves_the_connection() {
    let server = Running::start();
    let mut connection = server.connect();
    let cases = [
        (
            "SELEC 1",
            ErrorKind::Query,
            "syntax error at line 1, column 1: expected: an SQL statement, found: SELEC",
        ),
        ("SELECT 'open", ErrorKind::Query, "unterminated string literal"),
        ("SELECT * FROM nowhere", ErrorKind::Query, "nowhere"),
        ("SELECT nothing FROM numbers", ErrorKind::Query, "nothing"),
        ("", ErrorKind::Query, ""),
        ("CREATE TABLE t (x INT)", ErrorKind::Query, ""),
        ("COPY numbers TO '/tmp/x.csv'", ErrorKind::Query, ""),
        ("SET datafusion.execution.batch_size = 1", ErrorKind::Query, ""),
        ("SELECT fail_at(n, 900000) FROM numbers", ErrorKind::Execution, "met its row"),
        ("SELECT 1 / (n - 5) FROM numbers", ErrorKind::Execution, "zero"),
        ("SELECT panic_at(n, 900000) FROM numbers", ErrorKind::Internal, "met its row"),
    ];
    for (sql, kind, part) in cases {
        let (found, text) = kind_of(&mut connection, sql);
        assert_eq!(found, kind, "{sql}: {text}");
        assert!(text.contains(part) && !text.contains('\n'), "{sql}: {text}");
        assert!(connection.is_usable(), "{sql}");
    }
    server.assert_serves();
}

#[test]
fn rows_larger_than_a_chunk_and_than_the_limit() {
    let server = Running::start();
    let mut connection = server.connect();
    let limits =
        Limits { chunk_bytes_max: 64 << 10, decoded_bytes_max: 64 << 10, row_bytes_max: 4 << 20 };
    let options = QueryOptions { limits, ..QueryOptions::default() };
    let sql = "SELECT n, repeat('x', CASE n WHEN 2 THEN 3000000 ELSE 10 END) AS t FROM numbers \
         WHERE n < 5";
    let batches = connection.query(sql, &options).unwrap().read_all().unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 5);
    assert!(batches.iter().map(RecordBatch::get_array_memory_size).sum::<usize>() >= 3_000_000);
    let sql = "SELECT n, repeat('x', CASE n WHEN 2 THEN 5000000 ELSE 10 END) AS t FROM numbers \
         WHERE n < 5";
    let error = connection.query(sql, &options).unwrap().read_all().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(
        error.to_string().contains("row_bytes_max") && error.to_string().contains("50001"),
        "{error}"
    );
    assert!(connection.is_usable());
}

#[test]
fn results_of_unusual_shapes() {
    let server = Running::start();
    let mut connection = server.connect();
    let options = QueryOptions::default();
    let mut results = connection.query("SELECT * FROM numbers WHERE n < 0", &options).unwrap();
    assert_eq!(results.schema().fields().len(), 2);
    assert!(results.read_all().unwrap().is_empty());
    drop(results);
    let columns = |count: usize| {
        (0..count).map(|i| format!("n + {i} AS c{i}")).collect::<Vec<_>>().join(", ")
    };
    let sql = format!("SELECT {} FROM numbers WHERE n < 20", columns(10_000));
    let limits = Limits { chunk_bytes_max: 1 << 20, ..Limits::default() };
    let mut results =
        connection.query(&sql, &QueryOptions { limits, ..QueryOptions::default() }).unwrap();
    let batches = results.read_all().unwrap();
    assert_eq!(batches[0].num_columns(), 10_000);
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 20);
    drop(results);
    let all_missing = "SELECT NULL AS a, CAST(NULL AS VARCHAR) AS b, CAST(NULL AS DOUBLE) AS c \
         FROM numbers WHERE n < 1000";
    let batches = connection.query(all_missing, &options).unwrap().read_all().unwrap();
    assert!(batches[0].columns().iter().all(|column| column.logical_null_count() == 1000));
}

#[test]
fn a_certificate_that_is_not_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let pair = (certificate.clone(), key);
    let server = Running::start_with(|options| options.tls = Some(pair));
    let port = server.address.rsplit(':').next().unwrap().to_owned();
    let connect = |scheme: &str, host: &str, ca: Option<&std::path::Path>| {
        let options = ConnectOptions {
            ca: ca.map(Into::into),
            timeout: Duration::from_secs(5),
            ..ConnectOptions::default()
        };
        Connection::connect(&format!("{scheme}://{host}:{port}"), &options)
    };
    let error = connect("drays", "localhost", None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Authentication, "{error}");
    // The right authority, but another name.
    assert_eq!(
        connect("drays", "127.0.0.1", Some(&certificate)).unwrap_err().kind(),
        ErrorKind::Authentication
    );
    // A client without TLS.
    assert!(connect("dray", "localhost", None).is_err());
    let mut connection = connect("drays", "localhost", Some(&certificate)).unwrap();
    let mut results = connection.query("SELECT * FROM numbers", &QueryOptions::default()).unwrap();
    let rows: usize = results.read_all().unwrap().iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows, 1_000_000);
    assert!(!results.stats().checksums, "TLS guards the bytes already");
}

#[test]
fn more_connections_than_allowed() {
    let server = Running::start_with(|options| options.connections_max = 2);
    let held = [server.connect(), server.connect()];
    let started = Instant::now();
    let error = Connection::connect(&server.unix, &ConnectOptions::default()).unwrap_err();
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Resources, Some("53300")), "{error}");
    assert!(
        started.elapsed() < Duration::from_secs(9),
        "refused at once, not after the greeting's timeout"
    );
    drop(held);
    server.wait_for("connections_open", 0.0);
    server.assert_serves();
}

/// With this much memory, requests get 64 MiB: four of 15 MiB.
fn little_memory_for_requests(options: &mut dray_server::ServeOptions) {
    options.catalog.memory_bytes = Some(256 << 20);
    options.wait_timeout = Duration::from_secs(1);
}

const LARGE_REQUEST_BYTES: usize = 15 << 20;

#[test]
fn a_large_plan_gives_its_memory_back() {
    let server = Running::start_with(little_memory_for_requests);
    let text = StringArray::from(vec!["x".repeat(LARGE_REQUEST_BYTES)]);
    let row = RecordBatch::try_from_iter([("1", Arc::new(text) as ArrayRef)]).unwrap();
    let query = QueryOptions { parameters: Some(row), ..QueryOptions::default() };
    let plan = PlanOptions { at_most: Some(1), ..PlanOptions::default() };
    let sql = "SELECT n FROM numbers WHERE text <> $1";
    let mut open = Vec::new();
    for _ in 0..5 {
        let mut connection = server.connect();
        let planned = connection.partitions(sql, &query, &plan, &mut || Verdict::Continue);
        assert_eq!(planned.unwrap().partitions().len(), 1);
        open.push(connection);
    }
}

#[test]
fn a_large_message_waits_for_memory_no_longer_than_others() {
    let server = Running::start_with(little_memory_for_requests);
    // Five that only begin, for which there is not enough memory.
    let begun = |_| {
        let mut stream = raw(&server);
        stream.write_all(HELLO).unwrap();
        frame(&mut stream).unwrap();
        stream.write_all(&(LARGE_REQUEST_BYTES as u32).to_le_bytes()).unwrap();
        stream.write_all(&[2, 0, 0, 0]).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        stream
    };
    let mut streams = (0..5).map(begun).collect::<Vec<_>>();
    let deadline = Instant::now() + Duration::from_secs(20);
    let (kind, payload) = loop {
        assert!(Instant::now() < deadline, "none is refused");
        if let Some(answer) = streams.iter_mut().find_map(frame) {
            break answer;
        }
    };
    let text = String::from_utf8_lossy(&payload);
    assert!(kind == ERROR && text.contains("waited 1s for memory"), "{text}");
}
