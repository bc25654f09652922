//! The column of each type (`spec/types.md` section 9).

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, TimeUnit};

use crate::error::{Error, Result};

/// The metadata key for the type's name, if the column's own type does not tell it.
pub(crate) const TYPE_KEY: &str = "dray:hive:type";
/// The most digits of a decimal.
const DIGITS_MAX: u8 = 38;
/// What Hive means by `decimal` alone.
const DIGITS: i32 = 10;

/// A type as the server names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TypeId {
    pub(crate) code: i32,
    pub(crate) precision: Option<i32>,
    pub(crate) scale: Option<i32>,
}

impl TypeId {
    pub(crate) fn new(code: i32) -> Self {
        Self { code, precision: None, scale: None }
    }
}

/// How to read the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decode {
    /// Only NULL.
    Null,
    Bool,
    I8,
    I16,
    I32,
    I64,
    /// Comes as a double.
    Float,
    Double,
    Text,
    Binary,
    /// The others come as text.
    Decimal {
        precision: u8,
        scale: u8,
    },
    Date,
    Timestamp,
    /// With the name of its zone behind it, which must be UTC.
    TimestampUtc,
}

/// A column of a result.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) field: FieldRef,
    pub(crate) decode: Decode,
}

impl Column {
    /// The column with this name and type.
    ///
    /// # Errors
    /// If the type is not known here.
    pub(crate) fn new(name: String, declared: TypeId) -> Result<Self> {
        let (decode, named) = match declared.code {
            0 => (Decode::Bool, ""),
            1 => (Decode::I8, ""),
            2 => (Decode::I16, ""),
            3 => (Decode::I32, ""),
            4 => (Decode::I64, ""),
            5 => (Decode::Float, ""),
            6 => (Decode::Double, ""),
            // A declared length is part of the type, but not of a value.
            7 | 18 | 19 => (Decode::Text, ""),
            8 => (Decode::Timestamp, ""),
            9 => (Decode::Binary, ""),
            10 => (Decode::Text, "array"),
            11 => (Decode::Text, "map"),
            12 => (Decode::Text, "struct"),
            13 => (Decode::Text, "uniontype"),
            14 => (Decode::Text, "user_defined"),
            15 => (decimal(&name, declared)?, ""),
            16 => (Decode::Null, ""),
            17 => (Decode::Date, ""),
            20 => (Decode::Text, "interval_year_month"),
            21 => (Decode::Text, "interval_day_time"),
            22 => (Decode::TimestampUtc, ""),
            code => {
                return Err(Error::Value {
                    message: format!("column {name:?} has the type {code}, which is not known"),
                    hint: "cast it to STRING",
                });
            }
        };
        let data_type = match decode {
            Decode::Null => DataType::Null,
            Decode::Bool => DataType::Boolean,
            Decode::I8 => DataType::Int8,
            Decode::I16 => DataType::Int16,
            Decode::I32 => DataType::Int32,
            Decode::I64 => DataType::Int64,
            Decode::Float => DataType::Float32,
            Decode::Double => DataType::Float64,
            Decode::Text => DataType::Utf8,
            Decode::Binary => DataType::Binary,
            Decode::Decimal { precision, scale } => {
                DataType::Decimal128(precision, scale.cast_signed())
            }
            Decode::Date => DataType::Date32,
            Decode::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Decode::TimestampUtc => {
                DataType::Timestamp(TimeUnit::Microsecond, Some(Arc::from("UTC")))
            }
        };
        let mut field = Field::new(name, data_type, true);
        if !named.is_empty() {
            field.set_metadata(HashMap::from([(TYPE_KEY.to_owned(), named.to_owned())]));
        }
        Ok(Self { field: Arc::new(field), decode })
    }

    /// The error of a value that does not fit. `row` is counted from 1.
    pub(crate) fn unfit(&self, row: u64, value: &[u8], what: &str, hint: &'static str) -> Error {
        const SHOWN_BYTES: usize = 100;
        let shown = value.get(..SHOWN_BYTES).unwrap_or(value).escape_ascii();
        let message = format!("column {:?}, row {row}: {shown} {what}", self.field.name());
        Error::Value { message, hint }
    }
}

fn decimal(name: &str, declared: TypeId) -> Result<Decode> {
    let (precision, scale) = match (declared.precision, declared.scale) {
        (Some(precision), scale) => (precision, scale.unwrap_or(0)),
        (None, scale) => (DIGITS, scale.unwrap_or(0)),
    };
    match (u8::try_from(precision), u8::try_from(scale)) {
        (Ok(precision @ 1..=DIGITS_MAX), Ok(scale)) if scale <= precision => {
            Ok(Decode::Decimal { precision, scale })
        }
        _ => Err(Error::Value {
            message: format!("column {name:?} is a decimal({precision},{scale})"),
            hint: "cast it to one of at most 38 digits",
        }),
    }
}
