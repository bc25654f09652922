//! What happens now and then while a statement runs: signals and cancels from other threads are
//! checked, and the user's progress function is called.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dray_client::{Known, Progress as ClientProgress, Verdict};
use pyo3::prelude::*;

/// The shortest time between two checks, so that not every chunk acquires Python's lock.
const INTERVAL: Duration = Duration::from_millis(45);

/// State that the thread that reads a result shares with threads that cancel or observe it.
pub(crate) struct Monitor {
    cancelled: AtomicBool,
    progress: Mutex<ClientProgress>,
    /// The exception that a check raised. It takes precedence over the error with which the
    /// cancelled statement ends.
    raised: Mutex<Option<PyErr>>,
    /// The user's progress function.
    report: Option<Py<PyAny>>,
}

impl Monitor {
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

    /// Asks the reading thread to stop. It checks at least every 50 ms.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    pub(crate) fn take_raised(&self) -> Option<PyErr> {
        lock(&self.raised).take()
    }

    /// The callback that the client runs during this statement. The first interrupt cancels the
    /// statement; the second one abandons it without waiting for the server's answer.
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
            let checked = Python::try_attach(|py| {
                py.check_signals()?;
                if verdict == Verdict::Continue { self.report(py) } else { Ok(()) }
            });
            verdict = match (checked, verdict) {
                (Some(Ok(())), verdict) => verdict,
                (Some(Err(raised)), verdict) => {
                    *lock(&self.raised) = Some(raised);
                    if verdict == Verdict::Continue { Verdict::Cancel } else { Verdict::Abandon }
                }
                // The interpreter is shutting down.
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

/// A check that runs while a connection is being made. It returns false to give up, and stores the
/// exception that a signal handler or the function `check` raised.
pub(crate) fn connecting_check(
    raised: &mut Option<PyErr>,
    check: Option<Py<PyAny>>,
) -> impl FnMut() -> bool {
    let mut last = Instant::now();
    move || {
        if last.elapsed() < INTERVAL {
            return true;
        }
        last = Instant::now();
        let checked = Python::try_attach(|py| {
            py.check_signals()?;
            check.as_ref().map_or(Ok(()), |check| check.call0(py).map(drop))
        });
        match checked {
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

/// The progress of a statement.
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

    /// Rows that the server's scans read so far.
    #[getter]
    fn rows_read(&self) -> u64 {
        self.0.rows_read
    }

    /// The planner's estimate of the result's size.
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

/// The planner's estimate of a result's size.
#[pyclass(frozen, module = "dray")]
pub struct Estimate(pub(crate) dray_client::Estimate);

#[pymethods]
impl Estimate {
    /// Rows, or None if unknown.
    #[getter]
    fn rows(&self) -> Option<u64> {
        self.0.rows.value()
    }

    /// Whether `rows` is exact rather than an estimate.
    #[getter]
    fn rows_exact(&self) -> bool {
        matches!(self.0.rows, Known::Exact(_))
    }

    /// Bytes of Arrow data, or None if unknown.
    #[getter]
    fn bytes(&self) -> Option<u64> {
        self.0.bytes.value()
    }

    /// Whether `bytes` is exact rather than an estimate.
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
