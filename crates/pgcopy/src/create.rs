//! The types of a table that is created for Arrow data.

use arrow::datatypes::{DataType, Field};
use dray_pgtypes::TYPE_KEY;

use crate::error::{Error, Result};
use crate::select::{is_json, is_uuid};

/// Types of results that no column can have.
const PSEUDO_TYPES: [&str; 6] = ["anyarray", "cstring", "cstring[]", "record", "record[]", "void"];

/// PostgreSQL's name of the type that data came from, if its field names it and a column of that
/// type takes such data.
pub fn named_type(field: &Field) -> Option<String> {
    use DataType::*;
    let named = field.metadata().get(TYPE_KEY).map(String::as_str);
    match (named.filter(|name| !PSEUDO_TYPES.contains(name)), field.data_type()) {
        // It was read with numeric="float64".
        (Some("numeric"), Float64) => None,
        // Without a length it is one bit.
        (Some("bit"), _) => Some("bit varying".to_owned()),
        (Some(name), _) => Some(name.to_owned()),
        (None, List(item) | LargeList(item) | ListView(item) | LargeListView(item))
        | (None, FixedSizeList(item, _)) => {
            let item = named_type(item).filter(|name| !name.ends_with(']'))?;
            Some(format!("{item}[]"))
        }
        (None, _) => None,
    }
}

/// The type for a column of this data (`spec/types.md` section 4). [`named_type`] comes before it.
///
/// # Errors
/// When there is none.
pub fn create_type(field: &Field) -> Result<String> {
    scalar(field.data_type(), field)
        .map(|name| name.unwrap_or_else(|| "jsonb".to_owned()))
        .ok_or_else(|| Error::Type {
            column: field.name().clone(),
            what: format!("PostgreSQL has no type for Arrow's {}", field.data_type()),
            hint: "cast it, or name a type for it in types=".to_owned(),
        })
}

/// The type's name; `Some(None)` for nested data that becomes JSON.
fn scalar(data_type: &DataType, field: &Field) -> Option<Option<String>> {
    use DataType::*;
    let name = match data_type {
        Boolean => "boolean",
        Int8 | Int16 | UInt8 => "smallint",
        Int32 | UInt16 => "integer",
        Int64 | UInt32 => "bigint",
        UInt64 => "numeric(20,0)",
        Float16 | Float32 => "real",
        Float64 => "double precision",
        // Unlike jsonb, json keeps the text as it is.
        Utf8 | LargeUtf8 | Utf8View if is_json(field) => "json",
        Null | Utf8 | LargeUtf8 | Utf8View => "text",
        FixedSizeBinary(16) if is_uuid(field) => "uuid",
        Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => "bytea",
        Date32 | Date64 => "date",
        Time32(_) | Time64(_) => "time without time zone",
        Timestamp(_, None) => "timestamp without time zone",
        Timestamp(_, Some(_)) => "timestamp with time zone",
        Duration(_) | Interval(_) => "interval",
        Decimal32(precision, scale)
        | Decimal64(precision, scale)
        | Decimal128(precision, scale)
        | Decimal256(precision, scale) => {
            let (precision, scale) = (i32::from(*precision), i32::from(*scale));
            // Before version 15 the scale is from 0 to the precision.
            return Some(Some(match scale {
                ..0 => format!("numeric({},0)", precision - scale),
                0.. => format!("numeric({},{scale})", precision.max(scale)),
            }));
        }
        Dictionary(_, values) => return scalar(values, field),
        RunEndEncoded(_, values) => return scalar(values.data_type(), values),
        List(item)
        | LargeList(item)
        | ListView(item)
        | LargeListView(item)
        | FixedSizeList(item, _) => {
            return Some(match scalar(item.data_type(), item)? {
                Some(name) if !name.ends_with(']') => Some(format!("{name}[]")),
                _ => None,
            });
        }
        Struct(fields) => {
            let known = fields.iter().all(|field| scalar(field.data_type(), field).is_some());
            return known.then_some(None);
        }
        Map(entries, _) => return scalar(entries.data_type(), entries).map(|_| None),
        _ => return None,
    };
    Some(Some(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn named(data_type: DataType, name: &str) -> Field {
        Field::new("v", data_type, true)
            .with_metadata([(TYPE_KEY.to_owned(), name.to_owned())].into())
    }

    #[test]
    fn names_that_data_came_with() {
        let list = |item: Field| DataType::List(Arc::new(item));
        let plain = |data_type| Field::new("v", data_type, true);
        for (field, expected) in [
            (named(DataType::Utf8, "numeric"), Some("numeric")),
            (plain(list(named(DataType::Utf8, "numeric"))), Some("numeric[]")),
            (named(DataType::Utf8, "bit"), Some("bit varying")),
            (named(DataType::Float64, "numeric"), None),
            (plain(list(named(DataType::Float64, "numeric"))), None),
            (named(DataType::Utf8, "record"), None),
            (named(list(named(DataType::Utf8, "record")), "record[]"), None),
            (plain(DataType::Int32), None),
        ] {
            assert_eq!(named_type(&field).as_deref(), expected, "{field}");
        }
    }
}
