//! The schemas of the generated modules, and files of them.

use bytes::Bytes;
use dray_accessors::Model;
use dray_format::{Field, Schema, Type, Unit};
use dray_pagefile::{PageFile, PageFileOptions, PageFileWriter};

pub fn field(name: &str, data_type: Type) -> Field {
    Field { name: name.into(), data_type, nullable: false, metadata: vec![] }
}

pub fn nullable(name: &str, data_type: Type) -> Field {
    Field { nullable: true, ..field(name, data_type) }
}

fn list(item: Field) -> Type {
    Type::List(Box::new(item))
}

/// page.md section 8, with a key.
pub fn customer() -> Schema {
    let item = Type::Struct(vec![field("part", Type::Int32), nullable("quantity", Type::Int16)]);
    let order = Type::Struct(vec![
        nullable("date", Type::Date32),
        field("items", list(field("item", item))),
    ]);
    let fields = vec![
        field("key", Type::Int32),
        field("name", Type::Utf8),
        field("orders", list(field("order", order))),
    ];
    Schema { fields }
}

/// TPC-H's line items in orders of customers, for the measurement `examples/customers.rs`.
pub fn tpch() -> Schema {
    let longs = ["orderkey", "partkey", "suppkey", "extendedprice", "discount", "tax"];
    let dates = ["shipdate", "commitdate", "receiptdate"];
    let texts = ["returnflag", "linestatus", "shipinstruct", "shipmode", "comment"];
    let longs = longs.into_iter().map(|name| field(name, Type::Int64));
    let dates = dates.into_iter().map(|name| field(name, Type::Date32));
    let texts = texts.into_iter().map(|name| field(name, Type::Utf8));
    let number = [field("linenumber", Type::Int32)];
    let item = Type::Struct(longs.chain(number).chain(dates).chain(texts).collect());
    let order = Type::Struct(vec![
        field("orderkey", Type::Int64),
        field("items", list(field("items", item))),
    ]);
    let orders = field("orders", list(field("orders", order)));
    Schema { fields: vec![field("custkey", Type::Int64), orders] }
}

/// All types, and names that Rust does not have.
pub fn everything() -> Schema {
    let integers = [
        ("i8", Type::Int8),
        ("i16", Type::Int16),
        ("i32", Type::Int32),
        ("i64", Type::Int64),
        ("u8", Type::UInt8),
        ("u16", Type::UInt16),
        ("u32", Type::UInt32),
        ("u64", Type::UInt64),
    ];
    let others = [
        ("f16", Type::Float16),
        ("f32", Type::Float32),
        ("f64", Type::Float64),
        ("bool", Type::Boolean),
        ("date", Type::Date64),
        ("time", Type::Time32(Unit::Second)),
        ("stamp", Type::Timestamp { unit: Unit::Microsecond, zone: None }),
        ("months", Type::IntervalMonths),
        ("days", Type::IntervalDayTime),
        ("interval", Type::IntervalMonthDayNano),
        ("d32", Type::Decimal32 { precision: 9, scale: 2 }),
        ("d64", Type::Decimal64 { precision: 18, scale: 2 }),
        ("d128", Type::Decimal128 { precision: 38, scale: 2 }),
        ("d256", Type::Decimal256 { precision: 76, scale: 2 }),
        ("text", Type::Utf8),
        ("text_bytes", Type::Binary),
        ("hash", Type::FixedBinary(5)),
        ("nothing", Type::Null),
    ];
    let all = integers.into_iter().chain(others);
    let mut fields: Vec<Field> = all
        .enumerate()
        .map(|(i, (name, ty))| match ty == Type::Null || i % 3 == 1 {
            true => nullable(name, ty),
            false => field(name, ty),
        })
        .collect();
    let inner = Type::Struct(vec![
        field("x", Type::Int16),
        nullable("type", Type::Utf8),
        field("sized", Type::FixedList { size: 2, item: Box::new(field("item", Type::Int8)) }),
        field("tags", list(nullable("item", Type::Utf8))),
    ]);
    let outer = Type::Struct(vec![nullable("inner", inner), field("self", Type::Boolean)]);
    let point = Type::Struct(vec![field("x", Type::Float64), nullable("note", Type::Utf8)]);
    let map = Type::Map {
        key: Box::new(field("key", Type::Utf8)),
        value: Box::new(nullable("value", Type::Int64)),
        sorted: false,
    };
    let dictionary = Type::Dictionary {
        index: Box::new(Type::Int8),
        value: Box::new(Type::Utf8),
        ordered: false,
    };
    let sized = Type::FixedList { size: 3, item: Box::new(nullable("item", point.clone())) };
    fields.extend([
        nullable("outer", outer),
        field("größe", Type::Int32),
        field("gr__e", Type::Int32),
        field("numbers", list(field("item", Type::Int64))),
        nullable("gaps", list(nullable("item", Type::UInt16))),
        field("words", list(field("item", Type::Utf8))),
        field("blobs", list(field("item", Type::Binary))),
        field("flags", list(nullable("item", Type::Boolean))),
        field("hashes", list(field("item", Type::FixedBinary(3)))),
        field("points", list(nullable("item", point))),
        nullable("sized", sized),
        field("matrix", list(nullable("row", list(field("item", Type::Int32))))),
        nullable("map", map),
        field("low", dictionary),
        field("nulls", list(nullable("item", Type::Null))),
        field("marks", list(nullable("item", Type::Struct(vec![])))),
        field("empties", list(field("item", Type::Struct(vec![])))),
        field("same", Type::Int8),
        field("same", Type::Int8),
    ]);
    Schema { fields }
}

/// A module's name, its objects' name, its schema and its key.
pub fn all() -> Vec<(&'static str, &'static str, Schema, Vec<Vec<String>>)> {
    let key = |path: &[&str]| path.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let everything_key =
        vec![key(&["text"]), key(&["i64"]), key(&["bool"]), key(&["outer", "inner", "x"])];
    vec![
        ("customer", "customer", customer(), vec![key(&["key"])]),
        ("everything", "everything", everything(), everything_key),
        ("nothing", "self", Schema { fields: vec![] }, vec![]),
        ("tpch", "customer", tpch(), vec![key(&["custkey"])]),
    ]
}

/// The model of a file with this schema.
pub fn model(name: &str, schema: Schema, key: Vec<Vec<String>>) -> Model {
    let mut bytes = Vec::new();
    let options = PageFileOptions { key, ..PageFileOptions::default() };
    PageFileWriter::new(&mut bytes, schema, &options).unwrap().finish().unwrap();
    Model::of_file(&PageFile::from_bytes(Bytes::from(bytes)).unwrap(), name)
}
