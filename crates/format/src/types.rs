//! Schemas and types: `spec/types.md`.

mod codec;

/// The largest schema, in bytes (types.md section 1).
pub const SCHEMA_BYTES_MAX: usize = 16 << 20;
/// The most fields of a schema, children counted (types.md section 1).
pub const FIELDS_MAX: usize = 1 << 16;
/// The most pairs of metadata in a schema (types.md section 1).
pub const METADATA_PAIRS_MAX: usize = 1 << 18;
/// The deepest nesting of types (types.md section 1).
pub const DEPTH_MAX: usize = 32;
/// The widest fixed-size binary (types.md section 2).
pub const FIXED_BINARY_MAX: u32 = 1 << 24;

/// The columns of a result.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schema {
    /// A field per column.
    pub fields: Vec<Field>,
}

/// A column, or the child of a nested one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Field {
    /// Its name; names may repeat.
    pub name: String,
    /// The type of its values.
    pub data_type: Type,
    /// Whether values may be missing.
    pub nullable: bool,
    /// Pairs of key and value. Extension types are in the metadata.
    pub metadata: Vec<(String, String)>,
}

/// The unit of a time, a timestamp or a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Unit {
    /// Seconds.
    Second = 0,
    /// Milliseconds.
    Millisecond = 1,
    /// Microseconds.
    Microsecond = 2,
    /// Nanoseconds.
    Nanosecond = 3,
}

/// A logical type (types.md section 2).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "types.md section 2 describes each")]
pub enum Type {
    Null,
    Boolean,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Float16,
    Float32,
    Float64,
    Decimal32 { precision: u8, scale: i8 },
    Decimal64 { precision: u8, scale: i8 },
    Decimal128 { precision: u8, scale: i8 },
    Decimal256 { precision: u8, scale: i8 },
    Date32,
    Date64,
    Time32(Unit),
    Time64(Unit),
    Timestamp { unit: Unit, zone: Option<String> },
    Duration(Unit),
    IntervalMonths,
    IntervalDayTime,
    IntervalMonthDayNano,
    Utf8,
    Binary,
    FixedBinary(u32),
    List(Box<Field>),
    FixedList { size: u32, item: Box<Field> },
    Struct(Vec<Field>),
    Map { sorted: bool, key: Box<Field>, value: Box<Field> },
    Dictionary { index: Box<Type>, ordered: bool, value: Box<Type> },
}

/// How the values of a type are stored, whatever they mean: the classes of encodings.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    Null,
    Boolean,
    Fixed(usize),
    Bytes { utf8: bool },
    List,
    FixedList(usize),
    Struct,
    Map,
    Dictionary,
}

impl Type {
    /// The width in bytes of types that have one.
    pub fn width(&self) -> Option<usize> {
        match self.storage() {
            Storage::Fixed(width) => Some(width),
            _ => None,
        }
    }

    /// Whether values take no bytes, however many they are. A few bytes of a chunk can declare
    /// billions.
    pub(crate) fn is_weightless(&self) -> bool {
        match self {
            Self::Null => true,
            Self::FixedList { size, item } => *size == 0 || item.data_type.is_weightless(),
            Self::Struct(fields) => fields.iter().all(|field| field.data_type.is_weightless()),
            _ => false,
        }
    }

    /// The entries of a dictionary of this type, as a field: an entry may be missing.
    pub(crate) fn entries_field(&self) -> Field {
        let (name, data_type) = ("entries".into(), self.clone());
        Field { name, data_type, nullable: true, metadata: Vec::new() }
    }

    pub(crate) fn storage(&self) -> Storage {
        use Type::*;
        match self {
            Null => Storage::Null,
            Boolean => Storage::Boolean,
            Int8 | UInt8 => Storage::Fixed(1),
            Int16 | UInt16 | Float16 => Storage::Fixed(2),
            Int32 | UInt32 | Float32 | Decimal32 { .. } | Date32 | Time32(_) | IntervalMonths => {
                Storage::Fixed(4)
            }
            Int64 | UInt64 | Float64 | Decimal64 { .. } | Date64 | Time64(_) => Storage::Fixed(8),
            Timestamp { .. } | Duration(_) | IntervalDayTime => Storage::Fixed(8),
            Decimal128 { .. } | IntervalMonthDayNano => Storage::Fixed(16),
            Decimal256 { .. } => Storage::Fixed(32),
            FixedBinary(width) => Storage::Fixed(*width as usize),
            Utf8 => Storage::Bytes { utf8: true },
            Binary => Storage::Bytes { utf8: false },
            List(_) => Storage::List,
            FixedList { size, .. } => Storage::FixedList(*size as usize),
            Struct(_) => Storage::Struct,
            Map { .. } => Storage::Map,
            Dictionary { .. } => Storage::Dictionary,
        }
    }
}

impl Schema {
    /// The number of columns, including children and the entries of dictionaries.
    pub fn nodes(&self) -> usize {
        self.fields.iter().map(|field| nodes(&field.data_type)).sum()
    }

    /// Whether columns may have values that take no bytes. A chunk has at most
    /// [`WEIGHTLESS_MAX`](crate::WEIGHTLESS_MAX) of them.
    pub fn has_weightless(&self) -> bool {
        self.fields.is_empty() || self.fields.iter().any(|field| has_weightless(&field.data_type))
    }
}

fn has_weightless(data_type: &Type) -> bool {
    match data_type {
        Type::Null | Type::FixedList { size: 0, .. } => true,
        Type::Struct(fields) => {
            fields.is_empty() || fields.iter().any(|field| has_weightless(&field.data_type))
        }
        Type::List(item) | Type::FixedList { item, .. } => has_weightless(&item.data_type),
        Type::Map { key, value, .. } => {
            has_weightless(&key.data_type) || has_weightless(&value.data_type)
        }
        Type::Dictionary { value, .. } => has_weightless(value),
        _ => false,
    }
}

fn nodes(data_type: &Type) -> usize {
    1 + match data_type {
        Type::List(item) | Type::FixedList { item, .. } => nodes(&item.data_type),
        Type::Struct(fields) => fields.iter().map(|field| nodes(&field.data_type)).sum(),
        Type::Map { key, value, .. } => nodes(&key.data_type) + nodes(&value.data_type),
        Type::Dictionary { value, .. } => nodes(value),
        _ => 0,
    }
}
