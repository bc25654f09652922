//! Sessions with real child processes: the program `examples/bridge.rs`, which misbehaves in many
//! ways.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arrow_array::{Array, Int32Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use dray_bridge::{Bridge, Command};
use dray_driver::{Driver, ErrorKind, Estimate, Known, Session, Sink, Statement, Stopped};

fn command(arguments: &[&str]) -> Command {
    // Cargo builds examples before tests run, into the folder beside them.
    let tests = std::env::current_exe().unwrap();
    let program: PathBuf = tests.parent().unwrap().parent().unwrap().join("examples/bridge");
    assert!(program.exists(), "build it with --examples");
    let arguments = arguments.iter().map(Into::into).collect();
    Command { program, arguments, install: "install it".to_owned() }
}

fn open(arguments: &[&str], uri: &str) -> Result<Box<dyn Session>, dray_driver::ServerError> {
    Bridge::new("numbers", command(arguments), uri, false).open(&mut || true)
}

fn statement(sql: &str) -> Statement {
    Statement { sql: sql.to_owned(), ..Statement::default() }
}

/// Collects a result, and stops after some batches.
#[derive(Default)]
struct Collected {
    begun: Option<(SchemaRef, Estimate)>,
    rows: usize,
    stops_after: Option<usize>,
    is_stopped: Arc<AtomicBool>,
    batches: usize,
}

impl Sink for Collected {
    fn begin(&mut self, schema: SchemaRef, estimate: Estimate) -> Result<(), Stopped> {
        assert!(self.begun.replace((schema, estimate)).is_none());
        Ok(())
    }

