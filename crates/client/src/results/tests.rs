//! Results of a source that follows a script.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use arrow::array::{AsArray, Int64Array};
use arrow::datatypes::Int64Type;
use dray_format::arrow::batch_from_arrow;
use dray_format::{Checksum, Limits};
use dray_page::{PAGE_BYTES, PageBuilder};
use dray_wire::partition::PartDescriptor;
use dray_wire::{
    CompressionChoice, ErrorKind as WireKind, Estimate, Finished, RowLayout, ServerError,
};

use super::*;
use crate::partition::PlanOptions;
use crate::source::{PlannedParts, Source, SourceKind};
use crate::stats::TransferPath;
use crate::watch::CancelCheck;

/// What happened to the source.
#[derive(Debug, Default)]
struct Seen {
    asked: usize,
    stopped: usize,
    running: bool,
    broken: bool,
}

/// Yields its events one after the other.
#[derive(Debug)]
struct Script {
    events: VecDeque<Result<Event>>,
    seen: Arc<Mutex<Seen>>,
}

impl Script {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }
}

impl Source for Script {
    fn server(&self) -> &str {
        "script"
    }

    fn kind(&self) -> SourceKind {
        SourceKind::Dray
    }

    fn parameters_in(&self, _sql: &str) -> usize {
        0
    }

    fn place(&self) -> &str {
        "nowhere"
    }

    fn is_usable(&self) -> bool {
        let seen = self.seen();
        !seen.broken && !seen.running
    }

    fn is_running(&self) -> bool {
        let seen = self.seen();
        !seen.broken && seen.running
    }

    fn break_off(&mut self) {
        self.seen().broken = true;
    }

    fn path(&self) -> TransferPath {
        TransferPath::default()
    }

    fn start(
        &mut self,
        _: &str,
        _: &QueryOptions,
        _: RowLayout,
        cancel: CancelCheck<'_>,
    ) -> Result<()> {
        let mut seen = self.seen();
        if seen.broken {
            return Err(Error::usage("the connection is broken; connect again"));
        }
        seen.asked += 1;
        seen.running = true;
        cancel();
        Ok(())
    }

    fn plan_parts(
        &mut self,
        _: &str,
        _: &QueryOptions,
        _: &PlanOptions,
        _: CancelCheck<'_>,
    ) -> Result<PlannedParts> {
        Err(Error::usage("the script has no plans"))
    }

    fn begin_part(&mut self, _: &PartDescriptor, _: CancelCheck<'_>) -> Result<String> {
        Err(Error::usage("the script has no parts"))
    }

    fn next(&mut self, _: &mut ReceiveContext<'_>, cancel: CancelCheck<'_>) -> Result<Event> {
        cancel();
        let event =
            self.events.pop_front().expect("nothing is asked of a source whose result has ended");
        let mut seen = self.seen();
        match &event {
            Ok(Event::Finished { .. }) => seen.running = false,
            Err(error) if error.kind() == ErrorKind::Connection => seen.broken = true,
            Err(error) if error.kind() == ErrorKind::Execution => seen.running = false,
            _ => {}
        }
        drop(seen);
        event
    }

    fn stop(&mut self, _: CancelCheck<'_>) {
        let mut seen = self.seen();
        seen.stopped += 1;
        seen.running = false;
    }
}

/// A connection whose source yields these events after the start of a result, and what happens to
/// it.
fn connection(events: Vec<Result<Event>>) -> (Connection, Arc<Mutex<Seen>>) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let events = std::iter::once(Ok(started())).chain(events).collect();
    (Connection::over(Box::new(Script { events, seen: seen.clone() })), seen)
}

fn started() -> Event {
    Event::Started(Start {
        schema: rows(0..1).schema(),
        estimate: Estimate::default(),
        compression: CompressionChoice::None,
        checksums: true,
        plan: Duration::from_nanos(7),
    })
}

fn rows(numbers: std::ops::Range<i64>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([(
        "n",
        Arc::new(Int64Array::from_iter_values(numbers)) as _,
        false,
    )])
    .unwrap()
}

/// Rows of 8 bytes each.
fn arrived(numbers: std::ops::Range<i64>) -> Result<Event> {
    let decoded_bytes = 8 * (numbers.end - numbers.start) as u64;
    Ok(Event::Batch(ReceivedBatch {
        batch: rows(numbers),
        wire_bytes: decoded_bytes + 64,
        decoded_bytes,
        arrived: Instant::now(),
        receive: Duration::ZERO,
        parse: Duration::ZERO,
        decode: Duration::ZERO,
    }))
}

fn finished() -> Result<Event> {
    Ok(Event::Finished { server: Some(Finished::default()) })
}

fn broke() -> Result<Event> {
    Err(Error::new(ErrorKind::Connection, "the connection to the server broke"))
}

fn options(batch_rows: usize) -> QueryOptions {
    QueryOptions { batch_rows, ..QueryOptions::default() }
}

