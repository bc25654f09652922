//! The `with` block of a result.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// A base class whose `with` block calls `close`. Python runs signal handlers at the first
/// instruction of a function, so methods in Python could be interrupted before they close
/// anything; a traceback would then keep the result, and so its connection busy.
#[pyclass(subclass, frozen, module = "dray")]
pub struct Closing;

#[pymethods]
impl Closing {
    #[new]
    #[pyo3(signature = (*_arguments, **_options))]
    fn new(_arguments: &Bound<'_, PyTuple>, _options: Option<&Bound<'_, PyDict>>) -> Self {
        Self
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(slf: &Bound<'_, Self>, _raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        let closed = slf.call_method0("close");
        match &closed {
            // It came before `close` had begun, or in its wait for the server.
            Err(raised) if raised.is_instance_of::<PyKeyboardInterrupt>(slf.py()) => {
                slf.call_method0("close")?;
            }
            _ => {}
        }
        closed.map(drop)
    }
}
