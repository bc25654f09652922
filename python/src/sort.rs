//! `dray.sort`: the rows of any Arrow stream, in order.
//!
//! ```text
//!   stream ──▶ batches, numbered ──▶ a thread, a dray_sort::Writer ──┐
//!                               └──▶ a thread, a dray_sort::Writer ──┴──▶ dray_sort::Sorted ──▶ stream
//! ```

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatchReader;
use dray_format::arrow::{Held, batch_from_arrow, batch_to_arrow, schema_from_arrow};
use dray_sort::{
    ByteSize, Cancel, Distinct, Error, FixedBudget, Options, OrderBy, Progress, SortColumn, Sorter,
    Writer, memory_bytes_default,
};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::capsule::{Imported, import_stream, schema_capsule, stream_capsule};
use crate::error::{detached, execution, sort_exception, usage};

/// Larger batches are handed to several threads.
const BATCH_ROWS: usize = 16 << 10;
/// How often signals are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(45);

/// Why a sort ended early.
enum Ended {
    Sort(Error),
    Python(PyErr),
    /// The source has failed.
    Source(String),
    Arrow(String),
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Self::Sort(error)
    }
}

impl Ended {
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

/// Sorts the rows of what has `__arrow_c_stream__`; what it means is said in `dray/_sort.py`.
#[pyfunction]
#[pyo3(signature = (source, by, memory, spill, distinct, limit, threads, progress))]
#[allow(clippy::too_many_arguments, reason = "they have names in Python")]
pub fn sort(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    by: Vec<String>,
    memory: Option<String>,
    spill: Option<PathBuf>,
    distinct: &str,
    limit: Option<u64>,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Sorted> {
    let stream = import_stream(source)?;
    let arrow_schema = stream.schema();
    let schema =
        schema_from_arrow(&arrow_schema).map_err(|error| usage(py, &error.to_string(), None))?;
    let names = || schema.fields.iter().map(|field| field.name.as_str());
    let by = by
        .iter()
        .map(|by| by.parse::<OrderBy>()?.resolve(names()))
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
        let watch = Watch { progress: sorter.progress(), report: progress, cancel };
        take(stream, &sorter, threads.max(1), &watch)?;
        finish(sorter, threads.max(1), &watch)
    })?;
    let rows = sorted.map_err(|ended: Ended| ended.raise(py))?;
    Ok(Sorted { rows: Mutex::new(Some(rows)), schema: arrow_schema })
}

/// What Python may want meanwhile.
struct Watch {
    progress: Progress,
    /// The user's function.
    report: Option<Py<PyAny>>,
    cancel: Cancel,
}

impl Watch {
    /// Looks for signals, and tells the user how far the sort is. It ends when either raises.
    fn look(&self) -> Result<(), Ended> {
        let looked = Python::attach(|py| {
            py.check_signals()?;
            match &self.report {
                Some(report) => report.call1(py, (SortProgress(self.progress.clone()),)).map(drop),
                None => Ok(()),
            }
        });
        looked.inspect_err(|_| self.cancel.cancel()).map_err(Ended::Python)
    }
}

/// Finishes the sort in a thread of its own, while this one looks around.
fn finish(sorter: Sorter, threads: usize, watch: &Watch) -> Result<dray_sort::Sorted, Ended> {
    let (done, finished) = sync_channel(1);
    let finishing = move || {
        // Nobody waits after an interrupt.
        let _ = done.send(sorter.finish(threads));
    };
    let refused = |error| Error::Thread(format!("can't start a thread to sort: {error}"));
    std::thread::Builder::new().spawn(finishing).map_err(refused)?;
    loop {
        match finished.recv_timeout(LOOK_EVERY) {
            Ok(sorted) => {
                let sorted = sorted?;
                watch.look()?;
                return Ok(sorted);
            }
            Err(RecvTimeoutError::Timeout) => watch.look()?,
            Err(RecvTimeoutError::Disconnected) => return Err(lost().into()),
        }
    }
}

fn lost() -> Error {
    Error::Thread("a thread that sorted has ended too early".to_owned())
}

