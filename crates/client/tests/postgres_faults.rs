//! Seeded faults between the client and PostgreSQL: each statement gives the right table or an
//! error, in time, and leaks nothing.
//!
//! PostgreSQL's protocol has no checksums. Without TLS nobody can notice changed bytes inside of a
//! value, a name or a statement, or swapped rows. So a table may differ only if all messages have
//! the lengths that they had. It must have as many rows as the server says, and as before if the
//! statement was unchanged.
//!
//! `DRAY_SEED` repeats a run, `DRAY_FAULT` one fault of it. `DRAY_POSTGRES_FAULTS` is the number of
//! faults.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

#[path = "../../postgres/tests/common/server.rs"]
mod postgres_server;
mod proxy;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use dray_client::{
    ConnectOptions, Connection, Error, ErrorKind, ExtensionChoice, Partitions, QueryOptions,
};
use postgres_server::{SUPERUSER, Server};
use proxy::{Direction, Framing, How, Proxy, Random, Record, fault, frames};

/// The allocator of Dray's programs. glibc's keeps more and more memory that many threads have
/// freed, which looks like a leak.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Waiting clients take no processor time, so there can be many.
const CLIENTS: usize = 24;
/// How long a client waits for a silent server, with a possible fault and without one; and the
/// limit for all statements.
const READ_TIMEOUT: Duration = Duration::from_millis(500);
const LONG_READ_TIMEOUT: Duration = Duration::from_secs(60);
const TOO_LONG: Duration = Duration::from_secs(20);

const TYPES: &str = "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TYPE pair AS (a int4, b text);
    CREATE TABLE wide AS SELECT n AS id, repeat('x', 100) AS text \
        FROM generate_series(1, 700) AS t(n)";

/// The statements of each connection. Among them are neighbours whose rows must not be mixed up,
/// results without rows, an error in the middle, types of the catalog, a table that two connections
/// read, and statements that run again.
const STATEMENTS: [&[&str]; 5] = [
    &[
        "SELECT 'before' AS what",
        "SELECT n, 'row ' || n AS text, n % 7 AS few FROM generate_series(1, 200) AS t(n)",
        "SELECT n::int8 AS behind FROM generate_series(1, 3) AS t(n)",
    ],
    &[
        "SELECT n::int8, CASE WHEN n % 3 = 0 THEN NULL ELSE n * 1.5::float8 END AS x, \
         ARRAY[n, NULL] AS list \
         FROM generate_series(1, 150) AS t(n)",
        "SELECT n FROM generate_series(1, 10) AS t(n) WHERE n > 10",
        "SELECT 1 / (n - 150) AS q FROM generate_series(1, 300) AS t(n)",
        "SELECT 'behind' AS what",
    ],
    &[
        "SELECT n, n::numeric(9, 2) AS exact, (CASE n % 2 WHEN 0 THEN 'sad' ELSE 'ok' END)::mood \
             AS mood, \
         ROW(n, 'b' || n)::pair AS pair FROM generate_series(1, 60) AS t(n)",
        "BEGIN",
        "SELECT 'within' AS what",
        "SELECT n AS x FROM generate_series(1, 40) AS t(n)",
        "COMMIT",
    ],
    &["SELECT id, text FROM wide", "SELECT id FROM wide WHERE id > 690"],
    &[
        "SELECT 1 AS one",
        "SELECT n FROM generate_series(1, 20) AS t(n)",
        "SELECT n FROM generate_series(1, 20) AS t(n)",
        "SELECT 1 AS one",
        "SELECT n FROM generate_series(1, 20) AS t(n)",
    ],
];
/// The statements that ask for two connections.
const IN_PARTS: usize = 3;

type Outcome = Result<RecordBatch, ErrorKind>;

