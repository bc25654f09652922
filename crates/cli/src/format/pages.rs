//! Page files: `spec/page-file.md`.

use std::io::{BufWriter, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use dray_format::arrow::{batch_from_arrow, schema_from_arrow};
use dray_pagefile::{KeyPath, PageFileOptions, PageFileWriter};

use super::{Sink, WriteError};

pub(super) struct PagesSink<W: Write> {
    writer: PageFileWriter<BufWriter<W>>,
}

impl<W: Write> PagesSink<W> {
    pub(super) fn start(
        out: BufWriter<W>,
        schema: &SchemaRef,
        key: Vec<KeyPath>,
    ) -> Result<Self, WriteError> {
        let options = PageFileOptions { key, ..PageFileOptions::default() };
        Ok(Self { writer: PageFileWriter::new(out, schema_from_arrow(schema)?, &options)? })
    }
}

impl<W: Write> Sink for PagesSink<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), WriteError> {
        Ok(self.writer.write(&batch_from_arrow(batch)?)?)
    }

    fn finish(self: Box<Self>) -> Result<(), WriteError> {
        self.writer.finish()?;
        Ok(())
    }
}
