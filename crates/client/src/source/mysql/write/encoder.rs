//! Batches as rows of LOAD DATA, and as values of an INSERT.

use arrow::array::{Array, ArrayRef, RecordBatch, new_empty_array};
use arrow::datatypes::SchemaRef;
use dray_mysql::write_string;
use dray_pgcopy::Error;

use super::column::Column;
use super::select::{decoded, select};
use super::values::Values;

/// SQLSTATE `integrity_constraint_violation`.
const CONSTRAINT: &str = "23000";

/// Encodes batches of one schema for columns of a table, one to one.
pub(super) struct Encoder<'a> {
    schema: SchemaRef,
    columns: Vec<&'a Column>,
}

impl<'a> Encoder<'a> {
    /// # Errors
    /// When the types of a column don't match.
    pub(super) fn new(schema: SchemaRef, columns: Vec<&'a Column>) -> Result<Self, Error> {
        for (field, column) in schema.fields().iter().zip(&columns) {
            select(field, &decoded(field, &new_empty_array(field.data_type()))?, column)?;
        }
        Ok(Self { schema, columns })
    }

    /// The columns of a batch without their encodings.
    ///
    /// # Errors
    /// When the batch has another schema.
    pub(super) fn decode(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>, Error> {
        let expected = self.schema.fields().iter().map(|field| field.data_type());
        if !expected.eq(batch.columns().iter().map(|column| column.data_type())) {
            let what = "a batch has other types than the schema before it";
            return Err(Error::Data(what.to_owned()));
        }
        let columns = self.schema.fields().iter().zip(batch.columns());
        columns.map(|(field, array)| decoded(field, array)).collect()
    }

    /// The rows of decoded columns, which follow `before` rows of the data.
    ///
    /// # Errors
    /// When a column's type does not match.
    pub(super) fn rows<'b>(
        &'b self,
        arrays: &'b [ArrayRef],
        before: u64,
    ) -> Result<Rows<'b>, Error> {
        let columns = self.schema.fields().iter().zip(arrays).zip(&self.columns);
        let values = columns.map(|((field, array), column)| select(field, array, column));
        let values = values.collect::<Result<_, _>>()?;
        Ok(Rows { encoder: self, arrays, values, before })
    }
}

/// The rows of a batch.
pub(super) struct Rows<'a> {
    encoder: &'a Encoder<'a>,
    arrays: &'a [ArrayRef],
    values: Vec<Box<dyn Values + 'a>>,
    before: u64,
}

impl Rows<'_> {
    /// Appends a row as a line: tabs between the fields, `\N` for NULL.
    ///
    /// # Errors
    /// When a value does not fit its column.
    pub(super) fn append_line(&self, row: usize, out: &mut Vec<u8>) -> Result<(), crate::Error> {
        for column in 0..self.values.len() {
            if column > 0 {
                out.push(b'\t');
            }
            let start = out.len();
            match self.append(row, column, out)? {
                true => escape(start, out),
                false => out.extend_from_slice(b"\\N"),
            }
        }
        out.push(b'\n');
        Ok(())
    }

    /// Appends a row's values as strings with their lengths, and which of them are NULL.
    ///
    /// # Errors
    /// When a value does not fit its column.
    pub(super) fn append_values(
        &self,
        row: usize,
        nulls: &mut Vec<bool>,
        out: &mut Vec<u8>,
    ) -> Result<(), crate::Error> {
        let mut value = Vec::new();
        for column in 0..self.values.len() {
            value.clear();
            let is_value = self.append(row, column, &mut value)?;
            nulls.push(!is_value);
            if is_value {
                write_string(&value, out);
            }
        }
        Ok(())
    }

    /// Appends a value; false for NULL.
    #[inline]
    fn append(&self, row: usize, column: usize, out: &mut Vec<u8>) -> Result<bool, crate::Error> {
        let values = &self.values[column];
        if values.is_null(row) {
            return match self.encoder.columns[column].nullable {
                true => Ok(false),
                // The server would take 0, an empty string, the present time, or the next number.
                false => {
                    let error = self.error(row, column, "the column is NOT NULL");
                    Err(crate::Error::from(error).with_sqlstate(CONSTRAINT))
                }
            };
        }
        match values.append(row, out) {
            Ok(()) => Ok(true),
            Err(reason) => Err(self.error(row, column, reason).into()),
        }
    }

    #[cold]
    fn error(&self, row: usize, column: usize, reason: dray_pgcopy::Reason) -> Error {
        let Encoder { schema, columns } = self.encoder;
        let place = (&*self.arrays[column] as &dyn Array, row, self.before);
        Error::of_value(schema.field(column), place, &columns[column].declared, reason)
    }
}

/// Puts a backslash before what would end the field from `start` on, or be taken for an escape.
fn escape(start: usize, out: &mut Vec<u8>) {
    let is_special = |byte: &u8| matches!(byte, b'\\' | b'\t' | b'\n' | 0);
    let Some(first) = out[start..].iter().position(is_special) else { return };
    let rest = out.split_off(start + first);
    for byte in rest {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            0 => out.extend_from_slice(b"\\0"),
            plain => out.push(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_escaped() {
        for (field, expected) in [
            (&b""[..], &b""[..]),
            (b"plain \r \xff", b"plain \r \xff"),
            (b"\\N", b"\\\\N"),
            (b"a\tb\nc\0d\\", b"a\\tb\\nc\\0d\\\\"),
        ] {
            let mut out = [b"before\t", field].concat();
            escape(7, &mut out);
            assert_eq!(out[7..], *expected, "{field:?}");
        }
    }
}
