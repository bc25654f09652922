//! The generated C++ that the tests in `cpp/test` compile and run. `DRAY_WRITE=1` writes it anew.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

use std::fs;
use std::path::Path;

use dray_accessors::{Language, Model};
use dray_format::{Field, Schema, Type, Unit};
use dray_pagefile::{PageFile, PageFileOptions, PageFileWriter};

const HEADERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../cpp/test/generated");

fn field(name: &str, data_type: Type, nullable: bool) -> Field {
    Field { name: name.into(), data_type, nullable, metadata: vec![] }
}

fn list(item: Type, nullable: bool) -> Type {
    Type::List(Box::new(field("item", item, nullable)))
}

fn fixed_list(size: u32, item: Type, nullable: bool) -> Type {
    Type::FixedList { size, item: Box::new(field("item", item, nullable)) }
}

fn map(key: Type, value: Field) -> Type {
    Type::Map { sorted: false, key: Box::new(field("key", key, false)), value: Box::new(value) }
}

fn path(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Compares the headers for a file of this schema with the kept ones.
fn check(namespace: &str, name: &str, fields: Vec<Field>, key: Vec<Vec<String>>) {
    let options = PageFileOptions { key, ..PageFileOptions::default() };
    let file = std::env::temp_dir().join(format!("dray-cpp-{namespace}-{}", std::process::id()));
    let out = fs::File::create(&file).unwrap();
    PageFileWriter::new(out, Schema { fields }, &options).unwrap().finish().unwrap();
    let opened = PageFile::open(&file);
    fs::remove_file(&file).unwrap();
    let model = Model::of_file(&opened.unwrap(), name);
    for source in Language::Cpp.sources(&model, namespace) {
        let path = Path::new(HEADERS).join(&source.path);
        if std::env::var_os("DRAY_WRITE").is_some() {
            fs::write(&path, &source.text).unwrap();
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == source.text, "{} is outdated: run with DRAY_WRITE=1", source.path);
    }
}

/// page.md section 8.
#[test]
fn the_nested_object_of_the_specification() {
    let item = vec![field("part", Type::Int32, false), field("quantity", Type::Int16, true)];
    let order = vec![
        field("date", Type::Date32, true),
        field("items", list(Type::Struct(item), false), false),
    ];
    let fields = vec![
        field("key", Type::Int32, false),
        field("name", Type::Utf8, false),
        field("orders", Type::List(Box::new(field("order", Type::Struct(order), false))), false),
    ];
    check("customer", "customer", fields, vec![path(&["key"])]);
}

/// Customers with orders and line items, which the measurements read.
#[test]
fn line_items() {
    let longs = ["orderkey", "partkey", "suppkey", "extendedprice", "discount", "tax"];
    let dates = ["shipdate", "commitdate", "receiptdate"];
    let texts = ["returnflag", "linestatus", "shipinstruct", "shipmode", "comment"];
    let of = |names: &[&str], data_type: Type| -> Vec<Field> {
        names.iter().map(|name| field(name, data_type.clone(), false)).collect()
    };
    let mut item = of(&longs, Type::Int64);
    item.extend(of(&["linenumber"], Type::Int32));
    item.extend(of(&dates, Type::Date32));
    item.extend(of(&texts, Type::Utf8));
    let order = vec![
        field("orderkey", Type::Int64, false),
        field("items", list(Type::Struct(item.clone()), false), false),
    ];
    let fields = vec![
        field("custkey", Type::Int64, false),
        field("orders", list(Type::Struct(order), false), false),
    ];
    check("nested", "customer", fields, vec![path(&["custkey"])]);
    check("flat", "lineitem", item, vec![]);
}

/// Lists, structs and strings, missing or not, within each other.
#[test]
fn things() {
    let corner =
        Type::Struct(vec![field("x", Type::Int16, false), field("label", Type::Utf8, true)]);
    let place = Type::Struct(vec![
        field("street", Type::Utf8, false),
        field("corners", fixed_list(2, corner, false), false),
        field("floor", Type::Int32, true),
    ]);
    let sub = Type::Struct(vec![field("k", Type::Int8, false), field("v", Type::Utf8, false)]);
    let part = Type::Struct(vec![
        field("n", Type::Int32, true),
        field("label", Type::Utf8, false),
        field("subs", list(sub, false), false),
        field("pair", fixed_list(2, Type::Utf8, false), false),
    ]);
    let zone = Some("UTC".to_owned());
    let fields = vec![
        field("id", Type::Int64, false),
        field("flag", Type::Boolean, true),
        field("name", Type::Utf8, true),
        field("note", Type::Binary, false),
        field("price", Type::Decimal128 { precision: 9, scale: 2 }, true),
        field("at", Type::Timestamp { unit: Unit::Microsecond, zone }, false),
        field("scores", list(Type::Int32, false), true),
        field("tags", list(Type::Utf8, true), false),
        field("place", place, true),
        field("parts", list(part, true), false),
        field("grid", list(list(Type::Int64, true), true), true),
        field("pairs", map(Type::Utf8, field("value", Type::Int64, true)), false),
        field("trio", fixed_list(3, Type::Float64, false), true),
        field("triple", fixed_list(3, Type::Int16, false), false),
    ];
    check("thing", "thing", fields, vec![path(&["id"]), path(&["place", "street"])]);
}

/// Every type, missing or not, alone and in lists, and names that C++ does not allow.
#[test]
fn every_type_and_odd_names() {
    let zone = |zone: Option<&str>| zone.map(str::to_owned);
    let values = [
        ("bool", Type::Boolean),
        ("i8", Type::Int8),
        ("i16", Type::Int16),
        ("i32", Type::Int32),
        ("i64", Type::Int64),
        ("u8", Type::UInt8),
        ("u16", Type::UInt16),
        ("u32", Type::UInt32),
        ("u64", Type::UInt64),
        ("f16", Type::Float16),
        ("f32", Type::Float32),
        ("f64", Type::Float64),
        ("dec32", Type::Decimal32 { precision: 9, scale: 2 }),
        ("dec64", Type::Decimal64 { precision: 18, scale: -2 }),
        ("dec128", Type::Decimal128 { precision: 38, scale: 10 }),
        ("dec256", Type::Decimal256 { precision: 76, scale: 0 }),
        ("date", Type::Date32),
        ("date_ms", Type::Date64),
        ("time_s", Type::Time32(Unit::Second)),
        ("time_ns", Type::Time64(Unit::Nanosecond)),
        ("at_us", Type::Timestamp { unit: Unit::Microsecond, zone: zone(Some("UTC")) }),
        ("local_ms", Type::Timestamp { unit: Unit::Millisecond, zone: None }),
        ("took_us", Type::Duration(Unit::Microsecond)),
        ("months", Type::IntervalMonths),
        ("day_time", Type::IntervalDayTime),
        ("month_day_nano", Type::IntervalMonthDayNano),
        ("text", Type::Utf8),
        ("binary", Type::Binary),
        ("uuid", Type::FixedBinary(16)),
        ("nothing", Type::Null),
    ];
    let all = |(name, data_type): &(&str, Type)| {
        [
            field(name, data_type.clone(), false),
            field(&format!("{name}_or_null"), data_type.clone(), true),
            field(&format!("{name}_list"), list(data_type.clone(), false), false),
            field(&format!("{name}_list_or_null"), list(data_type.clone(), true), true),
        ]
    };
    let mut fields: Vec<Field> = values.iter().flat_map(all).collect();
    let pair = || Type::Struct(vec![field("a", Type::Int8, true), field("b", Type::Utf8, false)]);
    let (index, value) = (Box::new(Type::Int8), Box::new(Type::Utf8));
    let odd = [
        ("class", Type::Int32, false),
        ("class_", Type::Int32, false),
        ("x y/z \"*/\n\\u0041\\", Type::Int32, true),
        ("größe", Type::Int32, false),
        ("a__b", Type::Int32, true),
        ("_A", Type::Int32, true),
        ("", Type::Int32, false),
        ("1st", Type::Int32, false),
        ("twice", Type::Int32, false),
        ("twice", Type::Int64, false),
        ("Every", Type::Int32, false),
        ("get", Type::Int32, false),
        ("set", Type::Int32, false),
        ("list", Type::Int32, false),
        ("RecordView", Type::Int32, false),
        ("RecordWriter", Type::Int32, false),
        ("std", Type::Int32, false),
        ("bytes", Type::Int32, false),
        ("schema", Type::Int32, false),
        ("dictionary", Type::Dictionary { index, ordered: false, value }, true),
        ("String", pair(), false),
        ("string_writer", pair(), true),
        ("pairs", fixed_list(2, pair(), false), true),
        ("lists_of_structs", list(list(pair(), false), false), false),
        ("maps", list(map(Type::Int32, field("value", pair(), true)), false), false),
        ("empty", Type::Struct(vec![]), true),
        ("empties", list(Type::Struct(vec![]), true), true),
    ];
    fields.extend(odd.map(|(name, data_type, nullable)| field(name, data_type, nullable)));
    let key = vec![path(&["i64"]), path(&["text_or_null"]), path(&["x y/z \"*/\n\\u0041\\"])];
    check("every::type", "every", fields, key);
}
