//! The compiled part of `dray.Result`, and the dict of its statistics.

use std::collections::HashMap;

use arrow::datatypes::SchemaRef;
use dray_client::{Estimate as ClientEstimate, PathKind, PriceSet, Stats};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList};

use crate::capsule::{Batch, Table, schema_capsule, stream_capsule};
use crate::monitor::{Estimate, Progress};
use crate::reader::{Reader, Stream};

/// The compiled part of `dray.Result`.
#[pyclass(frozen, module = "dray._dray")]
pub struct Result {
    pub(crate) reader: Reader,
    pub(crate) schema: SchemaRef,
    pub(crate) estimate: ClientEstimate,
}

#[pymethods]
impl Result {
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The name, type and metadata of each column.
    #[getter]
    fn fields(&self) -> Vec<(String, String, HashMap<String, String>)> {
        let fields = self.schema.fields().iter();
        fields
            .map(|field| {
                (field.name().clone(), field.data_type().to_string(), field.metadata().clone())
            })
            .collect()
    }

    #[getter]
    fn estimate(&self) -> Estimate {
        Estimate(self.estimate)
    }

    #[getter]
    fn progress(&self) -> Progress {
        Progress(self.reader.monitor.progress())
    }

    #[getter]
    fn receipt<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        Ok(self.reader.receipt(py)?.map(|receipt| PyBytes::new(py, &receipt)))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    fn stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        stream_capsule(
            py,
            Box::new(Stream { reader: self.reader.clone(), schema: self.schema.clone() }),
        )
    }

    fn next_batch(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        Ok(self.reader.next_batch(py)?.map(Batch::new))
    }

    fn next_rows<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        self.reader.next_rows(py)
    }

    fn read_all(&self, py: Python<'_>) -> PyResult<Table> {
        Ok(Table { schema: self.schema.clone(), batches: self.reader.read_all(py)? })
    }

    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        self.reader.cancel(py)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.reader.close(py)
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.reader.stats(py)?;
        stats_dict(py, &stats, &self.schema)
    }
}

/// Dropping a result cancels its statement, unless a stream still reads it.
impl Drop for Result {
    fn drop(&mut self) {
        if self.reader.is_unique() {
            Python::try_attach(|py| self.reader.cancel_on_drop(py));
        }
    }
}

pub(crate) fn stats_dict<'py>(
    py: Python<'py>,
    stats: &Stats,
    schema: &SchemaRef,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("path", stats.path.kind.to_string())?;
    dict.set_item("path_reason", &stats.path.reason)?;
    dict.set_item("rows", stats.rows)?;
    dict.set_item("chunks", stats.chunks)?;
    dict.set_item("pages", stats.pages)?;
    dict.set_item("wire_bytes", stats.wire_bytes)?;
    dict.set_item("decoded_bytes", stats.decoded_bytes)?;
    dict.set_item("compression", stats.compression.to_string())?;
    dict.set_item("checksums", stats.checksums)?;
    for (key, time) in [
        ("connect_seconds", stats.connect),
        ("plan_seconds", stats.plan),
        ("first_chunk_seconds", stats.first_chunk),
        ("total_seconds", stats.total),
        ("receive_seconds", stats.receive),
        ("decode_seconds", stats.decode),
    ] {
        dict.set_item(key, time.as_secs_f64())?;
    }
    let server = stats.server.map(|finished| {
        let server = PyDict::new(py);
        for (key, ns) in [
            ("execute_seconds", finished.execute_ns),
            ("encode_seconds", finished.encode_ns),
            ("queue_seconds", finished.queue_ns),
            ("socket_seconds", finished.socket_ns),
            ("total_seconds", finished.total_ns),
        ] {
            server.set_item(key, seconds(ns))?;
        }
        PyResult::Ok(server)
    });
    dict.set_item("server", server.transpose()?)?;
    let columns = PyList::empty(py);
    for (i, (field, profile)) in schema.fields().iter().zip(&stats.profile.columns).enumerate() {
        let column = PyDict::new(py);
        column.set_item("name", field.name())?;
        column.set_item("type", field.data_type().to_string())?;
        // Rows of PostgreSQL interleave the columns, so no column has a size or a time of its own.
        let wire_bytes = (stats.path.kind != PathKind::Rows).then_some(profile.body_bytes);
        column.set_item("wire_bytes", wire_bytes)?;
        column.set_item("decoded_bytes", profile.decoded_bytes)?;
        column.set_item("encodings", &profile.encodings)?;
        let encoded = stats.report.columns.get(i).filter(|column| column.decoded_bytes > 0);
        column.set_item("encode_seconds", encoded.map(|column| seconds(column.encode_ns)))?;
        let decode_ns = (stats.path.kind != PathKind::Rows).then_some(profile.decode_ns);
        column.set_item("decode_seconds", decode_ns.map(seconds))?;
        columns.append(column)?;
    }
    dict.set_item("columns", columns)?;
    let price = |price: &PriceSet| (f64::from(price.at_ms) / 1e3, f64::from(price.price_ps) / 1e3);
    dict.set_item("byte_prices", stats.report.prices.iter().map(price).collect::<Vec<_>>())?;
    Ok(dict)
}

fn seconds(ns: u64) -> f64 {
    std::time::Duration::from_nanos(ns).as_secs_f64()
}
