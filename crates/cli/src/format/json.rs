//! NDJSON: an object a line, NULLs written out, decimals as numbers with all their digits.

use std::collections::HashSet;
use std::io::{BufWriter, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use arrow::json::LineDelimitedWriter;
use arrow::json::writer::WriterBuilder;

use super::{Problem, Sink};

pub(super) struct JsonSink<W: Write>(LineDelimitedWriter<BufWriter<W>>);

impl<W: Write> JsonSink<W> {
    pub(super) fn start(out: BufWriter<W>, schema: &Schema) -> Result<Self, Problem> {
        // A reader would keep one of the two.
        let mut names = HashSet::new();
        if let Some(twice) = schema.fields().iter().find(|field| !names.insert(field.name())) {
            return Err(format!("two columns are called {:?} (name one with AS)", twice.name()).into());
        }
        Ok(Self(WriterBuilder::new().with_explicit_nulls(true).build(out)))
    }
}

impl<W: Write> Sink for JsonSink<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), Problem> {
        Ok(self.0.write(batch)?)
    }

    fn finish(self: Box<Self>) -> Result<(), Problem> {
        let mut writer = self.0;
        writer.finish()?;
        Ok(writer.into_inner().flush()?)
    }
}
