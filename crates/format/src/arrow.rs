//! Conversions between [`Column`]s and Arrow arrays. Both have the same layout, so both directions
//! share the buffers.

mod export;
mod import;
mod retained;
mod schema;

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;

pub use self::export::batch_to_arrow;
use self::export::{Checks, array, record_batch};
pub use self::import::{batch_from_arrow, column_from_arrow};
pub use self::retained::RetainedMemory;
pub use self::schema::{schema_from_arrow, schema_to_arrow, with_new_dictionaries, without_order};
use crate::build::BuiltBatch;
use crate::column::{Batch, Column};
use crate::error::{Result, refuse};
use crate::header::{Header, Limits};
use crate::output::BufferSource;
use crate::read::{Profile, Tables, decode, read_with};
use crate::types::Schema;

/// The Arrow types of strings and binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StringLayout {
    /// `Utf8` and `Binary`: 32-bit offsets, as the chunk has them.
    #[default]
    Offsets,
    /// `LargeUtf8` and `LargeBinary`: 64-bit offsets.
    LargeOffsets,
    /// `Utf8View` and `BinaryView`.
    Views,
}

/// Reads the chunks of one stream into record batches that share the chunks' buffers.
///
/// Only the decoder builds arrays without letting Arrow check them again. Its columns come from
/// [`decode`], which checks them against the stream's schema, or from a [`crate::BatchBuilder`] of
/// that schema, and the Arrow schema is made from the same one.
#[derive(Debug, Clone)]
pub struct Decoder {
    schema: Arc<Schema>,
    arrow_schema: SchemaRef,
}

impl Decoder {
    /// A decoder for a stream of this schema, with strings of this layout.
    pub fn new(schema: impl Into<Arc<Schema>>, strings: StringLayout) -> Self {
        let schema = schema.into();
        let arrow_schema = Arc::new(schema_to_arrow(&schema, strings));
        Self { schema, arrow_schema }
    }

    /// Whether the decoder is for streams of this schema.
    pub fn is_for(&self, schema: &Arc<Schema>) -> bool {
        Arc::ptr_eq(&self.schema, schema) || self.schema == *schema
    }

    /// The Arrow schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.arrow_schema
    }

    /// Decodes a chunk as [`crate::decode`] does.
    ///
    /// # Errors
    /// When the chunk breaks a rule of the specification, or strings are too long for the layout.
    pub fn decode(
        &self,
        header: &Header,
        descriptors: &[u8],
        body: &Bytes,
        tables: &Tables,
        source: Option<&mut dyn BufferSource>,
        profile: Option<&mut Profile>,
    ) -> Result<RecordBatch> {
        self.batch(decode(header, &self.schema, descriptors, body, tables, source, profile)?)
    }

    /// Reads a chunk as [`crate::read`] does.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn read(&self, chunk: &Bytes, limits: &Limits) -> Result<(Header, RecordBatch)> {
        self.read_with(chunk, limits, &Tables::default())
    }

    /// Reads a chunk as [`crate::read_with`] does.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn read_with(
        &self,
        chunk: &Bytes,
        limits: &Limits,
        tables: &Tables,
    ) -> Result<(Header, RecordBatch)> {
        let (header, batch) = read_with(chunk, &self.schema, limits, tables)?;
        Ok((header, self.batch(batch)?))
    }

    /// Turns the rows of a builder into a record batch.
    ///
    /// # Errors
    /// When they have another schema, a string is not UTF-8, or strings are too long for the
    /// layout.
    pub fn built(&self, built: BuiltBatch) -> Result<RecordBatch> {
        if !self.is_for(built.schema()) {
            refuse!(Unsupported, "the batch was built with another schema");
        }
        built.batch().check_strings(&self.schema)?;
        self.batch(built.into_batch())
    }

    fn batch(&self, batch: Batch) -> Result<RecordBatch> {
        let columns = batch.columns.into_iter().zip(self.arrow_schema.fields());
        let array = |(column, field): (Column, &arrow_schema::FieldRef)| {
            array(column, field.data_type(), Checks::Done)
        };
        record_batch(&self.arrow_schema, batch.rows, columns.map(array).collect::<Result<_>>()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::BatchBuilder;
    use crate::column::{Bitmap, Values};
    use crate::error::ErrorKind;
    use crate::types::{Field, Type};

    fn field(data_type: Type) -> Field {
        Field { name: "f".into(), data_type, nullable: true, metadata: Vec::new() }
    }

    /// A row with a map of one pair.
    fn built(key: &[u8], value: &[u8]) -> (Schema, BuiltBatch) {
        let text = || Box::new(field(Type::Utf8));
        let schema =
            Schema { fields: vec![field(Type::Map { sorted: false, key: text(), value: text() })] };
        let mut builder = BatchBuilder::new(schema.clone()).unwrap();
        let map = &mut builder.columns()[0];
        let pair = map.item().unwrap();
        pair.fields().unwrap()[0].push_bytes(key).unwrap();
        pair.fields().unwrap()[1].push_bytes(value).unwrap();
        pair.close_struct().unwrap();
        map.close_list().unwrap();
        builder.close_row().unwrap();
        (schema, builder.finish().unwrap())
    }

    #[test]
    fn strings_of_maps_are_checked() {
        let read = |(schema, built)| Decoder::new(schema, StringLayout::Offsets).built(built);
        assert_eq!(read(built(b"k", b"v")).unwrap().num_rows(), 1);
        assert_eq!(read(built(b"\xff", b"v")).unwrap_err().kind(), ErrorKind::Utf8);
        assert_eq!(read(built(b"k", b"\xff")).unwrap_err().kind(), ErrorKind::Utf8);
    }

    /// A few bytes of a chunk cannot make the reader allocate gigabytes for a missing entry.
    #[test]
    fn a_dictionary_without_entries_has_a_small_one() {
        for (size, fits) in [(1 << 17, true), (1 << 30, false)] {
            let list = Type::FixedList { size, item: Box::new(field(Type::Int64)) };
            let index = Box::new(Type::Int8);
            let dictionary =
                field(Type::Dictionary { index, ordered: false, value: Box::new(list) });
            let child = Box::new(Column {
                rows: 0,
                validity: None,
                values: Values::Fixed { width: 8, bytes: Bytes::new() },
            });
            let entries = Column {
                rows: 0,
                validity: None,
                values: Values::FixedList { size: size as usize, child },
            };
            let indexes = Bytes::from_static(&[0]);
            let values = Values::Dictionary { width: 1, indexes, entries: Box::new(entries) };
            let missing = Bitmap { bytes: Bytes::from_static(&[0]), offset: 0, len: 1 };
            let batch = Batch {
                rows: 1,
                columns: vec![Column { rows: 1, validity: Some(missing), values }],
            };
            let decoder = Decoder::new(Schema { fields: vec![dictionary] }, StringLayout::Offsets);
            assert_eq!(decoder.batch(batch).is_ok(), fits);
        }
    }
}
