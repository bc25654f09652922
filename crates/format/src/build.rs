//! Columns under construction, value by value: for sources that have rows, not columns.
//!
//! A builder takes values in the order of its column: a null, a boolean, a value of fixed width, a
//! string. Those of a list go to its [`item`](ColumnBuilder::item) before
//! [`close_list`](ColumnBuilder::close_list) (a map is a list of pairs), those of a struct to its
//! [`fields`](ColumnBuilder::fields) before [`close_struct`](ColumnBuilder::close_struct). What does not fit
//! the column's type is refused, so that whatever comes out of [`BatchBuilder::finish`] fits its
//! schema. Memory is reserved before it is used, and where there is none left that is an error. A
//! row that grows over [`BatchBuilder::set_bytes_max`] is refused while it grows.
//!
//! ```
//! use dray_format::{BatchBuilder, Field, Schema, Type};
//!
//! let field = |name: &str, data_type| Field { name: name.into(), data_type, nullable: true, metadata: vec![] };
//! let schema = Schema { fields: vec![field("n", Type::Int32), field("s", Type::Utf8)] };
//! let mut builder = BatchBuilder::new(schema)?;
//! builder.columns()[0].push_fixed(7i32.to_le_bytes())?;
//! builder.columns()[1].push_null()?;
//! builder.close_row()?;
//! assert_eq!(builder.finish()?.batch().rows, 1);
//! # Ok::<(), dray_format::Error>(())
//! ```

mod buffer;
mod column;

use std::sync::Arc;

use bytes::Bytes;

use self::buffer::{Budget, KEPT_BYTES_MAX, Take, no_memory, take_buffer};
pub use self::column::ColumnBuilder;
use crate::column::Batch;
use crate::error::{Result, refuse};
use crate::types::Schema;

/// Rows under construction.
#[derive(Debug)]
pub struct BatchBuilder {
    schema: Arc<Schema>,
    rows: usize,
    columns: Vec<ColumnBuilder>,
    budget: Arc<Budget>,
}

/// Rows that a [`BatchBuilder`] made: they fit its schema, but for strings, which may not be UTF-8
/// yet.
#[derive(Debug, Clone)]
pub struct BuiltBatch {
    schema: Arc<Schema>,
    batch: Batch,
}

impl BuiltBatch {
    /// Their schema.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The rows.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// The rows, for the writer of a chunk.
    pub fn into_batch(self) -> Batch {
        self.batch
    }
}

impl BatchBuilder {
    /// A builder of rows of this schema.
    ///
    /// # Errors
    /// When a column has a type that is not built value by value: dictionaries and fixed-size
    /// lists.
    pub fn new(schema: impl Into<Arc<Schema>>) -> Result<Self> {
        Self::with_interrupts(schema, None)
    }

