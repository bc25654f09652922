//! The generated Java that the tests in `java/page` compile and run. `DRAY_WRITE=1` writes it anew.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

use std::fs;
use std::path::Path;

use dray_accessors::{Language, Model};
use dray_format::{Field, Schema, Type, Unit};
use dray_pagefile::{PageFile, PageFileOptions, PageFileWriter};

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../java/page/src/test/java");
const PACKAGE: &str = "dray.page.generated";

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

/// Compares the sources for a file of this schema with the kept ones.
fn check(folder: &str, name: &str, fields: Vec<Field>, key: Vec<Vec<String>>) {
    let options = PageFileOptions { key, ..PageFileOptions::default() };
    let file = std::env::temp_dir().join(format!("dray-java-{folder}-{}", std::process::id()));
    let out = fs::File::create(&file).unwrap();
    PageFileWriter::new(out, Schema { fields }, &options).unwrap().finish().unwrap();
    let opened = PageFile::open(&file);
    fs::remove_file(&file).unwrap();
    let model = Model::of_file(&opened.unwrap(), name);
    let sources = Language::Java.sources(&model, &format!("{PACKAGE}.{folder}"));
    let kept = Path::new(SOURCES).join(PACKAGE.replace('.', "/")).join(folder);
    if std::env::var_os("DRAY_WRITE").is_some() {
        let _ = fs::remove_dir_all(&kept);
        fs::create_dir_all(&kept).unwrap();
        for source in &sources {
            fs::write(Path::new(SOURCES).join(&source.path), &source.text).unwrap();
        }
    }
    for source in &sources {
        let kept = fs::read_to_string(Path::new(SOURCES).join(&source.path)).unwrap_or_default();
        assert!(kept == source.text, "{} is outdated: run with DRAY_WRITE=1", source.path);
    }
    assert_eq!(fs::read_dir(&kept).unwrap().count(), sources.len(), "a file is left over");
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
    check("nested", "customer", fields, vec![path(&["key"])]);
}

/// Line items, and customers with orders and line items, which the measurements read.
#[test]
fn customers() {
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
    check("lineitems", "lineitem", item.clone(), vec![]);
    let order = vec![
        field("orderkey", Type::Int64, false),
        field("items", list(Type::Struct(item), false), false),
    ];
    let fields = vec![
        field("custkey", Type::Int64, false),
        field("orders", list(Type::Struct(order), false), false),
    ];
    check("customers", "customer", fields, vec![path(&["custkey"])]);
}

/// Every type, missing or not, alone and in lists, and names that Java does not allow.
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
    let both = |(name, data_type): &(&str, Type)| {
        [
            field(name, data_type.clone(), false),
            field(&format!("{name}_or_null"), data_type.clone(), true),
        ]
    };
    let lists = |(name, data_type): &(&str, Type)| {
        [
            field(&format!("{name}_list"), list(data_type.clone(), false), false),
            field(&format!("{name}_list_or_null"), list(data_type.clone(), true), true),
        ]
    };
    let pair = || Type::Struct(vec![field("a", Type::Int8, true), field("b", Type::Utf8, false)]);
    let mut fields: Vec<Field> = values.iter().flat_map(both).collect();
    fields.extend(values.iter().flat_map(lists));
    let index = Box::new(Type::Int8);
    let value = Box::new(Type::Utf8);
    let inner = Type::Struct(vec![
        field("x", Type::Int32, true),
        field("three", fixed_list(3, Type::Int32, false), false),
        field("deep", pair(), true),
    ]);
    let nested = [
        ("class", Type::Int32, false),
        ("hashCode", Type::Int32, true),
        ("x y/z \"*/\n\\u0041", Type::Int32, true),
        ("größe", Type::Int32, false),
        ("a_b", Type::Int32, true),
        ("aB", Type::Int32, true),
        ("has_a_b", Type::Int32, false),
        ("", Type::Int32, false),
        ("1st", Type::Int32, false),
        ("dictionary", Type::Dictionary { index, ordered: false, value }, true),
        ("String", pair(), false),
        ("inner", inner, true),
        ("structs", list(pair(), true), true),
        ("pairs", fixed_list(2, pair(), false), true),
        ("lists", list(list(Type::Int64, true), true), false),
        ("lists_of_structs", list(list(pair(), false), false), false),
        ("map", map(Type::Utf8, field("value", Type::Int64, true)), false),
        ("maps", list(map(Type::Int32, field("value", pair(), true)), false), false),
    ];
    fields.extend(nested.map(|(name, data_type, nullable)| field(name, data_type, nullable)));
    let key = vec![path(&["i64"]), path(&["text_or_null"]), path(&["inner", "x"])];
    check("every", "every", fields, key);
}
