//! Schemas and types as Arrow has them: `spec/types.md` section 2.

use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, Fields, IntervalUnit, TimeUnit};

use super::StringLayout;
use crate::error::{Error, Result, refuse};
use crate::types::{FIXED_BINARY_MAX, Field, Schema, Type, Unit};

/// The Arrow schema of a stream.
pub fn schema_to_arrow(schema: &Schema, strings: StringLayout) -> arrow_schema::Schema {
    arrow_schema::Schema::new(
        schema.fields.iter().map(|field| field_to_arrow(field, strings)).collect::<Fields>(),
    )
}

fn field_to_arrow(field: &Field, strings: StringLayout) -> arrow_schema::Field {
    let ordered = matches!(field.data_type, Type::Dictionary { ordered: true, .. });
    arrow_schema::Field::new(&field.name, type_to_arrow(&field.data_type, strings), field.nullable)
        .with_dict_is_ordered(ordered)
        .with_metadata(field.metadata.iter().cloned().collect())
}

fn type_to_arrow(data_type: &Type, strings: StringLayout) -> DataType {
    let item = |field: &Field| Arc::new(field_to_arrow(field, strings));
    match data_type {
        Type::Null => DataType::Null,
        Type::Boolean => DataType::Boolean,
        Type::Int8 => DataType::Int8,
        Type::Int16 => DataType::Int16,
        Type::Int32 => DataType::Int32,
        Type::Int64 => DataType::Int64,
        Type::UInt8 => DataType::UInt8,
        Type::UInt16 => DataType::UInt16,
        Type::UInt32 => DataType::UInt32,
        Type::UInt64 => DataType::UInt64,
        Type::Float16 => DataType::Float16,
        Type::Float32 => DataType::Float32,
        Type::Float64 => DataType::Float64,
        Type::Decimal32 { precision, scale } => DataType::Decimal32(*precision, *scale),
        Type::Decimal64 { precision, scale } => DataType::Decimal64(*precision, *scale),
        Type::Decimal128 { precision, scale } => DataType::Decimal128(*precision, *scale),
        Type::Decimal256 { precision, scale } => DataType::Decimal256(*precision, *scale),
        Type::Date32 => DataType::Date32,
        Type::Date64 => DataType::Date64,
        Type::Time32(unit) => DataType::Time32(unit_to_arrow(*unit)),
        Type::Time64(unit) => DataType::Time64(unit_to_arrow(*unit)),
        Type::Timestamp { unit, zone } => {
            DataType::Timestamp(unit_to_arrow(*unit), zone.as_deref().map(Arc::from))
        }
        Type::Duration(unit) => DataType::Duration(unit_to_arrow(*unit)),
        Type::IntervalMonths => DataType::Interval(IntervalUnit::YearMonth),
        Type::IntervalDayTime => DataType::Interval(IntervalUnit::DayTime),
        Type::IntervalMonthDayNano => DataType::Interval(IntervalUnit::MonthDayNano),
        Type::Utf8 => match strings {
            StringLayout::Offsets => DataType::Utf8,
            StringLayout::LargeOffsets => DataType::LargeUtf8,
            StringLayout::Views => DataType::Utf8View,
        },
        Type::Binary => match strings {
            StringLayout::Offsets => DataType::Binary,
            StringLayout::LargeOffsets => DataType::LargeBinary,
            StringLayout::Views => DataType::BinaryView,
        },
        // Widths and sizes are below 2^31: types.md section 2.
        Type::FixedBinary(width) => DataType::FixedSizeBinary(*width as i32),
        Type::List(field) => DataType::List(item(field)),
        Type::FixedList { size, item: field } => DataType::FixedSizeList(item(field), *size as i32),
        Type::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| field_to_arrow(field, strings)).collect())
        }
        Type::Map { sorted, key, value } => {
            let entries = DataType::Struct(Fields::from(vec![item(key), item(value)]));
            DataType::Map(Arc::new(arrow_schema::Field::new("entries", entries, false)), *sorted)
        }
        Type::Dictionary { index, value, .. } => DataType::Dictionary(
            Box::new(type_to_arrow(index, strings)),
            Box::new(type_to_arrow(value, strings)),
        ),
    }
}

