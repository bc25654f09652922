//! Errors of the client and the sort as Python exceptions. Each kind has its class in
//! `dray.errors`.

use std::error::Error as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dray_client::{Error, ErrorKind, panic_text};
use pyo3::PyTypeInfo;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// The class in `dray.errors`.
fn class_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Connection => "ConnectionError",
        ErrorKind::Authentication => "AuthenticationError",
        ErrorKind::Query => "QueryError",
        ErrorKind::Execution => "ExecutionError",
        ErrorKind::Resources => "ResourcesError",
        ErrorKind::Limit => "LimitError",
        ErrorKind::Cancelled => "Cancelled",
        ErrorKind::Protocol => "ProtocolError",
        ErrorKind::Usage => "UsageError",
        _ => "InternalError",
    }
}

/// The exception for an error of the client.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let mut message = error.message().to_owned();
    if let Some(cause) = error.source() {
        message = format!("{message}: {cause}");
    }
    build(py, class_name(error.kind()), &message, error.hint(), error.sqlstate(), error.code())
}

/// The exception for a call that is wrong: a bad argument, or a call at the wrong moment.
pub(crate) fn usage(py: Python<'_>, message: &str, hint: Option<&str>) -> PyErr {
    build(py, class_name(ErrorKind::Usage), message, hint, None, None)
}

/// The exception for a failure while a statement or a sort runs.
pub(crate) fn execution(py: Python<'_>, message: &str) -> PyErr {
    build(py, class_name(ErrorKind::Execution), message, None, None, None)
}

/// The exception for a cancelled statement.
pub(crate) fn cancelled(py: Python<'_>) -> PyErr {
    build(py, class_name(ErrorKind::Cancelled), "the statement was cancelled", None, None, None)
}

/// The exception for a sort that failed.
pub(crate) fn sort_exception(py: Python<'_>, error: &dray_sort::Error) -> PyErr {
    use dray_sort::Error;
    let (kind, hint) = match error {
        Error::Memory { .. } => {
            (ErrorKind::Resources, Some("give it more memory, or a spill folder"))
        }
        Error::SpillLimit { .. } | Error::Spill { .. } | Error::Damaged { .. } => {
            (ErrorKind::Resources, Some("give it another spill folder"))
        }
        Error::Thread(_) => (ErrorKind::Resources, None),
        Error::Cancelled => (ErrorKind::Cancelled, None),
        Error::Internal(_) => (ErrorKind::Internal, None),
        _ => (ErrorKind::Usage, None),
    };
    build(py, class_name(kind), &error.to_string(), hint, None, None)
}

/// Runs a function without Python's lock. A panic becomes an `InternalError`: pyo3's own exception
/// for panics is a `BaseException`, which `except Exception` does not catch.
pub(crate) fn detached<T: Send>(py: Python<'_>, run: impl FnOnce() -> T + Send) -> PyResult<T> {
    let ran =
        py.detach(|| catch_unwind(AssertUnwindSafe(run)).map_err(|panic| panic_text(&*panic)));
    ran.map_err(|text| {
        build(
            py,
            class_name(ErrorKind::Internal),
            &text,
            Some("this is a defect; please report it"),
            None,
            None,
        )
    })
}

fn build(
    py: Python<'_>,
    class: &str,
    message: &str,
    hint: Option<&str>,
    sqlstate: Option<&str>,
    code: Option<u32>,
) -> PyErr {
    let built = PyModule::import(py, "dray.errors").and_then(|module| {
        let class = module.getattr(class)?;
        class.cast_into::<PyType>()?.call1((message, hint, sqlstate, code))
    });
    match built {
        Ok(exception) => PyErr::from_value(exception),
        Err(cause) => {
            let error = PyRuntimeError::new_err(message.to_owned());
            error.set_cause(py, Some(cause));
            error
        }
    }
}

/// The qualified name of a value's type, for messages.
pub(crate) fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().fully_qualified_name().map_or_else(|_| "?".to_owned(), |name| name.to_string())
}

/// Whether a value is an instance of `T`, subclasses included.
pub(crate) fn is<T: PyTypeInfo>(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<T>()
}
