//! Values of BSON into columns: exactly, or not at all.

use dray_format::ColumnBuilder;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::raw::{RawArray, RawBsonRef, RawDocument};
use mongodb::bson::spec::BinarySubtype;

use crate::columns::{DEPTH_MAX, Kind};
use crate::decimal::Number;
use crate::error::{End, Malformed};
use crate::extended_json::{Form, write};

/// The doubles from -2⁶³ up to, but not, 2⁶³.
const INT64_DOUBLES: std::ops::Range<f64> =
    -9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0;
/// The bytes of a UUID.
const UUID_BYTES: usize = 16;

/// A value as a column has it.
enum Value<'a> {
    Boolean(bool),
    Int32(i32),
    Int64(i64),
    Float64(f64),
    Decimal(i128),
    Uuid([u8; UUID_BYTES]),
    Bytes(&'a [u8]),
    ObjectId(ObjectId),
    Json,
    List(&'a RawArray),
    Struct(&'a RawDocument),
}

/// Whether a column of this kind holds the value exactly.
///
/// # Errors
/// If a nested value is malformed.
pub(crate) fn fits(kind: &Kind, value: RawBsonRef<'_>) -> Result<bool, Malformed> {
    fits_nested(kind, value, 0)
}

fn fits_nested(kind: &Kind, value: RawBsonRef<'_>, depth: usize) -> Result<bool, Malformed> {
    if matches!(value, RawBsonRef::Null) {
        return Ok(true);
    }
    match (kind, convert(kind, value)) {
        (_, None) => Ok(false),
        // A column's kind is not nested deeper, so this only tells the recursion's end.
        (Kind::List(_) | Kind::Struct(_), _) if depth > DEPTH_MAX => Ok(false),
        (Kind::List(item), Some(Value::List(array))) => {
            for value in array {
                if !fits_nested(item, value?, depth + 1)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Kind::Struct(fields), Some(Value::Struct(document))) => {
            let mut found = vec![false; fields.len()];
            for element in document {
                let (name, value) = element?;
                let place = fields.iter().position(|(known, _)| known == name.as_str());
                let Some((is_found, (_, kind))) =
                    place.and_then(|place| found.get_mut(place).zip(fields.get(place)))
                else {
                    return Ok(false);
                };
                // A name that occurs twice fits no struct.
                if std::mem::replace(is_found, true) || !fits_nested(kind, value, depth + 1)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        _ => Ok(true),
    }
}

/// Appends a value that [fits](fits). `scratch` holds text on its way.
///
/// # Errors
/// If a limit is exceeded, or the value does not fit.
pub(crate) fn push(
    column: &mut ColumnBuilder,
    kind: &Kind,
    value: RawBsonRef<'_>,
    scratch: &mut String,
) -> Result<(), Failure> {
    if matches!(value, RawBsonRef::Null) {
        return Ok(column.push_null()?);
    }
    match (kind, convert(kind, value)) {
        (_, Some(Value::Boolean(value))) => column.push_boolean(value)?,
        (_, Some(Value::Int32(value))) => column.push_fixed(value.to_le_bytes())?,
        (_, Some(Value::Int64(value))) => column.push_fixed(value.to_le_bytes())?,
        (_, Some(Value::Float64(value))) => column.push_fixed(value.to_le_bytes())?,
        (_, Some(Value::Decimal(value))) => column.push_fixed(value.to_le_bytes())?,
        (_, Some(Value::Uuid(bytes))) => column.push_fixed(bytes)?,
        (_, Some(Value::Bytes(bytes))) => column.push_bytes(bytes)?,
        (_, Some(Value::ObjectId(id))) => column.push_bytes(id.to_hex().as_bytes())?,
        (_, Some(Value::Json)) => {
            scratch.clear();
            write(value, Form::Relaxed, scratch)?;
            column.push_bytes(scratch.as_bytes())?;
        }
        (Kind::List(item), Some(Value::List(array))) => {
            for value in array {
                push(column.item()?, item, value?, scratch)?;
            }
            column.close_list()?;
        }
        (Kind::Struct(fields), Some(Value::Struct(document))) => {
            for ((name, kind), column) in fields.iter().zip(column.fields()?) {
                match document.get(name)? {
                    Some(value) => push(column, kind, value, scratch)?,
                    None => column.push_null()?,
                }
            }
            column.close_struct()?;
        }
        _ => return Err(Failure::Malformed(Malformed("a value does not fit".to_owned()))),
    }
    Ok(())
}

/// Why a value was not appended.
pub(crate) enum Failure {
    Malformed(Malformed),
    Builder(dray_format::Error),
}

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl From<mongodb::bson::error::Error> for Failure {
    fn from(error: mongodb::bson::error::Error) -> Self {
        Self::Malformed(error.into())
    }
}

impl From<dray_format::Error> for Failure {
    fn from(error: dray_format::Error) -> Self {
        Self::Builder(error)
    }
}

impl Failure {
    /// The error of the statement. `document` names the document.
    pub(crate) fn end(self, document: impl FnOnce() -> String) -> End {
        match self {
            Self::Malformed(Malformed(what)) => {
                let message = format!("{} can't be read: {what}", document());
                dray_driver::failed("", message).into()
            }
            Self::Builder(error) => error.into(),
        }
    }
}

/// The value as a column of this kind has it; None if it does not fit. Items and fields of nested
/// values are not looked at.
fn convert<'a>(kind: &Kind, value: RawBsonRef<'a>) -> Option<Value<'a>> {
    Some(match (kind, value) {
        (Kind::Json, _) => Value::Json,
        (Kind::Boolean, RawBsonRef::Boolean(value)) => Value::Boolean(value),
        (Kind::Int32, _) => Value::Int32(i32::try_from(whole(value)?).ok()?),
        (Kind::Int64, _) => Value::Int64(whole(value)?),
        (Kind::Float64, RawBsonRef::Double(value)) => Value::Float64(value),
        (Kind::Float64, RawBsonRef::Int32(value)) => Value::Float64(f64::from(value)),
        (Kind::Float64, RawBsonRef::Int64(value)) => Value::Float64(exact_double(value)?),
        (Kind::Decimal { precision, scale }, _) => {
            Value::Decimal(number(value)?.scaled(*precision, *scale)?)
        }
        (Kind::Timestamp, RawBsonRef::DateTime(date)) => Value::Int64(date.timestamp_millis()),
        (Kind::String, RawBsonRef::String(text)) => Value::Bytes(text.as_bytes()),
        (Kind::String | Kind::ObjectId, RawBsonRef::ObjectId(id)) => Value::ObjectId(id),
        (Kind::Uuid, RawBsonRef::Binary(binary)) if binary.subtype == BinarySubtype::Uuid => {
            Value::Uuid(binary.bytes.try_into().ok()?)
        }
        (Kind::Binary(subtype), RawBsonRef::Binary(binary))
            if subtype.is_none_or(|subtype| subtype == u8::from(binary.subtype)) =>
        {
            Value::Bytes(binary.bytes)
        }
        (Kind::List(_), RawBsonRef::Array(array)) => Value::List(array),
        (Kind::Struct(_), RawBsonRef::Document(document)) => Value::Struct(document),
        _ => return None,
    })
}

/// A number that is whole, also where it is a double, as JavaScript has them.
fn whole(value: RawBsonRef<'_>) -> Option<i64> {
    match value {
        RawBsonRef::Int32(value) => Some(value.into()),
        RawBsonRef::Int64(value) => Some(value),
        RawBsonRef::Double(value) => {
            let is_whole = value.fract() == 0.0 && INT64_DOUBLES.contains(&value);
            let is_negative_zero = value == 0.0 && value.is_sign_negative();
            #[allow(clippy::cast_possible_truncation, reason = "it is whole and in range")]
            (is_whole && !is_negative_zero).then_some(value as i64)
        }
        _ => None,
    }
}

/// An integer as a double, unless that rounds.
pub(crate) fn exact_double(value: i64) -> Option<f64> {
    #[allow(clippy::cast_precision_loss, reason = "this is what is checked")]
    let double = value as f64;
    (whole(RawBsonRef::Double(double)) == Some(value)).then_some(double)
}

/// A decimal or an integer; None for NaN and infinities.
pub(crate) fn number(value: RawBsonRef<'_>) -> Option<Number> {
    match value {
        RawBsonRef::Decimal128(value) => Number::of(&value),
        RawBsonRef::Int32(value) => Some(Number::whole(value.into())),
        RawBsonRef::Int64(value) => Some(Number::whole(value)),
        _ => None,
    }
}