/// The schema of rows whose dictionaries are made anew from those of several inputs. Entries are
/// then in the order of their first occurrence, so that no dictionary is `ordered`; and there may
/// be more than narrow indexes can tell apart, so that these have 32 bits.
pub fn with_new_dictionaries(schema: &arrow_schema::Schema) -> arrow_schema::Schema {
    let wide = |index: &DataType| match index.primitive_width() {
        Some(1 | 2) => DataType::Int32,
        _ => index.clone(),
    };
    with_dictionaries(schema, &wide)
}

/// The schema of rows whose dictionaries are made anew from those of one input, or of several that
/// have [`with_new_dictionaries`]: none is `ordered` any more, at any depth, and indexes suffice.
pub fn without_order(schema: &arrow_schema::Schema) -> arrow_schema::Schema {
    with_dictionaries(schema, &DataType::clone)
}

fn with_dictionaries(
    schema: &arrow_schema::Schema,
    index: &dyn Fn(&DataType) -> DataType,
) -> arrow_schema::Schema {
    let fields = schema.fields().iter().map(|field| new_field(field, index)).collect::<Fields>();
    arrow_schema::Schema::new_with_metadata(fields, schema.metadata().clone())
}

fn new_field(field: &FieldRef, index: &dyn Fn(&DataType) -> DataType) -> FieldRef {
    let data_type = new_type(field.data_type(), index);
    Arc::new(field.as_ref().clone().with_data_type(data_type).with_dict_is_ordered(false))
}

