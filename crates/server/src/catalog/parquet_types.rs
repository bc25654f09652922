//! Checks that the columns of a Parquet file can have the types that its Arrow schema says, which
//! is a second description of them beside the file's own.
//!
//! The library panics over some of the differences, and takes a decimal's scale from the Arrow
//! schema, so that its value would be another.

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::parquet::basic::{LogicalType, Type as Stored};
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::parquet::schema::types::ColumnDescriptor;

/// Checks the columns of a file, for which the library found this schema.
pub(super) fn check(metadata: &ParquetMetaData, schema: &Schema) -> Result<(), String> {
    let columns = metadata.file_metadata().schema_descr().columns();
    let mut pairs = columns.iter().zip(leaves(schema));
    match pairs.find(|(column, data_type)| !is_readable(column, data_type)) {
        None => Ok(()),
        Some((column, data_type)) => Err(format!(
            "its column '{}' is stored as {}, which is no {data_type}, as its Arrow schema says; \
             rewrite the file",
            column.path().string(),
            stored(column)
        )),
    }
}

/// The types of the columns that are stored, in their order.
pub(super) fn leaves(schema: &Schema) -> Vec<&DataType> {
    let mut types = Vec::new();
    schema.fields().iter().for_each(|field| add_leaves(field.data_type(), &mut types));
    types
}

/// Adds the types of the columns that are stored for a type.
fn add_leaves<'a>(data_type: &'a DataType, leaves: &mut Vec<&'a DataType>) {
    match data_type {
        DataType::Struct(fields) => {
            fields.iter().for_each(|field| add_leaves(field.data_type(), leaves));
        }
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => add_leaves(item.data_type(), leaves),
        leaf => leaves.push(leaf),
    }
}

fn is_readable(column: &ColumnDescriptor, data_type: &DataType) -> bool {
    let is_decimal = |bytes_max: i32, precision: u8, scale: i8| {
        decimal(column) == Some((precision.into(), scale.into())) && bytes(column) <= bytes_max
    };
    match data_type {
        DataType::Decimal32(precision, scale) => is_decimal(4, *precision, *scale),
        DataType::Decimal64(precision, scale) => is_decimal(8, *precision, *scale),
        DataType::Decimal128(precision, scale) => is_decimal(16, *precision, *scale),
        DataType::Decimal256(precision, scale) => is_decimal(32, *precision, *scale),
        DataType::Dictionary(_, values) => {
            !matches!(column.physical_type(), Stored::BOOLEAN | Stored::INT96)
                && is_readable(column, values)
        }
        _ => true,
    }
}

/// The digits of a column of decimals, and those after the point.
fn decimal(column: &ColumnDescriptor) -> Option<(i32, i32)> {
    match column.logical_type_ref() {
        Some(LogicalType::Decimal(decimal)) => Some((decimal.precision, decimal.scale)),
        Some(_) => None,
        None => Some((column.type_precision(), column.type_scale())),
    }
}

/// The bytes of a stored decimal. One whose bytes vary in number has 16.
fn bytes(column: &ColumnDescriptor) -> i32 {
    match column.physical_type() {
        Stored::INT32 => 4,
        Stored::INT64 => 8,
        Stored::FIXED_LEN_BYTE_ARRAY => column.type_length(),
        _ => 16,
    }
}

fn stored(column: &ColumnDescriptor) -> String {
    let physical = match column.physical_type() {
        Stored::FIXED_LEN_BYTE_ARRAY => format!("{} bytes", column.type_length()),
        other => other.to_string(),
    };
    match decimal(column) {
        Some((precision @ 1.., scale)) => {
            format!("a decimal of {precision} digits, {scale} after the point, in {physical}")
        }
        _ => physical,
    }
}
