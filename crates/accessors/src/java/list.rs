//! Lists, and the runtime's classes for them.

use dray_format::Type;

use super::names::ClassNames;
use crate::{FieldKind, Items};

/// A list's class, and the expression that makes one.
pub(super) struct List {
    pub(super) java: String,
    pub(super) new: String,
}

/// The class of a list.
pub(super) fn of(items: &Items, names: &ClassNames) -> List {
    let nullable = items.nullable;
    let of_class = |java: &str, more: &str| List {
        java: java.to_owned(),
        new: format!("new {java}({nullable}{more})"),
    };
    match &*items.element {
        FieldKind::Struct(class) => {
            let java = format!("{}.List", names.of(*class));
            List { new: format!("new {java}()"), java }
        }
        FieldKind::List(within) | FieldKind::FixedList(_, within) | FieldKind::Map(within) => {
            let List { java, new } = of(within, names);
            List {
                java: format!("ListList<{java}>"),
                new: format!("new ListList<>({nullable}, () -> {new})"),
            }
        }
        FieldKind::Value(data_type) => match data_type {
            Type::Null => List { java: "NullList".to_owned(), new: "new NullList()".to_owned() },
            Type::Boolean => of_class("BooleanList", ""),
            Type::Utf8 => of_class("Utf8List", ""),
            Type::Binary => of_class("BytesList", ", 0"),
            Type::Float32 => of_class("Float32List", ""),
            Type::Float64 => of_class("Float64List", ""),
            Type::Decimal32 { scale, .. }
            | Type::Decimal64 { scale, .. }
            | Type::Decimal128 { scale, .. }
            | Type::Decimal256 { scale, .. } => {
                let width = data_type.width().unwrap_or_default();
                of_class("DecimalList", &format!(", {width}, {scale}"))
            }
            Type::IntervalDayTime | Type::IntervalMonthDayNano | Type::FixedBinary(_) => {
                let width = data_type.width().unwrap_or_default();
                of_class("BytesList", &format!(", {width}"))
            }
            other => match other.width() {
                Some(1) => of_class("Int8List", ""),
                Some(2) => of_class("Int16List", ""),
                Some(4) => of_class("Int32List", ""),
                _ => of_class("Int64List", ""),
            },
        },
    }
}

/// The class that writes a list, and the expression that makes one.
pub(super) struct Writer {
    pub(super) java: String,
    pub(super) new: String,
}

/// The writer of a list.
pub(super) fn writer_of(items: &Items, names: &ClassNames) -> Writer {
    match &*items.element {
        FieldKind::Struct(class) => {
            let java = format!("{}.ListWriter", names.of(*class));
            Writer { new: format!("new {java}()"), java }
        }
        FieldKind::List(within) | FieldKind::FixedList(_, within) | FieldKind::Map(within) => {
            let Writer { java, new } = writer_of(within, names);
            Writer {
                java: format!("ListListWriter<{java}>"),
                new: format!("new ListListWriter<>(() -> {new})"),
            }
        }
        FieldKind::Value(_) => {
            // Lists of values have a writer each. Only the width and the scale are its parameters.
            let List { java, new } = of(items, names);
            let parameters = new.split_once(", ").map_or(")", |(_, parameters)| parameters);
            Writer { new: format!("new {java}Writer({parameters}"), java: format!("{java}Writer") }
        }
    }
}