fn new_type(data_type: &DataType, index: &dyn Fn(&DataType) -> DataType) -> DataType {
    let new = |field: &FieldRef| new_field(field, index);
    match data_type {
        DataType::Dictionary(own, value) => {
            DataType::Dictionary(Box::new(index(own)), Box::new(new_type(value, index)))
        }
        DataType::List(item) => DataType::List(new(item)),
        DataType::LargeList(item) => DataType::LargeList(new(item)),
        DataType::ListView(item) => DataType::ListView(new(item)),
        DataType::LargeListView(item) => DataType::LargeListView(new(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(new(item), *size),
        DataType::Map(entries, sorted) => DataType::Map(new(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(new).collect()),
        DataType::RunEndEncoded(ends, values) => DataType::RunEndEncoded(ends.clone(), new(values)),
        other => other.clone(),
    }
}

fn unit_to_arrow(unit: Unit) -> TimeUnit {
    match unit {
        Unit::Second => TimeUnit::Second,
        Unit::Millisecond => TimeUnit::Millisecond,
        Unit::Microsecond => TimeUnit::Microsecond,
        Unit::Nanosecond => TimeUnit::Nanosecond,
    }
}

/// The schema of a stream whose batches have this Arrow schema.
///
/// # Errors
/// When types.md has no counterpart of a column's type; the error names the column.
pub fn schema_from_arrow(schema: &arrow_schema::Schema) -> Result<Schema> {
    Ok(Schema {
        fields: schema
            .fields()
            .iter()
            .map(|field| field_from_arrow(field))
            .collect::<Result<_>>()?,
    })
}

fn field_from_arrow(field: &arrow_schema::Field) -> Result<Field> {
    let mut data_type = type_from_arrow(field.data_type())
        .map_err(|error| Error::new(error.kind(), format!("column {:?}: {error}", field.name())))?;
    // Arrow keeps this flag at the field.
    if let Type::Dictionary { ordered, .. } = &mut data_type {
        *ordered = field.dict_is_ordered() == Some(true);
    }
    let mut metadata: Vec<_> =
        field.metadata().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    metadata.sort();
    Ok(Field { name: field.name().clone(), data_type, nullable: field.is_nullable(), metadata })
}

fn type_from_arrow(data_type: &DataType) -> Result<Type> {
    let item = |field: &arrow_schema::Field| field_from_arrow(field).map(Box::new);
    Ok(match data_type {
        DataType::Null => Type::Null,
        DataType::Boolean => Type::Boolean,
        DataType::Int8 => Type::Int8,
        DataType::Int16 => Type::Int16,
        DataType::Int32 => Type::Int32,
        DataType::Int64 => Type::Int64,
        DataType::UInt8 => Type::UInt8,
        DataType::UInt16 => Type::UInt16,
        DataType::UInt32 => Type::UInt32,
        DataType::UInt64 => Type::UInt64,
        DataType::Float16 => Type::Float16,
        DataType::Float32 => Type::Float32,
        DataType::Float64 => Type::Float64,
        DataType::Decimal32(precision, scale) => {
            Type::Decimal32 { precision: *precision, scale: *scale }
        }
        DataType::Decimal64(precision, scale) => {
            Type::Decimal64 { precision: *precision, scale: *scale }
        }
        DataType::Decimal128(precision, scale) => {
            Type::Decimal128 { precision: *precision, scale: *scale }
        }
        DataType::Decimal256(precision, scale) => {
            Type::Decimal256 { precision: *precision, scale: *scale }
        }
        DataType::Date32 => Type::Date32,
        DataType::Date64 => Type::Date64,
        DataType::Time32(unit) => Type::Time32(unit_from_arrow(unit)),
        DataType::Time64(unit) => Type::Time64(unit_from_arrow(unit)),
        DataType::Timestamp(unit, zone) => Type::Timestamp {
            unit: unit_from_arrow(unit),
            zone: zone.as_deref().filter(|zone| !zone.is_empty()).map(str::to_owned),
        },
        DataType::Duration(unit) => Type::Duration(unit_from_arrow(unit)),
        DataType::Interval(IntervalUnit::YearMonth) => Type::IntervalMonths,
        DataType::Interval(IntervalUnit::DayTime) => Type::IntervalDayTime,
        DataType::Interval(IntervalUnit::MonthDayNano) => Type::IntervalMonthDayNano,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Type::Utf8,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Type::Binary,
        DataType::FixedSizeBinary(width) => match u32::try_from(*width) {
            Ok(width @ 1..=FIXED_BINARY_MAX) => Type::FixedBinary(width),
            _ => refuse!(Unsupported, "a fixed-size binary of width {width}"),
        },
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field) => Type::List(item(field)?),
        DataType::FixedSizeList(field, size) => match u32::try_from(*size) {
            Ok(size) => Type::FixedList { size, item: item(field)? },
            Err(_) => refuse!(Unsupported, "a fixed-size list of {size} items"),
        },
        DataType::Struct(fields) => {
            Type::Struct(fields.iter().map(|field| field_from_arrow(field)).collect::<Result<_>>()?)
        }
        DataType::Map(entries, sorted) => {
            let DataType::Struct(fields) = entries.data_type() else {
                refuse!(Unsupported, "a map without entries")
            };
            let [key, value] = &fields[..] else {
                refuse!(Unsupported, "a map of {} fields", fields.len())
            };
            let key = Field { nullable: false, ..field_from_arrow(key)? };
            Type::Map { sorted: *sorted, key: Box::new(key), value: item(value)? }
        }
        DataType::Dictionary(index, value) => match type_from_arrow(value)? {
            Type::Dictionary { .. } => refuse!(Unsupported, "a dictionary of a dictionary"),
            value => Type::Dictionary {
                index: Box::new(type_from_arrow(index)?),
                ordered: false,
                value: Box::new(value),
            },
        },
        DataType::RunEndEncoded(_, values) => type_from_arrow(values.data_type())?,
        DataType::Union(..) => {
            refuse!(Unsupported, "a union can't be sent; select its fields one by one")
        }
    })
}

fn unit_from_arrow(unit: &TimeUnit) -> Unit {
    match unit {
        TimeUnit::Second => Unit::Second,
        TimeUnit::Millisecond => Unit::Millisecond,
        TimeUnit::Microsecond => Unit::Microsecond,
        TimeUnit::Nanosecond => Unit::Nanosecond,
    }
}
