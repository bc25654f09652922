//! `dray.PageFile`: objects of a page file, and writing one.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchIterator};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use dray_format::arrow::{
    StringLayout, batch_from_arrow, batch_to_arrow, schema_from_arrow, schema_to_arrow,
};
use dray_page::{ColumnsBuilder, VerifiedPage};
use dray_pagefile::{Error, ErrorKind, KeyPath, KeyValue, PageFileOptions, PageFileWriter};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyCapsule, PyInt, PyString};

use crate::capsule::{import_stream, schema_capsule, stream_capsule};
use crate::error::{detached, execution, usage};
use crate::object::{Class, Object};

/// The largest batch. One page, or the objects of one call, become one.
const BATCH_BYTES_MAX: u64 = 2 << 30;

fn exception(py: Python<'_>, error: &Error) -> PyErr {
    match error.kind() {
        ErrorKind::Usage | ErrorKind::Io | ErrorKind::Magic => usage(py, &error.to_string(), None),
        _ => execution(py, &error.to_string()),
    }
}

/// An open page file. `dray/_pages.py` documents the methods.
#[pyclass(frozen, module = "dray._dray")]
pub struct PageFile {
    file: Arc<dray_pagefile::PageFile>,
    schema: SchemaRef,
    class: Arc<Class>,
}

impl PageFile {
    /// A page. The first call reads and checks it, and lets other threads of Python run.
    fn checked_page(&self, py: Python<'_>, page: usize) -> PyResult<&VerifiedPage> {
        if let Some(page) = self.file.checked_page(page) {
            return Ok(page);
        }
        detached(py, || self.file.page(page))?.map_err(|error| exception(py, &error))
    }
}

#[pymethods]
impl PageFile {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let opened = detached(py, || dray_pagefile::PageFile::open(path))?;
        let file = opened.map_err(|error| exception(py, &error))?;
        let schema = schema_to_arrow(file.schema(), StringLayout::default());
        let class = Arc::new(Class::new(py, &file.layout().fields(), schema.fields()));
        Ok(Self { file: Arc::new(file), schema: schema.into(), class })
    }

    /// Objects, pages, and bytes.
    fn size(&self) -> (u64, usize, usize) {
        (self.file.len(), self.file.page_count(), self.file.file_bytes())
    }

    fn schema_digest<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.file.schema_digest())
    }

    /// The paths of the key's fields.
    fn key(&self) -> Vec<KeyPath> {
        self.file.key().into_iter().map(|(path, _)| path.clone()).collect()
    }

    fn get(&self, py: Python<'_>, ordinal: u64) -> PyResult<Object> {
        let (page, slot) = self.file.position(ordinal).map_err(|error| exception(py, &error))?;
        Object::new(&self.class, self.checked_page(py, page)?, slot)
    }

    /// The objects of a page.
    fn page(&self, py: Python<'_>, page: usize) -> PyResult<Vec<Object>> {
        let page = self.checked_page(py, page)?;
        (0..page.len()).map(|slot| Object::new(&self.class, page, slot)).collect()
    }

    /// The numbers of the objects with a key.
    fn find(&self, py: Python<'_>, key: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<u64>> {
        let key = key.iter().map(key_value).collect::<PyResult<Vec<_>>>()?;
        let found = detached(py, || self.file.find(&key))?;
        found.map_err(|error| exception(py, &error))
    }

    /// Checks every byte.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.file.check())?.map_err(|error| exception(py, &error))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer ignore it.
        let _ = requested_schema;
        let (file, schema) = (self.file.clone(), self.schema.clone());
        let batches = (0..file.page_count()).map(move |page| {
            let page = file.page(page).map(|page| page.objects().collect());
            let batch = page.and_then(|objects| batch(&file, &schema, objects));
            batch.map_err(|error| ArrowError::ExternalError(Box::new(error)))
        });
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        stream_capsule(py, Box::new(reader))
    }
}

fn batch(
    file: &dray_pagefile::PageFile,
    schema: &SchemaRef,
    objects: Vec<dray_page::Object<'_>>,
) -> dray_pagefile::Result<RecordBatch> {
    let mut columns = ColumnsBuilder::new(file.layout().clone(), BATCH_BYTES_MAX);
    columns.append(objects)?;
    batch_to_arrow(columns.finish(), schema).map_err(Error::usage)
}

fn key_value(value: &Bound<'_, PyAny>) -> PyResult<KeyValue> {
    if value.is_instance_of::<PyBool>() {
        return Ok(KeyValue::Bool(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(KeyValue::Integer(value.extract()?));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(KeyValue::from(value.extract::<&str>()?));
    }
    if value.is_instance_of::<PyBytes>() {
        return Ok(KeyValue::Bytes(value.extract::<Vec<u8>>()?));
    }
    let what = format!("a key's value of type {}", value.get_type().name()?);
    Err(usage(value.py(), &what, Some("give int, str, bytes or bool")))
}

/// Writes the rows of an object with `__arrow_c_stream__` into a new file. Returns the number of
/// objects, of pages and of bytes.
#[pyfunction]
pub fn write_pages(
    py: Python<'_>,
    path: PathBuf,
    source: &Bound<'_, PyAny>,
    key: Vec<KeyPath>,
) -> PyResult<(u64, u64, u64)> {
    let mut stream = import_stream(source)?;
    let schema = schema_from_arrow(&stream.schema());
    let schema = schema.map_err(|error| usage(py, &error.to_string(), None))?;
    let options = PageFileOptions { key, ..PageFileOptions::default() };
    let written = detached(py, move || {
        let file = File::create(path).map_err(|error| error.to_string())?;
        let mut writer = PageFileWriter::new(&file, schema, &options).map_err(text)?;
        for batch in &mut stream {
            let batch = batch.map_err(|error| format!("the source failed: {error}"))?;
            writer.write(&batch_from_arrow(&batch).map_err(text)?).map_err(text)?;
        }
        let written = writer.finish().map_err(text)?;
        file.sync_all().map_err(text)?;
        Ok((written.objects, written.pages, written.bytes))
    })?;
    written.map_err(|error: String| execution(py, &error))
}

fn text(error: impl std::error::Error) -> String {
    error.to_string()
}
