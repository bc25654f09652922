//! Plans of partitions, and reading their parts.

use std::borrow::BorrowMut;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use dray_client::{
    CompressionChoice, Known, Limits, Part, PlanOptions, QueryOptions, timeout_from_seconds,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};

use crate::capsule::schema_capsule;
use crate::connection::{Connection, string_layout};
use crate::error::{detached, exception, usage};
use crate::monitor::{Estimate, Monitor};
use crate::parameters::parameters;
use crate::reader::Reader;
use crate::result::Result;

/// The compiled part of `dray.Plan`.
#[pyclass(frozen, module = "dray._dray")]
pub struct Plan {
    plan: dray_client::Plan,
    schema: SchemaRef,
}

/// Plans a statement. `dray.Connection.partitions` documents the parameters; `lease` is in seconds.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "Python passes each option by name")]
pub fn plan(
    py: Python<'_>,
    connection: &Connection,
    sql: &str,
    params: Option<Bound<'_, PyAny>>,
    at_most: Option<u32>,
    lease: f64,
    include_password: bool,
    strings: &str,
    numeric: &str,
    nonfinite: &str,
    snapshot: Option<Vec<u8>>,
    report: Option<Py<PyAny>>,
) -> PyResult<Plan> {
    let wrong = |message: String| usage(py, &message, None);
    let mut options = QueryOptions {
        parameters: params.as_ref().map(parameters).transpose()?,
        strings: string_layout(strings).map_err(wrong)?,
        ..QueryOptions::default()
    };
    options.postgres.numeric = numeric.parse().map_err(wrong)?;
    options.postgres.nonfinite = nonfinite.parse().map_err(wrong)?;
    let lease = timeout_from_seconds(lease)
        .map_err(|_| usage(py, &format!("lease {lease}, expected seconds above 0"), None))?;
    let snapshot = snapshot.as_deref().map(Part::decode).transpose();
    let snapshot = snapshot.map_err(|error| exception(py, &error))?;
    let plan = PlanOptions { at_most, lease, include_password, snapshot, ..PlanOptions::default() };
    let mut leased = connection.lease(py)?;
    let monitor = Arc::new(Monitor::new(report));
    let mut watch = monitor.clone().watch();
    let planned = detached(py, || {
        let connection: &mut dray_client::Connection = leased.borrow_mut();
        let mut check = || watch(&dray_client::Progress::default());
        connection.partitions(sql, &options, &plan, &mut check)
    })?;
    let plan =
        planned.map_err(|error| monitor.take_raised().unwrap_or_else(|| exception(py, &error)))?;
    let schema = plan.schema();
    Ok(Plan { plan, schema })
}

#[pymethods]
impl Plan {
    #[getter]
    fn partitions<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.plan.partitions().iter().map(|part| PyBytes::new(py, part)).collect()
    }

    #[getter]
    fn estimates(&self) -> Vec<Estimate> {
        self.plan.estimates().iter().copied().map(Estimate).collect()
    }

    #[getter]
    fn reason(&self) -> Option<&str> {
        self.plan.reason()
    }

    #[getter]
    fn released(&self) -> bool {
        self.plan.is_released()
    }

    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn release(&self, py: Python<'_>) {
        py.detach(|| self.plan.release());
    }

    /// Rows, digest and number of parts.
    fn verify(&self, py: Python<'_>, receipts: Vec<Vec<u8>>) -> PyResult<(u64, u64, usize)> {
        let proof = py.detach(|| self.plan.verify(&receipts));
        let proof = proof.map_err(|error| exception(py, &error))?;
        Ok((proof.rows, proof.digest, proof.parts))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }
}

/// Giving the snapshot up waits for the server.
impl Drop for Plan {
    fn drop(&mut self) {
        Python::try_attach(|py| py.detach(|| self.plan.release()));
    }
}

/// What to connect to for reading a part: `uri`, or what the part says.
#[pyfunction]
pub fn part_uri(py: Python<'_>, descriptor: &[u8], uri: Option<&str>) -> PyResult<String> {
    let part = Part::decode(descriptor).map_err(|error| exception(py, &error))?;
    Ok(part.connect_uri(uri))
}

/// Starts to read a part over a connection. `dray.read_partition` documents the parameters.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "Python passes each option by name")]
pub fn read_partition(
    py: Python<'_>,
    connection: &Connection,
    descriptor: &[u8],
    row_bytes_max: Option<u64>,
    batch_rows: usize,
    batch_bytes: u64,
    compression: &str,
    strings: &str,
    extension: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Result> {
    let wrong = |message: String| usage(py, &message, None);
    let part = Part::decode(descriptor).map_err(|error| exception(py, &error))?;
    let mut options = QueryOptions {
        batch_rows,
        batch_bytes,
        compression: compression.parse::<CompressionChoice>().map_err(wrong)?,
        strings: string_layout(strings).map_err(wrong)?,
        ..QueryOptions::default()
    };
    let row_bytes_max = row_bytes_max.unwrap_or(options.limits.row_bytes_max);
    options.limits = Limits { row_bytes_max, ..options.limits };
    options.postgres.extension = extension.parse().map_err(wrong)?;
    let lease = connection.lease(py)?;
    let monitor = Arc::new(Monitor::new(progress));
    let watch = monitor.clone().watch();
    let results = detached(py, || {
        dray_client::Connection::read_partition_with(lease, &part, &options, Some(watch))
    })?;
    let results =
        results.map_err(|error| monitor.take_raised().unwrap_or_else(|| exception(py, &error)))?;
    let schema = results.schema();
    let mut progress = results.progress();
    if progress.estimate.rows == Known::Unknown {
        progress.estimate = part.estimate();
    }
    monitor.set_progress(progress);
    let estimate = progress.estimate;
    Ok(Result { reader: Reader::new(results, monitor), schema, estimate })
}
