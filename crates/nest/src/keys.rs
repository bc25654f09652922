//! Keys of parents and children, encoded so that they can be compared as bytes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Schema};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use dray_format::Batch;
use dray_format::arrow::{column_from_arrow, schema_from_arrow};
use dray_sort::{KeyEncoder, KeyPurpose, Keys, SortColumn};

use crate::error::{Error, Result};

/// Encodes the keys of one side of a relation.
#[derive(Debug, Clone)]
pub(crate) struct KeyColumns {
    columns: Vec<usize>,
    /// The types that the columns have on both sides.
    types: Vec<DataType>,
    encoder: Arc<KeyEncoder>,
}

/// The keys of a batch's rows.
#[derive(Debug)]
pub(crate) struct BatchKeys {
    keys: Keys,
    arrays: Vec<ArrayRef>,
}

impl KeyColumns {
    /// The key columns of parents and of children. `on` has a child's column and its parent's.
    pub(crate) fn pair(
        parent: &Schema,
        child: &Schema,
        on: &[(String, String)],
        name: &str,
    ) -> Result<(Self, Self)> {
        let (mut parents, mut children, mut fields) = (Vec::new(), Vec::new(), Vec::new());
        for (ours, theirs) in on {
            let refused = |what: String| Error::Spec(format!("{name}: {what}"));
            let (child_at, child_type) = find(child, ours).map_err(refused)?;
            let (parent_at, parent_type) = find(parent, theirs).map_err(refused)?;
            let Some(common) = common_type(child_type, parent_type) else {
                return Err(refused(format!(
                    "{ours} has the type {child_type}, and {theirs} of its parent {parent_type}: \
                     cast one of them in its statement, to a number, text, date or time"
                )));
            };
            parents.push(parent_at);
            children.push(child_at);
            fields.push(arrow::datatypes::Field::new(ours, common, true));
        }
        let types: Vec<DataType> = fields.iter().map(|field| field.data_type().clone()).collect();
        let schema = schema_from_arrow(&Schema::new(fields))?;
        let by = (0..types.len()).map(|column| SortColumn {
            column,
            descending: false,
            nulls_first: false,
        });
        let encoder = KeyEncoder::new(&schema, &by.collect::<Vec<_>>(), KeyPurpose::Order)?;
        let encoder = Arc::new(encoder);
        let side = |columns| Self { columns, types: types.clone(), encoder: encoder.clone() };
        Ok((side(parents), side(children)))
    }

    pub(crate) fn columns(&self) -> &[usize] {
        &self.columns
    }

    pub(crate) fn encode(&self, batch: &RecordBatch) -> Result<BatchKeys> {
        let arrays = self.columns.iter().zip(&self.types).map(|(at, data_type)| {
            let array = batch.column(*at);
            Ok(if array.data_type() == data_type { array.clone() } else { cast(array, data_type)? })
        });
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let columns = arrays.iter().map(column_from_arrow).collect::<Result<_, _>>()?;
        let keys = self.encoder.encode(&Batch { rows: batch.num_rows(), columns });
        Ok(BatchKeys { keys, arrays })
    }
}

impl BatchKeys {
    pub(crate) fn get(&self, row: usize) -> &[u8] {
        self.keys.get(row)
    }

    /// Whether a column of the key is missing, so that it equals no other key.
    pub(crate) fn is_missing(&self, row: usize) -> bool {
        self.arrays.iter().any(|array| array.is_null(row))
    }

    /// The key's values, for errors.
    pub(crate) fn describe(&self, row: usize) -> String {
        let options = FormatOptions::default().with_null("NULL");
        let value = |array: &ArrayRef| match ArrayFormatter::try_new(array, &options) {
            Ok(formatter) => formatter.value(row).to_string(),
            Err(error) => error.to_string(),
        };
        self.arrays.iter().map(value).collect::<Vec<_>>().join(", ")
    }
}

fn find<'s>(schema: &'s Schema, name: &str) -> Result<(usize, &'s DataType), String> {
    let mut named = schema.fields().iter().enumerate().filter(|(_, field)| field.name() == name);
    match (named.next(), named.next()) {
        (Some((at, field)), None) => Ok((at, field.data_type())),
        _ => {
            let names = schema.fields().iter().map(|field| field.name().as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            Err(format!("{name} is not one column; there are {names}"))
        }
    }
}

/// The type in which the values of both can be compared, in the order in which each is sorted.
fn common_type(a: &DataType, b: &DataType) -> Option<DataType> {
    use DataType::*;
    let plain = |data_type: &DataType| match data_type {
        Dictionary(_, values) => values.as_ref().clone(),
        other => other.clone(),
    };
    match (plain(a), plain(b)) {
        (a, b) if a.is_integer() && b.is_integer() => match [&a, &b].contains(&&UInt64) {
            true => Some(Decimal128(20, 0)),
            false => Some(Int64),
        },
        (Utf8 | LargeUtf8 | Utf8View, Utf8 | LargeUtf8 | Utf8View) => Some(Utf8),
        (Binary | LargeBinary | BinaryView, Binary | LargeBinary | BinaryView) => Some(Binary),
        (a, b) if a == b => match a {
            Boolean | FixedSizeBinary(_) | Date32 | Date64 | Time32(_) | Time64(_)
            | Timestamp(..) | Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..) => {
                Some(a)
            }
            _ => None,
        },
        _ => None,
    }
}
