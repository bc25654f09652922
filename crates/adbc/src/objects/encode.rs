//! The nested batch of `GetObjects`.

use std::sync::Arc;

use adbc_core::schemas::{
    COLUMN_SCHEMA, CONSTRAINT_SCHEMA, GET_OBJECTS_SCHEMA, OBJECTS_DB_SCHEMA_SCHEMA, TABLE_SCHEMA,
    USAGE_SCHEMA,
};
use arrow::array::{
    ArrayRef, BooleanArray, Int16Array, Int32Array, ListArray, RecordBatch, StringArray,
    StructArray, new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, FieldRef};
use arrow::error::ArrowError;

use super::{Catalog, Column, Constraint, Schema, Table, Usage};

type Result<T> = std::result::Result<T, ArrowError>;

/// Catalogs as a batch, a row for each.
///
/// # Errors
/// When a list is too long for Arrow.
pub(crate) fn encode(catalogs: &[Catalog]) -> Result<RecordBatch> {
    let names = texts(catalogs.iter().map(|catalog| Some(&catalog.name)));
    let schemas = list(
        &OBJECTS_DB_SCHEMA_SCHEMA,
        catalogs.iter().map(|catalog| catalog.schemas.as_deref()),
        encode_schemas,
    )?;
    RecordBatch::try_new(GET_OBJECTS_SCHEMA.clone(), vec![names, schemas])
}

fn encode_schemas(schemas: &[&Schema]) -> Result<ArrayRef> {
    let tables =
        list(&TABLE_SCHEMA, schemas.iter().map(|schema| schema.tables.as_deref()), encode_tables)?;
    record(&OBJECTS_DB_SCHEMA_SCHEMA, schemas.len(), |field| {
        Some(match field {
            "db_schema_name" => texts(schemas.iter().map(|schema| Some(&schema.name))),
            "db_schema_tables" => tables.clone(),
            _ => return None,
        })
    })
}

fn encode_tables(tables: &[&Table]) -> Result<ArrayRef> {
    let columns =
        list(&COLUMN_SCHEMA, tables.iter().map(|table| table.columns.as_deref()), encode_columns)?;
    let constraints = list(
        &CONSTRAINT_SCHEMA,
        tables.iter().map(|table| table.constraints.as_deref()),
        encode_constraints,
    )?;
    record(&TABLE_SCHEMA, tables.len(), |field| {
        Some(match field {
            "table_name" => texts(tables.iter().map(|table| Some(&table.name))),
            "table_type" => texts(tables.iter().map(|table| Some(&table.table_type))),
            "table_columns" => columns.clone(),
            "table_constraints" => constraints.clone(),
            _ => return None,
        })
    })
}

fn encode_columns(columns: &[&Column]) -> Result<ArrayRef> {
    record(&COLUMN_SCHEMA, columns.len(), |field| {
        Some(match field {
            "column_name" => texts(columns.iter().map(|column| Some(&column.name))),
            "ordinal_position" => {
                Arc::new(Int32Array::from_iter_values(columns.iter().map(|column| column.position)))
            }
            "remarks" => texts(columns.iter().map(|column| column.remarks.as_ref())),
            "xdbc_type_name" => texts(columns.iter().map(|column| column.type_name.as_ref())),
            "xdbc_nullable" => Arc::new(Int16Array::from_iter_values(
                columns.iter().map(|column| i16::from(column.nullable)),
            )),
            "xdbc_is_nullable" => Arc::new(StringArray::from_iter_values(
                columns.iter().map(|column| if column.nullable { "YES" } else { "NO" }),
            )),
            "xdbc_column_def" => texts(columns.iter().map(|column| column.default.as_ref())),
            "xdbc_is_autoincrement" => Arc::new(
                columns.iter().map(|column| column.autoincrement).collect::<BooleanArray>(),
            ),
            "xdbc_is_generatedcolumn" => {
                Arc::new(columns.iter().map(|column| column.generated).collect::<BooleanArray>())
            }
            _ => return None,
        })
    })
}

