//! The program with a driver that lies (`lying_driver.c`), by the real driver manager.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_schema::SchemaRef;
use dray_bridge::Bridge;
use dray_driver::{
    Driver, ErrorKind, Estimate, ServerError, Session, Sink, Statement as DriverStatement, Stopped,
};
use dray_format::Limits;

/// The driver, which is compiled once.
static DRIVER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let library = folder.join("liblying.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lying_driver.c");
    let compiled = Command::new("cc")
        .args(["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"])
        .args(["-O1", "-o"])
        .arg(&library)
        .arg(source)
        .status()
        .expect("a C compiler");
    assert!(compiled.success(), "unixodbc-dev has the headers");
    library
});

#[derive(Default)]
struct Collected {
    schema: Option<SchemaRef>,
    batches: Vec<RecordBatch>,
    is_stopped: Arc<AtomicBool>,
}

impl Sink for Collected {
    fn begin(&mut self, schema: SchemaRef, _: Estimate) -> Result<(), Stopped> {
        self.schema = Some(schema);
        Ok(())
    }

    fn batch(&mut self, batch: RecordBatch) -> Result<(), Stopped> {
        self.batches.push(batch);
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    fn watch(&self) -> Box<dyn Fn() -> bool + Send> {
        let is_stopped = self.is_stopped.clone();
        Box::new(move || is_stopped.load(Ordering::Relaxed))
    }
}

fn session() -> Box<dyn Session> {
    let command = dray_bridge::Command {
        program: env!("CARGO_BIN_EXE_dray-odbc").into(),
        arguments: Vec::new(),
        install: String::new(),
    };
    let uri = format!("odbc:Driver={};PWD=secret", DRIVER.display());
    Bridge::new("liar", command, &uri, false).open(&mut || true).unwrap()
}

fn run(session: &mut dyn Session, lie: &str, sink: &mut Collected) -> Result<(), ServerError> {
    let limits = Limits { row_bytes_max: 4 << 20, ..Limits::default() };
    let sql = format!("SELECT {lie}");
    session.run(&DriverStatement { sql, limits, ..DriverStatement::default() }, sink)
}

/// The text of a result that has one.
fn text(session: &mut dyn Session, lie: &str) -> String {
    let mut sink = Collected::default();
    run(session, lie, &mut sink).unwrap_or_else(|error| panic!("{lie}: {error:?}"));
    let [batch] = &sink.batches[..] else { panic!("{lie}: {} batches", sink.batches.len()) };
    batch.column(0).as_string::<i32>().value(0).to_owned()
}

#[test]
fn lies_are_errors() {
    let mut session = session();
    assert_eq!(session.server(), "Liar 03.80");
    for (lie, what) in [
        ("minus five columns", "announced -5 columns"),
        ("more rows at a time", "rows when asked for"),
        ("no rows at a time", "fetches 0 rows when asked for"),
        ("a million rows", "fetched 1000000 rows of"),
        ("no rows", "fetched 0 rows of"),
        ("a failed row", "SQLFetch failed and does not say why"),
        ("fails for no reason", "SQLExecDirect failed and does not say why"),
        ("endless reasons", "\u{fffd}"),
        ("a return code", "SQLExecDirect returned 1234"),
        ("digits", "the column \"c\" has the value 1.2.3"),
        ("a date", "the column \"c\" has the date 2023-02-30"),
        ("a bit", "the column \"c\" has the bit [2]"),
        ("half a pair", "the unit 0xd800 lacks its pair"),
        ("an odd length", "the column \"c\" the length 5"),
        ("a length of minus seven", "the column \"c\" the length -7"),
        ("no length", "a value of the column \"c\" no length"),
        ("a huge length", "has a value of 9223372036854775806 bytes"),
        ("then endless pieces", "the client accepts rows of 4194304 bytes"),
        ("then nothing", "no data of a value"),
        ("then minus two", "the length -2"),
        ("then an empty piece", "an empty piece"),
        ("then NULL", "the length -1"),
        ("then no position", "longer than its driver announced"),
        ("several results", "several results"),
    ] {
        let error = run(&mut *session, lie, &mut Collected::default()).expect_err(lie);
        assert!(error.message.contains(what), "{lie}: {error:?}");
        assert!(session.is_usable(), "{lie}");
    }
}

#[test]
fn values_are_never_cut() {
    let mut session = session();
    assert_eq!(text(&mut *session, "the truth"), "short");
    let rest = text(&mut *session, "then the rest");
    assert!(rest.len() > 16_000 && rest.bytes().all(|byte| byte == b'x'), "{}", rest.len());
    for lie in ["a huge size", "a type", "a long name", "a name of minus one"] {
        assert_eq!(text(&mut *session, lie), "short", "{lie}");
    }
    let mut sink = Collected::default();
    run(&mut *session, "then the second row", &mut sink).unwrap();
    let texts = sink.batches[0].column(0).as_string::<i32>();
    assert_eq!((texts.value(0), texts.value(1)), ("short", rest.as_str()));
    let mut sink = Collected::default();
    run(&mut *session, "bytes", &mut sink).unwrap();
    assert_eq!(sink.batches[0].column(0).as_binary::<i32>().value(0), b"bbbbbbbbbbb");
}

#[test]
fn rows_have_a_limit() {
    let mut session = session();
    let lie = "then two long texts";
    let error = run(&mut *session, lie, &mut Collected::default()).unwrap_err();
    assert_eq!((error.kind, error.sqlstate.as_str()), (ErrorKind::Limit, "54000"), "{error:?}");
    assert!(error.message.contains("the client accepts rows of 4194304 bytes at most"));
    assert!(error.message.contains("beside 3") && error.message.contains("row_bytes_max"));
    assert!(session.is_usable());
    assert_eq!(text(&mut *session, "the truth"), "short");
    // A block is larger than a batch may be.
    let mut sink = Collected::default();
    run(&mut *session, "then twelve long rows", &mut sink).unwrap();
    assert_eq!(sink.batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 12);
    for batch in &sink.batches {
        let texts = batch.column(0).as_string::<i32>();
        assert!(texts.iter().flatten().all(|text| text.len() > 3 << 20));
    }
    assert!(session.is_usable());
}

#[test]
fn a_driver_that_crashes_ends_its_session() {
    for (lie, what) in [("dies", "signal: 6"), ("writes nowhere", "signal: 11")] {
        let mut session = session();
        let error = run(&mut *session, lie, &mut Collected::default()).expect_err(lie);
        assert!(error.message.contains(what), "{error:?}");
        assert_eq!((error.kind, session.is_usable()), (ErrorKind::Source, false));
    }
}

#[test]
fn a_statement_is_cancelled_from_outside() {
    let mut session = session();
    let mut sink = Collected::default();
    let is_stopped = sink.is_stopped.clone();
    let stop = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        is_stopped.store(true, Ordering::Relaxed);
    });
    let start = Instant::now();
    run(&mut *session, "sleeps", &mut sink).unwrap();
    stop.join().unwrap();
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    assert!(session.is_usable());
    assert_eq!(text(&mut *session, "the truth"), "short");
}
