//! Builders of columns, value by value, for sources that have rows.
//!
//! A builder takes the values of its column in order: a null, a boolean, a value of fixed width, a
//! string. Those of a list go to its [`item`](ColumnBuilder::item) before
//! [`close_list`](ColumnBuilder::close_list) (a map is a list of pairs), those of a struct to its
//! [`fields`](ColumnBuilder::fields) before [`close_struct`](ColumnBuilder::close_struct). A
//! dictionary takes strings; each batch has the entries that its own values need, in the order in
//! which they first appear. A value that does not fit the column's type is refused, so that the
//! result of [`BatchBuilder::finish`] fits its schema. Memory is reserved before it is used; its
//! lack is an error. A row that grows over [`BatchBuilder::set_bytes_max`] is refused while it
//! grows.
//!
//! ```
//! use dray_format::{BatchBuilder, Field, Schema, Type};
//!
//! let field = |name: &str, data_type| {
//!     Field { name: name.into(), data_type, nullable: true, metadata: vec![] }
//! };
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
mod dictionary;

use std::sync::Arc;

use bytes::Bytes;

use self::buffer::{Budget, REUSED_BYTES_MAX, Take, no_memory, take_buffer};
pub use self::column::ColumnBuilder;
use crate::column::Batch;
use crate::error::{Result, refuse};
use crate::types::Schema;

/// Builds batches of rows.
#[derive(Debug)]
pub struct BatchBuilder {
    schema: Arc<Schema>,
    rows: usize,
    columns: Vec<ColumnBuilder>,
    budget: Arc<Budget>,
}

/// Rows that a [`BatchBuilder`] made. They fit its schema, but strings may not be UTF-8.
#[derive(Debug, Clone)]
pub struct BuiltBatch {
    schema: Arc<Schema>,
    batch: Batch,
}

impl BuiltBatch {
    /// The schema of the rows.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The rows.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// Takes the rows out.
    pub fn into_batch(self) -> Batch {
        self.batch
    }
}

impl BatchBuilder {
    /// A builder of rows of this schema.
    ///
    /// # Errors
    /// When a column is a fixed-size list, or a dictionary other than of utf8 by int32. These are
    /// not built value by value.
    pub fn new(schema: impl Into<Arc<Schema>>) -> Result<Self> {
        Self::with_interrupts(schema, None)
    }

    /// A builder whose [`ColumnBuilder::check_interrupts`] calls `interrupted`.
    ///
    /// # Errors
    /// Those of [`Self::new`].
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

    /// Refuses a row once it has grown over `row_bytes_max`. The rows before it in the batch have
    /// at most `waiting_bytes_max` together; both are counted as one limit. Bytes are counted when
    /// a buffer grows, so a row may exceed the limit by the spare capacity of its buffers.
    pub fn set_bytes_max(&mut self, row_bytes_max: usize, waiting_bytes_max: usize) {
        self.budget.set_bytes_max(row_bytes_max, waiting_bytes_max);
    }

    /// The schema of the rows.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// A builder per column.
    pub fn columns(&mut self) -> &mut [ColumnBuilder] {
        &mut self.columns
    }

    /// Ends a row. Each column must have received its value.
    ///
    /// # Errors
    /// When a column has a different number of values.
    #[inline]
    pub fn close_row(&mut self) -> Result<()> {
        self.rows += 1;
        if self.columns.iter().any(|column| column.rows() != self.rows) {
            refuse!(Unsupported, "row {} of a batch has not one value for each column", self.rows);
        }
        Ok(())
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The bytes of all values so far.
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(ColumnBuilder::bytes).sum()
    }

    /// Takes the rows out. The buffers for the next ones get the capacity that these needed.
    ///
    /// # Errors
    /// When a column has a different number of values than the batch has rows, or memory is short.
    pub fn finish(&mut self) -> Result<BuiltBatch> {
        self.finish_by(&mut take_buffer)
    }

