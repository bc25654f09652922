//! Page files: `spec/page-file.md`.

use std::io::{BufWriter, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use dray_format::Schema;
use dray_format::arrow::{batch_from_arrow, schema_from_arrow, with_new_dictionaries};
use dray_page::{Layout, VerifiedPage};
use dray_pagefile::{KeyPath, PageFileOptions, PageFileWriter};

use super::{BUFFER_BYTES, Sink, WriteError};

pub(crate) struct PagesSink<W: Write> {
    writer: PageFileWriter<BufWriter<W>>,
}

impl<W: Write> PagesSink<W> {
    /// A writer of objects of this layout.
    pub(crate) fn new(out: W, layout: &Layout, key: Vec<KeyPath>) -> Result<Self, WriteError> {
        let out = BufWriter::with_capacity(BUFFER_BYTES, out);
        Self::of_schema(out, layout.schema().clone(), key)
    }

    pub(super) fn start(
        out: BufWriter<W>,
        schema: &SchemaRef,
        key: Vec<KeyPath>,
    ) -> Result<Self, WriteError> {
        Self::of_schema(out, schema_from_arrow(&with_new_dictionaries(schema))?, key)
    }

    fn of_schema(out: BufWriter<W>, schema: Schema, key: Vec<KeyPath>) -> Result<Self, WriteError> {
        let options = PageFileOptions { key, ..PageFileOptions::default() };
        Ok(Self { writer: PageFileWriter::new(out, schema, &options)? })
    }

    /// Writes the objects of a page.
    pub(crate) fn copy(&mut self, page: &VerifiedPage) -> Result<(), WriteError> {
        Ok(page.objects().try_for_each(|object| self.writer.copy(object))?)
    }

    /// Writes the end of the file.
    pub(crate) fn end(self) -> Result<(), WriteError> {
        self.writer.finish()?;
        Ok(())
    }
}

impl<W: Write> Sink for PagesSink<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), WriteError> {
        Ok(self.writer.write(&batch_from_arrow(batch)?)?)
    }

    fn finish(self: Box<Self>) -> Result<(), WriteError> {
        self.end()
    }
}
