//! What the values of a JSON file's fields are: finds what the engine infers a type for and then
//! does not read, or reads as another value. It makes lists of arrays beside single values, and
//! floats of all integers of a field that has a fraction anywhere.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};

use datafusion::arrow::datatypes::{DataType, Schema};
use serde_json::Value;

use super::csv_types::EXACT_FLOAT_MAX;

/// The entries of an array, in the path of a field.
const ENTRIES: &str = "[]";

/// The values of a field in all rows so far, and those of the fields and entries within. That of
/// the rows themselves has the columns as fields.
#[derive(Default)]
pub(super) struct JsonValues {
    /// What the field is, and the first row that has it.
    shape: Option<(Shape, u64)>,
    /// The first row with an integer that a float can't represent, and this integer.
    large: Option<(u64, i64)>,
    entries: Option<Box<Self>>,
    fields: BTreeMap<String, Self>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Single,
    Array,
    Object,
}

impl Shape {
    /// None for null, which every field may be.
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Null => None,
            Value::Array(_) => Some(Self::Array),
            Value::Object(_) => Some(Self::Object),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(Self::Single),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Single => "a single value",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }
}

impl JsonValues {
    /// Adds a row. Fails if a field has another shape than in a row before.
    pub(super) fn add(&mut self, row: u64, value: &Value) -> Result<()> {
        self.add_within(row, value, &mut Vec::new())
    }

    fn add_within<'a>(
        &mut self,
        row: u64,
        value: &'a Value,
        path: &mut Vec<&'a str>,
    ) -> Result<()> {
        let Some(shape) = Shape::of(value) else { return Ok(()) };
        let (before, first) = *self.shape.get_or_insert((shape, row));
        if before != shape {
            let (path, shape, before) = (text(path), shape.name(), before.name());
            return Err(refusal(format!(
                "row {row}: '{path}' is {shape}, and {before} in row {first}; write it in one way \
                 in all rows, for example as a string, in quotes"
            )));
        }
        match value {
            Value::Number(number) => {
                let large = number.as_i64().filter(|i| i.unsigned_abs() > EXACT_FLOAT_MAX);
                self.large = self.large.or(large.map(|integer| (row, integer)));
            }
            Value::Array(values) => {
                let entries = self.entries.get_or_insert_default();
                path.push(ENTRIES);
                values.iter().try_for_each(|value| entries.add_within(row, value, path))?;
                path.pop();
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    if !self.fields.contains_key(name) {
                        self.fields.insert(name.clone(), Self::default());
                    }
                    let Some(field) = self.fields.get_mut(name) else { continue };
                    path.push(name);
                    field.add_within(row, value, path)?;
                    path.pop();
                }
            }
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
        Ok(())
    }

    /// Whether a column has integers that a float can't represent.
    pub(super) fn has_large(&self, column: &str) -> bool {
        self.fields.get(column).is_some_and(Self::is_large)
    }

    fn is_large(&self) -> bool {
        self.large.is_some()
            || self.entries.as_deref().is_some_and(Self::is_large)
            || self.fields.values().any(Self::is_large)
    }

    /// Fails if the type of an integer that a float can't represent is a float.
    pub(super) fn check(&self, schema: &Schema) -> Result<()> {
        schema.fields().iter().try_for_each(|field| match self.fields.get(field.name()) {
            Some(values) => {
                values.check_within(field.data_type(), &mut vec![field.name().as_str()])
            }
            None => Ok(()),
        })
    }

    fn check_within<'a>(&self, data_type: &'a DataType, path: &mut Vec<&'a str>) -> Result<()> {
        match (data_type, &self.entries, self.large) {
            (DataType::List(entry), Some(entries), _) => {
                entries.check_within(entry.data_type(), path)
            }
            (DataType::Struct(fields), ..) => fields.iter().try_for_each(|field| {
                let Some(values) = self.fields.get(field.name()) else { return Ok(()) };
                path.push(field.name());
                values.check_within(field.data_type(), path)?;
                path.pop();
                Ok(())
            }),
            (data_type, _, Some((row, integer))) if data_type.is_floating() => {
                Err(refusal(format!(
                    "row {row}: '{}' is {integer}, which would lose digits as a float, as other \
                     rows have fractions; write the column as strings, in quotes, and cast it in \
                     queries",
                    text(path)
                )))
            }
            _ => Ok(()),
        }
    }
}

/// The path as text: `a.b[].c`.
fn text(path: &[&str]) -> String {
    path.join(".").replace(&format!(".{ENTRIES}"), ENTRIES)
}

fn refusal(what: String) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}
