//! `dray.nest`: whole objects from the rows of several statements.

use std::borrow::BorrowMut;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatchReader;
use dray_nest::{Error, NestOptions, Spec, nest_from};
use dray_sort::ByteSize;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::capsule::{schema_capsule, stream_capsule};
use crate::connection::Connection;
use crate::error::{detached, execution, usage};
use crate::monitor::Monitor;

/// Nested rows, as an Arrow stream that can be read once.
#[pyclass(frozen, module = "dray._dray")]
pub struct Nested {
    rows: Mutex<Option<dray_nest::Nested>>,
    schema: SchemaRef,
}

#[pymethods]
impl Nested {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows producers to ignore the requested schema.
        let _ = requested_schema;
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner).take();
        let rows =
            rows.ok_or_else(|| usage(py, "the objects were read already", Some("nest again")))?;
        stream_capsule(py, Box::new(rows))
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
        nest_from(connection, &spec, &options, &mut || Some(watched.clone().watch()))
    })?;
    let nested = nested.map_err(|error| {
        monitor.take_raised().unwrap_or_else(|| match error {
            Error::Spec(what) => usage(py, &what, None),
            error => execution(py, &error.to_string()),
        })
    })?;
    Ok(Nested { schema: nested.schema(), rows: Mutex::new(Some(nested)) })
}
