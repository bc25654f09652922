//! The compiled part of `dray.Objects`: a result as objects, read in place.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use dray_client::{Estimate as ClientEstimate, Lease};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::capsule::schema_capsule;
use crate::monitor::{Estimate, Monitor, Progress};
use crate::object::{Class, Object};
use crate::reader::Reader;
use crate::result::stats_dict;

/// The compiled part of `dray.Objects`.
#[pyclass(frozen, module = "dray._dray")]
pub struct Objects {
    reader: Reader<dray_client::Objects<Lease>>,
    schema: SchemaRef,
    class: Arc<Class>,
    estimate: ClientEstimate,
}

impl Objects {
    pub(crate) fn new(
        py: Python<'_>,
        objects: dray_client::Objects<Lease>,
        monitor: Arc<Monitor>,
    ) -> Self {
        let (schema, estimate) = (objects.schema(), objects.progress().estimate);
        let class = Arc::new(Class::new(py, &objects.layout().fields(), schema.fields()));
        Self { reader: Reader::new(objects, monitor), schema, class, estimate }
    }
}

#[pymethods]
impl Objects {
    #[getter]
    fn estimate(&self) -> Estimate {
        Estimate(self.estimate)
    }

    #[getter]
    fn progress(&self) -> Progress {
        Progress(self.reader.monitor.progress())
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    /// The objects of the next page, or None after the last one.
    fn next_page(&self, py: Python<'_>) -> PyResult<Option<Vec<Object>>> {
        let Some(page) = self.reader.next_page(py)? else { return Ok(None) };
        (0..page.len())
            .map(|slot| Object::new(&self.class, &page, slot))
            .collect::<PyResult<_>>()
            .map(Some)
    }

    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        self.reader.cancel(py)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.reader.close(py)
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        stats_dict(py, &self.reader.stats(py)?, &self.schema)
    }
}

/// Dropping the objects cancels their statement.
impl Drop for Objects {
    fn drop(&mut self) {
        Python::try_attach(|py| self.reader.cancel_on_drop(py));
    }
}