fn numbers(batch: &RecordBatch) -> Vec<i64> {
    batch.column(0).as_primitive::<Int64Type>().values().to_vec()
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

#[test]
fn batches_are_joined_to_the_rows_that_were_asked_for() {
    let events =
        vec![arrived(0..10), arrived(10..20), arrived(20..30), arrived(30..31), finished()];
    let (mut connection, seen) = connection(events);
    let mut results = connection.query("SELECT", &options(15)).unwrap();
    let batches = results.read_all().unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [20, 11]);
    assert_eq!(batches.iter().flat_map(numbers).collect::<Vec<_>>(), (0..31).collect::<Vec<_>>());
    // The end stays the end.
    assert!(results.next_batch().unwrap().is_none());
    assert_eq!((results.stats().rows, results.stats().chunks), (31, 4));
    drop(results);
    assert_eq!(seen.lock().unwrap().stopped, 0);
    assert!(connection.is_usable());
}

#[test]
fn a_batch_of_enough_bytes_is_not_joined() {
    let (mut connection, _) = connection(vec![
        arrived(0..10),
        arrived(10..50),
        arrived(50..90),
        arrived(90..91),
        finished(),
    ]);
    let mut results =
        connection.query("SELECT", &QueryOptions { batch_bytes: 200, ..options(1000) }).unwrap();
    let batches = results.read_all().unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [50, 40, 1]);
    assert_eq!(batches.iter().flat_map(numbers).collect::<Vec<_>>(), (0..91).collect::<Vec<_>>());
}

#[test]
fn a_batch_ends_before_its_bytes_are_too_many() {
    let (mut connection, _) = connection(vec![
        arrived(0..10),
        arrived(10..20),
        arrived(20..50),
        arrived(50..51),
        finished(),
    ]);
    let limits = Limits { decoded_bytes_max: 200, ..Limits::default() };
    let mut results =
        connection.query("SELECT", &QueryOptions { limits, ..options(1000) }).unwrap();
    let batches = results.read_all().unwrap();
    // The third alone is over the limit, and comes alone.
    assert_eq!(batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [20, 30, 1]);
    assert_eq!(batches.iter().flat_map(numbers).collect::<Vec<_>>(), (0..51).collect::<Vec<_>>());
}

#[test]
fn an_error_hands_out_no_earlier_batch() {
    let damaged = Err(Error::new(ErrorKind::Protocol, "a damaged chunk"));
    let (mut connection, seen) = connection(vec![arrived(0..10), damaged]);
    let mut results = connection.query("SELECT", &options(1000)).unwrap();
    assert_eq!(kind(results.next_batch()), ErrorKind::Protocol);
    assert_eq!(kind(results.next_batch()), ErrorKind::Usage);
    drop(results);
    // The source has not ended the statement itself.
    assert_eq!(seen.lock().unwrap().stopped, 1);
}

#[test]
fn no_batch_comes_after_an_error() {
    let error = ServerError {
        statement: 1,
        kind: WireKind::Execution,
        sqlstate: "22012".to_owned(),
        message: "division by zero".to_owned(),
        hint: String::new(),
    };
    let events = vec![arrived(0..10), arrived(10..15), Err(error.into())];
    let (mut connection, seen) = connection(events);
    let mut results = connection.query("SELECT", &options(10)).unwrap();
    assert_eq!(results.next_batch().unwrap().unwrap().num_rows(), 10);
    let error = results.next_batch().unwrap_err();
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Execution, Some("22012")));
    for _ in 0..2 {
        assert_eq!(kind(results.next_batch()), ErrorKind::Usage);
    }
    drop(results);
    // The server has ended the statement.
    assert_eq!(seen.lock().unwrap().stopped, 0);
    assert!(connection.is_usable());
}

#[test]
fn a_connection_that_breaks_between_batches_says_so_and_stays_broken() {
    let (mut connection, seen) = connection(vec![arrived(0..10), broke()]);
    let mut results = connection.query("SELECT", &options(10)).unwrap();
    assert_eq!(results.next_batch().unwrap().unwrap().num_rows(), 10);
    assert_eq!(kind(results.next_batch()), ErrorKind::Connection);
    assert_eq!(kind(results.next_batch()), ErrorKind::Usage);
    drop(results);
    assert!(!connection.is_usable());
    assert_eq!(kind(connection.query("SELECT", &options(10))), ErrorKind::Usage);
    let seen = seen.lock().unwrap();
    // Nobody is there to be told.
    assert_eq!((seen.asked, seen.stopped), (1, 0));
}

#[test]
fn a_result_that_is_dropped_half_read_stops_its_statement() {
    let (mut connection, seen) = connection(vec![arrived(0..10), arrived(10..20)]);
    let mut results = connection.query("SELECT", &options(10)).unwrap();
    assert!(results.next_batch().unwrap().is_some());
    drop(results);
    assert_eq!(seen.lock().unwrap().stopped, 1);
    assert!(connection.is_usable());
}

