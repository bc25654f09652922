//! Keys of the rows of a batch.

use std::ops::Range;

use dray_format::{Batch, Column, Schema};

use super::column::ColumnEncoder;
use crate::error::{Error, Result};

/// A column that rows are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortColumn {
    /// The index of the column in the schema, from 0.
    pub column: usize,
    /// Whether the largest value comes first.
    pub descending: bool,
    /// Whether nulls come before all other values, in either direction; otherwise they come last.
    pub nulls_first: bool,
}

/// What keys are compared for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPurpose {
    /// The order of rows. -0 comes before +0, and NaNs with different bits differ.
    Order,
    /// Equality of rows. -0 equals +0, and all NaNs are equal (`spec/sort-key.md` section 5).
    Distinct,
}

/// Encodes the keys of rows (`spec/sort-key.md`).
#[derive(Debug, Clone)]
pub struct KeyEncoder {
    /// The index of each column in the schema, and its encoder.
    columns: Vec<(usize, ColumnEncoder)>,
    width: Option<usize>,
}

impl KeyEncoder {
    /// An encoder of keys by the columns `by`, the most significant first.
    ///
    /// # Errors
    /// [`Error::Column`] if the schema has no such column.
    pub fn new(schema: &Schema, by: &[SortColumn], purpose: KeyPurpose) -> Result<Self> {
        let column = |by: &SortColumn| match schema.fields.get(by.column) {
            Some(field) => Ok((by.column, ColumnEncoder::new(field, by, purpose))),
            None => Err(Error::Column { column: by.column, columns: schema.fields.len() }),
        };
        let columns = by.iter().map(column).collect::<Result<Vec<_>>>()?;
        let width = columns.iter().map(|(_, column)| column.width()).sum();
        Ok(Self { columns, width })
    }

    /// The bytes of every key; `None` if they differ in size.
    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// The keys of the rows of a batch, which has the columns of the schema.
    pub fn encode(&self, batch: &Batch) -> Keys {
        let Some(width) = self.width else { return self.encode_rows(batch) };
        let mut bytes = vec![0; width * batch.rows];
        let mut at = 0;
        for (index, column) in &self.columns {
            column.encode_column(&batch.columns[*index], &mut bytes, at, width);
            at += column.width().unwrap_or(0);
        }
        debug_assert_eq!(at, width, "the columns of a key add up to its width");
        Keys { bytes, bounds: KeyBounds::Fixed { width, rows: batch.rows } }
    }

    /// Whether the values of a column of the schema can be decoded from keys.
    pub(crate) fn can_decode(&self, column: usize) -> bool {
        self.width.is_some() && self.place(column).is_some()
    }

    /// The values of a column of the schema, decoded from keys that follow each other. `None` if
    /// they can't be decoded.
    pub(crate) fn decode(&self, column: usize, keys: &[u8]) -> Option<Column> {
        let (encoder, at) = self.place(column)?;
        encoder.decode_column(keys, at, self.width?)
    }

    /// The encoder of a column that can be decoded, and where its values begin in a key.
    fn place(&self, column: usize) -> Option<(&ColumnEncoder, usize)> {
        let mut at = 0;
        for (index, encoder) in &self.columns {
            if *index == column && encoder.can_decode() {
                return Some((encoder, at));
            }
            at += encoder.width()?;
        }
        None
    }

    /// Encodes row by row: a key of variable size begins where the one before ends.
    fn encode_rows(&self, batch: &Batch) -> Keys {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(batch.rows));
        for row in 0..batch.rows {
            for (index, column) in &self.columns {
                column.encode_row(&batch.columns[*index], row, &mut bytes);
            }
            ends.push(bytes.len());
        }
        Keys { bytes, bounds: KeyBounds::Variable(ends) }
    }
}

/// The keys of some rows.
#[derive(Debug, Clone)]
pub struct Keys {
    bytes: Vec<u8>,
    bounds: KeyBounds,
}

#[derive(Debug, Clone)]
enum KeyBounds {
    Fixed {
        width: usize,
        rows: usize,
    },
    /// Where each key ends.
    Variable(Vec<usize>),
}

impl Keys {
    /// The number of keys.
    pub fn len(&self) -> usize {
        match &self.bounds {
            KeyBounds::Fixed { rows, .. } => *rows,
            KeyBounds::Variable(ends) => ends.len(),
        }
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key of a row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn get(&self, row: usize) -> &[u8] {
        &self.bytes[self.range(row)]
    }

    /// All keys, one after the other.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The keys of a range of rows, one after the other.
    pub(crate) fn bytes(&self, rows: Range<usize>) -> &[u8] {
        let start_of = |row: usize| row.checked_sub(1).map_or(0, |before| self.range(before).end);
        &self.bytes[start_of(rows.start)..start_of(rows.end)]
    }

    fn range(&self, row: usize) -> Range<usize> {
        match &self.bounds {
            KeyBounds::Fixed { width, .. } => row * width..(row + 1) * width,
            KeyBounds::Variable(ends) => {
                row.checked_sub(1).map_or(0, |before| ends[before])..ends[row]
            }
        }
    }
}
