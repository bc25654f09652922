//! The types that columns have in Spark: those of Arrow that its column vectors can read.

use std::sync::Arc;

use arrow::datatypes::DECIMAL128_MAX_PRECISION;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, IntervalUnit, Schema, TimeUnit};

use crate::errors::Failure;

/// The metadata of a field that names its extension type.
const EXTENSION: &str = "ARROW:extension:name";
/// The bytes of a UUID.
const UUID_BYTES: i32 = 16;

/// The columns as Spark holds them.
///
/// # Errors
/// When Spark has no type for a column.
pub(crate) fn spark_schema(schema: &Schema) -> Result<Schema, Failure> {
    let fields = schema.fields().iter().map(|field| spark_field(field, field.name()));
    Ok(Schema::new(fields.collect::<Result<Vec<_>, _>>()?))
}

/// Whether a field has UUIDs.
pub(crate) fn is_uuid(field: &Field) -> bool {
    *field.data_type() == DataType::FixedSizeBinary(UUID_BYTES)
        && field.metadata().get(EXTENSION).is_some_and(|name| name == "arrow.uuid")
}

fn spark_field(field: &Field, path: &str) -> Result<Field, Failure> {
    let data_type = match is_uuid(field) {
        true => DataType::Utf8,
        false => spark_type(field.data_type(), path)?,
    };
    Ok(Field::new(field.name(), data_type, field.is_nullable()))
}

fn child(field: &FieldRef, path: &str) -> Result<FieldRef, Failure> {
    let path = format!("{path}.{}", field.name());
    Ok(Arc::new(spark_field(field, &path)?))
}

fn spark_type(data_type: &DataType, path: &str) -> Result<DataType, Failure> {
    Ok(match data_type {
        DataType::Null
        | DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Float32
        | DataType::Float64
        | DataType::Utf8
        | DataType::Binary
        | DataType::Date32 => data_type.clone(),
        // The next wider type with a sign.
        DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Float16 => DataType::Float32,
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => decimal(*precision, *scale, path)?,
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            DataType::Binary
        }
        DataType::Date64 => DataType::Date32,
        DataType::Time32(_) | DataType::Time64(_) => DataType::Time64(TimeUnit::Nanosecond),
        DataType::Timestamp(_, None) => DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Timestamp(_, Some(_)) => {
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
        }
        DataType::Duration(_) => DataType::Duration(TimeUnit::Microsecond),
        DataType::Interval(IntervalUnit::YearMonth) => data_type.clone(),
        DataType::Interval(_) => DataType::Interval(IntervalUnit::MonthDayNano),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => DataType::List(child(item, path)?),
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| child(field, path));
            DataType::Struct(fields.collect::<Result<Fields, _>>()?)
        }
        DataType::Map(entries, sorted) => DataType::Map(child(entries, path)?, *sorted),
        DataType::Dictionary(_, values) => spark_type(values, path)?,
        DataType::RunEndEncoded(_, values) => spark_type(values.data_type(), path)?,
        DataType::Union(..) => return Err(refused(path, data_type)),
    })
}

/// Spark's decimals have up to 38 digits, and none of them left of the first or right of the last.
fn decimal(precision: u8, scale: i8, path: &str) -> Result<DataType, Failure> {
    let whole = i16::from(precision) - i16::from(scale);
    let scale = scale.max(0);
    let digits = whole.max(0) + i16::from(scale);
    match u8::try_from(digits) {
        Ok(digits) if digits <= DECIMAL128_MAX_PRECISION => {
            Ok(DataType::Decimal128(digits.max(1), scale))
        }
        _ => Err(Failure::not_supported(format!(
            "column {path} has decimals of {digits} digits, Spark's have at most 38 (read it by \
             option query with CAST({path} AS numeric(38, …)), or as text)"
        ))),
    }
}

fn refused(path: &str, data_type: &DataType) -> Failure {
    Failure::not_supported(format!(
        "column {path} has the type {data_type}, which Spark does not have (read it by option \
         query with a cast, or leave it out)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(data_type: DataType) -> Result<DataType, String> {
        let schema = Schema::new(vec![Field::new("c", data_type, true)]);
        let of = spark_schema(&schema).map_err(|error| format!("{error:?}"))?;
        Ok(of.field(0).data_type().clone())
    }

    #[test]
    fn decimals() {
        assert_eq!(of(DataType::Decimal64(10, 2)), Ok(DataType::Decimal128(10, 2)));
        assert_eq!(of(DataType::Decimal128(3, 5)), Ok(DataType::Decimal128(5, 5)));
        assert_eq!(of(DataType::Decimal128(3, -2)), Ok(DataType::Decimal128(5, 0)));
        assert_eq!(of(DataType::Decimal256(38, 4)), Ok(DataType::Decimal128(38, 4)));
        assert!(of(DataType::Decimal256(39, 0)).unwrap_err().contains("39 digits"));
        assert!(of(DataType::Decimal128(38, -1)).is_err());
    }

    #[test]
    fn nested() {
        let item = |data_type| Arc::new(Field::new("item", data_type, true));
        let list = DataType::LargeList(item(DataType::UInt8));
        assert_eq!(of(list), Ok(DataType::List(item(DataType::Int16))));
        let deep = DataType::List(item(DataType::Decimal256(76, 0)));
        assert!(of(deep).unwrap_err().contains("column c.item has decimals of 76 digits"));
    }

    #[test]
    fn a_uuid_is_a_string() {
        let uuid = Field::new("id", DataType::FixedSizeBinary(16), true)
            .with_metadata([(EXTENSION.to_owned(), "arrow.uuid".to_owned())].into());
        let schema = Schema::new(vec![uuid, Field::new("b", DataType::FixedSizeBinary(16), true)]);
        let spark = spark_schema(&schema).unwrap();
        assert_eq!(spark.field(0).data_type(), &DataType::Utf8);
        assert_eq!(spark.field(1).data_type(), &DataType::Binary);
    }
}
