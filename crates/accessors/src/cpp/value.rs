//! How C++ has the values of each type.

use dray_format::{Type, Unit};

use super::names::Names;
use crate::model::{FieldKind, Items};

/// The type that a getter returns for a value that is present.
pub(super) fn value_type(kind: &FieldKind, names: &Names) -> String {
    match kind {
        FieldKind::Value(data_type) => scalar(data_type).value,
        FieldKind::Struct(class) => names.class(*class).to_owned(),
        FieldKind::List(items) | FieldKind::FixedList(_, items) | FieldKind::Map(items) => {
            match array(items) {
                Some(number) => format!("std::span<const {number}>"),
                None => format!("dray::List<{}>", arguments(items, names)),
            }
        }
    }
}

/// The class of the runtime that reads a value.
pub(super) fn element(kind: &FieldKind, names: &Names) -> String {
    let class = match kind {
        FieldKind::Value(data_type) => scalar(data_type).reader,
        FieldKind::Struct(class) => format!("Of<{}>", names.class(*class)),
        FieldKind::List(items) | FieldKind::FixedList(_, items) | FieldKind::Map(items) => {
            match array(items) {
                Some(number) => format!("Array<{number}>"),
                None => format!("ListOf<{}>", arguments(items, names)),
            }
        }
    };
    format!("dray::detail::{class}")
}

/// The type of the numbers that lie as an array, if the items are such numbers.
pub(super) fn array(items: &Items) -> Option<String> {
    match &*items.element {
        FieldKind::Value(data_type) if !items.nullable => {
            let number = number(data_type)?;
            Some(number.to_owned())
        }
        _ => None,
    }
}

fn arguments(items: &Items, names: &Names) -> String {
    let element = element(&items.element, names);
    format!("{element}, {}, {}", items.stride, items.nullable)
}

/// The type of C++ for the integers and floats that it has.
fn number(data_type: &Type) -> Option<&'static str> {
    Some(match data_type {
        Type::Int8 => "std::int8_t",
        Type::Int16 => "std::int16_t",
        Type::Int32 => "std::int32_t",
        Type::Int64 => "std::int64_t",
        Type::UInt8 => "std::uint8_t",
        Type::UInt16 => "std::uint16_t",
        Type::UInt32 => "std::uint32_t",
        Type::UInt64 => "std::uint64_t",
        Type::Float32 => "float",
        Type::Float64 => "double",
        _ => return None,
    })
}

struct Scalar {
    value: String,
    reader: String,
}

fn scalar(data_type: &Type) -> Scalar {
    let number_of = |value: String| Scalar { reader: format!("Number<{value}>"), value };
    let stored = |value: String, stored: &str| Scalar {
        reader: format!("Stored<{value}, {stored}>"),
        value,
    };
    let named = |value: &str, reader: &str| Scalar { value: value.into(), reader: reader.into() };
    let decimal = |number: &str, precision: &u8, scale: &i8| {
        number_of(format!("dray::Decimal<{number}, {precision}, {scale}>"))
    };
    match data_type {
        Type::Boolean => named("bool", "Boolean"),
        Type::Utf8 => named("std::string_view", "Text"),
        Type::Binary => named("dray::Bytes", "Binary"),
        Type::FixedBinary(width) => Scalar {
            value: format!("std::span<const std::byte, {width}>"),
            reader: format!("FixedBinary<{width}>"),
        },
        Type::Float16 => number_of("dray::Float16".into()),
        Type::Decimal32 { precision, scale } => decimal("std::int32_t", precision, scale),
        Type::Decimal64 { precision, scale } => decimal("std::int64_t", precision, scale),
        Type::Decimal128 { precision, scale } => decimal("dray::int128", precision, scale),
        Type::Decimal256 { precision, scale } => decimal("dray::Int256", precision, scale),
        Type::Date32 => stored("dray::Date32".into(), "std::int32_t"),
        Type::Date64 => stored("dray::Date64".into(), "std::int64_t"),
        Type::Time32(unit) => stored(duration(*unit), "std::int32_t"),
        Type::Time64(unit) | Type::Duration(unit) => stored(duration(*unit), "std::int64_t"),
        Type::Timestamp { unit, zone } => {
            let class = if zone.is_some() { "Timestamp" } else { "LocalTimestamp" };
            stored(format!("dray::{class}<{}>", duration(*unit)), "std::int64_t")
        }
        Type::IntervalMonths => stored("dray::Months".into(), "std::int32_t"),
        Type::IntervalDayTime => number_of("dray::DayTime".into()),
        Type::IntervalMonthDayNano => number_of("dray::MonthDayNano".into()),
        other => match number(other) {
            Some(number) => number_of(number.to_owned()),
            // Nested types are other kinds of fields.
            None => named("std::nullptr_t", "Null"),
        },
    }
}

fn duration(unit: Unit) -> String {
    let unit = match unit {
        Unit::Second => "seconds",
        Unit::Millisecond => "milliseconds",
        Unit::Microsecond => "microseconds",
        Unit::Nanosecond => "nanoseconds",
    };
    format!("dray::{unit}")
}

/// The bytes of a value's place.
pub(super) fn width(kind: &FieldKind) -> usize {
    match kind {
        FieldKind::Value(Type::Null) | FieldKind::Struct(_) => 0,
        FieldKind::Value(Type::Boolean) => 1,
        FieldKind::Value(Type::Utf8 | Type::Binary) => 16,
        FieldKind::Value(data_type) => data_type.width().unwrap_or(0),
        FieldKind::List(_) | FieldKind::FixedList(..) | FieldKind::Map(_) => 8,
    }
}

/// The type in the words of types.md.
pub(super) fn describe(kind: &FieldKind) -> String {
    match kind {
        FieldKind::Value(data_type) => described(data_type),
        FieldKind::Struct(_) => "struct".into(),
        FieldKind::List(_) => "list".into(),
        FieldKind::FixedList(size, _) => format!("fixed_list of {size}"),
        FieldKind::Map(_) => "map".into(),
    }
}

fn described(data_type: &Type) -> String {
    let unit = |unit: &Unit| match unit {
        Unit::Second => "s",
        Unit::Millisecond => "ms",
        Unit::Microsecond => "µs",
        Unit::Nanosecond => "ns",
    };
    match data_type {
        Type::Decimal32 { precision, scale } => format!("decimal32({precision}, {scale})"),
        Type::Decimal64 { precision, scale } => format!("decimal64({precision}, {scale})"),
        Type::Decimal128 { precision, scale } => format!("decimal128({precision}, {scale})"),
        Type::Decimal256 { precision, scale } => format!("decimal256({precision}, {scale})"),
        Type::Time32(of) => format!("time32 in {}", unit(of)),
        Type::Time64(of) => format!("time64 in {}", unit(of)),
        Type::Duration(of) => format!("duration in {}", unit(of)),
        Type::Timestamp { unit: of, zone: None } => format!("timestamp in {}", unit(of)),
        Type::Timestamp { unit: of, zone: Some(zone) } => {
            format!("timestamp in {}, zone {}", unit(of), super::shown(zone))
        }
        Type::IntervalMonths => "interval of months".into(),
        Type::IntervalDayTime => "interval of days and milliseconds".into(),
        Type::IntervalMonthDayNano => "interval of months, days and nanoseconds".into(),
        Type::FixedBinary(width) => format!("fixed_binary({width})"),
        other => format!("{other:?}").to_lowercase(),
    }
}
