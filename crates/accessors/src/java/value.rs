//! Values: how each type is read.

use dray_format::{Type, Unit};

use super::writer::unit_number;

/// A method that reads a value or a part of it.
pub(super) struct Getter {
    /// What its name has behind the field's.
    pub(super) suffix: &'static str,
    /// What it returns.
    pub(super) java: &'static str,
    /// The expression; of one that is derived with `{x}` for the value.
    pub(super) read: String,
    /// What the comment has behind the type.
    pub(super) about: &'static str,
    pub(super) is_derived: bool,
}

/// The methods of a value at an offset.
pub(super) fn getters(data_type: &Type, at: usize) -> Vec<Getter> {
    let stored = |java, method: &str| part("", java, format!("{method}(page, at + {at})"), "");
    let int = || stored("int", "Memory.getInt");
    let long = || stored("long", "Memory.getLong");
    match data_type {
        Type::Null => vec![],
        Type::Boolean => vec![part("", "boolean", format!("page.get(at + {at}) != 0"), "")],
        Type::Int8 => vec![part("", "byte", format!("page.get(at + {at})"), "")],
        Type::UInt8 => vec![part("", "int", format!("page.get(at + {at}) & 0xff"), "")],
        Type::Int16 => vec![stored("short", "Memory.getShort")],
        Type::UInt16 => vec![stored("int", "Memory.getChar")],
        Type::Int32 => vec![int()],
        Type::UInt32 => vec![stored("long", "Memory.getUnsignedInt")],
        Type::Int64 => vec![long()],
        Type::UInt64 => vec![
            bits(long()),
            derived("Unsigned", "BigInteger", "Numbers.unsigned({x})".to_owned()),
        ],
        Type::Float16 => vec![
            bits(stored("short", "Memory.getShort")),
            derived("Float", "float", "Numbers.halfToFloat({x})".to_owned()),
        ],
        Type::Float32 => vec![stored("float", "Memory.getFloat")],
        Type::Float64 => vec![stored("double", "Memory.getDouble")],
        Type::Decimal32 { scale, .. } => vec![unscaled(int()), decimal(*scale)],
        Type::Decimal64 { scale, .. } => vec![unscaled(long()), decimal(*scale)],
        Type::Decimal128 { scale, .. } | Type::Decimal256 { scale, .. } => {
            let width = data_type.width().unwrap_or_default();
            let read = format!("Numbers.getInteger(page, at + {at}, {width})");
            let decimal = format!("new BigDecimal({{x}}, {scale})");
            vec![
                unscaled(part("", "BigInteger", read, "")),
                derived("Decimal", "BigDecimal", decimal),
            ]
        }
        Type::Date32 => vec![int(), derived("Date", "LocalDate", "Times.date({x})".to_owned())],
        Type::Date64 => vec![long(), derived("Date", "LocalDate", "Times.date({x})".to_owned())],
        Type::Time32(unit) => vec![int(), time("Time", "LocalTime", "time", *unit)],
        Type::Time64(unit) => vec![long(), time("Time", "LocalTime", "time", *unit)],
        Type::Timestamp { unit, zone: Some(_) } => {
            vec![long(), time("Instant", "Instant", "instant", *unit)]
        }
        Type::Timestamp { unit, zone: None } => {
            vec![long(), time("DateTime", "LocalDateTime", "dateTime", *unit)]
        }
        Type::Duration(unit) => vec![long(), time("Duration", "Duration", "duration", *unit)],
        Type::IntervalMonths => {
            vec![int(), derived("Period", "Period", "Period.ofMonths({x})".to_owned())]
        }
        Type::IntervalDayTime => vec![
            part("Days", "int", format!("Memory.getInt(page, at + {at})"), ", its days"),
            part(
                "Milliseconds",
                "int",
                format!("Memory.getInt(page, at + {})", at + 4),
                ", its milliseconds",
            ),
        ],
        Type::IntervalMonthDayNano => vec![
            part("Months", "int", format!("Memory.getInt(page, at + {at})"), ", its months"),
            part("Days", "int", format!("Memory.getInt(page, at + {})", at + 4), ", its days"),
            part(
                "Nanoseconds",
                "long",
                format!("Memory.getLong(page, at + {})", at + 8),
                ", its nanoseconds",
            ),
        ],
        Type::Utf8 => vec![part("", "Utf8", format!("Utf8.of(page, object, at + {at})"), "")],
        Type::Binary => vec![part("", "Bytes", format!("Bytes.of(page, object, at + {at})"), "")],
        other => {
            let width = other.width().unwrap_or_default();
            vec![part("", "Bytes", format!("new Bytes(page, at + {at}, {width})"), "")]
        }
    }
}

