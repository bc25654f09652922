//! A driver's batches, in the types that the server takes.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use dray_bridge::{Failure, FailureKind};

/// The columns in types that may travel: views, list views and run ends as what they stand for.
///
/// # Errors
/// If a column has a type that can't travel.
pub(crate) fn plain_schema(schema: &Schema) -> Result<SchemaRef, Failure> {
    let fields = schema.fields().iter().map(|field| {
        plain_field(field).ok_or_else(|| {
            let (name, data_type) = (field.name(), field.data_type());
            let what = format!("column {name}: the type {data_type} has no form here");
            let hint = "cast the column to another type, or leave it out".to_owned();
            Failure { hint, ..Failure::new(FailureKind::Query, "0A000", what) }
        })
    });
    let fields = fields.collect::<Result<Fields, _>>()?;
    Ok(Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())))
}

fn plain_field(field: &FieldRef) -> Option<FieldRef> {
    match plain_type(field.data_type())? {
        plain if plain == *field.data_type() => Some(field.clone()),
        plain => Some(Arc::new(Field::clone(field).with_data_type(plain))),
    }
}

/// None of a union.
fn plain_type(data_type: &DataType) -> Option<DataType> {
    Some(match data_type {
        DataType::Union(..) => return None,
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::RunEndEncoded(_, values) => plain_type(values.data_type())?,
        DataType::List(item) | DataType::ListView(item) => DataType::List(plain_field(item)?),
        DataType::LargeList(item) | DataType::LargeListView(item) => {
            DataType::LargeList(plain_field(item)?)
        }
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(plain_field(item)?, *size),
        DataType::Map(entries, sorted) => DataType::Map(plain_field(entries)?, *sorted),
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(plain_field).collect::<Option<Fields>>()?)
        }
        DataType::Dictionary(index, values) => {
            DataType::Dictionary(index.clone(), Box::new(plain_type(values)?))
        }
        other => other.clone(),
    })
}

/// A batch in the types of `schema`.
pub(crate) fn plain_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, Failure> {
    if batch.num_columns() != schema.fields().len() {
        return Err(internal("the driver gave rows with other columns than it had announced"));
    }
    let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| {
        if column.data_type() == field.data_type() {
            return Ok(column.clone());
        }
        let options = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(column, field.data_type(), &options)
            .map_err(|cause| internal(&format!("column {}: {cause}", field.name())))
    });
    let columns = columns.collect::<Result<Vec<ArrayRef>, _>>()?;
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
        .map_err(|cause| internal(&cause.to_string()))
}

fn internal(what: &str) -> Failure {
    Failure { usable: false, ..Failure::new(FailureKind::Internal, "", what) }
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int32Type;
    use arrow_array::{Int32Array, RunArray, StringArray, StringViewArray};

    use super::*;

    #[test]
    fn encoded_columns_become_plain() {
        let views = StringViewArray::from(vec!["a string that is long", "b", "c"]);
        let runs = RunArray::<Int32Type>::try_new(
            &Int32Array::from(vec![2, 3]),
            &StringArray::from(vec!["p", "q"]),
        );
        let columns =
            [("v", Arc::new(views) as ArrayRef), ("r", Arc::new(runs.unwrap()) as ArrayRef)];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let schema = plain_schema(&batch.schema()).unwrap();
        let plain = plain_batch(&batch, &schema).unwrap();
        let expected = RecordBatch::try_new(
            schema,
            vec![
                Arc::new(StringArray::from(vec!["a string that is long", "b", "c"])),
                Arc::new(StringArray::from(vec!["p", "p", "q"])),
            ],
        );
        assert_eq!(plain, expected.unwrap());
    }
}
