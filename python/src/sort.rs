//! `dray.sort`: sorts the rows of any Arrow stream.
//!
//! ```text
//! stream ──▶ numbered batches ─┬▶ thread with a dray_sort::Writer ─┐
//!                              └▶ thread with a dray_sort::Writer ─┴▶ dray_sort::Sorted ──▶ stream
//! ```

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatchReader;
use dray_format::arrow::{RetainedMemory, batch_from_arrow, batch_to_arrow, schema_from_arrow};
use dray_sort::{
    ByteSize, Cancel, Distinct, Error, FixedBudget, Options, OrderBy, Progress, SortColumn, Sorter,
    Writer, memory_bytes_default,
};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::capsule::{ImportedStream, OneStream, import_stream};
use crate::dictionaries::{Restore, SourceDictionaries};
use crate::error::{detached, execution, sort_exception, usage};

/// Larger batches are split, so that several threads share them.
const BATCH_ROWS: usize = 16 << 10;
/// The time between two checks for signals.
const CHECK_INTERVAL: Duration = Duration::from_millis(45);

/// Why a sort ended early.
enum Failure {
    Sort(Error),
    /// A signal handler or the progress function raised this.
    Python(PyErr),
    /// The source failed with this message.
    Source(String),
    /// A batch has values that can't be sorted.
    Arrow(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Sort(error)
    }
}

impl Failure {
    fn raise(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Sort(error) => sort_exception(py, &error),
            Self::Python(error) => error,
            Self::Source(message) => {
                execution(py, &format!("the source of the rows failed: {message}"))
            }
            Self::Arrow(message) => usage(py, &message, None),
        }
    }
}

/// A column to sort by: text as `dray sort` accepts it; or a name, whether descending, and whether
/// nulls come first.
#[derive(FromPyObject)]
pub enum SortKey {
    Text(String),
    Named(String, bool, bool),
}

impl SortKey {
    fn order_by(self) -> Result<OrderBy, String> {
        match self {
            Self::Text(text) => text.parse(),
            Self::Named(name, descending, nulls_first) => {
                Ok(OrderBy::named(name, descending, nulls_first))
            }
        }
    }
}