#[test]
fn no_batch_comes_after_a_cancel() {
    let (mut connection, seen) = connection(vec![arrived(0..10), arrived(10..20)]);
    let mut results = connection.query("SELECT", &options(10)).unwrap();
    assert!(results.next_batch().unwrap().is_some());
    results.cancel();
    // An end without an error would look whole.
    assert_eq!(kind(results.next_batch()), ErrorKind::Cancelled);
    results.cancel();
    drop(results);
    assert_eq!(seen.lock().unwrap().stopped, 1);
}

#[test]
fn a_cancel_after_the_end_changes_nothing() {
    let (mut connection, seen) = connection(vec![arrived(0..10), finished()]);
    let mut results = connection.query("SELECT", &options(10)).unwrap();
    assert!(results.next_batch().unwrap().is_some());
    assert!(results.next_batch().unwrap().is_none());
    results.cancel();
    assert!(results.next_batch().unwrap().is_none());
    drop(results);
    assert_eq!(seen.lock().unwrap().stopped, 0);
}

#[test]
fn a_watch_that_has_seen_enough_cancels() {
    for looks in 1..6 {
        let events =
            vec![arrived(0..10), Ok(Event::Progress { rows_read: 5 }), arrived(10..20), finished()];
        let (mut connection, seen) = connection(events);
        let mut left = looks;
        let watch = Box::new(move |_: &Progress| {
            left -= 1;
            if left > 0 { Verdict::Continue } else { Verdict::Cancel }
        });
        let read = Connection::query_with(&mut connection, "SELECT", &options(1000), Some(watch))
            .and_then(|mut results| results.next_batch());
        assert_eq!(kind(read), ErrorKind::Cancelled, "{looks}");
        assert_eq!(seen.lock().unwrap().stopped, 1, "{looks}");
        assert!(connection.is_usable());
    }
}

#[test]
fn events_out_of_turn_end_the_connection() {
    // A second start.
    let (mut connection, seen) = connection(vec![arrived(0..10), Ok(started())]);
    let mut results = connection.query("SELECT", &options(1000)).unwrap();
    assert_eq!(kind(results.next_batch()), ErrorKind::Protocol);
    drop(results);
    assert!(seen.lock().unwrap().broken && !connection.is_usable());
    // None.
    let seen = Arc::new(Mutex::new(Seen::default()));
    let script = Script { events: [arrived(0..10)].into(), seen: seen.clone() };
    let mut connection = Connection::over(Box::new(script));
    assert_eq!(kind(connection.query("SELECT", &options(1))), ErrorKind::Protocol);
    assert!(seen.lock().unwrap().broken);
}

/// A page with the numbers of this range, as a source hands it on.
fn page_arrived(numbers: std::ops::Range<i64>) -> Result<Event> {
    let batch = rows(numbers);
    let layout = Layout::new(schema_from_arrow(&batch.schema())?)?;
    let mut builder = PageBuilder::new(layout, PAGE_BYTES, Checksum::None)?;
    builder.append(&batch_from_arrow(&batch)?)?;
    let page = builder.finish().remove(0);
    Ok(Event::Page(ReceivedPage {
        page,
        wire_bytes: 100,
        arrived: Instant::now(),
        receive: Duration::ZERO,
        decode: Duration::ZERO,
    }))
}

fn numbers_of(page: &VerifiedPage) -> Vec<i64> {
    page.objects().map(|object| object.field(0).unwrap().i64().unwrap()).collect()
}

#[test]
fn chunks_and_pages_are_objects_in_their_order() {
    let events =
        vec![page_arrived(0..3), arrived(3..5), page_arrived(5..6), arrived(6..9), finished()];
    let (mut connection, seen) = connection(events);
    let mut objects = connection.objects("SELECT 1", &QueryOptions::default()).unwrap();
    let pages = objects.by_ref().collect::<Result<Vec<_>>>().unwrap();
    let numbers: Vec<_> = pages.iter().map(numbers_of).collect();
    assert_eq!(numbers, [vec![0, 1, 2], vec![3, 4], vec![5], vec![6, 7, 8]]);
    let stats = objects.stats();
    assert_eq!((stats.rows, stats.chunks, stats.pages), (9, 4, 2));
    assert!(objects.is_complete() && !seen.lock().unwrap().running);
}

#[test]
fn objects_that_failed_do_not_go_on() {
    let failure = Err(Error::new(ErrorKind::Execution, "division by zero"));
    let (mut connection, _) = connection(vec![page_arrived(0..3), arrived(3..5), failure]);
    let mut objects = connection.objects("SELECT 1", &QueryOptions::default()).unwrap();
    assert_eq!(objects.next_page().unwrap().map(|page| page.len()), Some(3));
    assert_eq!(objects.next_page().unwrap().map(|page| page.len()), Some(2));
    assert_eq!(objects.next_page().unwrap_err().kind(), ErrorKind::Execution);
    assert_eq!(objects.next_page().unwrap_err().kind(), ErrorKind::Usage);
}
