//! Columns of a result, of which SQLite knows only what is stored.
//!
//! A column has the type that it was declared with, or that its first values have: those of the
//! first batch. A value of another class is an error, unless it is the same number in the column's
//! type.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, NullArray, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use dray_driver::{ErrorKind, ServerError, error};
use rusqlite::types::ValueRef;
use rusqlite::{Row, Statement};

use crate::declared::{Class, class_of};

/// The metadata key for a declared type other than SQLite's own names.
const TYPE_KEY: &str = "dray:sqlite:type";

/// The columns of a result, and the rows of the batch that is being built.
#[derive(Debug)]
pub(crate) struct Columns {
    columns: Vec<Column>,
    /// None until the first batch: its values decide about types.
    schema: Option<SchemaRef>,
    rows: usize,
    rows_before: u64,
    bytes: u64,
    row_bytes_max: u64,
}

#[derive(Debug)]
struct Column {
    name: String,
    declared: Option<String>,
    values: Values,
    /// The row of the first value, if that decided about the type.
    decided_by: Option<u64>,
}

/// The values of a batch.
#[derive(Debug)]
enum Values {
    /// So many NULLs.
    Null(usize),
    Integer(Int64Builder),
    Real(Float64Builder),
    Text(StringBuilder),
    Blob(BinaryBuilder),
}

impl Columns {
    /// The columns of a statement that has made its first step. A row's values have at most so many
    /// bytes.
    pub(crate) fn of(statement: &Statement<'_>, row_bytes_max: u64) -> Self {
        let columns = statement.columns().map(|column| {
            let declared = column.decl_type().filter(|declared| !declared.is_empty());
            Column {
                name: column.name().to_owned(),
                declared: declared.map(str::to_owned),
                values: class_of(declared).map_or(Values::Null(0), Values::of),
                decided_by: None,
            }
        });
        let columns = columns.collect();
        Self { columns, schema: None, rows: 0, rows_before: 0, bytes: 0, row_bytes_max }
    }

    /// The rows since the last batch.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The bytes of their values, about.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends a row.
    ///
    /// # Errors
    /// If a value is of another class than the column's others, or the row is too long.
    pub(crate) fn push(&mut self, row: &Row<'_>) -> Result<(), ServerError> {
        const SLOT_BYTES: u64 = 8;
        let number = self.rows_before.saturating_add(self.rows as u64 + 1);
        let is_first_batch = self.schema.is_none();
        let mut row_bytes = 0;
        for (i, column) in self.columns.iter_mut().enumerate() {
            let value = row
                .get_ref(i)
                .map_err(|cause| error(ErrorKind::Internal, "XX000", cause.to_string(), ""))?;
            let value_bytes = match value {
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len() as u64,
                _ => 0,
            };
            self.bytes += SLOT_BYTES + value_bytes;
            row_bytes += value_bytes;
            if row_bytes > self.row_bytes_max {
                let message =
                    format!("row {number} has more than {} bytes, the limit", self.row_bytes_max);
                return Err(error(ErrorKind::Limit, "54000", message, "raise row_bytes_max"));
            }
            column.push(value, number, is_first_batch)?;
        }
        self.rows += 1;
        Ok(())
    }

    /// Takes the rows out. From the first batch on, types stay.
    ///
    /// # Errors
    /// Never, if each row was pushed whole.
    pub(crate) fn finish(&mut self) -> Result<RecordBatch, ServerError> {
        let arrays: Vec<ArrayRef> =
            self.columns.iter_mut().map(|column| column.values.finish()).collect();
        let columns = &self.columns;
        let schema = self.schema.get_or_insert_with(|| {
            let fields: Vec<_> = columns.iter().map(Column::field).collect();
            Arc::new(Schema::new(fields))
        });
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        self.rows_before = self.rows_before.saturating_add(self.rows as u64);
        (self.rows, self.bytes) = (0, 0);
        RecordBatch::try_new_with_options(schema.clone(), arrays, &options)
            .map_err(|cause| error(ErrorKind::Internal, "XX000", cause.to_string(), ""))
    }
}

impl Column {
    fn field(&self) -> Field {
        let field = Field::new(&self.name, self.values.data_type(), true);
        let is_named = |declared: &&String| {
            !["INTEGER", "REAL", "TEXT", "BLOB"].contains(&declared.to_ascii_uppercase().as_str())
        };
        match self.declared.as_ref().filter(is_named) {
            Some(declared) => {
                field.with_metadata(HashMap::from([(TYPE_KEY.to_owned(), declared.clone())]))
            }
            None => field,
        }
    }

