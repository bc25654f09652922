//! CSV as in RFC 4180, with PostgreSQL's rule for NULL: NULL is an empty field, an empty string is
//! `""`.
//!
//! Decimals have all digits, dates and times are in ISO 8601, bytes are hexadecimal, floats may be
//! `NaN`, `inf` and `-inf`. Lines end with a line feed.

use std::io::{BufWriter, Write};

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, Schema};

use super::{Sink, WriteError, text};

pub(super) struct CsvSink<W: Write> {
    out: BufWriter<W>,
    line: String,
    value: String,
}

impl<W: Write> CsvSink<W> {
    pub(super) fn start(mut out: BufWriter<W>, schema: &Schema) -> Result<Self, WriteError> {
        if let Some(field) = schema.fields().iter().find(|field| field.data_type().is_nested()) {
            let what = format!(
                "column {:?} is a {}, which CSV has no way to write",
                field.name(),
                field.data_type()
            );
            return Err(format!("{what} (use json, arrow or parquet, or select its parts)").into());
        }
        let mut line = String::new();
        for field in schema.fields() {
            put_field(&mut line, field.name());
        }
        end_line(&mut line);
        out.write_all(line.as_bytes())?;
        Ok(Self { out, line, value: String::new() })
    }
}

impl<W: Write> Sink for CsvSink<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), WriteError> {
        let columns = batch.columns().iter().map(|column| {
            let formatter = text::formatter(column.as_ref(), "")?;
            Ok((column.logical_nulls(), is_plain(column.data_type()), formatter))
        });
        let columns = columns.collect::<Result<Vec<_>, WriteError>>()?;
        for row in 0..batch.num_rows() {
            self.line.clear();
            for (nulls, plain, formatter) in &columns {
                if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    self.line.push(',');
                } else if *plain {
                    formatter.value(row).write(&mut self.line)?;
                    self.line.push(',');
                } else {
                    self.value.clear();
                    formatter.value(row).write(&mut self.value)?;
                    put_field(&mut self.line, &self.value);
                }
            }
            end_line(&mut self.line);
            self.out.write_all(self.line.as_bytes())?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), WriteError> {
        Ok(self.out.flush()?)
    }
}

/// Whether values of a type never need quotes.
fn is_plain(data_type: &DataType) -> bool {
    data_type.is_numeric() || data_type.is_temporal() || *data_type == DataType::Boolean
}

fn put_field(line: &mut String, field: &str) {
    // Also quote what some readers strip, or treat as the end of the data.
    let quoted = field.is_empty()
        || field == "\\."
        || field.starts_with(' ')
        || field.ends_with(' ')
        || field.contains([',', '"', '\n', '\r']);
    if quoted {
        line.push('"');
        line.push_str(&field.replace('"', "\"\""));
        line.push('"');
    } else {
        line.push_str(field);
    }
    line.push(',');
}

/// Replaces the comma after the last field by the line end.
fn end_line(line: &mut String) {
    line.pop();
    line.push('\n');
}
