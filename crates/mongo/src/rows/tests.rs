#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int64Type};
use mongodb::bson::raw::RawDocumentBuf;
use mongodb::bson::{Bson, Document, doc};

use super::*;
use crate::columns::Kind;
use crate::infer::Inference;
use crate::random::Random;

fn rows(columns: &[(&str, Kind)], has_rest: bool) -> Rows {
    let column = |(name, kind): &(&str, Kind)| Column { name: (*name).into(), kind: kind.clone() };
    Rows::new(columns.iter().map(column).collect(), has_rest, &Limits::default()).unwrap()
}

fn push_document(rows: &mut Rows, document: &Document) -> Result<(), End> {
    rows.push(&RawDocumentBuf::try_from(document).unwrap())
}

fn batch(columns: &[(&str, Kind)], documents: &[Document]) -> RecordBatch {
    let mut rows = rows(columns, true);
    for document in documents {
        push_document(&mut rows, document).unwrap();
    }
    rows.finish().unwrap().unwrap()
}

/// The texts of a column.
fn texts(batch: &RecordBatch, column: usize) -> Vec<Option<&str>> {
    batch.column(column).as_string::<i32>().iter().collect()
}

#[test]
fn what_does_not_fit_is_in_the_rest() {
    let batch = batch(
        &[("a", Kind::Int64), ("b", Kind::String)],
        &[
            doc! { "a": 1, "b": "x" },
            doc! { "b": "y", "a": 2_i64 },
            doc! { "a": "one", "b": "z", "c": 5 },
            doc! { "a": 3.0 },
            doc! { "a": 3.5, "b": Bson::Null },
            doc! { "a": -0.0 },
            doc! {},
        ],
    );
    let numbers: Vec<_> = batch.column(0).as_primitive::<Int64Type>().iter().collect();
    assert_eq!(numbers, [Some(1), Some(2), None, Some(3), None, None, None]);
    assert_eq!(texts(&batch, 1), [Some("x"), Some("y"), Some("z"), None, None, None, None]);
    let misfits = r#"{"a":"one","c":{"$numberInt":"5"}}"#;
    let fraction = r#"{"a":{"$numberDouble":"3.5"}}"#;
    let zero = r#"{"a":{"$numberDouble":"-0.0"}}"#;
    assert_eq!(
        texts(&batch, 2),
        [None, None, Some(misfits), None, Some(fraction), Some(zero), None]
    );
}

