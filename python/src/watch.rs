//! Looking around while a statement runs: signals, a cancel from another thread, and the user's
//! progress function.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dray_client::{Known, Progress as ClientProgress, Verdict};
use pyo3::prelude::*;

/// At least this long between two looks, so that Python's lock is not taken for every chunk.
const INTERVAL: Duration = Duration::from_millis(45);

/// What the thread that reads a result shares with those that look at it.
pub(crate) struct Watched {
    cancelled: AtomicBool,
    progress: Mutex<ClientProgress>,
    /// What a look raised: it goes before the error that the cancelled statement ends with.
    raised: Mutex<Option<PyErr>>,
    report: Option<Py<PyAny>>,
}

impl Watched {
    pub(crate) fn new(report: Option<Py<PyAny>>) -> Self {
        Self {
            cancelled: AtomicBool::new(false),
            progress: Mutex::default(),
            raised: Mutex::default(),
            report,
        }
    }

    pub(crate) fn progress(&self) -> ClientProgress {
        *lock(&self.progress)
    }

    pub(crate) fn set_progress(&self, progress: ClientProgress) {
        *lock(&self.progress) = progress;
    }

    /// Asks the reading thread to stop; it looks at least every 50 ms.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    pub(crate) fn take_raised(&self) -> Option<PyErr> {
        lock(&self.raised).take()
    }

    /// The client's watch, for this statement. The first interrupt cancels it, and the next one
    /// does not wait even for that.
    pub(crate) fn watch(self: std::sync::Arc<Self>) -> dray_client::Watch {
        let mut last = Instant::now();
        let mut verdict = Verdict::Continue;
        Box::new(move |progress| {
            if self.is_cancelled() {
                verdict = verdict.max(Verdict::Cancel);
            }
            if last.elapsed() < INTERVAL {
                return verdict;
            }
            last = Instant::now();
            self.set_progress(*progress);
            let looked = Python::try_attach(|py| {
                py.check_signals()?;
                if verdict == Verdict::Continue { self.report(py) } else { Ok(()) }
            });
            verdict = match (looked, verdict) {
                (Some(Ok(())), verdict) => verdict,
                (Some(Err(raised)), verdict) => {
                    *lock(&self.raised) = Some(raised);
                    if verdict == Verdict::Continue { Verdict::Cancel } else { Verdict::Abandon }
                }
                // The interpreter shuts down.
                (None, _) => Verdict::Abandon,
            };
            verdict
        })
    }

    /// Calls the user's function with the progress so far.
    pub(crate) fn report(&self, py: Python<'_>) -> PyResult<()> {
        match &self.report {
            Some(report) => report.call1(py, (Progress(self.progress()),)).map(|_| ()),
            None => Ok(()),
        }
    }
}

/// Whether a connection is still wanted that is being made: what a signal's handler has raised is
/// kept.
pub(crate) fn wanted(raised: &mut Option<PyErr>) -> impl FnMut() -> bool {
    let mut last = Instant::now();
    move || {
        if last.elapsed() < INTERVAL {
            return true;
        }
        last = Instant::now();
        match Python::try_attach(|py| py.check_signals()) {
            Some(Ok(())) => true,
            Some(Err(interrupt)) => {
                *raised = Some(interrupt);
                false
            }
            None => false,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How far a statement is.
#[pyclass(frozen, module = "dray")]
pub struct Progress(pub(crate) ClientProgress);

#[pymethods]
impl Progress {
    /// Rows received.
    #[getter]
    fn rows(&self) -> u64 {
        self.0.rows
    }

    /// Bytes of chunks received.
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Rows that the server's scans have read.
    #[getter]
    fn rows_read(&self) -> u64 {
        self.0.rows_read
    }

    /// What the planner expects of the result.
    #[getter]
    fn estimate(&self) -> Estimate {
        Estimate(self.0.estimate)
    }

    fn __repr__(&self) -> String {
        format!(
            "Progress(rows={}, bytes={}, rows_read={})",
            self.0.rows, self.0.bytes, self.0.rows_read
        )
    }
}

/// What the planner expects of a result.
#[pyclass(frozen, module = "dray")]
pub struct Estimate(pub(crate) dray_client::Estimate);

#[pymethods]
impl Estimate {
    /// Rows, or None if nothing is known.
    #[getter]
    fn rows(&self) -> Option<u64> {
        self.0.rows.value()
    }

    /// Whether `rows` is the number itself rather than a guess.
    #[getter]
    fn rows_exact(&self) -> bool {
        matches!(self.0.rows, Known::Exact(_))
    }

    /// Bytes of Arrow data, or None if nothing is known.
    #[getter]
    fn bytes(&self) -> Option<u64> {
        self.0.bytes.value()
    }

    /// Whether `bytes` is the number itself rather than a guess.
    #[getter]
    fn bytes_exact(&self) -> bool {
        matches!(self.0.bytes, Known::Exact(_))
    }

    fn __repr__(&self) -> String {
        let show = |known: Known| match known {
            Known::Unknown => "None".to_owned(),
            Known::Estimate(value) => format!("~{value}"),
            Known::Exact(value) => value.to_string(),
        };
        format!("Estimate(rows={}, bytes={})", show(self.0.rows), show(self.0.bytes))
    }
}