fn part(suffix: &'static str, java: &'static str, read: String, about: &'static str) -> Getter {
    Getter { suffix, java, read, about, is_derived: false }
}

fn derived(suffix: &'static str, java: &'static str, read: String) -> Getter {
    Getter { suffix, java, read, about: "", is_derived: true }
}

fn bits(getter: Getter) -> Getter {
    Getter { about: ", its bits", ..getter }
}

fn unscaled(getter: Getter) -> Getter {
    Getter { about: ", without its scale", ..getter }
}

fn decimal(scale: i8) -> Getter {
    derived("Decimal", "BigDecimal", format!("BigDecimal.valueOf({{x}}, {scale})"))
}

fn time(suffix: &'static str, java: &'static str, method: &str, unit: Unit) -> Getter {
    let number = unit_number(unit);
    derived(suffix, java, format!("Times.{method}({{x}}, {number})"))
}

/// A type in words.
pub(super) fn describe(data_type: &Type) -> String {
    let unit = |unit: &Unit| match unit {
        Unit::Second => "seconds",
        Unit::Millisecond => "milliseconds",
        Unit::Microsecond => "microseconds",
        Unit::Nanosecond => "nanoseconds",
    };
    match data_type {
        Type::Decimal32 { precision, scale }
        | Type::Decimal64 { precision, scale }
        | Type::Decimal128 { precision, scale }
        | Type::Decimal256 { precision, scale } => format!("decimal({precision}, {scale})"),
        Type::Date32 => "date, days since 1970-01-01".to_owned(),
        Type::Date64 => "date, milliseconds since 1970-01-01".to_owned(),
        Type::Time32(of) | Type::Time64(of) => format!("time, {} since midnight", unit(of)),
        Type::Timestamp { unit: of, zone } => {
            let zone = if zone.is_some() { " in UTC" } else { "" };
            format!("timestamp, {} since 1970-01-01{zone}", unit(of))
        }
        Type::Duration(of) => format!("duration in {}", unit(of)),
        Type::IntervalMonths => "interval in months".to_owned(),
        Type::IntervalDayTime | Type::IntervalMonthDayNano => "interval".to_owned(),
        Type::FixedBinary(width) => format!("{width} bytes"),
        other => format!("{other:?}").to_lowercase(),
    }
}

/// The type of a parameter that a key's field is found by.
pub(super) fn key_type(data_type: &Type) -> &'static str {
    match data_type {
        Type::Boolean => "boolean",
        Type::Int8 => "byte",
        Type::Int16 => "short",
        Type::UInt8 | Type::UInt16 => "int",
        Type::Float32 => "float",
        Type::Float64 => "double",
        Type::Utf8 => "String",
        Type::UInt32 => "long",
        Type::UInt64 | Type::Decimal128 { .. } | Type::Decimal256 { .. } => "BigInteger",
        Type::Float16
        | Type::Binary
        | Type::FixedBinary(_)
        | Type::IntervalDayTime
        | Type::IntervalMonthDayNano => "byte[]",
        other if other.width() == Some(4) => "int",
        _ => "long",
    }
}