#[test]
fn a_name_that_occurs_twice_has_its_second_value_in_the_rest() {
    // {"a": 1, "a": 2}, which a Document can't be.
    let bytes = b"\x13\0\0\0\x10a\0\x01\0\0\0\x10a\0\x02\0\0\0\0";
    let mut rows = rows(&[("a", Kind::Int64)], true);
    rows.push(RawDocument::from_bytes(bytes).unwrap()).unwrap();
    let batch = rows.finish().unwrap().unwrap();
    assert_eq!(batch.column(0).as_primitive::<Int64Type>().value(0), 1);
    assert_eq!(texts(&batch, 1), [Some(r#"{"a":{"$numberInt":"2"}}"#)]);
}

#[test]
fn numbers_are_never_rounded() {
    let decimal = |text: &str| Bson::Decimal128(text.parse().unwrap());
    let batch = batch(
        &[("f", Kind::Float64), ("d", Kind::Decimal { precision: 4, scale: 2 })],
        &[
            doc! { "f": (1_i64 << 53) + 1, "d": decimal("99.99") },
            doc! { "f": 1_i64 << 53, "d": decimal("100") },
            doc! { "f": f64::NAN, "d": decimal("1.234") },
            doc! { "f": decimal("1"), "d": decimal("-1.230") },
            doc! { "d": decimal("NaN") },
            doc! { "d": 7 },
        ],
    );
    let floats = batch.column(0).as_primitive::<Float64Type>();
    assert!(floats.value(2).is_nan());
    let is_null = |column: usize| -> Vec<bool> {
        (0..batch.num_rows()).map(|row| batch.column(column).is_null(row)).collect()
    };
    assert_eq!(is_null(0), [true, false, false, true, true, true]);
    let decimals: Vec<_> = batch.column(1).as_primitive::<Decimal128Type>().iter().collect();
    assert_eq!(decimals, [Some(9999), None, None, Some(-123), None, Some(700)]);
    let rest = texts(&batch, 2);
    assert_eq!(rest[4], Some(r#"{"d":{"$numberDecimal":"NaN"}}"#));
    assert_eq!(rest.iter().flatten().count(), 5);
}

#[test]
fn nested_values_fit_as_a_whole() {
    let fields = vec![("x".to_owned(), Kind::Int64), ("y".to_owned(), Kind::String)];
    let batch = batch(
        &[("s", Kind::Struct(fields)), ("l", Kind::List(Box::new(Kind::Int64)))],
        &[
            doc! { "s": { "y": "a", "x": 1 }, "l": [1, Bson::Null, 3] },
            doc! { "s": { "x": 2 }, "l": [] },
            doc! { "s": { "x": 3, "z": 1 }, "l": [1, "2"] },
            doc! { "s": Bson::Null, "l": Bson::Null },
        ],
    );
    let xs: Vec<_> =
        batch.column(0).as_struct().column(0).as_primitive::<Int64Type>().iter().collect();
    assert_eq!(xs, [Some(1), Some(2), None, None]);
    let lists = batch.column(1).as_list::<i32>();
    assert_eq!((lists.value(0).len(), lists.value(1).len()), (3, 0));
    let misfits = "{\"s\":{\"x\":{\"$numberInt\":\"3\"},\"z\":{\"$numberInt\":\"1\"}},\
                   \"l\":[{\"$numberInt\":\"1\"},\"2\"]}";
    assert_eq!(texts(&batch, 2), [None, None, Some(misfits), None]);
}

#[test]
fn without_a_rest_a_misfit_is_an_error() {
    let mut rows = rows(&[("_id", Kind::Int64), ("a", Kind::Int64)], false);
    push_document(&mut rows, &doc! { "_id": 1, "a": 1 }).unwrap();
    for (document, expected) in [
        (doc! { "_id": 2, "a": "x" }, "the document with the _id 2: field \"a\" does not fit"),
        (doc! { "_id": 2, "b": 1 }, "the document with the _id 2: field \"b\" has no column: 1"),
        (doc! { "b": "é".repeat(1000) }, "document 4 of the result: field \"b\" has no column"),
    ] {
        let Err(End::Failed(error)) = push_document(&mut rows, &document) else { panic!() };
        assert!(error.message.contains(expected), "{}", error.message);
        assert!(error.message.len() < 400 && error.hint.contains("_rest"));
    }
}

fn all_types() -> Vec<u8> {
    let document = doc! {
        "i": 1, "l": 2_i64, "d": 3.5, "s": "text", "b": true, "n": Bson::Null,
        "a": [1, [2, { "x": "y" }]], "o": { "p": { "q": [] } },
        "oid": mongodb::bson::oid::ObjectId::from_bytes([7; 12]),
        "t": mongodb::bson::DateTime::from_millis(5),
        "bin": mongodb::bson::Binary { subtype: 5.into(), bytes: vec![1, 2, 3] },
        "u": mongodb::bson::Binary { subtype: 4.into(), bytes: vec![9; 16] },
        "dec": Bson::Decimal128("1.50".parse().unwrap()), "code": Bson::JavaScriptCode("f".into()),
        "ts": Bson::Timestamp(mongodb::bson::Timestamp { time: 1, increment: 2 }),
        "re": Bson::RegularExpression(mongodb::bson::Regex {
            pattern: mongodb::bson::cstr!("a").into(), options: mongodb::bson::cstr!("i").into(),
        }),
        "scope": Bson::JavaScriptCodeWithScope(mongodb::bson::JavaScriptCodeWithScope {
            code: "g".into(), scope: doc! { "x": 1 },
        }),
    };
    document.to_vec().unwrap()
}

/// Whatever the bytes are, reading them ends with rows or with an error.
#[test]
fn malformed_documents() {
    let whole = all_types();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut read, mut refused) = (0, 0);
    for round in 0..50_000 {
        let mut bytes = whole.clone();
        for _ in 0..=random.next(3) {
            let place = 4 + random.next(bytes.len() - 4);
            bytes[place] = u8::try_from(random.next(256)).unwrap();
        }
        if round % 10 == 0 {
            // A length that its own header declares.
            bytes.truncate(5 + random.next(bytes.len() - 5));
            let length = u32::try_from(bytes.len()).unwrap();
            bytes[..4].copy_from_slice(&length.to_le_bytes());
            *bytes.last_mut().unwrap() = 0;
        }
        let Ok(document) = RawDocument::from_bytes(&bytes) else {
            refused += 1;
            continue;
        };
        let mut inference = Inference::new(true);
        let _ = inference.observe(document);
        let columns = match random.next(2) {
            0 => inference.columns(),
            _ => vec![Column { name: "a".to_owned(), kind: Kind::Json }],
        };
        let mut rows = Rows::new(columns, true, &Limits::default()).unwrap();
        match rows.push(document) {
            Ok(()) => {
                assert_eq!(rows.finish().unwrap().unwrap().num_rows(), 1);
                read += 1;
            }
            Err(End::Failed(_)) => refused += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(read > 1000 && refused > 1000, "{read} {refused}");
}
