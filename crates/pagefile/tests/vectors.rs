//! The vectors of `spec/vectors`: accepted files have the rows, the key index and the finds of
//! their JSON, refused ones the name of their refusal.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

#[path = "../../page/tests/rows/mod.rs"]
mod rows;
#[path = "../../format/tests/words/mod.rs"]
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use dray_pagefile::{KeyPath, KeyValue, PageFile, PageFileOptions, PageFileWriter};
use rows::row;
use serde_json::{Value, json};
use words::field;

fn vectors(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new("../../spec/vectors").join(folder);
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|kind| kind == "pages")).collect();
    assert!(!files.is_empty(), "no vectors in {}", folder.display());
    files.sort();
    files
}

#[test]
fn accepted() {
    for path in vectors("accept") {
        let expected = fs::read(path.with_extension("pages.json")).unwrap();
        let expected: Value = serde_json::from_slice(&expected).unwrap();
        let name = path.file_stem().unwrap().display();
        let file = PageFile::open(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        file.check().unwrap_or_else(|error| panic!("{name}: {error}"));
        let fields = &file.schema().fields;
        let pages = file.pages().map(|page| {
            page.unwrap().objects().map(|object| row(object, fields)).collect::<Value>()
        });
        let key: Vec<KeyPath> = file.key().into_iter().map(|(path, _)| path.clone()).collect();
        let found = json!({
            "about": expected["about"],
            "schema": fields.iter().map(field).collect::<Vec<_>>(),
            "pages": pages.collect::<Vec<_>>(),
            "key": key,
            "index": expected["index"],
        });
        assert_eq!(found, expected, "{name}");

        // This crate's writer makes the same file of the objects, if its pages are full.
        let options = PageFileOptions { page_bytes: 4 << 10, key };
        let mut again = Vec::new();
        let mut writer = PageFileWriter::new(&mut again, file.schema().clone(), &options).unwrap();
        for ordinal in 0..file.len() {
            writer.copy(file.object(ordinal).unwrap()).unwrap();
        }
        writer.finish().unwrap();
        let again = PageFile::from_bytes(Bytes::from(again)).unwrap();
        assert_eq!(again.len(), file.len(), "{name}");
        again.check().unwrap();
    }
}

/// The worked example is made byte for byte, and its key is found.
#[test]
fn worked_example() {
    let path = Path::new("../../spec/vectors/accept/file-worked.pages");
    let file = PageFile::open(path).unwrap();
    let mut again = Vec::new();
    let options = PageFileOptions { page_bytes: 4 << 10, key: vec![vec!["n".into()]] };
    let mut writer = PageFileWriter::new(&mut again, file.schema().clone(), &options).unwrap();
    for ordinal in 0..3 {
        writer.copy(file.object(ordinal).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    assert_eq!(again, fs::read(path).unwrap());
    let find = |n: i128| file.find(&[KeyValue::Integer(n)]).unwrap();
    assert_eq!(
        [find(7), find(-1), find(2), find(3), find(1 << 40)],
        [vec![0], vec![1], vec![2], vec![], vec![]]
    );
}

#[test]
fn keys_of_several_types() {
    let path = Path::new("../../spec/vectors/accept/file-keys.pages");
    let file = PageFile::open(path).unwrap();
    let key = |d: i128| {
        [
            KeyValue::from("a"),
            KeyValue::from(true),
            KeyValue::Bytes(vec![0, 0xff]),
            KeyValue::Bytes(vec![1, 2, 3]),
            KeyValue::from(d),
        ]
    };
    assert_eq!(file.find(&key(7)).unwrap(), [0, 5]);
    assert_eq!(file.find(&key(-7)).unwrap(), [1]);
    assert_eq!(file.find(&key(0)).unwrap(), [0u64; 0]);
    let error = file.find(&key(7)[..4]).unwrap_err();
    assert_eq!(error.to_string(), "4 values for a key of 5 fields");
    let mut wrong = key(7);
    wrong[1] = KeyValue::from("true");
    let error = file.find(&wrong).unwrap_err();
    assert_eq!(error.to_string(), "the key field \"inner.b\" takes true or false");
}

#[test]
fn refused() {
    let mut failures = Vec::new();
    for path in vectors("reject") {
        let file = path.file_stem().unwrap().to_str().unwrap();
        let expected = file.split('-').next().unwrap();
        match PageFile::open(&path).and_then(|file| file.check()) {
            Err(error) if error.name() == expected => {}
            Err(error) => failures.push(format!("{file}: refused as {} ({error})", error.name())),
            Ok(_) => failures.push(format!("{file}: accepted")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
