//! Hostile statements and clients: deep, wide, slow and huge statements, and clients that read
//! nothing. After each the server answers other clients in time, and has released its memory.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use dray_client::{ConnectOptions, Connection, ErrorKind, QueryOptions, Verdict};

use super::*;

/// How long a statement may run before the test cancels it.
const PATIENCE: Duration = Duration::from_millis(400);
/// The time limit for `SELECT 1`, which takes a millisecond on an idle machine. A server that no
/// longer answers exceeds any limit.
const ANSWER_MAX: Duration = Duration::from_secs(15);
/// How much a server's memory may have grown after a statement. Its allocator keeps pages for each
/// thread, and a statement that was cancelled may still be planned when the test looks.
const GROWTH_MAX: u64 = 800 << 20;

fn connect(uri: &str) -> Connection {
    Connection::connect(uri, &ConnectOptions::default()).unwrap()
}

/// The outcome of a statement, which is cancelled if it takes too long.
fn run_for(
    connection: &mut Connection,
    sql: &str,
    patience: Duration,
) -> Result<usize, dray_client::Error> {
    let deadline = Instant::now() + patience;
    let watch = Box::new(move |_: &dray_client::Progress| match Instant::now() < deadline {
        true => Verdict::Continue,
        false => Verdict::Cancel,
    });
    let mut results =
        Connection::query_with(&mut *connection, sql, &QueryOptions::default(), Some(watch))?;
    let mut rows = 0;
    while let Some(batch) = results.next_batch()? {
        rows += batch.num_rows();
    }
    Ok(rows)
}

fn answers(connection: &mut Connection) {
    assert_eq!(run_for(connection, "SELECT 1", Duration::from_secs(20)).unwrap(), 1);
}

/// Queries one row repeatedly, and records the longest response time.
struct Probe {
    stop: Arc<AtomicBool>,
    longest_us: Arc<AtomicU64>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Probe {
    fn start(uri: &str) -> Self {
        let (stop, longest_us) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, longest, mut connection) = (stop.clone(), longest_us.clone(), connect(uri));
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let asked = Instant::now();
                answers(&mut connection);
                longest.fetch_max(asked.elapsed().as_micros() as u64, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        Self { stop, longest_us, thread: Some(thread) }
    }

    /// The longest response time since the last call.
    fn longest(&self) -> Duration {
        assert!(!self.thread.as_ref().unwrap().is_finished(), "the server no longer answers");
        Duration::from_micros(self.longest_us.swap(0, Ordering::Relaxed))
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking(), "the server no longer answers");
    }
}