fn encode_constraints(constraints: &[&Constraint]) -> Result<ArrayRef> {
    let names = list(
        &DataType::Utf8,
        constraints.iter().map(|constraint| Some(&*constraint.columns)),
        |names| Ok(texts(names.iter().map(|name| Some(*name)))),
    )?;
    let usage = list(
        &USAGE_SCHEMA,
        constraints.iter().map(|constraint| constraint.usage.as_deref()),
        encode_usage,
    )?;
    record(&CONSTRAINT_SCHEMA, constraints.len(), |field| {
        Some(match field {
            "constraint_name" => texts(constraints.iter().map(|of| Some(&of.name))),
            "constraint_type" => texts(constraints.iter().map(|of| Some(&of.constraint_type))),
            "constraint_column_names" => names.clone(),
            "constraint_column_usage" => usage.clone(),
            _ => return None,
        })
    })
}

fn encode_usage(usage: &[&Usage]) -> Result<ArrayRef> {
    record(&USAGE_SCHEMA, usage.len(), |field| {
        Some(match field {
            "fk_catalog" => texts(usage.iter().map(|usage| usage.catalog.as_ref())),
            "fk_db_schema" => texts(usage.iter().map(|usage| usage.schema.as_ref())),
            "fk_table" => texts(usage.iter().map(|usage| Some(&usage.table))),
            "fk_column_name" => texts(usage.iter().map(|usage| Some(&usage.column))),
            _ => return None,
        })
    })
}

pub(super) fn texts<'a>(values: impl Iterator<Item = Option<&'a String>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

/// An array of records, whose fields `column` makes by their names. Fields without one are NULL.
pub(super) fn record(
    of: &DataType,
    rows: usize,
    column: impl Fn(&str) -> Option<ArrayRef>,
) -> Result<ArrayRef> {
    let DataType::Struct(fields) = of else {
        return Err(ArrowError::SchemaError(format!("{of} is no record")));
    };
    let columns = fields
        .iter()
        .map(|field| {
            column(field.name()).unwrap_or_else(|| new_null_array(field.data_type(), rows))
        })
        .collect();
    Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), columns, None, rows)?))
}

/// An array of lists of items of this type; None is NULL.
pub(super) fn list<'a, T: 'a>(
    of: &DataType,
    lists: impl Iterator<Item = Option<&'a [T]>>,
    encode: impl Fn(&[&'a T]) -> Result<ArrayRef>,
) -> Result<ArrayRef> {
    let lists: Vec<Option<&[T]>> = lists.collect();
    let items: Vec<&T> = lists.iter().copied().flatten().flatten().collect();
    if i32::try_from(items.len()).is_err() {
        return Err(ArrowError::ComputeError("more objects than a list holds".to_owned()));
    }
    let lengths = lists.iter().map(|list| list.map_or(0, <[T]>::len));
    let nulls: NullBuffer = lists.iter().map(Option::is_some).collect();
    let field: FieldRef = Arc::new(Field::new_list_field(of.clone(), true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(field, offsets, encode(&items)?, Some(nulls))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::util::pretty::pretty_format_batches;

    #[test]
    fn objects_are_nested() {
        let usage = Usage { table: "u".to_owned(), column: "id".to_owned(), ..Usage::default() };
        let constraint = Constraint {
            name: "k".to_owned(),
            constraint_type: "FOREIGN KEY".to_owned(),
            columns: vec!["a".to_owned()],
            usage: Some(vec![usage]),
        };
        let column = Column { name: "a".to_owned(), position: 1, ..Column::default() };
        let table = Table {
            name: "t".to_owned(),
            table_type: "table".to_owned(),
            columns: Some(vec![column]),
            constraints: Some(vec![constraint]),
        };
        let full = Schema { name: "s".to_owned(), tables: Some(vec![table]) };
        let bare = Schema { name: "e".to_owned(), tables: None };
        let catalogs = [
            Catalog { name: "c".to_owned(), schemas: Some(vec![full, bare]) },
            Catalog { name: "d".to_owned(), schemas: None },
        ];
        let batch = encode(&catalogs).unwrap();
        assert_eq!((batch.schema(), batch.num_rows()), (GET_OBJECTS_SCHEMA.clone(), 2));
        assert_eq!(batch.column(1).null_count(), 1);
        let text = pretty_format_batches(&[batch]).unwrap().to_string();
        for part in ["db_schema_name: s", "table_name: t", "column_name: a", "fk_table: u"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(encode(&[]).unwrap().num_rows(), 0);
    }
}
