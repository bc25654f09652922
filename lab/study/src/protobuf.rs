//! Rows as Protocol Buffers, encoded by hand. Generated code would make an object for every row, so
//! this is faster than what most programs use.
//!
//! ```text
//! message Rows { repeated Row rows = 1; }
//! // One field per column.
//! message Row  { optional sint32 a = 1; optional sint64 b = 2; optional string c = 3; … }
//! ```

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;

use crate::Result;
use crate::codec::{Codec, Input, put_varint};
use crate::column::{ColumnBuilder, ColumnView, Values, batch, text};

const VARINT: u64 = 0;
const BYTES: u64 = 2;

/// A codec for messages of rows.
pub struct Protobuf {
    /// The schema of the rows. Field `i + 1` is column `i`.
    pub schema: SchemaRef,
}

impl Codec for Protobuf {
    fn encode(&self, rows: &RecordBatch) -> Result<Vec<Bytes>> {
        let columns = ColumnView::of(rows)?;
        let mut out = Vec::with_capacity(rows.num_rows() * columns.len() * 4);
        let mut row_bytes = Vec::new();
        for row in 0..rows.num_rows() {
            row_bytes.clear();
            for (i, column) in columns.iter().enumerate() {
                if !column.is_valid(row) {
                    continue;
                }
                let field = (i as u64 + 1) << 3;
                let integer = match column.values {
                    Values::Int32(values) => i64::from(values[row]),
                    Values::Int64(values) => values[row],
                    Values::Decimal(values) => values[row] as i64,
                    Values::Text(strings) => {
                        let value = text(strings, row);
                        put_varint(&mut row_bytes, field | BYTES);
                        put_varint(&mut row_bytes, value.len() as u64);
                        row_bytes.extend_from_slice(value);
                        continue;
                    }
                };
                put_varint(&mut row_bytes, field | VARINT);
                put_varint(&mut row_bytes, (integer << 1 ^ integer >> 63) as u64);
            }
            put_varint(&mut out, 1 << 3 | BYTES);
            put_varint(&mut out, row_bytes.len() as u64);
            out.extend_from_slice(&row_bytes);
        }
        Ok(vec![out.into()])
    }

    fn decode(&self, message: Bytes) -> Result<RecordBatch> {
        let fields = self.schema.fields();
        let mut columns = fields
            .iter()
            .map(|field| ColumnBuilder::new(field, 1024))
            .collect::<Result<Vec<_>>>()?;
        let mut input = Input(&message);
        let mut rows = 0;
        while !input.0.is_empty() {
            if input.varint()? != (1 << 3 | BYTES) {
                return Err("a field that Rows does not have".into());
            }
            let length = usize::try_from(input.varint()?)?;
            let mut row = Input(input.take(length)?);
            while !row.0.is_empty() {
                let key = row.varint()?;
                let column =
                    usize::try_from(key >> 3)?.checked_sub(1).and_then(|i| columns.get_mut(i));
                let column = column.ok_or("a field that Row does not have")?;
                let value = row.varint()?;
                if key & 7 == BYTES {
                    column.push_text(row.take(usize::try_from(value)?)?);
                } else {
                    column.push_integer((value >> 1) as i64 ^ -((value & 1) as i64));
                }
            }
            rows += 1;
            columns
                .iter_mut()
                .filter(|column| column.len() < rows)
                .for_each(ColumnBuilder::push_missing);
        }
        batch(&self.schema, columns)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int32Array, StringArray};
    use arrow_schema::{DataType, Field, Schema};
    use prost::Message;

    use super::*;

    #[derive(Message)]
    struct Row {
        #[prost(sint32, optional, tag = "1")]
        number: Option<i32>,
        #[prost(string, optional, tag = "2")]
        text: Option<String>,
    }

    #[derive(Message)]
    struct Rows {
        #[prost(message, repeated, tag = "1")]
        rows: Vec<Row>,
    }

    #[test]
    fn prost_reads_the_same() {
        let numbers = Int32Array::from(vec![Some(0), Some(-70000), None, Some(i32::MAX)]);
        let texts = StringArray::from(vec![Some("a"), Some(""), Some("long enough"), None]);
        let fields = vec![
            Field::new("number", DataType::Int32, true),
            Field::new("text", DataType::Utf8, true),
        ];
        let schema = Arc::new(Schema::new(fields));
        let rows = RecordBatch::try_new(
            schema.clone(),
            vec![Arc::new(numbers.clone()), Arc::new(texts.clone())],
        );
        let rows = rows.unwrap();
        let codec = Protobuf { schema };
        let message = codec.encode(&rows).unwrap().remove(0);
        let read = Rows::decode(message.clone()).unwrap();
        assert_eq!(
            read.rows.iter().map(|row| row.number).collect::<Vec<_>>(),
            numbers.iter().collect::<Vec<_>>()
        );
        let read_texts: Vec<_> = read.rows.iter().map(|row| row.text.as_deref()).collect();
        assert_eq!(read_texts, texts.iter().collect::<Vec<_>>());
        assert_eq!(message, read.encode_to_vec());
        assert_eq!(codec.decode(message).unwrap(), rows);
    }
}