fn resident_bytes(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// A server with a table of 200,000 numbers, and these arguments.
fn serve_numbers(more: &[&str]) -> (TempDir, Server, String) {
    let folder = tempfile::tempdir().unwrap();
    let n = Int64Array::from_iter_values(0..200_000);
    let x = Int64Array::from_iter_values((0..200_000).map(|i| i * 7919 % 200_003));
    let batch = RecordBatch::try_from_iter([
        ("n", Arc::new(n) as ArrayRef),
        ("x", Arc::new(x) as ArrayRef),
    ])
    .unwrap();
    let numbers = folder.path().join("numbers.parquet");
    write_parquet(&numbers, &batch);
    let socket = folder.path().join("dray.sock");
    let unix = socket.to_str().unwrap();
    let server = Server::start(
        &[&["--unix", unix, "--memory", "256MB", numbers.to_str().unwrap()], more].concat(),
    );
    let uri = server.uri(0).to_owned();
    (folder, server, uri)
}

/// `first`, followed by `count` times `more`.
fn chain(first: &str, more: &str, count: usize) -> String {
    first.to_owned() + &more.repeat(count)
}

/// `inner`, nested in `count` pairs of `before` and `after`.
fn nest(before: &str, inner: &str, after: &str, count: usize) -> String {
    before.repeat(count) + inner + &after.repeat(count)
}

/// `count` copies of the text, with the copy's number in place of the brackets.
fn numbered(text: &str, count: usize) -> String {
    (0..count).map(|number| text.replace("{}", &number.to_string())).collect()
}

/// A chain of queries, each of which reads the previous one.
fn steps(first: &str, step: impl Fn(usize) -> String, count: usize) -> String {
    let steps: Vec<String> = (1..=count).map(|i| format!("q{i} AS ({})", step(i - 1))).collect();
    format!("WITH q0 AS ({first}), {} SELECT * FROM q{count}", steps.join(", "))
}

/// The statements: a name and the text.
fn hostile() -> Vec<(&'static str, String)> {
    let select = |what: String| format!("SELECT {what}");
    let twice = |i: usize| format!("SELECT a.n FROM q{i} a JOIN q{i} b ON a.n = b.n");
    let double = |i: usize| format!("SELECT x + x AS x FROM q{i}");
    let tables = |count: usize| {
        format!("SELECT count(*) FROM numbers{}", numbered(", numbers t{}", count - 1))
    };
    let unyielding = "SELECT count(*) FROM numbers a JOIN numbers b ON a.x + b.x = 3";
    vec![
        ("2,000 sums", select(chain("1", "+n", 2_000)) + " FROM numbers"),
        ("100,000 sums", select(chain("1", "+1", 100_000))),
        ("900 sums", select(chain("1", "+n", 900)) + " FROM numbers"),
        ("2,000 conditions", chain("SELECT 1 FROM numbers WHERE n=1", " OR n=2", 2_000)),
        ("900 conditions", chain("SELECT 1 FROM numbers WHERE n=1", " OR x=2", 900)),
        ("2,000 strings", select(chain("'a'", "||'b'", 2_000))),
        ("2,000 casts", select(chain("1", "::bigint", 2_000))),
        ("48 nested casts", select(nest("CAST(", "1", " AS BIGINT)", 48))),
        ("47 nested casts and a mistake", select(nest("CAST(", "1 AS", " AS BIGINT)", 47))),
        ("4,000 unions", chain("SELECT 1", " UNION ALL SELECT 1", 4_000)),
        ("900 unions", chain("SELECT 1", " UNION ALL SELECT 1", 900)),
        ("900 intersections", chain("SELECT 1", " INTERSECT SELECT 1", 900)),
        ("brackets", select(nest("(", "1", ")", 100_000))),
        (
            "brackets where a table should \
             be",
            nest("SELECT * FROM ", "(", "", 1) + &nest("(", "numbers", ")", 100),
        ),
        ("queries", nest("SELECT * FROM (", "numbers", ") q", 20_000)),
        ("40 queries", nest("SELECT * FROM (", "SELECT 1", ") q", 40)),
        ("scalar queries", select(nest("(SELECT ", "1", ")", 20_000))),
        ("queries that exist", nest("SELECT 1 WHERE EXISTS (", "SELECT 1", ")", 40)),
        ("steps", steps("SELECT 1 AS n", |i| format!("SELECT n FROM q{i}"), 900)),
        ("20,000 steps", steps("SELECT 1 AS n", |i| format!("SELECT n FROM q{i}"), 20_000)),
        ("steps that read twice", steps("SELECT n FROM numbers", twice, 18)),
        ("40 steps that read twice", steps("SELECT n FROM numbers", twice, 40)),
        ("steps that double", steps("SELECT x FROM numbers", double, 40) + " WHERE x > 3"),
        (
            "steps of lists",
            steps("SELECT n AS x FROM numbers", |i| format!("SELECT [x] AS x FROM q{i}"), 300),
        ),
        ("cases", select(nest("CASE WHEN n = 1 THEN ", "1", " END", 10_000)) + " FROM numbers"),
        (
            "one long case",
            select(format!("CASE {} END FROM numbers", "WHEN n < 1 THEN 1 ".repeat(5_000))),
        ),
        ("lists", select(nest("[", "1", "]", 10_000))),
        ("a long list", select(format!("[{}1]", "1,".repeat(50_000)))),
        ("not", select(chain("", "NOT ", 50_000)) + "true"),
        ("minus", select(chain("", "- ", 50_000)) + "1"),
        ("intervals", select(chain("", "INTERVAL ", 50_000)) + "'1'"),
        ("explain", chain("", "EXPLAIN ", 50_000) + "SELECT 1"),
        ("types", select(chain("NULL::INT", "[]", 50_000))),
        ("angles", select("NULL::".to_owned() + &nest("ARRAY<", "INT", ">", 50_000))),
        (
            "a type as text",
            select(format!("arrow_cast(NULL, '{}')", nest("List(", "Int8", ")", 100_000))),
        ),
        ("calls", select(nest("abs(", "1", ")", 20_000))),
        ("499 tables", tables(499)),
        ("2,000 tables", tables(2_000)),
        ("100,000 values", format!("SELECT 1 FROM numbers WHERE n IN ({}1)", "1,".repeat(100_000))),
        ("10,000 columns", select(chain("1", ", n", 10_000)) + " FROM numbers LIMIT 1"),
        ("a million words", select(chain("1", ",1", 500_000))),
        (
            "a cube",
            format!(
                "SELECT count(*) FROM numbers GROUP BY CUBE \
             ({}n)",
                numbered("n + {}, ", 40)
            ),
        ),
        (
            "an endless recursion",
            "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT sum(n) FROM \
             r"
            .into(),
        ),
        ("an endless sum", "SELECT sum(value) FROM generate_series(1, 1000000000000)".into()),
        (
            "an endless sort",
            "SELECT a.n FROM numbers a CROSS JOIN numbers b ORDER BY a.x + \
             b.x"
            .into(),
        ),
        ("a join that does not yield", unyielding.into()),
        (
            "another one",
            "SELECT count(*) FROM numbers a JOIN numbers b ON a.x * b.x = 7 AND a.n + \
             b.n > 1"
                .into(),
        ),
    ]
}

#[test]
fn hostile_statements() {
    let (_folder, server, uri) = serve_numbers(&["--plan-timeout", "5"]);
    let mut connection = connect(&uri);
    answers(&mut connection);
    let before = resident_bytes(&server);
    let probe = Probe::start(&uri);
    let mut failures = Vec::new();
    for (name, sql) in hostile() {
        probe.longest();
        let asked = Instant::now();
        let outcome = run_for(&mut connection, &sql, PATIENCE);
        let took = asked.elapsed();
        answers(&mut connection);
        let longest = probe.longest();
        let mut resident = resident_bytes(&server);
        for _ in 0..50 {
            if resident < before + GROWTH_MAX {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
            resident = resident_bytes(&server);
        }
        let said = outcome.as_ref().map_or_else(ToString::to_string, |rows| format!("{rows} rows"));
        let said = said.chars().take(100).collect::<String>();
        println!("{name}: {took:?}, others {longest:?}, {} MB: {said}", resident >> 20);
        let is_clear = !outcome.as_ref().is_err_and(|error| {
            matches!(error.kind(), ErrorKind::Internal | ErrorKind::Connection)
        });
        let is_quick = took < PATIENCE + ANSWER_MAX && longest < ANSWER_MAX;
        if !is_clear || !is_quick || resident >= before + GROWTH_MAX {
            failures.push(format!(
                "{name}: {took:?}, others {longest:?}, {} MB: {said}",
                resident >> 20
            ));
        }
    }
    drop(probe);
    assert!(failures.is_empty(), "{failures:#?}");
    // Two of the statements still run. They must not delay the server's stop.
    ends_at_the_second_signal(server);
}

fn ends_at_the_second_signal(mut server: Server) {
    server.signal("TERM");
    std::thread::sleep(Duration::from_millis(200));
    let asked = Instant::now();
    if server.child.try_wait().unwrap().is_none() {
        server.signal("TERM");
    }
    wait_until("the server ends", || server.child.try_wait().unwrap().is_some());
    assert!(asked.elapsed() < ANSWER_MAX, "{:?}", asked.elapsed());
}

#[test]
fn a_second_signal_ends_what_does_not_yield() {
    let (_folder, server, uri) = serve_numbers(&[]);
    let connected = Arc::new(AtomicU64::new(0));
    let joins: Vec<_> = (0..3)
        .map(|_| {
            let (uri, connected) = (uri.clone(), connected.clone());
            let sql = "SELECT count(*) FROM numbers a JOIN numbers b ON a.x + b.x = 3";
            std::thread::spawn(move || {
                let mut connection = connect(&uri);
                connected.fetch_add(1, Ordering::Relaxed);
                run_for(&mut connection, sql, Duration::from_secs(60))
            })
        })
        .collect();
    wait_until("all are connected", || connected.load(Ordering::Relaxed) == 3);
    // Nothing tells when the statements run, a moment later.
    std::thread::sleep(Duration::from_millis(300));
    answers(&mut connect(&uri));
    ends_at_the_second_signal(server);
    for join in joins {
        assert_eq!(join.join().unwrap().unwrap_err().kind(), ErrorKind::Connection);
    }
}

/// A result that the client does not read.
fn unread(uri: &str) -> dray_client::Results<Connection> {
    let mut results =
        Connection::query_with(connect(uri), ENDLESS, &QueryOptions::default(), None).unwrap();
    assert!(results.next_batch().unwrap().is_some());
    results
}

#[test]
fn a_stop_does_not_wait_for_clients_that_read_nothing() {
    let (_folder, mut server, uri) = serve_numbers(&["--stall-timeout-contended", "0.5"]);
    let _unread = unread(&uri);
    server.signal("TERM");
    wait_until("the server ends", || server.child.try_wait().unwrap().is_some());
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn results_that_are_not_read_make_room_for_others() {
    let more =
        ["--statements", "4", "--statements-per-host", "4", "--stall-timeout-contended", "0.5"];
    let (_folder, _server, uri) = serve_numbers(&more);
    let _unread: Vec<_> = (0..4).map(|_| unread(&uri)).collect();
    answers(&mut connect(&uri));
}

#[test]
fn a_statement_that_gets_no_slot_fails() {
    let more = ["--statements", "4", "--wait-timeout", "0.4"];
    let (_folder, _server, uri) = serve_numbers(&more);
    // Three quarters of the slots, the limit for one host.
    let _unread: Vec<_> = (0..3).map(|_| unread(&uri)).collect();
    let mut connection = connect(&uri);
    let error = run_for(&mut connection, "SELECT 1", Duration::from_secs(20)).unwrap_err();
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Resources, Some("53300")), "{error}");
    assert!(error.to_string().contains("4 statements run at a time, 3 from one host"), "{error}");
    drop(_unread);
    // The server has to notice that their clients are gone.
    let deadline = Instant::now() + Duration::from_secs(20);
    while let Err(error) = run_for(&mut connection, "SELECT 1", Duration::from_secs(20)) {
        assert_eq!(error.sqlstate(), Some("53300"), "{error}");
        assert!(Instant::now() < deadline, "{error}");
    }
}

#[test]
fn connections_beyond_the_limit_are_refused() {
    let (_folder, _server, uri) = serve_numbers(&["--connections", "2"]);
    let (mut first, _second) = (connect(&uri), connect(&uri));
    let error = Connection::connect(&uri, &ConnectOptions::default()).err().unwrap();
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Resources, Some("53300")), "{error}");
    assert!(error.to_string().contains("2 connections"), "{error}");
    answers(&mut first);
}

#[test]
fn silent_connections_to_the_metrics_keep_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("dray.sock");
    let command = format!(
        "ulimit -n 100; exec {} serve --unix {} --metrics 127.0.0.1:0",
        env!("CARGO_BIN_EXE_dray"),
        socket.display()
    );
    let mut child = Command::new("sh")
        .args(["-c", &command])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().take(2);
    let server = Server { child, lines: lines.map(Result::unwrap).collect() };
    let address = server.lines[1]
        .strip_prefix("metrics on http://")
        .unwrap()
        .strip_suffix("/metrics")
        .unwrap();
    let _silent: Vec<_> = (0..110).map(|_| TcpStream::connect(address).unwrap()).collect();
    std::thread::sleep(Duration::from_millis(300));
    let asked = Instant::now();
    answers(&mut connect(server.uri(0)));
    assert!(asked.elapsed() < ANSWER_MAX, "{:?}", asked.elapsed());
}