    /// Takes the rows out as copies, which `copy` makes of each buffer; it returns none if memory
    /// is short. The buffers are reused for the next rows, which spares the system clearing new
    /// memory. This suits callers that keep all batches in memory of their own.
    ///
    /// # Errors
    /// Those of [`Self::finish`].
    pub fn finish_copied(
        &mut self,
        copy: &mut dyn FnMut(&[u8]) -> Option<Bytes>,
    ) -> Result<BuiltBatch> {
        self.finish_by(&mut |bytes| {
            let copied = copy(bytes).ok_or_else(|| no_memory(bytes.len()))?;
            match bytes.capacity() > REUSED_BYTES_MAX {
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
    use crate::column::{Values, u32s};
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
    fn a_row_is_refused_while_it_grows() {
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
        // Rows within the limit pass, and none of more than twice the limit does.
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
    fn writing_more_than_was_reserved_is_refused() {
        let mut builder = batch(Type::Utf8);
        let column = &mut builder.columns()[0];
        column.push_written(5, |out| out.extend_from_slice(b"abc")).unwrap();
        assert!(column.push_written(2, |out| out.extend_from_slice(b"abc")).is_err());
    }

    fn enums() -> BatchBuilder {
        let (index, value) = (Box::new(Type::Int32), Box::new(Type::Utf8));
        batch(Type::Dictionary { index, ordered: false, value })
    }

    /// The indexes and entries of a built column.
    fn entries(built: &BuiltBatch) -> (Vec<Option<usize>>, Vec<String>) {
        let column = &built.batch().columns[0];
        let Values::Dictionary { width: 4, indexes, entries } = &column.values else { panic!() };
        let Values::Bytes { offsets, data } = &entries.values else { panic!() };
        let ends: Vec<_> = u32s(offsets).map(|end| end as usize).collect();
        assert_eq!(ends.len(), entries.rows + 1);
        let text = |pair: &[usize]| String::from_utf8(data[pair[0]..pair[1]].to_vec()).unwrap();
        let is_valid = |i: &usize| column.validity.as_ref().is_none_or(|validity| validity.bit(*i));
        let index = |(i, index)| is_valid(&i).then_some(index as usize);
        (u32s(indexes).enumerate().map(index).collect(), ends.windows(2).map(text).collect())
    }

    #[test]
    fn a_dictionary_has_the_entries_of_its_batch() {
        let mut builder = enums();
        for (values, indexes, distinct) in [
            (
                &[Some("b"), None, Some("a"), Some("b"), Some(""), Some("")][..],
                &[Some(0), None, Some(1), Some(0), Some(2), Some(2)][..],
                &["b", "a", ""][..],
            ),
            (&[None, None], &[None, None], &[]),
            (&[Some("a")], &[Some(0)], &["a"]),
            (&[], &[], &[]),
        ] {
            for value in values {
                match value {
                    Some(text) => builder.columns()[0].push_bytes(text.as_bytes()).unwrap(),
                    None => builder.columns()[0].push_null().unwrap(),
                }
                builder.close_row().unwrap();
            }
            let built = builder.finish().unwrap();
            assert_eq!(
                entries(&built),
                (indexes.to_vec(), distinct.iter().map(|text| text.to_string()).collect())
            );
            built.batch().check_strings(built.schema()).unwrap();
        }
    }

    #[test]
    fn a_dictionary_grows_within_the_limit_and_is_empty_after_it() {
        let mut builder = enums();
        builder.set_bytes_max(1 << 20, 0);
        let texts = || (0..10_000).map(|i| format!("value {i}"));
        for _ in 0..20 {
            for text in texts().chain(texts()) {
                builder.columns()[0].push_bytes(text.as_bytes()).unwrap();
                builder.close_row().unwrap();
            }
            let (indexes, distinct) = entries(&builder.finish().unwrap());
            assert!(distinct.into_iter().eq(texts()));
            assert!(indexes.into_iter().flatten().eq((0..10_000).chain(0..10_000)));
        }
        let mut more = (0..).map(|i| builder.columns()[0].push_bytes(format!("{i}").as_bytes()));
        let error = more.find_map(std::result::Result::err).unwrap();
        assert_eq!(error.kind(), ErrorKind::Limit);
        assert!(builder.bytes() < 2 << 20);
    }

    #[test]
    fn other_dictionaries_are_not_built() {
        for (index, value) in [(Type::Int8, Type::Utf8), (Type::Int32, Type::Binary)] {
            let (index, value) = (Box::new(index), Box::new(value));
            let data_type = Type::Dictionary { index, ordered: false, value };
            let field = Field { name: "x".to_owned(), data_type, nullable: true, metadata: vec![] };
            assert!(BatchBuilder::new(Schema { fields: vec![field] }).is_err());
        }
        assert!(enums().columns()[0].push_fixed([0; 4]).is_err());
        assert!(enums().columns()[0].push_written(1, |out| out.push(b'x')).is_err());
    }
}
