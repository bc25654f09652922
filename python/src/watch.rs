//! Looking around while a statement runs: signals, a cancel from another thread, and the user's progress function.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dray_client::{Known, Progress as ClientProgress};
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
        Self { cancelled: AtomicBool::new(false), progress: Mutex::default(), raised: Mutex::default(), report }
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

    /// The client's watch, for this statement.
    pub(crate) fn watch(self: std::sync::Arc<Self>) -> dray_client::Watch {
        let mut last = Instant::now();
        Box::new(move |progress| {
            if self.is_cancelled() {
                return false;
            }
            if last.elapsed() < INTERVAL {
                return true;
            }
            last = Instant::now();
            self.set_progress(*progress);
            // None while the interpreter shuts down.
            let looked = Python::try_attach(|py| py.check_signals().and_then(|()| self.report(py)));
            match looked {
                Some(Ok(())) => true,
                Some(Err(raised)) => {
                    *lock(&self.raised) = Some(raised);
                    false
                }
                None => false,
            }
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
        format!("Progress(rows={}, bytes={}, rows_read={})", self.0.rows, self.0.bytes, self.0.rows_read)
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
