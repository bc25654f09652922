//! Exchanges Arrow data with other libraries of this process without copying it, by the Arrow
//! PyCapsule interface.
//!
//! What a capsule holds, who owns it and when it is released is defined by
//! <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html> ("Capsule
//! Structure", "Lifetime Semantics") and by the C data and C stream interfaces that it builds on.
//! The `SAFETY` comments below refer to these pages.

#![allow(unsafe_code, reason = "Python's C interface")]

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchIterator, StructArray, make_array};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow::record_batch::RecordBatchReader;
use dray_client::{export, panic_text};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::usage;
use crate::rows;

// The names of capsules, which say what struct they hold ("Capsule Structure").
const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// A capsule with a schema.
///
/// # Errors
/// A `ValueError` when the C data interface can't express the schema.
pub(crate) fn schema_capsule<'py>(
    py: Python<'py>,
    schema: &Schema,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema =
        export::schema(schema).map_err(|error| PyValueError::new_err(error.to_string()))?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

/// A capsule with a stream that owns the reader.
pub(crate) fn stream_capsule<'py>(
    py: Python<'py>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, export::stream(reader), STREAM)
}

/// Rows that a consumer of Arrow's C stream reads once.
pub(crate) struct OneStream<R> {
    rows: Mutex<Option<R>>,
    schema: SchemaRef,
}

impl<R: RecordBatchReader + Send + 'static> OneStream<R> {
    pub(crate) fn new(rows: R) -> Self {
        let schema = rows.schema();
        Self { rows: Mutex::new(Some(rows)), schema }
    }

    /// What `look` sees of the rows, until they are taken.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&R) -> T) -> Option<T> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(look)
    }

    pub(crate) fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    /// A capsule with the rows. `again` says how to get them again.
    pub(crate) fn take<'py>(
        &self,
        py: Python<'py>,
        again: &str,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner).take();
        let rows = rows.ok_or_else(|| usage(py, "the rows were read already", Some(again)))?;
        stream_capsule(py, Box::new(rows))
    }
}

/// Imports an array from an object with `__arrow_c_array__`.
///
/// # Errors
/// The exception that the method raised, or a `UsageError` when the array breaks Arrow's rules.
pub(crate) fn import_array(exporter: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let capsules = exporter.call_method0("__arrow_c_array__")?;
    let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = capsules.extract()?;
    let schema = schema.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
    // SAFETY: `pointer_checked` saw the interface's names, so the capsules hold these structs
    // ("Capsule Structure"), and the array's buffers are those that the C data interface demands of
    // the schema. Both capsules live to the end of this function. `from_raw` moves the array out
    // and leaves a released one to its capsule ("Lifetime Semantics"); the schema is only read.
    let import = || unsafe { from_ffi(FFI_ArrowArray::from_raw(array.as_ptr()), schema.as_ref()) };
    catch_panics(|| import().map(make_array))
        .map_err(|error| usage(exporter.py(), &error.to_string(), None))
}

/// Imports the schema of an object with `__arrow_c_schema__`.
///
/// # Errors
/// The exception that the method raised, or a `UsageError` when the schema breaks Arrow's rules.
pub(crate) fn import_schema(exporter: &Bound<'_, PyAny>) -> PyResult<Schema> {
    let capsule: Bound<'_, PyCapsule> = exporter.call_method0("__arrow_c_schema__")?.extract()?;
    let schema = capsule.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
    // SAFETY: `pointer_checked` saw the interface's name, so the capsule holds this struct
    // ("Capsule Structure"), which is only read. It lives to the end of this function.
    let import = || Schema::try_from(unsafe { schema.as_ref() });
    catch_panics(import).map_err(|error| usage(exporter.py(), &error.to_string(), None))
}

/// Imports a stream from an object with `__arrow_c_stream__`.
///
/// # Errors
/// The exception that the method raised, or a `UsageError` when the stream breaks Arrow's rules.
pub(crate) fn import_stream(exporter: &Bound<'_, PyAny>) -> PyResult<ImportedStream> {
    let capsule: Bound<'_, PyCapsule> = exporter.call_method0("__arrow_c_stream__")?.extract()?;
    let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: `pointer_checked` saw the interface's name, so the capsule holds this struct
    // ("Capsule Structure"). It lives to the end of this function. `from_raw` refuses a released
    // stream, and moves any other out and leaves a released one to its capsule ("Lifetime
    // Semantics").
    let import = || unsafe { ArrowArrayStreamReader::from_raw(stream.as_ptr()) };
    catch_panics(import)
        .map(|reader| ImportedStream(Some(reader)))
        .map_err(|error| usage(exporter.py(), &error.to_string(), None))
}

/// The batches of another library's stream. arrow-rs panics when a stream breaks the interface's
/// rules, for example with an error that has no text; here that is an error too. After an error the
/// stream ends.
pub(crate) struct ImportedStream(Option<ArrowArrayStreamReader>);

impl ImportedStream {
    pub(crate) fn schema(&self) -> SchemaRef {
        self.0.as_ref().map_or_else(|| Schema::empty().into(), ArrowArrayStreamReader::schema)
    }
}

impl Iterator for ImportedStream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let reader = self.0.as_mut()?;
        let next = catch_panics(|| reader.next().transpose()).transpose();
        if !matches!(next, Some(Ok(_))) {
            self.0 = None;
        }
        next
    }
}

/// Runs arrow-rs's import and turns a panic into an error.
fn catch_panics<T>(import: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, ArrowError> {
    catch_unwind(AssertUnwindSafe(import)).unwrap_or_else(|panic| {
        Err(ArrowError::CDataInterface(format!(
            "the other library's data breaks Arrow's rules: {}",
            panic_text(&*panic)
        )))
    })
}

/// Simulates another SIGINT, which Python handles when it next runs. The consumer of a C stream
/// turns the first `KeyboardInterrupt` into an exception of its own.
pub(crate) fn raise_interrupt_again() {
    // SAFETY: Python's C API reference ("Signal Handling") allows calling `PyErr_SetInterrupt`
    // without the lock, and from a signal handler.
    unsafe { pyo3::ffi::PyErr_SetInterrupt() }
}

/// A batch that can be exported once.
#[pyclass(frozen, module = "dray._dray")]
pub struct Batch(Mutex<Option<RecordBatch>>);

impl Batch {
    pub(crate) fn new(batch: RecordBatch) -> Self {
        Self(Mutex::new(Some(batch)))
    }
}

#[pymethods]
impl Batch {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // The interface allows producers to ignore the requested schema.
        let _ = requested_schema;
        // Taken, not cloned: the stream receives into the batch's memory again once nothing refers
        // to it.
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let batch = taken.ok_or_else(|| usage(py, "the batch was exported already", None))?;
        let schema = schema_capsule(py, &batch.schema())?;
        let array = FFI_ArrowArray::new(&StructArray::from(batch).to_data());
        Ok((schema, PyCapsule::new_with_value(py, array, ARRAY)?))
    }
}

/// All batches of a result. It can be exported any number of times.
#[pyclass(frozen, module = "dray._dray")]
pub struct Table {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
}

#[pymethods]
impl Table {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        stream_capsule(py, Box::new(RecordBatchIterator::new(batches, self.schema.clone())))
    }

    /// The values of a column, as rows have them.
    fn values<'py>(&self, py: Python<'py>, column: usize) -> rows::Values<'py> {
        let mut all = Vec::new();
        for batch in &self.batches {
            all.extend(rows::values(py, batch.column(column), self.schema.field(column))?);
        }
        Ok(all)
    }
}
