//! Keys from columns: `spec/sort-key.md`.

use std::ops::Range;

use dray_format::{Batch, Schema};

use super::column::ColumnEncoder;
use crate::error::{Error, Result};

/// A column that rows are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortColumn {
    /// Which, from 0.
    pub column: usize,
    /// The largest value comes first.
    pub descending: bool,
    /// Missing values come before all others, whatever the direction; otherwise behind them.
    pub nulls_first: bool,
}

/// What keys are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPurpose {
    /// The order of rows, in which -0 is before +0, and NaNs are told apart.
    Order,
    /// Which rows are the same: zeros are, and NaNs are.
    Distinct,
}

/// Makes the keys of rows.
#[derive(Debug, Clone)]
pub struct KeyEncoder {
    /// Columns by their numbers, and how each is encoded.
    columns: Vec<(usize, ColumnEncoder)>,
    width: Option<usize>,
}

impl KeyEncoder {
    /// An encoder of keys by these columns, the first of which decides first.
    ///
    /// # Errors
    /// When there is no such column.
    pub fn new(schema: &Schema, by: &[SortColumn], purpose: KeyPurpose) -> Result<Self> {
        let column = |by: &SortColumn| match schema.fields.get(by.column) {
            Some(field) => Ok((by.column, ColumnEncoder::new(field, by, purpose))),
            None => Err(Error::Column { column: by.column, columns: schema.fields.len() }),
        };
        let columns = by.iter().map(column).collect::<Result<Vec<_>>>()?;
        let width = columns.iter().map(|(_, column)| column.width()).sum();
        Ok(Self { columns, width })
    }

    /// The bytes of each key, if all have as many.
    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// The keys of a batch that has the schema's columns.
    pub fn encode(&self, batch: &Batch) -> Keys {
        let Some(width) = self.width else { return self.encode_each(batch) };
        let mut bytes = vec![0; width * batch.rows];
        let mut at = 0;
        for (number, column) in &self.columns {
            column.put_column(&batch.columns[*number], &mut bytes, at, width);
            at += column.width().unwrap_or(0);
        }
        Keys { bytes, places: Places::Even { width, rows: batch.rows } }
    }

    /// Row by row, since nobody knows where a key ends before it is there.
    fn encode_each(&self, batch: &Batch) -> Keys {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(batch.rows));
        for row in 0..batch.rows {
            for (number, column) in &self.columns {
                column.put(&batch.columns[*number], row, &mut bytes);
            }
            ends.push(bytes.len());
        }
        Keys { bytes, places: Places::Ends(ends) }
    }
}

/// The keys of some rows.
#[derive(Debug, Clone)]
pub struct Keys {
    bytes: Vec<u8>,
    places: Places,
}

#[derive(Debug, Clone)]
enum Places {
    Even { width: usize, rows: usize },
    Ends(Vec<usize>),
}

impl Keys {
    /// How many there are.
    pub fn len(&self) -> usize {
        match &self.places {
            Places::Even { rows, .. } => *rows,
            Places::Ends(ends) => ends.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key of a row.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn get(&self, row: usize) -> &[u8] {
        &self.bytes[self.place(row)]
    }

    /// The keys of some rows, one behind the other.
    pub(crate) fn bytes(&self, rows: Range<usize>) -> &[u8] {
        let start_of = |row: usize| row.checked_sub(1).map_or(0, |before| self.place(before).end);
        &self.bytes[start_of(rows.start)..start_of(rows.end)]
    }

    fn place(&self, row: usize) -> Range<usize> {
        match &self.places {
            Places::Even { width, .. } => row * width..(row + 1) * width,
            Places::Ends(ends) => row.checked_sub(1).map_or(0, |before| ends[before])..ends[row],
        }
    }
}
