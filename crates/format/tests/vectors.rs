//! The vectors of `spec/vectors`: what is accepted has the values of its JSON, what is refused is refused by its name.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

use std::fs;
use std::path::{Path, PathBuf};

use arrow_array::{Array, RecordBatch};
use bytes::Bytes;
use dray_format::arrow::{Decoder, StringLayout};
use dray_format::{Batch, Column, Error, Field, Header, Limits, Schema, Tables, Type, Unit, Values, read_with};
use serde_json::{Value, json};

fn vectors(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/vectors").join(folder);
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|kind| kind == "chunk")).collect();
    assert!(!files.is_empty(), "no vectors in {}", folder.display());
    files.sort();
    files
}

fn decode(path: &Path) -> Result<(Schema, Header, Batch, RecordBatch), Error> {
    let file = fs::read(path).unwrap();
    let (schema_bytes, rest) = file.split_first_chunk::<4>().unwrap();
    let (schema, chunk) = rest.split_at(u32::from_le_bytes(*schema_bytes) as usize);
    let schema = Schema::decode(schema)?;
    let (mut chunk, mut tables, limits) = (Bytes::copy_from_slice(chunk), Tables::default(), Limits::default());
    tables.take(&mut chunk, &limits)?;
    let (header, batch) = read_with(&chunk, &schema, &limits, &tables)?;
    let (_, arrow) = Decoder::new(schema.clone(), StringLayout::Offsets).read_with(&chunk, &limits, &tables)?;
    Ok((schema, header, batch, arrow))
}

#[test]
fn accepted() {
    let mut failures = Vec::new();
    for path in vectors("accept") {
        let expected: Value = serde_json::from_slice(&fs::read(path.with_extension("json")).unwrap()).unwrap();
        let name = path.file_stem().unwrap().display();
        let (schema, header, batch, arrow) = match decode(&path) {
            Ok(decoded) => decoded,
            Err(error) => {
                failures.push(format!("{name}: {} ({error})", error.name()));
                continue;
            }
        };
        let columns = batch.columns.iter().zip(&schema.fields).map(|(column, field)| values(column, &field.data_type));
        let found = json!({
            "about": expected["about"],
            "schema": schema.fields.iter().map(field).collect::<Vec<_>>(),
            "sequence": header.sequence,
            "rows": header.rows,
            "decoded_bytes": header.decoded_bytes,
            "columns": columns.collect::<Vec<_>>(),
        });
        if found != expected {
            failures.push(format!("{name}: found {found}, expected {expected}"));
        }
        let mut encoded = Vec::new();
        schema.encode(&mut encoded).unwrap();
        assert_eq!(Schema::decode(&encoded).unwrap(), schema, "{name}");
        for column in arrow.columns() {
            if let Err(error) = column.to_data().validate_full() {
                failures.push(format!("{name}: not a valid Arrow array: {error}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn refused() {
    let mut failures = Vec::new();
    for path in vectors("reject") {
        let file = path.file_stem().unwrap().to_str().unwrap();
        let expected = file.split('-').next().unwrap();
        match decode(&path) {
            Err(error) if error.name() == expected => {}
            Err(error) => failures.push(format!("{file}: refused as {} ({error})", error.name())),
            Ok(_) => failures.push(format!("{file}: accepted")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A field as `spec/vectors/README.md` describes it.
fn field(field: &Field) -> Value {
    let mut out = data_type(&field.data_type);
    out["name"] = json!(field.name);
    out["nullable"] = json!(field.nullable);
    if !field.metadata.is_empty() {
        out["metadata"] = json!(field.metadata);
    }
    out
}

fn data_type(data_type: &Type) -> Value {
    let children = |children: &[&Field]| children.iter().map(|child| field(child)).collect::<Vec<_>>();
    let decimal =
        |name: &str, precision: &u8, scale: &i8| json!({"type": name, "precision": precision, "scale": scale});
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
        Type::FixedList { size, item } => json!({"type": "fixed_list", "size": size, "children": children(&[item])}),
        Type::Struct(fields) => json!({"type": "struct", "children": fields.iter().map(field).collect::<Vec<_>>()}),
        Type::Map { sorted, key, value } => {
            json!({"type": "map", "sorted": sorted, "children": children(&[key, value])})
        }
        Type::Dictionary { index, ordered, value } => {
            json!({"type": "dictionary", "index": name(index), "ordered": ordered, "values": self::data_type(value)})
        }
        flat => json!({"type": name(flat)}),
    }
}

fn name(data_type: &Type) -> String {
    format!("{data_type:?}").to_lowercase()
}

fn values(column: &Column, data_type: &Type) -> Value {
    Value::Array((0..column.rows).map(|i| value(column, data_type, i)).collect())
}

fn value(column: &Column, data_type: &Type, i: usize) -> Value {
    if !column.is_valid(i) {
        return Value::Null;
    }
    let range = |offsets: &[u8]| {
        let offset = |i: usize| u32::from_le_bytes(offsets[i * 4..][..4].try_into().unwrap()) as usize;
        offset(i)..offset(i + 1)
    };
    match (&column.values, data_type) {
        (Values::Boolean(bits), _) => json!(bits.bit(i)),
        (Values::Fixed { width, bytes }, _) => scalar(&bytes[i * width..][..*width], data_type),
        (Values::Bytes { offsets, data }, Type::Utf8) => json!(str::from_utf8(&data[range(offsets)]).unwrap()),
        (Values::Bytes { offsets, data }, _) => json!(hex(&data[range(offsets)])),
        (Values::List { offsets, child }, Type::List(item)) => {
            range(offsets).map(|i| value(child, &item.data_type, i)).collect()
        }
        (Values::List { offsets, child }, Type::Map { key, value: item, .. }) => {
            let Values::Struct(children) = &child.values else { panic!("a map's child is not a struct") };
            let entry = |i| json!([value(&children[0], &key.data_type, i), value(&children[1], &item.data_type, i)]);
            range(offsets).map(entry).collect()
        }
        (Values::FixedList { size, child }, Type::FixedList { item, .. }) => {
            (i * size..(i + 1) * size).map(|i| value(child, &item.data_type, i)).collect()
        }
        (Values::Struct(children), Type::Struct(fields)) => {
            children.iter().zip(fields).map(|(child, field)| value(child, &field.data_type, i)).collect()
        }
        (Values::Dictionary { width, indexes, entries }, Type::Dictionary { value: entry, .. }) => {
            value(entries, entry, unsigned(&indexes[i * width..][..*width]) as usize)
        }
        other => panic!("values that do not fit their type: {other:?}"),
    }
}

fn scalar(raw: &[u8], data_type: &Type) -> Value {
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