/// Sorts the rows of an object with `__arrow_c_stream__`. `dray/_sort.py` documents the parameters.
#[pyfunction]
#[pyo3(signature = (source, by, memory, spill, distinct, limit, threads, progress))]
#[allow(clippy::too_many_arguments, reason = "Python passes each option by name")]
pub fn sort(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    by: Vec<SortKey>,
    memory: Option<String>,
    spill: Option<PathBuf>,
    distinct: &str,
    limit: Option<u64>,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Sorted> {
    let stream = import_stream(source)?;
    let mut dictionaries = SourceDictionaries::new(stream.schema());
    let schema = schema_from_arrow(dictionaries.new_schema());
    let schema = schema.map_err(|error| usage(py, &error.to_string(), None))?;
    let names = || schema.fields.iter().map(|field| field.name.as_str());
    let by = by
        .into_iter()
        .map(|by| by.order_by()?.resolve(names()))
        .collect::<Result<Vec<_>, String>>();
    let mut by = by.map_err(|message| usage(py, &message, None))?;
    if by.is_empty() {
        let all = 0..schema.fields.len();
        by.extend(all.map(|column| SortColumn { column, descending: false, nulls_first: false }));
    }
    let memory =
        match memory.map(|memory| memory.parse::<ByteSize>().map(|size| usize::try_from(size.0))) {
            None => memory_bytes_default(),
            Some(Ok(bytes)) => bytes.unwrap_or(usize::MAX),
            Some(Err(message)) => return Err(usage(py, &format!("memory: {message}"), None)),
        };
    let cancel = Cancel::default();
    let options = Options {
        spill_folder: spill,
        distinct: match distinct {
            "rows" => Distinct::Rows,
            "keys" => Distinct::Keys,
            _ => Distinct::No,
        },
        limit,
        cancel: cancel.clone(),
        ..Options::new(by, FixedBudget::new(memory))
    };
    let sorted = detached(py, || {
        let sorter = Sorter::new(schema, options)?;
        let monitor = SortMonitor { progress: sorter.progress(), report: progress, cancel };
        append_all(stream, &mut dictionaries, &sorter, threads.max(1), &monitor)?;
        let restore = dictionaries.restore().map_err(|error| Failure::Arrow(error.to_string()))?;
        Ok(Stream { rows: finish(sorter, threads.max(1), &monitor)?, restore })
    })?;
    let stream = sorted.map_err(|failure: Failure| failure.raise(py))?;
    Ok(Sorted(OneStream::new(stream)))
}

/// Checks for signals, and calls the user's progress function, while a sort runs.
struct SortMonitor {
    progress: Progress,
    /// The user's function.
    report: Option<Py<PyAny>>,
    cancel: Cancel,
}

impl SortMonitor {
    /// Checks for signals and reports the progress. Cancels the sort if either raises.
    fn check(&self) -> Result<(), Failure> {
        let checked = Python::attach(|py| {
            py.check_signals()?;
            match &self.report {
                Some(report) => report.call1(py, (SortProgress(self.progress.clone()),)).map(drop),
                None => Ok(()),
            }
        });
        checked.inspect_err(|_| self.cancel.cancel()).map_err(Failure::Python)
    }
}

/// Finishes the sort in a thread of its own, while this one keeps checking.
fn finish(
    sorter: Sorter,
    threads: usize,
    monitor: &SortMonitor,
) -> Result<dray_sort::Sorted, Failure> {
    let (done, finished) = sync_channel(1);
    let finishing = move || {
        // After an interrupt nobody receives the result.
        let _ = done.send(sorter.finish(threads));
    };
    let refused = |error| Error::Thread(format!("can't start a thread to sort: {error}"));
    std::thread::Builder::new().spawn(finishing).map_err(refused)?;
    loop {
        match finished.recv_timeout(CHECK_INTERVAL) {
            Ok(sorted) => {
                let sorted = sorted?;
                monitor.check()?;
                return Ok(sorted);
            }
            Err(RecvTimeoutError::Timeout) => monitor.check()?,
            Err(RecvTimeoutError::Disconnected) => return Err(thread_panicked().into()),
        }
    }
}

fn thread_panicked() -> Error {
    Error::Thread("a thread that sorted has ended too early".to_owned())
}

/// Appends all rows of the stream, in `threads` threads.
fn append_all(
    stream: ImportedStream,
    dictionaries: &mut SourceDictionaries,
    sorter: &Sorter,
    threads: usize,
    monitor: &SortMonitor,
) -> Result<(), Failure> {
    let cancel = &monitor.cancel;
    let (batches, queue) = sync_channel(threads);
    // Only the threads own the receiver, so sending fails once all of them have failed.
    let queue = Arc::new(Mutex::new(queue));
    let retained = &Mutex::new(RetainedMemory::new(sorter.surplus_bytes_max()));
    std::thread::scope(|scope| {
        let mut workers = Vec::with_capacity(threads);
        for _ in 0..threads {
            let (writer, queue) = (sorter.writer(), queue.clone());
            let work = move || append(writer, &queue, retained).inspect_err(|_| cancel.cancel());
            let refused = |error| Error::Thread(format!("can't start a thread to sort: {error}"));
            workers.push(std::thread::Builder::new().spawn_scoped(scope, work).map_err(refused)?);
        }
        drop(queue);
        let mut result =
            distribute(stream, dictionaries, batches, monitor).inspect_err(|_| cancel.cancel());
        for worker in workers {
            let other = worker.join().unwrap_or_else(|_| Err(thread_panicked().into()));
            // A thread that fails cancels the others: its error is the cause.
            if matches!(result, Ok(()) | Err(Failure::Sort(Error::Cancelled))) && other.is_err() {
                result = other;
            }
        }
        result
    })
}

/// Sends the stream's batches, numbered from 0, until the stream ends or all receivers are gone.
fn distribute(
    stream: ImportedStream,
    dictionaries: &mut SourceDictionaries,
    out: SyncSender<(u64, RecordBatch)>,
    monitor: &SortMonitor,
) -> Result<(), Failure> {
    let (mut number, mut checked) = (0, Instant::now());
    for batch in stream {
        let batch = batch.map_err(|error| match error {
            // The source's own message, as the C stream interface passes it on.
            ArrowError::CDataInterface(message) => Failure::Source(message),
            error => Failure::Source(error.to_string()),
        })?;
        dictionaries.add(&batch);
        for from in (0..batch.num_rows()).step_by(BATCH_ROWS) {
            let rows = BATCH_ROWS.min(batch.num_rows() - from);
            if out.send((number, batch.slice(from, rows))).is_err() {
                // All threads have failed. They return their errors.
                return Ok(());
            }
            number += 1;
            if checked.elapsed() >= CHECK_INTERVAL {
                monitor.check()?;
                checked = Instant::now();
            }
        }
    }
    Ok(())
}

/// Appends batches from the queue until it is closed.
fn append(
    mut writer: Writer,
    queue: &Mutex<Receiver<(u64, RecordBatch)>>,
    retained: &Mutex<RetainedMemory>,
) -> Result<(), Failure> {
    let refused = |error: dray_format::Error| Failure::Arrow(error.to_string());
    loop {
        // The thread that holds the lock waits for the next batch; the others wait for the lock.
        let next = lock(queue).recv();
        let Ok((number, arrays)) = next else { break };
        let mut batch = batch_from_arrow(&arrays).map_err(refused)?;
        let retained_bytes = lock(retained).add(&arrays, &mut batch).map_err(refused)?;
        writer.append_retaining(number, &batch, retained_bytes)?;
    }
    Ok(writer.finish()?)
}

/// The progress of a sort.
#[pyclass(frozen, module = "dray")]
pub struct SortProgress(Progress);

#[pymethods]
impl SortProgress {
    /// Rows read from the source.
    #[getter]
    fn rows_read(&self) -> u64 {
        self.0.rows()
    }

    /// Bytes written to disk.
    #[getter]
    fn spilled_bytes(&self) -> u64 {
        self.0.spilled_bytes()
    }

    fn __repr__(&self) -> String {
        format!(
            "SortProgress(rows_read={}, spilled_bytes={})",
            self.0.rows(),
            self.0.spilled_bytes()
        )
    }
}

/// Sorted rows, as an Arrow stream that can be read once.
#[pyclass(frozen, module = "dray._dray")]
pub struct Sorted(OneStream<Stream>);

#[pymethods]
impl Sorted {
    /// Bytes written to disk; None once a consumer has taken the rows.
    #[getter]
    fn spilled_bytes(&self) -> Option<u64> {
        self.0.look(|stream| stream.rows.spilled_bytes())
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        self.0.schema(py)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows producers to ignore the requested schema.
        let _ = requested_schema;
        self.0.take(py, "sort again")
    }
}

/// Sorted rows for consumers of Arrow's C stream.
struct Stream {
    rows: dray_sort::Sorted,
    restore: Restore,
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let external =
            |error: Box<dyn std::error::Error + Send + Sync>| ArrowError::ExternalError(error);
        let batch = self.rows.next()?.map_err(|error| external(Box::new(error)));
        Some(batch.and_then(|batch| {
            let batch = batch_to_arrow(batch, &self.restore.new);
            self.restore.batch(batch.map_err(|error| external(Box::new(error)))?)
        }))
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        self.restore.schema.clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
