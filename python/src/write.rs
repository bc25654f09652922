//! `dray.Connection.write`: writes Arrow data into a table.

use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, RecordBatchIterator};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatchReader;
use dray_client::{Progress, Watch, WriteMode, WriteOptions, WriteStats};
use pyo3::prelude::*;

use crate::capsule::{ImportedStream, import_array, import_stream};
use crate::connection::Connection;
use crate::error::{detached, exception, usage};
use crate::monitor::Monitor;

/// Another library's stream, with its schema.
struct Reader {
    schema: SchemaRef,
    stream: ImportedStream,
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.stream.next()
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// Writes an object with `__arrow_c_stream__` or `__arrow_c_array__`. `dray/_write.py` documents
/// the parameters and names the values that are returned.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "Python passes each option by name")]
pub fn write(
    py: Python<'_>,
    connection: &Connection,
    table: &str,
    source: &Bound<'_, PyAny>,
    mode: &str,
    schema: Option<String>,
    temporary: bool,
    types: Vec<(String, String)>,
    connections: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<(u64, u64, bool, [f64; 5])> {
    let mode: WriteMode = mode.parse().map_err(|error: String| usage(py, &error, None))?;
    let options = WriteOptions { mode, schema, temporary, types, connections };
    let monitor = Arc::new(Monitor::new(progress));
    let watch = monitor.clone().watch();
    let written = match source.hasattr("__arrow_c_stream__")? {
        true => {
            let stream = import_stream(source)?;
            run(py, connection, table, Reader { schema: stream.schema(), stream }, &options, watch)?
        }
        false => {
            let batch = batch(py, source)?;
            let schema = batch.schema();
            let reader = RecordBatchIterator::new([Ok(batch)], schema);
            run(py, connection, table, reader, &options, watch)?
        }
    };
    let stats =
        written.map_err(|error| monitor.take_raised().unwrap_or_else(|| exception(py, &error)))?;
    monitor.set_progress(Progress { rows: stats.rows, bytes: stats.bytes, ..Progress::default() });
    monitor.report(py)?;
    let WriteStats { rows, bytes, as_text, prepare, read, encode, send, total } = stats;
    let seconds = [prepare, read, encode, send, total].map(|time| time.as_secs_f64());
    Ok((rows, bytes, as_text, seconds))
}

fn run(
    py: Python<'_>,
    connection: &Connection,
    table: &str,
    reader: impl RecordBatchReader + Send + 'static,
    options: &WriteOptions,
    watch: Watch,
) -> PyResult<dray_client::Result<WriteStats>> {
    let mut lease = connection.lease(py)?;
    detached(py, move || {
        let connection: &mut dray_client::Connection =
            std::borrow::BorrowMut::borrow_mut(&mut lease);
        connection.write(table, reader, options, Some(watch))
    })
}

/// The rows of a struct array, such as a record batch.
fn batch(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let array = import_array(source)?;
    match array.data_type() {
        DataType::Struct(_) if array.null_count() == 0 => {
            Ok(RecordBatch::from(array.as_struct().clone()))
        }
        other => {
            let what = format!("can't write an array of {other}: its items are no rows");
            Err(usage(py, &what, Some("give a table, a record batch, or an array of structs")))
        }
    }
}
