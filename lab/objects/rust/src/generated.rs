//! The accessors of C++ and Java are what `dray accessors` generates for the objects of README.md.
//! `DRAY_WRITE=1` writes them anew.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::fs;
use std::path::Path;

use dray_accessors::{Language, Model};
use dray_format::{Field, Schema, Type};
use dray_pagefile::{PageFile, PageFileOptions, PageFileWriter};

use crate::dray::fields::{Customer, Fields, LineItem, Part, SparseVector};

/// A name as README.md has it.
fn renamed(name: &str) -> String {
    if name == "type_name" {
        return "type".to_owned();
    }
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| name + &word[..1].to_uppercase() + &word[1..])
}

/// Fields with the names of README.md. An item has the name of its list, in the singular.
fn renamed_fields(fields: Vec<Field>) -> Vec<Field> {
    let of = |field: Field| {
        let name = renamed(&field.name);
        let data_type = match field.data_type {
            Type::Struct(fields) => Type::Struct(renamed_fields(fields)),
            Type::List(item) => {
                let one = if name == "entries" { "entry" } else { name.trim_end_matches('s') };
                let item = Field { name: one.to_owned(), ..*item };
                Type::List(Box::new(renamed_fields(vec![item]).remove(0)))
            }
            other => other,
        };
        Field { name, data_type, ..field }
    };
    fields.into_iter().map(of).collect()
}

fn check(language: Language, namespace: &str, folder: &str, name: &str, fields: Vec<Field>) {
    let mut file = Vec::new();
    let (schema, options) = (Schema { fields: renamed_fields(fields) }, PageFileOptions::default());
    PageFileWriter::new(&mut file, schema, &options).unwrap().finish().unwrap();
    let model = Model::of_file(&PageFile::from_bytes(file.into()).unwrap(), name);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    for source in language.sources(&model, namespace) {
        let path = folder.join(&source.path);
        if std::env::var_os("DRAY_WRITE").is_some() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &source.text).unwrap();
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == source.text, "{} is outdated: run with DRAY_WRITE=1", path.display());
    }
}

#[test]
fn accessors_are_what_the_generator_writes() {
    for (name, fields) in [
        ("Part", Part::schema()),
        ("LineItem", LineItem::schema()),
        ("Customer", Customer::schema()),
        ("SparseVector", SparseVector::schema()),
    ] {
        let lower = name.to_lowercase();
        check(Language::Cpp, &format!("pages::{lower}"), "cpp", name, fields.clone());
        let package = format!("study.dray.{lower}");
        check(Language::Java, &package, "java/src/main/java", name, fields);
    }
}