/// Runs the statements over one connection while it is usable.
fn run(
    address: SocketAddr,
    statements: usize,
    read_timeout: Duration,
) -> Result<Vec<Result<RecordBatch, Error>>, Error> {
    let connect = ConnectOptions {
        timeout: 4 * read_timeout,
        read_timeout: Some(read_timeout),
        ..Default::default()
    };
    let uri = format!("postgresql://{SUPERUSER}@{address}/postgres?sslmode=disable");
    let mut connection = Connection::connect(&uri, &connect)?;
    let mut options = QueryOptions::default();
    options.postgres.partitions =
        if statements == IN_PARTS { Partitions::Exactly(2) } else { Partitions::Exactly(1) };
    options.postgres.ordered = true;
    options.postgres.extension = ExtensionChoice::Never;
    let mut tables = Vec::new();
    for sql in STATEMENTS[statements] {
        let read = |connection: &mut Connection| {
            let mut results = connection.query(sql, &options)?;
            let schema = results.schema();
            let batches = results.read_all()?;
            Ok(concat_batches(&schema, &batches).unwrap())
        };
        tables.push(read(&mut connection));
        if !connection.is_usable() {
            break;
        }
    }
    Ok(tables)
}

/// The outcome of the statements without a fault.
struct Clean {
    tables: Vec<Outcome>,
    /// One for each connection.
    records: Vec<Record>,
}

#[test]
fn faults_between_client_and_postgres() {
    let faults = proxy::Run::new("DRAY_POSTGRES_FAULTS", 2_000, 256 << 20);
    let server =
        Server::start(&[("max_connections", "200"), ("jit", "off"), ("autovacuum", "off")], None);
    server.sql(TYPES);
    let upstream = SocketAddr::from(([127, 0, 0, 1], server.port));
    let clean: Vec<Clean> =
        (0..STATEMENTS.len()).map(|statements| measure(upstream, statements)).collect();
    let [right, unseen, refused] = faults.make_faults(
        CLIENTS,
        upstream,
        Framing::Postgres,
        |proxy, number| meet(proxy, &clean, faults.seed, number),
        || {},
    );
    println!("{right} right, {unseen} that nobody can notice, {refused} refused");
    for (statements, clean) in clean.iter().enumerate() {
        assert_eq!(
            outcomes_of(run(upstream, statements, LONG_READ_TIMEOUT).unwrap()),
            clean.tables
        );
    }
    assert!(!server.log().contains("terminated by signal"), "{}", server.log());
}

/// Runs statements without a fault.
fn measure(upstream: SocketAddr, statements: usize) -> Clean {
    let proxy = Proxy::start(upstream, Framing::Postgres);
    proxy.set(None);
    let tables = outcomes_of(run(proxy.address, statements, LONG_READ_TIMEOUT).unwrap());
    assert_eq!(tables.len(), STATEMENTS[statements].len());
    Clean { tables, records: proxy.records() }
}

fn outcomes_of(tables: Vec<Result<RecordBatch, Error>>) -> Vec<Outcome> {
    tables.into_iter().map(|table| table.map_err(|error| error.kind())).collect()
}

fn meet(proxy: &Proxy, clean: &[Clean], seed: u64, case: u64) -> usize {
    let mut random = Random::new(seed ^ case.wrapping_mul(0xD134_2543_DE82_EF95));
    let statements = random.below(STATEMENTS.len() as u64) as usize;
    let clean = &clean[statements];
    let connection = random.below(clean.records.len() as u64) as usize;
    let fault = fault(&mut random, &clean.records[connection], Framing::Postgres);
    proxy.set_after(connection, Some(fault));
    let began = Instant::now();
    let ran = run(proxy.address, statements, READ_TIMEOUT);
    let taken = began.elapsed();
    let what = format!(
        "DRAY_SEED={seed} DRAY_FAULT={case}: {fault:?} in connection {connection}, \
             statements {statements}"
    );
    assert!(taken < TOO_LONG, "{what}: took {taken:?}");
    let records = proxy.records();
    let tables = ran.unwrap_or_else(|error| vec![Err(error)]);
    let mut outcome = 0;
    for (number, (found, expected)) in tables.iter().zip(&clean.tables).enumerate() {
        let sql = STATEMENTS[statements][number];
        match (found, expected) {
            (Ok(found), Ok(expected)) if found == expected => {}
            (Ok(found), expected) => {
                assert!(
                    records.iter().all(is_of_the_same_shape),
                    "{what}: {sql}: the messages differ, and it gave {found:?}"
                );
                check_unseen(found, expected, &records, &format!("{what}: {sql}"));
                outcome = outcome.max(1);
            }
            (Err(error), _) => {
                let text = error.to_string();
                assert!(error.kind() != ErrorKind::Internal, "{what}: {sql}: {text}");
                if matches!(fault.how, How::Delay(_) | How::Trickle) && expected.is_ok() {
                    // A busy machine may be slow.
                    assert!(
                        text.contains("read_timeout") || text.contains("time"),
                        "{what}: {sql}: {text}"
                    );
                }
                if expected.is_ok() {
                    outcome = 2;
                }
            }
        }
    }
    outcome
}

