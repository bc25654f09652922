//! Columns of a result, and which values they hold.

use dray_format::{Field, Schema, Type, Unit};

/// The column of what fits no other column.
pub(crate) const REST: &str = "_rest";
/// The most columns beside [`REST`].
pub(crate) const COLUMNS_MAX: usize = 1000;
/// The longest name of a column, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 1024;
/// The most fields of a struct.
pub(crate) const STRUCT_FIELDS_MAX: usize = 100;
/// The deepest nesting of lists and structs; what is deeper is JSON.
pub(crate) const DEPTH_MAX: usize = 8;
/// The metadata that names BSON's type, where the column's own type does not identify it.
const TYPE_KEY: &str = "dray:mongodb:type";
const EXTENSION_KEY: &str = "ARROW:extension:name";

/// What the values of a column are (types.md section 7).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Boolean,
    Int32,
    Int64,
    Float64,
    Decimal {
        precision: u8,
        scale: u8,
    },
    /// Milliseconds, in UTC.
    Timestamp,
    /// Strings, and object ids as 24 hexadecimal digits.
    String,
    /// Only object ids, as text.
    ObjectId,
    Uuid,
    /// Of this subtype, or of any.
    Binary(Option<u8>),
    /// Any value, as relaxed Extended JSON.
    Json,
    List(Box<Kind>),
    Struct(Vec<(String, Kind)>),
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// The schema of these columns, with [`REST`] behind them if there is one.
pub(crate) fn schema(columns: &[Column], has_rest: bool) -> Schema {
    let mut fields: Vec<_> =
        columns.iter().map(|column| field(&column.name, &column.kind)).collect();
    if has_rest {
        fields.push(field(REST, &Kind::Json));
    }
    Schema { fields }
}

fn field(name: &str, kind: &Kind) -> Field {
    let pair = |key: &str, value: String| vec![(key.to_owned(), value)];
    let metadata = match kind {
        Kind::ObjectId => pair(TYPE_KEY, "objectId".to_owned()),
        Kind::Binary(Some(subtype)) => pair(TYPE_KEY, format!("binData({subtype})")),
        Kind::Uuid => pair(EXTENSION_KEY, "arrow.uuid".to_owned()),
        Kind::Json => pair(EXTENSION_KEY, "arrow.json".to_owned()),
        _ => Vec::new(),
    };
    Field { name: name.to_owned(), data_type: data_type(kind), nullable: true, metadata }
}

fn data_type(kind: &Kind) -> Type {
    match kind {
        Kind::Boolean => Type::Boolean,
        Kind::Int32 => Type::Int32,
        Kind::Int64 => Type::Int64,
        Kind::Float64 => Type::Float64,
        Kind::Decimal { precision, scale } => {
            Type::Decimal128 { precision: *precision, scale: scale.cast_signed() }
        }
        Kind::Timestamp => {
            Type::Timestamp { unit: Unit::Millisecond, zone: Some("UTC".to_owned()) }
        }
        Kind::String | Kind::ObjectId | Kind::Json => Type::Utf8,
        Kind::Uuid => Type::FixedBinary(16),
        Kind::Binary(_) => Type::Binary,
        Kind::List(item) => Type::List(Box::new(field("item", item))),
        Kind::Struct(fields) => {
            Type::Struct(fields.iter().map(|(name, kind)| field(name, kind)).collect())
        }
    }
}