    fn batch(&mut self, batch: RecordBatch) -> Result<(), Stopped> {
        batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
        self.rows += batch.num_rows();
        self.batches += 1;
        if self.stops_after == Some(self.batches) {
            self.is_stopped.store(true, Ordering::Relaxed);
            return Err(Stopped);
        }
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

/// Whether a process of this test's children still runs.
fn children() -> Vec<u32> {
    let me = std::process::id();
    let tasks = std::fs::read_dir(format!("/proc/{me}/task")).unwrap();
    let lists =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<_>>())
        .collect()
}

#[test]
fn results_come_whole() {
    let mut session = open(&[], "somewhere").unwrap();
    assert_eq!(session.server(), "numbers 1.0");
    for rows in [0, 1, 5000] {
        let mut sink = Collected::default();
        session.run(&statement(&format!("SELECT {rows}")), &mut sink).unwrap();
        let (schema, estimate) = sink.begun.unwrap();
        assert_eq!((sink.rows, schema.fields().len()), (rows, 2));
        assert_eq!(estimate.rows, Known::Estimate(rows as u64));
        assert!(session.is_usable());
    }
    let mut planned = Collected::default();
    session.run(&Statement { plan_only: true, ..statement("SELECT 7") }, &mut planned).unwrap();
    assert!(planned.begun.is_some() && planned.rows == 0);
}

#[test]
fn parameters_reach_the_bridge() {
    let schema = Schema::new(vec![Field::new("1", DataType::Int32, false)]);
    let columns: Vec<Arc<dyn Array>> = vec![Arc::new(Int32Array::from(vec![4321]))];
    let parameters = RecordBatch::try_new(schema.into(), columns).unwrap();
    let mut session = open(&[], "somewhere").unwrap();
    let mut sink = Collected::default();
    let statement = Statement { parameters: Some(parameters), ..statement("SELECT ?") };
    session.run(&statement, &mut sink).unwrap();
    assert_eq!(sink.rows, 4321);
}

#[test]
fn errors_keep_what_the_bridge_said() {
    let mut session = open(&[], "somewhere").unwrap();
    let wrong = session.run(&statement("SELECT x"), &mut Collected::default()).unwrap_err();
    assert_eq!((wrong.kind, wrong.sqlstate.as_str()), (ErrorKind::Query, "42601"));
    assert!(session.is_usable());
    let said = session.run(&statement("SELECT much said"), &mut Collected::default()).unwrap_err();
    assert!(said.message.len() < 17_000 && said.message.ends_with("é…"));
    let refused = session.run(&statement("DELETE 1"), &mut Collected::default()).unwrap_err();
    assert_eq!(refused.sqlstate, "25006");
    let sql = statement("SELECT 1 DELETE FROM t COMMIT");
    let several = session.run(&sql, &mut Collected::default()).unwrap_err();
    assert_eq!(several.sqlstate, "25006");
    assert!(several.message.contains("the word COMMIT"), "{several:?}");
    let gone = session.run(&statement("SELECT gone"), &mut Collected::default()).unwrap_err();
    assert_eq!((gone.kind, gone.sqlstate.as_str()), (ErrorKind::Source, "08S01"));
    assert_eq!(gone.message, "the source numbers: the server has gone");
    assert!(!session.is_usable());
    let text = "x".repeat(17 << 20);
    let mut session = open(&[], "somewhere").unwrap();
    let long = session.run(&statement(&format!("SELECT '{text}'")), &mut Collected::default());
    assert_eq!(long.unwrap_err().kind, ErrorKind::Limit);
    assert!(session.is_usable());
}

#[test]
fn databases_that_do_not_open() {
    let error = |arguments: &[&str], uri| open(arguments, uri).map(drop).unwrap_err();
    let refused = error(&[], "refuse secret");
    assert_eq!((refused.kind, refused.sqlstate.as_str()), (ErrorKind::Source, "28000"));
    assert_eq!(refused.message, "can't connect to the source numbers: can't log in with …");
    for (how, what) in [
        ("exit at once", "its bridge ended (exit status: 3)"),
        ("other version", "its bridge has version 2, and the server 1"),
        ("garbage at once", "its bridge sent a frame C of"),
    ] {
        let refused = error(&[how], "secret");
        assert!(refused.message.contains(what), "{how}: {refused:?}");
        assert_eq!(refused.kind, ErrorKind::Source);
    }
    let program = PathBuf::from("/nowhere/bridge");
    let missing = Command { program, ..command(&[]) };
    let missing = Bridge::new("numbers", missing, "", false).open(&mut || true);
    assert_eq!(missing.map(drop).unwrap_err().hint, "install it");
    // A client that has left does not wait.
    let start = Instant::now();
    let waits = AtomicUsize::new(0);
    let bridge = Bridge::new("numbers", command(&["silent"]), "", false);
    let silent = bridge.open(&mut || waits.fetch_add(1, Ordering::Relaxed) < 5);
    assert_eq!(silent.map(drop).unwrap_err().kind, ErrorKind::Cancelled);
    assert!(start.elapsed() < Duration::from_secs(4));
}

#[test]
fn results_that_can_not_be_right_are_errors() {
    for (how, what) in [
        ("short", "whose stream has not ended"),
        ("truncated", "whose stream has not ended"),
        ("more after the end", "bytes after the end"),
        ("fewer rows", "sent 3 rows of 4"),
        ("more rows", "sent 3 rows of 2"),
        ("long header", "a header of 2147483647 bytes"),
        ("bytes", "does not begin as one"),
        ("not utf8", "tf-8"),
        ("wrong offset", "2000000000"),
        ("wrong kind", "kind 0x5a"),
        ("long frame", "of 2147483647 bytes"),
        ("half a frame", "its bridge ended"),
        ("not json", "a frame E"),
        ("two beginnings", "a frame B out of turn"),
        ("no columns", "a frame D out of turn"),
        ("dies", "its bridge ended (signal: 6"),
    ] {
        let mut session = open(&[how], "somewhere").unwrap();
        let ended = session.run(&statement("SELECT 3"), &mut Collected::default());
        let error = ended.expect_err(how);
        assert!(error.message.contains(what), "{how}: {error:?}");
        assert_eq!((error.kind, error.sqlstate.as_str()), (ErrorKind::Source, "08006"), "{how}");
        assert!(!session.is_usable(), "{how}");
    }
}

#[test]
fn words_on_standard_error_do_not_hold_a_bridge_back() {
    let mut session = open(&["endless stderr"], "somewhere").unwrap();
    let mut sink = Collected::default();
    session.run(&statement("SELECT 3"), &mut sink).unwrap();
    assert_eq!(sink.rows, 3);
}

#[test]
fn a_statement_that_nobody_waits_for_is_cancelled() {
    let mut session = open(&[], "somewhere").unwrap();
    let mut sink = Collected { stops_after: Some(2), ..Collected::default() };
    session.run(&statement("SELECT forever"), &mut sink).unwrap();
    assert!(session.is_usable());
    // Before the first row, by another thread.
    let sink = Collected::default();
    let is_stopped = sink.is_stopped.clone();
    let stop = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        is_stopped.store(true, Ordering::Relaxed);
    });
    let mut sink = sink;
    session.run(&statement("SELECT sleep"), &mut sink).unwrap();
    stop.join().unwrap();
    // The bridge was told once, and the next statement is not cancelled.
    assert!(session.is_usable());
    let mut sink = Collected::default();
    session.run(&statement("SELECT 10"), &mut sink).unwrap();
    assert_eq!(sink.rows, 10);
}

#[test]
fn a_bridge_that_does_not_answer_a_cancel_is_killed() {
    for how in ["ignores cancels", "endless"] {
        let mut session = open(&[how], "somewhere").unwrap();
        let sink = Collected::default();
        let is_stopped = sink.is_stopped.clone();
        let stop = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            is_stopped.store(true, Ordering::Relaxed);
        });
        let start = Instant::now();
        let mut sink = sink;
        session.run(&statement("SELECT 1"), &mut sink).unwrap();
        stop.join().unwrap();
        assert!(!session.is_usable(), "{how}");
        let took = start.elapsed();
        assert!(took > Duration::from_secs(5) && took < Duration::from_secs(8), "{how} {took:?}");
    }
}

#[test]
fn a_session_takes_its_process_with_it() {
    // Other tests of this process have children too: those of this one have arguments.
    let running = || {
        let names = children()
            .into_iter()
            .filter_map(|id| std::fs::read_to_string(format!("/proc/{id}/cmdline")).ok());
        names.filter(|name| name.contains("leaves")).count()
    };
    let session = open(&["leaves"], "somewhere").unwrap();
    assert_eq!(running(), 1);
    drop(session);
    assert_eq!(running(), 0);
}
