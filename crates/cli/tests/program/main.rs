//! Tests of the program against its own server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

mod adbc;
mod copy;
mod explain;
mod export;
mod help;
mod hostile;
mod nest;
mod query;
mod serve;
mod sort;
mod sort_decimals;
mod upload;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array,
    Int64Array, ListArray, RecordBatch, StringArray, StructArray, TimestampMicrosecondArray,
    UInt32Array,
};
use arrow::datatypes::{DataType, Field, Int32Type};
use parquet::arrow::ArrowWriter;
use tempfile::TempDir;

/// A statement whose result takes longer to send than any test waits.
const ENDLESS: &str = "SELECT value, value * 2 AS double FROM generate_series(1, 100000000000)";

/// A folder with tables, and a server for them on a Unix socket.
struct Fixture {
    folder: TempDir,
    server: Server,
    uri: String,
}

impl Fixture {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        write_parquet(&data.join("goods.parquet"), &goods());
        write_parquet(&data.join("nested.parquet"), &nested());
        let socket = folder.path().join("dray.sock");
        let unix = socket.to_str().unwrap();
        let server =
            Server::start(&["--unix", unix, "--metrics", "127.0.0.1:0", data.to_str().unwrap()]);
        let uri = server.lines[0].strip_prefix("listening on ").unwrap().to_owned();
        Self { folder, server, uri }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The output of `dray query` with these arguments.
    fn query(&self, sql: &str, more: &[&str]) -> Output {
        run(&[&["query", &self.uri, sql], more].concat())
    }

    fn export(&self, sql: &str, path: &Path, more: &[&str]) -> Output {
        run(&[&["export", &self.uri, sql, "-o", path.to_str().unwrap()], more].concat())
    }

    /// A counter of the server's metrics.
    fn metric(&self, name: &str) -> u64 {
        let address = self.server.lines[1]
            .strip_prefix("metrics on http://")
            .unwrap()
            .strip_suffix("/metrics")
            .unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let line = text.lines().find(|line| line.starts_with(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("no {name} in {text}"))
            .split(' ')
            .next_back()
            .unwrap()
            .parse()
            .unwrap()
    }

    /// Waits until a counter has at least this value.
    fn wait_for_metric(&self, name: &str, value: u64) {
        wait_until(name, || self.metric(name) >= value);
    }

    /// The names of files that a killed or failed export has left.
    fn leftovers(&self) -> Vec<String> {
        let names =
            std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        names
            .map(|name| name.to_string_lossy().into_owned())
            .filter(|name| name.ends_with(".unfinished"))
            .collect()
    }

    /// Starts an export that never ends, and waits until it has written something.
    fn endless_export(&self, path: &Path) -> Running {
        let running = Running::start(&["export", &self.uri, ENDLESS, "-o", path.to_str().unwrap()]);
        wait_until("something is written", || {
            let names = self.leftovers();
            let sizes = names
                .iter()
                .map(|name| self.path(name).metadata().map_or(0, |metadata| metadata.len()));
            sizes.sum::<u64>() > 0
        });
        running
    }
}

/// A server, killed when dropped.
struct Server {
    child: Child,
    /// The lines on standard output.
    lines: Vec<String>,
}

impl Server {
    /// Starts `dray serve`, and reads its output until it listens.
    fn start(arguments: &[&str]) -> Self {
        let mut command = program();
        command.arg("serve").args(arguments).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let expected = arguments
            .iter()
            .filter(|argument| ["--unix", "--listen", "--metrics"].contains(*argument))
            .count();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().take(expected.max(1));
        let lines: Vec<String> = lines.map(Result::unwrap).collect();
        assert!(lines.len() >= expected, "the server did not start: {lines:?}");
        Self { child, lines }
    }

    fn uri(&self, at: usize) -> &str {
        self.lines[at].strip_prefix("listening on ").unwrap()
    }

    fn signal(&self, name: &str) {
        send_signal(name, &self.child.id().to_string());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client in a process group of its own, killed when dropped.
struct Running(Child);

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut command = program();
        command.args(arguments).process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// Sends the signal of Ctrl-C on a terminal.
    fn interrupt(&self) {
        send_signal("INT", &format!("-{}", self.0.id()));
    }

    fn wait(mut self) -> (Option<i32>, String) {
        drop(self.0.stdout.take());
        let mut errors = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (self.0.wait().unwrap().code(), errors)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program. Ctrl-C ends it even if the tests run as a background job of a shell, which ignores
/// that signal.
fn program() -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_dray")]);
    command.env_remove("DRAY_TOKEN").env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    program().args(arguments).output().unwrap()
}

fn send_signal(name: &str, process: &str) {
    assert!(Command::new("kill").args(["-s", name, "--", process]).status().unwrap().success());
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("waited in vain: {what}");
}

/// Standard output of a run that must have succeeded.
fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The exit code, and the one sentence on standard error.
fn failure(output: &Output) -> (i32, String) {
    let text = stderr(output);
    assert!(text.starts_with("dray: ") && text.lines().count() == 1, "not one sentence: {text}");
    (output.status.code().unwrap(), text)
}

fn write_parquet(path: &Path, batch: &RecordBatch) {
    let mut writer =
        ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

/// Five rows of plain types, with values that are easily lost.
fn goods() -> RecordBatch {
    let names = StringArray::from(vec![
        Some("plain"),
        Some(""),
        None,
        Some("a,\"b\"\nc"),
        Some("Größe 日本"),
    ]);
    let prices = [Some(123_456_789_012_345), Some(-1), None, Some(0), Some(10)];
    let prices = Decimal128Array::from(prices.to_vec()).with_precision_and_scale(15, 2).unwrap();
    let instants = [Some(0), Some(1_706_704_200_123_456), None, Some(-1), Some(1)].to_vec();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from(vec![1, 2, 3, i64::MAX, i64::MIN]))),
        ("name", Arc::new(names)),
        ("price", Arc::new(prices)),
        ("day", Arc::new(Date32Array::from(vec![Some(0), Some(19753), None, Some(-1), Some(1)]))),
        ("at", Arc::new(TimestampMicrosecondArray::from(instants).with_timezone("UTC"))),
        (
            "flag",
            Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true), None])),
        ),
        (
            "ratio",
            Arc::new(Float64Array::from(vec![Some(0.1), Some(1e300), None, Some(-2.5), Some(3.0)])),
        ),
        (
            "blob",
            Arc::new(BinaryArray::from_opt_vec(vec![
                Some(b"\x00\xff"),
                Some(b""),
                None,
                Some(b"a"),
                None,
            ])),
        ),
    ];
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, name != "id")),
    )
    .unwrap()
}

fn nested() -> RecordBatch {
    let lists = vec![Some(vec![Some(1), None]), None, Some(vec![])];
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
    let field = Arc::new(Field::new("x", DataType::Int32, true));
    let structs = StructArray::from(vec![(
        field,
        Arc::new(Int32Array::from(vec![Some(7), None, Some(9)])) as ArrayRef,
    )]);
    RecordBatch::try_from_iter([
        ("list", Arc::new(lists) as ArrayRef),
        ("point", Arc::new(structs) as ArrayRef),
    ])
    .unwrap()
}
