#![allow(clippy::unwrap_used, reason = "tests")]

use mongodb::bson::oid::ObjectId;
use mongodb::bson::raw::RawDocumentBuf;
use mongodb::bson::{Binary, Bson, DateTime, Document, doc};

use super::*;

fn columns(documents: impl IntoIterator<Item = Document>) -> Vec<Column> {
    let mut inference = Inference::new(true);
    for document in documents {
        inference.observe(&RawDocumentBuf::try_from(&document).unwrap()).unwrap();
    }
    inference.columns()
}

/// The kind of a column with these values.
fn kind(values: impl IntoIterator<Item = Bson>) -> Kind {
    let columns = columns(values.into_iter().map(|value| doc! { "x": value }));
    columns.into_iter().next().unwrap().kind
}

fn decimal(text: &str) -> Bson {
    Bson::Decimal128(text.parse().unwrap())
}

fn binary(subtype: u8, bytes: usize) -> Bson {
    Bson::Binary(Binary { subtype: subtype.into(), bytes: vec![1; bytes] })
}

#[test]
fn names_are_in_the_order_of_their_first_appearance() {
    let columns = columns([doc! { "b": 1 }, doc! { "a": 1, "b": 2 }, doc! { "c": 1, "_rest": 1 }]);
    let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["b", "a", "c"]);
}

#[test]
fn numbers() {
    let exact = (1_i64 << 53, (1_i64 << 53) + 1);
    for (values, expected) in [
        (vec![1.into(), Bson::Null], Kind::Int64),
        (vec![1.into(), (1_i64 << 60).into()], Kind::Int64),
        (vec![1.into(), 1.5.into()], Kind::Float64),
        (vec![1.0.into()], Kind::Float64),
        (vec![f64::NAN.into(), exact.0.into()], Kind::Float64),
        // Doubles would round it.
        (vec![1.5.into(), exact.1.into()], Kind::Json),
        (vec![decimal("1.5"), decimal("20")], Kind::Decimal { precision: 38, scale: 1 }),
        (vec![decimal("NaN"), 7.into(), decimal("1")], Kind::Decimal { precision: 38, scale: 0 }),
        (vec![decimal("NaN")], Kind::Json),
        (vec![decimal("1E+38")], Kind::Json),
        (vec![decimal("1E-38")], Kind::Decimal { precision: 38, scale: 38 }),
        (vec![decimal("1E-38"), 1.into()], Kind::Json),
        (vec![decimal("1E-39")], Kind::Json),
        (vec![decimal("1"), 1.5.into()], Kind::Json),
        (vec![1.into(), "1".into()], Kind::Json),
    ] {
        assert_eq!(kind(values.clone()), expected, "{values:?}");
    }
}

#[test]
fn other_types() {
    let id = ObjectId::new;
    for (values, expected) in [
        (vec![true.into()], Kind::Boolean),
        (vec!["a".into()], Kind::String),
        (vec![id().into()], Kind::ObjectId),
        (vec![id().into(), "a".into()], Kind::Json),
        (vec![DateTime::from_millis(1).into()], Kind::Timestamp),
        (vec![Bson::Null], Kind::Json),
        (vec![Bson::Undefined], Kind::Json),
        (vec![Bson::MinKey], Kind::Json),
        (vec!["a".into(), Bson::MinKey], Kind::Json),
        (vec![binary(4, 16)], Kind::Uuid),
        (vec![binary(4, 15)], Kind::Binary(Some(4))),
        (vec![binary(4, 16), binary(4, 15)], Kind::Json),
        (vec![binary(0, 1), binary(0, 2)], Kind::Binary(Some(0))),
        (vec![binary(0, 1), binary(5, 1)], Kind::Json),
    ] {
        assert_eq!(kind(values.clone()), expected, "{values:?}");
    }
}

#[test]
fn nested_values_have_a_type_where_all_agree() {
    let list = |kind| Kind::List(Box::new(kind));
    let fields = |fields: &[(&str, Kind)]| {
        Kind::Struct(fields.iter().map(|(name, kind)| ((*name).to_owned(), kind.clone())).collect())
    };
    let array = |values: Vec<Bson>| Bson::Array(values);
    for (values, expected) in [
        (vec![array(vec![1.into()]), array(vec![])], list(Kind::Int64)),
        (vec![array(vec![])], Kind::Json),
        (vec![array(vec![1.into(), "a".into()])], Kind::Json),
        (vec![array(vec![1.into()]), 1.into()], Kind::Json),
        (vec![array(vec![array(vec![1.into(), Bson::Null])])], list(list(Kind::Int64))),
        (
            vec![doc! { "a": 1, "b": "x" }.into(), doc! { "b": "y", "a": Bson::Null }.into()],
            fields(&[("a", Kind::Int64), ("b", Kind::String)]),
        ),
        // A field of a struct may be JSON.
        (
            vec![doc! { "a": 1, "b": "x" }.into(), doc! { "a": "y", "b": "x" }.into()],
            fields(&[("a", Kind::Json), ("b", Kind::String)]),
        ),
        (vec![doc! { "a": 1 }.into(), doc! { "b": 1 }.into()], Kind::Json),
        (vec![doc! { "a": 1 }.into(), doc! { "a": 1, "b": 1 }.into()], Kind::Json),
        (vec![doc! { "a": 1, "b": 1 }.into(), doc! { "a": 1 }.into()], Kind::Json),
        (vec![doc! {}.into()], Kind::Json),
        (
            vec![array(vec![doc! { "a": 1 }.into()]), array(vec![doc! { "a": 2 }.into()])],
            list(fields(&[("a", Kind::Int64)])),
        ),
    ] {
        assert_eq!(kind(values.clone()), expected, "{values:?}");
    }
}

#[test]
fn deep_and_wide_documents_are_json() {
    let mut deep = Bson::Int32(1);
    for _ in 0..DEPTH_MAX {
        deep = Bson::Array(vec![deep]);
    }
    assert!(matches!(kind([deep.clone()]), Kind::List(_)));
    assert_eq!(kind([Bson::Array(vec![deep])]), Kind::Json);
    let names = |count: usize| -> Document {
        (0..count).map(|i| (format!("f{i}"), Bson::Int32(1))).collect()
    };
    let wide = |count| kind([Bson::Document(names(count))]);
    assert!(matches!(wide(STRUCT_FIELDS_MAX), Kind::Struct(_)));
    assert_eq!(wide(STRUCT_FIELDS_MAX + 1), Kind::Json);
    assert_eq!(columns([names(COLUMNS_MAX + 1)]).len(), COLUMNS_MAX);
    // All names together are limited, whatever their depth.
    let nested = (0..COLUMNS_MAX).map(|i| (format!("f{i}"), Bson::Document(names(50)))).collect();
    let structs = columns([nested]).iter().filter(|column| column.kind != Kind::Json).count();
    assert!((100..NAMES_MAX / 50).contains(&structs), "{structs}");
}
