//! Objects as the values of `spec/vectors/README.md`.

use dray_format::{Field, Type};
use dray_page::{Object, Value as PageValue};
use serde_json::{Value, json};

use crate::words::{self, scalar};

/// The values of an object.
pub fn row(object: Object<'_>, fields: &[Field]) -> Value {
    let values = object.fields().iter().zip(fields);
    values.map(|(value, field)| in_place(value, &field.data_type)).collect()
}

/// A value of a page, as `spec/vectors/README.md` describes it.
fn in_place(value: PageValue<'_>, data_type: &Type) -> Value {
    if value.is_missing() {
        return Value::Null;
    }
    let items = |item: &Type| {
        value.list().unwrap().iter().map(|value| in_place(value, item)).collect::<Value>()
    };
    match data_type {
        Type::Boolean => json!(value.bool().unwrap()),
        Type::Utf8 => json!(value.str().unwrap()),
        Type::Binary => json!(words::hex(value.bytes().unwrap())),
        Type::List(item) | Type::FixedList { item, .. } => items(&item.data_type),
        Type::Map { key, value, .. } => {
            items(&Type::Struct(vec![(**key).clone(), (**value).clone()]))
        }
        Type::Struct(fields) => {
            let values = value.fields().unwrap().iter().zip(fields);
            values.map(|(value, field)| in_place(value, &field.data_type)).collect()
        }
        Type::Dictionary { value: entry, .. } => in_place(value, entry),
        fixed => {
            let raw = value.fixed().unwrap();
            // The typed accessors see the same bytes.
            let typed = [
                value.u8().map(|n| n.to_le_bytes().to_vec()),
                value.i16().map(|n| n.to_le_bytes().to_vec()),
                value.f32().map(|n| n.to_le_bytes().to_vec()),
                value.i64().map(|n| n.to_le_bytes().to_vec()),
                value.i128().map(|n| n.to_le_bytes().to_vec()),
            ];
            assert!(typed.into_iter().flatten().all(|typed| typed == raw), "{fixed:?}");
            scalar(raw, fixed)
        }
    }
}
