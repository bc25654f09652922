//! The columns of a result, as the statement declares them:
//!
//! ```json
//! {"_id": "string", "total": "decimal(18,2)", "tags": ["string"], "at": {"x": "float64"}}
//! ```

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::columns::{COLUMNS_MAX, Column, DEPTH_MAX, Kind, NAME_BYTES_MAX, STRUCT_FIELDS_MAX};
use crate::decimal::PRECISION_MAX;

const TYPES: &str = "string, boolean, int32, int64, float64, decimal(P,S), timestamp, objectid, \
                     binary, uuid, json, [TYPE] for a list, {\"FIELD\": TYPE, …} for a struct";

/// A type in a statement.
#[derive(Debug)]
pub(crate) enum Declared {
    Name(String),
    List(Vec<Declared>),
    Struct(Vec<(String, Declared)>),
}

/// The columns, in the order in which they are declared.
///
/// # Errors
/// A clause that names the column, if a type is not known or too much is declared.
pub(crate) fn columns(declared: Declared) -> Result<Vec<Column>, String> {
    let Declared::Struct(fields) = declared else {
        return Err("it has to be an object of columns".to_owned());
    };
    if fields.len() > COLUMNS_MAX {
        return Err(format!("it has over {COLUMNS_MAX} columns"));
    }
    let column = |(name, declared): (String, Declared)| {
        let kind = kind(declared, 0).map_err(|what| format!("column {name:?}: {what}"))?;
        check_name(&name).map(|()| Column { name, kind })
    };
    fields.into_iter().map(column).collect()
}

fn kind(declared: Declared, depth: usize) -> Result<Kind, String> {
    if depth > DEPTH_MAX {
        return Err(format!("it is nested deeper than {DEPTH_MAX} levels; declare it as json"));
    }
    match declared {
        Declared::Name(name) => named(&name),
        Declared::List(items) => {
            let [item] = <[_; 1]>::try_from(items)
                .map_err(|items| format!("a list has one type, not {}", items.len()))?;
            Ok(Kind::List(Box::new(kind(item, depth + 1)?)))
        }
        Declared::Struct(fields) if (1..=STRUCT_FIELDS_MAX).contains(&fields.len()) => {
            let field = |(name, declared): (String, Declared)| {
                let kind = kind(declared, depth + 1).map_err(|what| format!("{name:?}: {what}"))?;
                check_name(&name).map(|()| (name, kind))
            };
            fields.into_iter().map(field).collect::<Result<_, _>>().map(Kind::Struct)
        }
        Declared::Struct(fields) => Err(format!(
            "a struct has 1 to {STRUCT_FIELDS_MAX} fields, not {}; declare it as json",
            fields.len()
        )),
    }
}

fn named(name: &str) -> Result<Kind, String> {
    Ok(match name {
        "string" => Kind::String,
        "boolean" => Kind::Boolean,
        "int32" => Kind::Int32,
        "int64" => Kind::Int64,
        "float64" => Kind::Float64,
        "timestamp" => Kind::Timestamp,
        "objectid" => Kind::ObjectId,
        "binary" => Kind::Binary(None),
        "uuid" => Kind::Uuid,
        "json" => Kind::Json,
        _ => decimal(name).ok_or_else(|| format!("{name:?} is no type, expected {TYPES}"))?,
    })
}

/// `decimal(18,2)`.
fn decimal(name: &str) -> Option<Kind> {
    let inner = name.strip_prefix("decimal(")?.strip_suffix(')')?;
    let (precision, scale) = inner.split_once(',')?;
    let (precision, scale) = (precision.trim().parse().ok()?, scale.trim().parse().ok()?);
    let is_valid = (1..=PRECISION_MAX).contains(&precision) && scale <= precision;
    is_valid.then_some(Kind::Decimal { precision, scale })
}

/// No name has a byte 0 (types.md section 1), nor has a field of BSON.
fn check_name(name: &str) -> Result<(), String> {
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("a name has {} bytes, at most {NAME_BYTES_MAX} can be", name.len()));
    }
    if name.contains('\0') {
        return Err(format!("{name:?} has a character NUL, which no field has"));
    }
    Ok(())
}

impl<'de> Deserialize<'de> for Declared {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Types;

        impl<'de> Visitor<'de> for Types {
            type Value = Declared;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a type: ")?;
                f.write_str(TYPES)
            }

            fn visit_str<E>(self, name: &str) -> Result<Declared, E> {
                Ok(Declared::Name(name.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Declared, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                Ok(Declared::List(list))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Declared, A::Error> {
                let mut fields = Vec::new();
                while let Some(member) = members.next_entry()? {
                    fields.push(member);
                }
                Ok(Declared::Struct(fields))
            }
        }

        deserializer.deserialize_any(Types)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<Column>, String> {
        columns(serde_json::from_str(text).unwrap())
    }

    #[test]
    fn columns_keep_their_order() {
        let text = r#"{"z": "int64", "a": ["string"], "m": {"y": "json", "x": "decimal(18, 2)"}}"#;
        let decimal = Kind::Decimal { precision: 18, scale: 2 };
        let fields = vec![("y".to_owned(), Kind::Json), ("x".to_owned(), decimal)];
        let kinds = [
            ("z", Kind::Int64),
            ("a", Kind::List(Box::new(Kind::String))),
            ("m", Kind::Struct(fields)),
        ];
        let expected = kinds.map(|(name, kind)| Column { name: name.to_owned(), kind });
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn what_is_no_type_is_named() {
        for (text, what) in [
            (r#"["int64"]"#, "an object of columns"),
            (r#"{"a": "text"}"#, "column \"a\": \"text\" is no type, expected string, boolean"),
            (r#"{"a": "decimal(39,2)"}"#, "is no type"),
            (r#"{"a": "decimal(5,6)"}"#, "is no type"),
            (r#"{"a": []}"#, "a list has one type, not 0"),
            (r#"{"a": {}}"#, "a struct has 1 to 100 fields, not 0"),
            (r#"{"a": {"b": "x"}}"#, "column \"a\": \"b\": \"x\" is no type"),
            (r#"{"a": [[[[[[[[[["int64"]]]]]]]]]]}"#, "nested deeper than 8 levels"),
            (r#"{"a\u0000": "int64"}"#, "a character NUL"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
        assert!(serde_json::from_str::<Declared>("1").is_err());
    }
}
