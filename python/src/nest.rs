//! `dray.nest`: whole objects from the rows of several statements.

use std::borrow::BorrowMut;
use std::path::PathBuf;
use std::sync::Arc;

use dray_nest::{Error, NestOptions, Spec, nest_from};
use dray_sort::ByteSize;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::capsule::OneStream;
use crate::connection::Connection;
use crate::error::{detached, execution, usage};
use crate::monitor::Monitor;

/// Nested rows, as an Arrow stream that can be read once.
#[pyclass(frozen, module = "dray._dray")]
pub struct Nested(OneStream<dray_nest::Nested>);

#[pymethods]
impl Nested {
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
        self.0.take(py, "nest again")
    }
}

/// Nests the rows of the statements of `spec`. `dray/_nest.py` documents the parameters.
#[pyfunction]
#[pyo3(signature = (connection, spec, memory, spill))]
pub fn nest(
    py: Python<'_>,
    connection: &Connection,
    spec: &str,
    memory: Option<String>,
    spill: Option<PathBuf>,
) -> PyResult<Nested> {
    let spec: Spec = spec.parse().map_err(|error: Error| usage(py, &error.to_string(), None))?;
    let mut options = NestOptions { spill_folder: spill, ..NestOptions::default() };
    match memory.map(|memory| memory.parse::<ByteSize>()) {
        None => {}
        Some(Ok(size)) => options.memory_bytes = usize::try_from(size.0).unwrap_or(usize::MAX),
        Some(Err(message)) => return Err(usage(py, &format!("memory: {message}"), None)),
    }
    let monitor = Arc::new(Monitor::new(None));
    let mut lease = connection.lease(py)?;
    let watched = monitor.clone();
    let nested = detached(py, move || {
        let connection: &mut dray_client::Connection = BorrowMut::borrow_mut(&mut lease);
        nest_from(connection, &spec, &options, &mut |_| Some(watched.clone().watch()))
    })?;
    let nested = nested.map_err(|error| {
        monitor.take_raised().unwrap_or_else(|| match error {
            Error::Spec(_) | Error::Source(_) => usage(py, &error.to_string(), None),
            error => execution(py, &error.to_string()),
        })
    })?;
    Ok(Nested(OneStream::new(nested)))
}