/// Checks that a table that differs has a possible number of rows.
fn check_unseen(found: &RecordBatch, expected: &Outcome, records: &[Record], what: &str) {
    let is_asked_for_the_same = records.iter().all(|record| record.up.came == record.up.left);
    if is_asked_for_the_same {
        let Ok(expected) = expected else { panic!("{what}: an error was lost: {found:?}") };
        assert_eq!(found.num_rows(), expected.num_rows(), "{what}");
        let described = |bytes: &[u8]| -> Vec<Vec<u8>> {
            let all = frames(bytes, Framing::Postgres, Direction::Down);
            all.into_iter().filter(|frame| frame[0] != b'D').collect()
        };
        let is_described_the_same = records
            .iter()
            .all(|record| described(&record.down.came) == described(&record.down.left));
        // The catalog's answers about types are rows, too.
        if is_described_the_same && !what.contains("::mood") {
            assert_eq!(found.schema(), expected.schema(), "{what}");
        }
    } else {
        // It has the rows of one statement, or of several ranges that make one.
        let counts: Vec<usize> = records
            .iter()
            .flat_map(|record| frames(&record.down.came, Framing::Postgres, Direction::Down))
            .filter(|frame| frame[0] == b'C')
            .filter_map(|frame| {
                String::from_utf8_lossy(&frame[5..])
                    .trim_matches('\0')
                    .strip_prefix("SELECT ")?
                    .parse()
                    .ok()
            })
            .collect();
        let rows = found.num_rows();
        assert!(
            counts.contains(&rows) || records.len() > 1 || rows == 0,
            "{what}: {rows} rows, of {counts:?}"
        );
    }
}

/// Whether the bytes that left equal those that came but for the contents of values, names and
/// statements.
fn is_of_the_same_shape(record: &Record) -> bool {
    let same = |flow: &proxy::Flow, direction: Direction| {
        let shapes = |bytes: &[u8]| {
            let mut shapes: Vec<_> = frames(bytes, Framing::Postgres, direction)
                .iter()
                .map(|frame| shape(frame))
                .collect();
            shapes.sort();
            shapes
        };
        flow.came == flow.left || shapes(&flow.came) == shapes(&flow.left)
    };
    same(&record.up, Direction::Up) && same(&record.down, Direction::Down)
}

/// A message's tag, its length, and the lengths of a row's values.
fn shape(frame: &[u8]) -> (u8, usize, Vec<u32>) {
    let mut lengths = Vec::new();
    if frame.first() == Some(&b'D') {
        let mut rest = frame.get(7..).unwrap_or_default();
        while let Some((length, tail)) = rest.split_first_chunk() {
            let length = u32::from_be_bytes(*length);
            lengths.push(length);
            rest = tail
                .get(if length == u32::MAX { 0 } else { length as usize }..)
                .unwrap_or_default();
        }
    }
    (frame.first().copied().unwrap_or_default(), frame.len(), lengths)
}
