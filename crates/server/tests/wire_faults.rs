//! Seeded faults between a client and a server. Whatever fails, the client gets the right table or
//! an error in time, and nothing leaks.
//!
//! `DRAY_SEED` repeats a run, `DRAY_FAULT` repeats one of its faults, `DRAY_FAULTS` sets their
//! number.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

mod common;
#[path = "../../client/tests/proxy/mod.rs"]
mod proxy;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use common::Running;
use dray_client::{
    Checksums, CompressionChoice, ConnectOptions, Connection, Error, ErrorKind, Limits,
    QueryOptions,
};
use proxy::{Framing, How, Proxy, Random, Record, fault};

/// Clients that run in parallel. Most of them wait, so they may outnumber the processors.
const CLIENTS: usize = 32;
/// The client's read timeout, and the additional time that a statement may take.
const READ_TIMEOUT: Duration = Duration::from_millis(400);
const TOO_LONG: Duration = Duration::from_secs(20);

/// Results with several chunks, with dictionaries, without rows, with nested values; and errors.
const STATEMENTS: [&str; 6] = [
    "SELECT value AS n, 'row ' || value AS text, value % 7 AS few FROM generate_series(1, 300)",
    "SELECT value AS n, CASE WHEN value % 3 = 0 THEN NULL ELSE value * 1.5 END AS x FROM \
     generate_series(1, 1000)",
    "SELECT arrow_cast('kind ' || (value % 5), 'Dictionary(Int32, Utf8)') AS kind FROM \
     generate_series(1, 400)",
    "SELECT [value, value + 1] AS list, repeat('long ', value % 40) AS text FROM \
     generate_series(1, 120)",
    "SELECT value FROM generate_series(1, 10) WHERE value > 10",
    "SELECT 1 / (value - 150) FROM generate_series(1, 300)",
];

fn options(random: &mut Random) -> QueryOptions {
    let limits = Limits { chunk_bytes_max: 4096, ..Limits::default() };
    let compression =
        random.of(&[CompressionChoice::Auto, CompressionChoice::None, CompressionChoice::Light]);
    QueryOptions {
        limits,
        compression,
        checksums: Checksums::On,
        batch_rows: 100,
        ..QueryOptions::default()
    }
}

fn run(address: SocketAddr, sql: &str, options: &QueryOptions) -> Result<RecordBatch, Error> {
    let connect = ConnectOptions {
        timeout: 2 * READ_TIMEOUT,
        read_timeout: Some(READ_TIMEOUT),
        // The proxy passes the server's instance on.
        local_socket: false,
        ..ConnectOptions::default()
    };
    let mut connection = Connection::connect(&format!("dray://{address}"), &connect)?;
    let mut results = connection.query(sql, options)?;
    let schema = results.schema();
    let batches = results.read_all()?;
    let table = concat_batches(&schema, &batches).unwrap();
    drop(results);
    // A connection that claims to be usable must be.
    if connection.is_usable() && table.num_rows() == 0 {
        connection.query("SELECT 1", options)?.read_all()?;
    }
    Ok(table)
}

/// The result of a statement without faults.
struct Clean {
    table: Result<RecordBatch, ErrorKind>,
    record: Record,
}

#[test]
fn faults_between_client_and_server() {
    let faults = proxy::Run::new("DRAY_FAULTS", 8_000, 128 << 20);
    let server = Running::start_with(|options| options.stall_timeout = Duration::from_secs(5));
    let upstream: SocketAddr = server.address.parse().unwrap();
    let clean: Vec<Clean> = STATEMENTS.iter().map(|sql| measure(upstream, sql)).collect();
    server.wait_for("connections_open", 0.0);
    let [right, late, refused] = faults.make_faults(
        CLIENTS,
        upstream,
        Framing::Dray,
        |proxy, number| meet(proxy, &clean, faults.seed, number),
        || {
            server.wait_for("connections_open", 0.0);
            server.assert_serves();
            server.wait_for("connections_open", 0.0);
        },
    );
    println!("{right} right, {late} too late, {refused} refused");
}

/// Runs a statement without faults.
fn measure(upstream: SocketAddr, sql: &str) -> Clean {
    let proxy = Proxy::start(upstream, Framing::Dray);
    proxy.set(None);
    let table =
        run(proxy.address, sql, &options(&mut Random::new(0))).map_err(|error| error.kind());
    let record = proxy.records().remove(0);
    Clean { table, record }
}

fn meet(proxy: &Proxy, clean: &[Clean], seed: u64, case: u64) -> usize {
    let mut random = Random::new(seed ^ case.wrapping_mul(0xD134_2543_DE82_EF95));
    let statement = random.below(STATEMENTS.len() as u64) as usize;
    let (sql, clean) = (STATEMENTS[statement], &clean[statement]);
    let fault = fault(&mut random, &clean.record, Framing::Dray);
    let options = options(&mut random);
    proxy.set(Some(fault));
    let began = Instant::now();
    let found = run(proxy.address, sql, &options);
    let taken = began.elapsed();
    let what = format!("DRAY_SEED={seed} DRAY_FAULT={case}: {fault:?}, {sql}");
    assert!(taken < TOO_LONG, "{what}: took {taken:?}");
    proxy.records();
    match (found, &clean.table) {
        (Ok(found), Ok(expected)) => {
            assert!(found == *expected, "{what}: another table of {} rows", found.num_rows());
            0
        }
        (Ok(found), Err(_)) => panic!("{what}: {} rows, expected an error", found.num_rows()),
        (Err(error), Ok(_)) if matches!(fault.how, How::Delay(_)) => {
            // Even a busy machine is faster than this.
            assert!(
                error.to_string().contains("read_timeout") || error.to_string().contains("within"),
                "{what}: {error}"
            );
            1
        }
        (Err(_), _) => 2,
    }
}