    fn push(
        &mut self,
        value: ValueRef<'_>,
        row: u64,
        is_first_batch: bool,
    ) -> Result<(), ServerError> {
        if is_first_batch {
            self.decide(value, row);
        }
        match (&mut self.values, value) {
            (Values::Null(count), ValueRef::Null) => *count += 1,
            (Values::Integer(values), ValueRef::Null) => values.append_null(),
            (Values::Real(values), ValueRef::Null) => values.append_null(),
            (Values::Text(values), ValueRef::Null) => values.append_null(),
            (Values::Blob(values), ValueRef::Null) => values.append_null(),
            (Values::Integer(values), ValueRef::Integer(value)) => values.append_value(value),
            (Values::Real(values), ValueRef::Real(value)) => values.append_value(value),
            (Values::Real(values), ValueRef::Integer(value)) => match exact(value) {
                Some(value) => values.append_value(value),
                None => return Err(self.unfit(row, value.to_string().as_bytes(), Class::Integer)),
            },
            (Values::Text(values), ValueRef::Text(text)) => match std::str::from_utf8(text) {
                Ok(text) => values.append_value(text),
                Err(_) => {
                    let message =
                        format!("column {:?}, row {row}: {} is not UTF-8", self.name, shown(text));
                    let hint = format!("CAST({} AS BLOB) gives the bytes", quoted(&self.name));
                    return Err(error(ErrorKind::Execution, "22021", message, hint));
                }
            },
            (Values::Blob(values), ValueRef::Blob(value)) => values.append_value(value),
            (_, ValueRef::Integer(value)) => {
                return Err(self.unfit(row, value.to_string().as_bytes(), Class::Integer));
            }
            (_, ValueRef::Real(value)) => {
                return Err(self.unfit(row, value.to_string().as_bytes(), Class::Real));
            }
            (_, ValueRef::Text(value)) => return Err(self.unfit(row, value, Class::Text)),
            (_, ValueRef::Blob(value)) => return Err(self.unfit(row, value, Class::Blob)),
        }
        Ok(())
    }

    /// Lets the values of the first batch decide about the type, unless it was declared.
    fn decide(&mut self, value: ValueRef<'_>, row: u64) {
        let class = match value {
            ValueRef::Null => return,
            ValueRef::Integer(_) => Class::Integer,
            ValueRef::Real(_) => Class::Real,
            ValueRef::Text(_) => Class::Text,
            ValueRef::Blob(_) => Class::Blob,
        };
        match &mut self.values {
            Values::Null(nulls) => {
                self.values = Values::of(class).with_nulls(*nulls);
                self.decided_by = Some(row);
            }
            Values::Integer(integers) if class == Class::Real && self.decided_by.is_some() => {
                let integers = integers.finish();
                let reals = integers.iter().map(|value| value.map(exact));
                if reals.clone().all(|value| value != Some(None)) {
                    let mut values = Float64Builder::new();
                    reals.for_each(|value| values.append_option(value.flatten()));
                    self.values = Values::Real(values);
                } else {
                    let mut values = Int64Builder::new();
                    integers.iter().for_each(|value| values.append_option(value));
                    self.values = Values::Integer(values);
                }
            }
            _ => {}
        }
    }

    /// The error of a value of another class.
    #[cold]
    fn unfit(&self, row: u64, value: &[u8], found: Class) -> ServerError {
        let why = match (&self.declared, self.decided_by) {
            (_, Some(first)) => format!("row {first} made it one of {}", self.values.name()),
            (Some(declared), None) if class_of(Some(declared)).is_some() => {
                format!("it is declared {declared}")
            }
            _ => "the first rows were all NULL".to_owned(),
        };
        let message = format!(
            "column {:?}, row {row}: {} is {} {}, which does not fit the column: {why}",
            self.name,
            shown(value),
            if found == Class::Integer { "an" } else { "a" },
            found.name(),
        );
        let has_blobs = found == Class::Blob || matches!(self.values, Values::Blob(_));
        let cast = if has_blobs { "BLOB" } else { "TEXT" };
        let hint = format!("CAST({} AS {cast}) takes all values", quoted(&self.name));
        error(ErrorKind::Execution, "22000", message, hint)
    }
}

impl Values {
    fn of(class: Class) -> Self {
        match class {
            Class::Integer => Self::Integer(Int64Builder::new()),
            Class::Real => Self::Real(Float64Builder::new()),
            Class::Text => Self::Text(StringBuilder::new()),
            Class::Blob => Self::Blob(BinaryBuilder::new()),
        }
    }

    fn with_nulls(mut self, count: usize) -> Self {
        match &mut self {
            Self::Null(nulls) => *nulls += count,
            Self::Integer(values) => values.append_nulls(count),
            Self::Real(values) => values.append_nulls(count),
            Self::Text(values) => values.append_nulls(count),
            Self::Blob(values) => values.append_nulls(count),
        }
        self
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Null(_) => DataType::Null,
            Self::Integer(_) => DataType::Int64,
            Self::Real(_) => DataType::Float64,
            Self::Text(_) => DataType::Utf8,
            Self::Blob(_) => DataType::Binary,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Null(_) => "NULL",
            Self::Integer(_) => Class::Integer.name(),
            Self::Real(_) => Class::Real.name(),
            Self::Text(_) => Class::Text.name(),
            Self::Blob(_) => Class::Blob.name(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Null(count) => Arc::new(NullArray::new(std::mem::take(count))),
            Self::Integer(values) => Arc::new(values.finish()),
            Self::Real(values) => Arc::new(values.finish()),
            Self::Text(values) => Arc::new(values.finish()),
            Self::Blob(values) => Arc::new(values.finish()),
        }
    }
}

/// An integer as a float, if that is the same number.
fn exact(value: i64) -> Option<f64> {
    let float = value as f64;
    (float as i128 == i128::from(value)).then_some(float)
}

/// The beginning of a value.
fn shown(value: &[u8]) -> String {
    const SHOWN_BYTES: usize = 60;
    value.get(..SHOWN_BYTES).unwrap_or(value).escape_ascii().to_string()
}

/// A name as SQL writes it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