    /// The same, with what [`ColumnBuilder::check_interrupts`] asks.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_interrupts(
        schema: impl Into<Arc<Schema>>,
        interrupted: Option<fn() -> bool>,
    ) -> Result<Self> {
        let schema = schema.into();
        let budget = Budget::new(interrupted);
        let columns = schema
            .fields
            .iter()
            .map(|field| ColumnBuilder::new(field, &budget))
            .collect::<Result<_>>()?;
        Ok(Self { schema, rows: 0, columns, budget })
    }

    /// Refuses a row once it has grown over `row_bytes_max`, where those before it in the batch
    /// have at most `waiting_bytes_max` together: how many they really have is not counted. What is
    /// in use of a limit is known when a buffer grows, so a row may come out larger, but not by
    /// more than its buffers have room for.
    pub fn set_bytes_max(&mut self, row_bytes_max: usize, waiting_bytes_max: usize) {
        self.budget.set_bytes_max(row_bytes_max, waiting_bytes_max);
    }

    /// The schema of the rows.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// A builder a column.
    pub fn columns(&mut self) -> &mut [ColumnBuilder] {
        &mut self.columns
    }

    /// Counts a row, once each column has its value.
    ///
    /// # Errors
    /// When a column has another number of values.
    #[inline]
    pub fn close_row(&mut self) -> Result<()> {
        self.rows += 1;
        if self.columns.iter().any(|column| column.rows() != self.rows) {
            refuse!(Unsupported, "row {} of a batch has not one value for each column", self.rows);
        }
        Ok(())
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The bytes of all values so far.
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(ColumnBuilder::bytes).sum()
    }

    /// Takes the rows out. The next ones find as much room as these needed.
    ///
    /// # Errors
    /// When a column has another number of values than the batch has rows, or memory is short.
    pub fn finish(&mut self) -> Result<BuiltBatch> {
        self.finish_by(&mut take_buffer)
    }

    /// The same, as copies that `copy` makes of each buffer, or none for want of memory. The
    /// buffers stay for the next rows: who keeps all batches spares the system's work for fresh
    /// memory here, and knows a better place for them.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub fn finish_copied(
        &mut self,
        copy: &mut dyn FnMut(&[u8]) -> Option<Bytes>,
    ) -> Result<BuiltBatch> {
        self.finish_by(&mut |bytes| {
            let copied = copy(bytes).ok_or_else(|| no_memory(bytes.len()))?;
            match bytes.capacity() > KEPT_BYTES_MAX {
                true => *bytes = Vec::new(),
                false => bytes.clear(),
            }
            Ok(copied)
        })
    }

    fn finish_by(&mut self, take: Take<'_>) -> Result<BuiltBatch> {
        let rows = std::mem::take(&mut self.rows);
        let columns = self
            .columns
            .iter_mut()
            .map(|column| column.finish(rows, take))
            .collect::<Result<_>>()?;
        Ok(BuiltBatch { schema: self.schema.clone(), batch: Batch { rows, columns } })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::types::{Field, Type};

    fn batch(data_type: Type) -> BatchBuilder {
        let field = Field { name: "x".to_owned(), data_type, nullable: true, metadata: vec![] };
        BatchBuilder::new(Schema { fields: vec![field] }).unwrap()
    }

    fn wide() -> Type {
        let field = |i: usize| Field {
            name: i.to_string(),
            data_type: Type::FixedBinary(16),
            nullable: true,
            metadata: vec![],
        };
        let item = Type::Struct((0..100).map(field).collect());
        Type::List(Box::new(Field {
            name: "item".to_owned(),
            data_type: item,
            nullable: true,
            metadata: vec![],
        }))
    }

    #[test]
    fn a_row_is_refused_before_it_is_whole() {
        let mut builder = batch(wide());
        builder.set_bytes_max(1 << 20, 1 << 20);
        let column = &mut builder.columns()[0];
        let mut items = 0;
        let error = loop {
            match column.item().unwrap().push_null() {
                Ok(()) => items += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Limit);
        assert!(error.to_string().contains("raise row_bytes_max"), "{error}");
        // What fits is not refused, and no more than twice the limit comes through.
        assert!((1300..2700).contains(&items), "{items}");
    }

    #[test]
    fn each_batch_has_the_whole_limit() {
        let mut builder = batch(Type::Utf8);
        builder.set_bytes_max(1 << 20, 0);
        for _ in 0..10 {
            builder.columns()[0].push_bytes(&vec![b'x'; (1 << 20) - 100]).unwrap();
            builder.close_row().unwrap();
            assert_eq!(builder.finish().unwrap().batch().rows, 1);
        }
        assert_eq!(
            builder.columns()[0].push_bytes(&vec![b'x'; 2 << 20]).unwrap_err().kind(),
            ErrorKind::Limit
        );
    }

    #[test]
    fn what_is_written_has_room() {
        let mut builder = batch(Type::Utf8);
        let column = &mut builder.columns()[0];
        column.push_written(5, |out| out.extend_from_slice(b"abc")).unwrap();
        assert!(column.push_written(2, |out| out.extend_from_slice(b"abc")).is_err());
    }
}
