//! Nothing is lost and nothing is changed: a row is its document.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal128Type, Float64Type, Int32Type, Int64Type, TimestampMillisecondType,
};
use arrow_array::{Array, ArrayRef};
use mongodb::bson::raw::RawDocumentBuf;
use mongodb::bson::{Binary, Bson, DateTime, Decimal128, Document};

use super::*;
use crate::columns::Kind;
use crate::infer::Inference;
use crate::random::Random;

/// The value of a column, read back from Arrow.
fn read(array: &ArrayRef, row: usize, kind: &Kind) -> Bson {
    if array.is_null(row) {
        return Bson::Null;
    }
    match kind {
        Kind::Boolean => array.as_boolean().value(row).into(),
        Kind::Int32 => array.as_primitive::<Int32Type>().value(row).into(),
        Kind::Int64 => array.as_primitive::<Int64Type>().value(row).into(),
        Kind::Float64 => array.as_primitive::<Float64Type>().value(row).into(),
        Kind::Decimal { scale, .. } => {
            let value = array.as_primitive::<Decimal128Type>().value(row);
            Bson::Decimal128(format!("{value}E-{scale}").parse().unwrap())
        }
        Kind::Timestamp => {
            let value = array.as_primitive::<TimestampMillisecondType>().value(row);
            DateTime::from_millis(value).into()
        }
        Kind::String => array.as_string::<i32>().value(row).into(),
        Kind::ObjectId => {
            mongodb::bson::oid::ObjectId::parse_str(array.as_string::<i32>().value(row))
                .unwrap()
                .into()
        }
        Kind::Uuid => {
            let bytes = array.as_fixed_size_binary().value(row).to_vec();
            Bson::Binary(Binary { subtype: 4.into(), bytes })
        }
        Kind::Binary(subtype) => {
            let bytes = array.as_binary::<i32>().value(row).to_vec();
            Bson::Binary(Binary { subtype: subtype.unwrap().into(), bytes })
        }
        Kind::Json => {
            let text = crate::literals::exact(array.as_string::<i32>().value(row)).unwrap();
            serde_json::from_str(&text).unwrap()
        }
        Kind::List(item) => {
            let items = array.as_list::<i32>().value(row);
            (0..items.len()).map(|i| read(&items, i, item)).collect::<Vec<_>>().into()
        }
        Kind::Struct(fields) => {
            let array = array.as_struct();
            let field = |(i, (name, kind)): (usize, &(String, Kind))| {
                (name.clone(), read(array.column(i), row, kind))
            };
            Bson::Document(fields.iter().enumerate().map(field).collect())
        }
    }
}

/// Equal numbers in one form, and without fields that are null: a column has both the same.
fn plain(value: &Bson) -> Bson {
    match value {
        Bson::Int32(value) => plain(&Bson::Double(f64::from(*value))),
        Bson::Int64(value) => match crate::fit::exact_double(*value) {
            Some(double) => plain(&Bson::Double(double)),
            None => value.into(),
        },
        Bson::Double(value) => Bson::String(format!("{value:?}")),
        Bson::Decimal128(value) => decimal(value),
        Bson::Array(items) => items.iter().map(plain).collect::<Vec<_>>().into(),
        Bson::Document(fields) => Bson::Document(
            fields
                .iter()
                .filter(|(_, value)| **value != Bson::Null)
                .map(|(name, value)| (name.clone(), plain(value)))
                .collect(),
        ),
        other => other.clone(),
    }
}

/// A decimal without the zeros at its end; a whole one like an integer.
fn decimal(value: &Decimal128) -> Bson {
    let Some(number) = crate::decimal::Number::of(value) else {
        return Bson::String(value.to_string());
    };
    match number.scaled(38, 10) {
        Some(scaled) if scaled % 10_i128.pow(10) == 0 => {
            plain(&Bson::Int64(i64::try_from(scaled / 10_i128.pow(10)).unwrap()))
        }
        Some(scaled) => Bson::String(format!("decimal {scaled}")),
        None => Bson::String(value.to_string()),
    }
}

#[test]
fn rows_are_their_documents() {
    let (mut fitted, mut rested) = (0, 0);
    for seed in 1..2000_u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let documents: Vec<_> = (0..random.next(12) + 1).map(|_| random.document(0)).collect();
        let raw: Vec<_> = documents.iter().map(|d| RawDocumentBuf::try_from(d).unwrap()).collect();
        let mut inference = Inference::new(true);
        for document in &raw[..random.next(raw.len()) + 1] {
            inference.observe(document).unwrap();
        }
        let columns = inference.columns();
        let mut rows = Rows::new(columns.clone(), true, &Limits::default()).unwrap();
        for document in &raw {
            rows.push(document).unwrap();
        }
        let batch = rows.finish().unwrap().unwrap();
        for (row, document) in documents.iter().enumerate() {
            let rest = batch.column(columns.len());
            let rest = match rest.is_null(row) {
                true => Document::new(),
                false => serde_json::from_str(rest.as_string::<i32>().value(row)).unwrap(),
            };
            for (name, value) in &rest {
                // Canonical: as it is, but for NaN, which does not equal itself.
                assert_eq!(format!("{value:?}"), format!("{:?}", document[name]), "seed {seed}");
                rested += 1;
            }
            for (i, column) in columns.iter().enumerate() {
                let found = read(batch.column(i), row, &column.kind);
                let value = document.get(&column.name).unwrap_or(&Bson::Null);
                if rest.contains_key(&column.name) {
                    assert_eq!(found, Bson::Null, "seed {seed}, {}", column.name);
                } else {
                    assert_eq!(plain(&found), plain(value), "seed {seed}, {:?}", column);
                    fitted += 1;
                }
            }
            let is_somewhere = |name: &String| {
                rest.contains_key(name) || columns.iter().any(|column| column.name == *name)
            };
            assert!(document.keys().all(is_somewhere), "seed {seed}");
        }
    }
    assert!(fitted > 10_000 && rested > 1000, "{fitted} {rested}");
}
