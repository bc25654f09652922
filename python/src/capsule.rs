//! Arrow data for other libraries in this process, by the PyCapsule protocol: pointers change
//! hands, no bytes are copied.

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
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::{panic_text, usage};
use crate::export;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

pub(crate) fn schema_capsule<'py>(
    py: Python<'py>,
    schema: &Schema,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema =
        export::schema(schema).map_err(|error| PyValueError::new_err(error.to_string()))?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

pub(crate) fn stream_capsule<'py>(
    py: Python<'py>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, export::stream(reader), STREAM)
}

/// An array that another library hands over by `__arrow_c_array__`.
pub(crate) fn import_array(exporter: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let capsules = exporter.call_method0("__arrow_c_array__")?;
    let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = capsules.extract()?;
    let schema = schema.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
    // SAFETY: the capsules have the protocol's names, so that they hold these structs; they live to
    // the end of this function. The array is moved out, which leaves a released one to its capsule;
    // the schema is only read.
    let import = || unsafe { from_ffi(FFI_ArrowArray::from_raw(array.as_ptr()), schema.as_ref()) };
    caught(|| import().map(make_array))
        .map_err(|error| usage(exporter.py(), &error.to_string(), None))
}

/// A stream that another library hands over by `__arrow_c_stream__`.
pub(crate) fn import_stream(exporter: &Bound<'_, PyAny>) -> PyResult<Imported> {
    let capsule: Bound<'_, PyCapsule> = exporter.call_method0("__arrow_c_stream__")?.extract()?;
    let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: `pointer_checked` has seen that the capsule has the protocol's name, so that it holds
    // this struct; it lives to the end of this function. The stream is moved out, which leaves a
    // released one to its capsule; a released one is refused.
    let import = || unsafe { ArrowArrayStreamReader::from_raw(stream.as_ptr()) };
    caught(import)
        .map(|reader| Imported(Some(reader)))
        .map_err(|error| usage(exporter.py(), &error.to_string(), None))
}

/// The batches of another library. Arrow panics at what breaks the interface's rules, an error
/// without a text among them.
pub(crate) struct Imported(Option<ArrowArrayStreamReader>);

impl Imported {
    pub(crate) fn schema(&self) -> SchemaRef {
        self.0.as_ref().map_or_else(|| Schema::empty().into(), ArrowArrayStreamReader::schema)
    }
}

impl Iterator for Imported {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let reader = self.0.as_mut()?;
        let next = caught(|| reader.next().transpose()).transpose();
        if !matches!(next, Some(Ok(_))) {
            self.0 = None;
        }
        next
    }
}

fn caught<T>(import: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, ArrowError> {
    catch_unwind(AssertUnwindSafe(import)).unwrap_or_else(|panic| {
        Err(ArrowError::CDataInterface(format!(
            "the other library's data breaks Arrow's rules: {}",
            panic_text(&*panic)
        )))
    })
}

/// Raises the interrupt again, once Python runs on: a consumer of a C stream has made an error of
/// its own of the first one.
pub(crate) fn interrupt_again() {
    // SAFETY: may be called at any time, even without Python's lock.
    unsafe { pyo3::ffi::PyErr_SetInterrupt() }
}

/// One batch, on its way to another library, once.
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
        // Conversion is at best an offer in this protocol.
        let _ = requested_schema;
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Its memory is the stream's next receive buffer, so it must not be kept here.
        let batch = taken.ok_or_else(|| usage(py, "the batch has been handed over", None))?;
        let schema = schema_capsule(py, &batch.schema())?;
        let array = FFI_ArrowArray::new(&StructArray::from(batch).to_data());
        Ok((schema, PyCapsule::new_with_value(py, array, ARRAY)?))
    }
}

/// A whole result.
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
}
