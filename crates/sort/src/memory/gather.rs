//! Gathers rows from the batches that they came in, column by column.
//!
//! Rows are gathered by the hundred thousand; [`Moves`] says how.

use dray_format::{Batch, Column, Schema, Type, Values};

use super::moves::{Moves, span};
use crate::error::{Error, Result};
use crate::memory::{RowLocation, RowSizes};

/// Whether all columns are flat, so that rows can be gathered.
pub(crate) fn can_gather(schema: &Schema) -> bool {
    let is_flat = |data_type: &Type| {
        let is_string = matches!(data_type, Type::Utf8 | Type::Binary);
        data_type.width().is_some() || is_string || matches!(data_type, Type::Null | Type::Boolean)
    };
    schema.fields.iter().all(|field| is_flat(&field.data_type))
}

/// The batches that rows are gathered from.
#[derive(Debug, Default)]
pub(crate) struct BatchGatherer {
    /// For each field, its column in every batch.
    fields: Vec<Vec<Column>>,
    /// For each batch, the bytes of its rows as objects. Their values in columns take no more.
    row_bytes: Vec<RowSizes>,
}

impl BatchGatherer {
    /// Adds a batch, with the bytes of each of its rows as an object.
    pub fn push(&mut self, batch: &Batch, row_bytes: &RowSizes) {
        debug_assert_eq!(batch.rows, row_bytes.len(), "each row has a size");
        self.fields.resize_with(batch.columns.len(), Vec::new);
        self.fields
            .iter_mut()
            .zip(&batch.columns)
            .for_each(|(field, column)| field.push(column.clone()));
        self.row_bytes.push(row_bytes.clone());
    }

    pub fn is_empty(&self) -> bool {
        self.row_bytes.is_empty()
    }

    /// The bytes of a row as an object.
    #[inline]
    pub fn row_bytes(&self, RowLocation { block, row }: RowLocation) -> Result<usize> {
        let batch = self.row_bytes.get(block as usize);
        let bytes = batch.and_then(|row_bytes| row_bytes.get(row as usize));
        bytes.map(|bytes| bytes as usize).ok_or_else(|| Error::missing("a row that is gathered"))
    }

    /// The rows at these locations, in their order: fewer than 2³² rows, and than 2³¹ bytes.
    pub fn gather(&self, locations: &[RowLocation]) -> Result<Batch> {
        Ok(Batch { rows: locations.len(), columns: self.gather_columns(locations, |_| true)? })
    }

    /// The columns that `is_wanted` by their index in the schema, of the rows at these locations.
    /// The limits are those of [`gather`](Self::gather).
    pub fn gather_columns(
        &self,
        locations: &[RowLocation],
        is_wanted: impl Fn(usize) -> bool,
    ) -> Result<Vec<Column>> {
        let moves = Moves::new(&self.row_bytes, locations)?;
        let wanted = self.fields.iter().enumerate().filter(|(column, _)| is_wanted(*column));
        wanted.map(|(_, columns)| moves.column(columns)).collect()
    }
}

/// Rows of a batch. Their strings are cut out: otherwise a consumer that validates strings
/// would validate those of the whole batch with each slice.
pub(crate) fn slice(batch: &Batch, from: usize, rows: usize) -> Batch {
    let mut slice = batch.slice(from, rows);
    for column in &mut slice.columns {
        if let Values::Bytes { offsets, data } = &mut column.values {
            let all = offsets.as_chunks().0;
            let start = span(all, 0).start;
            let rebased =
                all.iter().map(|offset| (u32::from_le_bytes(*offset) - start as u32).to_le_bytes());
            *data = data.slice(start..span(all, rows.saturating_sub(1)).end);
            *offsets = rebased.collect::<Vec<_>>().into_flattened().into();
        }
    }
    slice
}
