//! Schemas and values as the JSON of `spec/vectors/README.md`.

#![allow(dead_code, reason = "not every test needs all of it")]

use dray_format::{Column, Field, Type, Unit, Values};
use serde_json::{Value, json};

/// A field as `spec/vectors/README.md` describes it.
pub fn field(field: &Field) -> Value {
    let mut out = data_type(&field.data_type);
    out["name"] = json!(field.name);
    out["nullable"] = json!(field.nullable);
    if !field.metadata.is_empty() {
        out["metadata"] = json!(field.metadata);
    }
    out
}

pub fn data_type(data_type: &Type) -> Value {
    let children =
        |children: &[&Field]| children.iter().map(|child| field(child)).collect::<Vec<_>>();
    let unit_name = |unit: &Unit| ["s", "ms", "us", "ns"][*unit as usize];
    let with_unit = |name: &str, unit: &Unit| json!({"type": name, "unit": unit_name(unit)});
    match data_type {
        Type::Decimal32 { precision, scale } => decimal("decimal32", precision, scale),
        Type::Decimal64 { precision, scale } => decimal("decimal64", precision, scale),
        Type::Decimal128 { precision, scale } => decimal("decimal128", precision, scale),
        Type::Decimal256 { precision, scale } => decimal("decimal256", precision, scale),
        Type::Time32(unit) => with_unit("time32", unit),
        Type::Time64(unit) => with_unit("time64", unit),
        Type::Duration(unit) => with_unit("duration", unit),
        Type::Timestamp { unit, zone } => {
            let mut out = with_unit("timestamp", unit);
            out["zone"] = json!(zone.as_deref().unwrap_or(""));
            out
        }
        Type::IntervalMonths => json!({"type": "interval_months"}),
        Type::IntervalDayTime => json!({"type": "interval_day_time"}),
        Type::IntervalMonthDayNano => json!({"type": "interval_month_day_nano"}),
        Type::FixedBinary(width) => json!({"type": "fixed_binary", "width": width}),
        Type::List(item) => json!({"type": "list", "children": children(&[item])}),
        Type::FixedList { size, item } => {
            json!({"type": "fixed_list", "size": size, "children": children(&[item])})
        }
        Type::Struct(fields) => {
            json!({"type": "struct", "children": fields.iter().map(field).collect::<Vec<_>>()})
        }
        Type::Map { sorted, key, value } => {
            json!({"type": "map", "sorted": sorted, "children": children(&[key, value])})
        }
        Type::Dictionary { index, ordered, value } => {
            let (index, values) = (name(index), self::data_type(value));
            json!({"type": "dictionary", "index": index, "ordered": ordered, "values": values})
        }
        flat => json!({"type": name(flat)}),
    }
}

fn decimal(name: &str, precision: &u8, scale: &i8) -> Value {
    json!({"type": name, "precision": precision, "scale": scale})
}

fn name(data_type: &Type) -> String {
    format!("{data_type:?}").to_lowercase()
}

pub fn values(column: &Column, data_type: &Type) -> Value {
    Value::Array((0..column.rows).map(|i| value(column, data_type, i)).collect())
}

pub fn value(column: &Column, data_type: &Type, i: usize) -> Value {
    if !column.is_valid(i) {
        return Value::Null;
    }
    let range = |offsets: &[u8]| {
        let offset =
            |i: usize| u32::from_le_bytes(offsets[i * 4..][..4].try_into().unwrap()) as usize;
        offset(i)..offset(i + 1)
    };
    match (&column.values, data_type) {
        (Values::Boolean(bits), _) => json!(bits.bit(i)),
        (Values::Fixed { width, bytes }, _) => scalar(&bytes[i * width..][..*width], data_type),
        (Values::Bytes { offsets, data }, Type::Utf8) => {
            json!(str::from_utf8(&data[range(offsets)]).unwrap())
        }
        (Values::Bytes { offsets, data }, _) => json!(hex(&data[range(offsets)])),
        (Values::List { offsets, child }, Type::List(item)) => {
            range(offsets).map(|i| value(child, &item.data_type, i)).collect()
        }
        (Values::List { offsets, child }, Type::Map { key, value: item, .. }) => {
            let Values::Struct(children) = &child.values else {
                panic!("a map's child is not a struct")
            };
            let entry = |i| {
                json!([
                    value(&children[0], &key.data_type, i),
                    value(&children[1], &item.data_type, i)
                ])
            };
            range(offsets).map(entry).collect()
        }
        (Values::FixedList { size, child }, Type::FixedList { item, .. }) => {
            (i * size..(i + 1) * size).map(|i| value(child, &item.data_type, i)).collect()
        }
        (Values::Struct(children), Type::Struct(fields)) => children
            .iter()
            .zip(fields)
            .map(|(child, field)| value(child, &field.data_type, i))
            .collect(),
        (Values::Dictionary { width, indexes, entries }, Type::Dictionary { value: entry, .. }) => {
            value(entries, entry, unsigned(&indexes[i * width..][..*width]) as usize)
        }
        other => panic!("values that do not fit their type: {other:?}"),
    }
}

pub fn scalar(raw: &[u8], data_type: &Type) -> Value {
    use Type::*;
    match data_type {
        FixedBinary(_) => json!(hex(raw)),
        Float16 | Float32 | Float64 => json!(hex(&raw.iter().rev().copied().collect::<Vec<_>>())),
        IntervalDayTime => json!([signed(&raw[..4]), signed(&raw[4..])]),
        IntervalMonthDayNano => json!([signed(&raw[..4]), signed(&raw[4..8]), signed(&raw[8..])]),
        UInt8 | UInt16 | UInt32 | UInt64 => match unsigned(raw) {
            small @ 0..=0x20_0000_0000_0000 => json!(small),
            large => json!(large.to_string()),
        },
        _ => signed(raw),
    }
}

fn unsigned(raw: &[u8]) -> u64 {
    let mut wide = [0; 8];
    wide[..raw.len()].copy_from_slice(raw);
    u64::from_le_bytes(wide)
}

/// A two's complement number: beyond ±2⁵³ as a string.
fn signed(raw: &[u8]) -> Value {
    let mut wide = [if raw[raw.len() - 1] & 0x80 == 0 { 0 } else { 0xFF }; 32];
    wide[..raw.len()].copy_from_slice(raw);
    let number = arrow_buffer::i256::from_le_bytes(wide);
    match number.to_i128().filter(|number| number.unsigned_abs() <= 1 << 53) {
        Some(small) => json!(i64::try_from(small).unwrap()),
        None => json!(number.to_string()),
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
