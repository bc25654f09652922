//! `dray.PageFile`, `dray.PageWriter`: objects of a page file, and writing one.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::{RecordBatch, RecordBatchIterator};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use dray_format::arrow::{
    StringLayout, batch_from_arrow, batch_to_arrow, schema_from_arrow, schema_to_arrow,
    with_new_dictionaries,
};
use dray_page::{ColumnsBuilder, Layout, VerifiedPage};
use dray_pagefile::{
    Error, ErrorKind, KeyPath, KeyValue, PageFileOptions, PageFileWriter, Written,
};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBool, PyBytes, PyCapsule, PyInt, PyString};

use crate::assign::{self, New};
use crate::capsule::{import_schema, import_stream, schema_capsule, stream_capsule};
use crate::error::{detached, execution, usage};
use crate::object::{Class, Object};
use crate::put::Put;

/// The largest batch. One page, or the objects of one call, become one.
const BATCH_BYTES_MAX: u64 = 2 << 30;

pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
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
        let schema = with_new_dictionaries(&schema);
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
        let key = key_values(&key)?;
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

/// The values of a key.
pub(crate) fn key_values(key: &[Bound<'_, PyAny>]) -> PyResult<Vec<KeyValue>> {
    key.iter().map(key_value).collect()
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
    let schema = schema_from_arrow(&with_new_dictionaries(&stream.schema()));
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

/// Writes objects into a new file. `dray/_pages.py` documents the methods.
#[pyclass(frozen, module = "dray._dray")]
pub struct PageWriter {
    class: Class,
    put: Put,
    /// None once the file has ended, or failed.
    writer: Mutex<Option<PageFileWriter<Arc<File>>>>,
    file: Arc<File>,
}

impl PageWriter {
    /// Calls `run` with the writer. A file that can't be written takes no more objects.
    fn with(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&mut PageFileWriter<Arc<File>>) -> dray_pagefile::Result<()>,
    ) -> PyResult<dray_pagefile::Result<()>> {
        let mut writer = held(py, &self.writer);
        let written = writer.as_mut().map(run);
        if matches!(&written, Some(Err(error)) if error.kind() == ErrorKind::Io) {
            *writer = None;
        }
        drop(writer);
        written.ok_or_else(|| ended(py))
    }
}

#[pymethods]
impl PageWriter {
    #[new]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        schema: &Bound<'_, PyAny>,
        key: Vec<KeyPath>,
    ) -> PyResult<Self> {
        let schema = schema_from_arrow(&with_new_dictionaries(&import_schema(schema)?));
        let schema = schema.map_err(|error| usage(py, &error.to_string(), None))?;
        let layout = Layout::new(schema.clone());
        let layout = layout.map_err(|error| usage(py, &error.to_string(), None))?;
        let arrow = schema_to_arrow(&schema, StringLayout::default());
        let class = Class::new(py, &layout.fields(), arrow.fields());
        let put = put_for(py, &layout)?;
        let file = File::create(path).map_err(|error| execution(py, &error.to_string()))?;
        let file = Arc::new(file);
        let options = PageFileOptions { key, ..PageFileOptions::default() };
        let writer = PageFileWriter::new(file.clone(), schema, &options);
        let writer = writer.map_err(|error| execution(py, &error.to_string()))?;
        Ok(Self { class, put, writer: Mutex::new(Some(writer)), file })
    }

    fn append(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Some(object) = whole(value) {
            match self.with(py, |writer| writer.copy(object))? {
                Err(error) if is_of_another_schema(&error) => {}
                done => return done.map_err(|error| execution(py, &error.to_string())),
            }
        }
        let new = object_for(py, &self.class, value)?;
        let built = self.with(py, |writer| writer.build(|object| self.put.write(object, &new)))?;
        built.map_err(|error| execution(py, &error.to_string()))
    }

    fn finish(&self, py: Python<'_>) -> PyResult<(u64, u64, u64)> {
        let taken = held(py, &self.writer).take();
        let writer = taken.ok_or_else(|| ended(py))?;
        let file = &self.file;
        let written = detached(py, || {
            let written = writer.finish().map_err(|error| error.to_string())?;
            file.sync_all().map(|()| written).map_err(|error| error.to_string())
        })?;
        let Written { objects, pages, bytes } = written.map_err(|error| execution(py, &error))?;
        Ok((objects, pages, bytes))
    }
}

/// What writes the objects of a schema.
pub(crate) fn put_for(py: Python<'_>, layout: &Layout) -> PyResult<Put> {
    Put::new(layout).map_err(|error| usage(py, &error.to_string(), Some("rename one of them")))
}

/// The fields of a whole object.
pub(crate) fn object_for(py: Python<'_>, class: &Class, value: &Bound<'_, PyAny>) -> PyResult<New> {
    assign::object_for(class, value).map_err(|refused| refused.raise(py, ""))
}

/// The object of a page that a value is.
pub(crate) fn whole<'v>(value: &'v Bound<'_, PyAny>) -> Option<dray_page::Object<'v>> {
    value.cast::<Object>().ok()?.get().whole()
}

/// Whether an object was not copied because it has another schema.
pub(crate) fn is_of_another_schema(error: &dray_pagefile::Error) -> bool {
    error.kind() == ErrorKind::Inside(dray_page::ErrorKind::Unsupported)
}

/// The error of what is used too late.
pub(crate) fn ended(py: Python<'_>) -> PyErr {
    usage(py, "the block in which the file could be changed has ended, or the file failed", None)
}

/// Locks what is held while no code of Python runs. Other threads of Python run while this waits.
pub(crate) fn held<'m, T>(py: Python<'_>, mutex: &'m Mutex<T>) -> MutexGuard<'m, T> {
    mutex.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
}