/// Takes in all rows, in so many threads.
fn take(stream: Imported, sorter: &Sorter, threads: usize, watch: &Watch) -> Result<(), Ended> {
    let cancel = &watch.cancel;
    let (batches, queue) = sync_channel(threads);
    // The threads alone have it, so that nothing is sent any more when all have failed.
    let queue = Arc::new(Mutex::new(queue));
    let held = &Mutex::new(Held::new(sorter.surplus_bytes_max()));
    std::thread::scope(|scope| {
        let mut workers = Vec::with_capacity(threads);
        for _ in 0..threads {
            let (writer, queue) = (sorter.writer(), queue.clone());
            let work = move || append(writer, &queue, held).inspect_err(|_| cancel.cancel());
            let refused = |error| Error::Thread(format!("can't start a thread to sort: {error}"));
            workers.push(std::thread::Builder::new().spawn_scoped(scope, work).map_err(refused)?);
        }
        drop(queue);
        let mut ended = read(stream, batches, watch).inspect_err(|_| cancel.cancel());
        for worker in workers {
            let other = worker.join().unwrap_or_else(|_| Err(lost().into()));
            // Who failed first has cancelled the others.
            if matches!(ended, Ok(()) | Err(Ended::Sort(Error::Cancelled))) && other.is_err() {
                ended = other;
            }
        }
        ended
    })
}

/// Hands on the stream's batches, numbered, until it ends or nobody takes them.
fn read(stream: Imported, out: SyncSender<(u64, RecordBatch)>, watch: &Watch) -> Result<(), Ended> {
    let (mut number, mut looked) = (0, Instant::now());
    for batch in stream {
        let batch = batch.map_err(|error| match error {
            // What the source says, by the C interface.
            ArrowError::CDataInterface(message) => Ended::Source(message),
            error => Ended::Source(error.to_string()),
        })?;
        for from in (0..batch.num_rows()).step_by(BATCH_ROWS) {
            let rows = BATCH_ROWS.min(batch.num_rows() - from);
            if out.send((number, batch.slice(from, rows))).is_err() {
                // All threads have failed, and say why.
                return Ok(());
            }
            number += 1;
            if looked.elapsed() >= LOOK_EVERY {
                watch.look()?;
                looked = Instant::now();
            }
        }
    }
    Ok(())
}

fn append(
    mut writer: Writer,
    queue: &Mutex<Receiver<(u64, RecordBatch)>>,
    held: &Mutex<Held>,
) -> Result<(), Ended> {
    let refused = |error: dray_format::Error| Ended::Arrow(error.to_string());
    loop {
        // Who waits with the lock gets the next batch; the others wait for the lock.
        let next = lock(queue).recv();
        let Ok((number, arrays)) = next else { break };
        let mut batch = batch_from_arrow(&arrays).map_err(refused)?;
        let held_bytes = lock(held).keep(&arrays, &mut batch).map_err(refused)?;
        writer.append_retaining(number, &batch, held_bytes)?;
    }
    Ok(writer.finish()?)
}

/// How far a sort is.
#[pyclass(frozen, module = "dray")]
pub struct SortProgress(Progress);

#[pymethods]
impl SortProgress {
    /// Rows taken in.
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

/// Sorted rows, which are handed over once.
#[pyclass(frozen, module = "dray._dray")]
pub struct Sorted {
    rows: Mutex<Option<dray_sort::Sorted>>,
    schema: SchemaRef,
}

#[pymethods]
impl Sorted {
    /// How many bytes were written to disk; None once the rows have been handed over.
    #[getter]
    fn spilled_bytes(&self) -> Option<u64> {
        lock(&self.rows).as_ref().map(dray_sort::Sorted::spilled_bytes)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Conversion is at best an offer in this protocol.
        let _ = requested_schema;
        let rows = lock(&self.rows).take();
        let rows = rows.ok_or_else(|| {
            usage(py, "the sorted rows have been handed over", Some("sort again"))
        })?;
        stream_capsule(py, Box::new(Stream { rows, schema: self.schema.clone() }))
    }
}

/// Sorted rows for consumers of Arrow's C stream.
struct Stream {
    rows: dray_sort::Sorted,
    schema: SchemaRef,
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let external =
            |error: Box<dyn std::error::Error + Send + Sync>| ArrowError::ExternalError(error);
        let batch = self.rows.next()?.map_err(|error| external(Box::new(error)));
        Some(batch.and_then(|batch| {
            batch_to_arrow(batch, &self.schema).map_err(|error| external(Box::new(error)))
        }))
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
