//! Files of many pages: what is written is read back, and whatever happens to a file, its objects
//! are the written ones or an error.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

use std::fs;
use std::io::Write;
use std::thread;

use bytes::Bytes;
use dray_format::{Batch, Column, Field, Schema, Type, Values};
use dray_page::Object;
use dray_pagefile::{
    ErrorKind, KeyValue, PageFile, PageFileEditor, PageFileOptions, PageFileWriter, Salvage,
    Written,
};

const UNIT: usize = 4096;

fn schema() -> Schema {
    let field = |name: &str, data_type| Field {
        name: name.into(),
        data_type,
        nullable: false,
        metadata: vec![],
    };
    Schema { fields: vec![field("n", Type::Int64), field("text", Type::Utf8)] }
}

/// The text of object n: some fit their place, some need a tail, and one in 500 a large page.
fn text(n: u64) -> String {
    match n % 500 {
        499 => "large ".repeat(1000),
        other => "x".repeat((other % 40) as usize),
    }
}

/// Object n has the key n / 2.
fn batch(from: u64, rows: u64) -> Batch {
    let numbers = (from..from + rows).flat_map(|n| (n / 2).to_le_bytes()).collect::<Vec<u8>>();
    let (mut offsets, mut data) = (vec![0u32], Vec::new());
    for n in from..from + rows {
        data.extend_from_slice(text(n).as_bytes());
        offsets.push(data.len() as u32);
    }
    let offsets = offsets.iter().flat_map(|at| at.to_le_bytes()).collect::<Vec<u8>>();
    let rows = rows as usize;
    let column = |values| Column { rows, validity: None, values };
    let numbers = column(Values::Fixed { width: 8, bytes: numbers.into() });
    let texts = column(Values::Bytes { offsets: offsets.into(), data: data.into() });
    Batch { rows, columns: vec![numbers, texts] }
}

fn write(out: impl Write, rows: u64, options: &PageFileOptions) -> Written {
    let mut writer = PageFileWriter::new(out, schema(), options).unwrap();
    let mut from = 0;
    while from < rows {
        let count = (rows - from).min(977);
        writer.write(&batch(from, count)).unwrap();
        from += count;
    }
    writer.finish().unwrap()
}

fn small_pages() -> PageFileOptions {
    PageFileOptions { page_bytes: UNIT, key: vec![vec!["n".into()]] }
}

fn is_object(object: Object<'_>, n: u64) -> bool {
    object.field(0).unwrap().u64() == Some(n / 2)
        && object.field(1).unwrap().str() == Some(&text(n))
}

#[test]
fn objects_come_back_by_number_and_by_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pages");
    let rows = 20_000;
    let written = write(fs::File::create(&path).unwrap(), rows, &small_pages());
    assert_eq!(written.objects, rows);
    assert_eq!(written.bytes, path.metadata().unwrap().len());
    let file = PageFile::open(&path).unwrap();
    assert_eq!((file.len(), file.page_count() as u64), (rows, written.pages));
    assert!(file.page_count() > 100, "{} pages", file.page_count());
    thread::scope(|scope| {
        for first in 0..4 {
            let file = &file;
            scope.spawn(move || {
                for n in (first * 31..rows).step_by(7) {
                    assert!(is_object(file.object(n).unwrap(), n));
                    let found = file.find(&[KeyValue::Integer(i128::from(n / 2))]).unwrap();
                    assert_eq!(found, [n / 2 * 2, n / 2 * 2 + 1]);
                }
            });
        }
    });
    let all = file.pages().flat_map(|page| page.unwrap().objects());
    assert_eq!(all.zip(0..).filter(|(object, n)| is_object(*object, *n)).count() as u64, rows);
    file.check().unwrap();
    assert_eq!(file.object(rows).unwrap_err().kind(), ErrorKind::Usage);
    assert!(file.find(&[KeyValue::Integer(-1)]).unwrap().is_empty());
}

#[test]
fn changed_objects_are_written_anew() {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let rows = 3000;
    write(&mut before, rows, &small_pages());
    let file = PageFile::from_bytes(Bytes::from(before.clone())).unwrap();
    let number = file.layout().mutator::<i64>(&["n"]).unwrap();
    let name = file.layout().mutator::<str>(&["text"]).unwrap();
    let mut editor = PageFileEditor::new(file);
    assert!(!editor.is_changed());
    // All objects of a page grow, some beyond it, and one is a copy of another file's.
    let new_text = |n: u64| text(n) + &"y".repeat(if n.is_multiple_of(7) { 2000 } else { 30 });
    let source = PageFile::from_bytes(Bytes::from(before.clone())).unwrap();
    for n in 1000..2000 {
        editor.change(n, |object| object.set(&name, &new_text(n))).unwrap();
        editor.change(n, |object| object.set(&number, -1)).unwrap();
        assert_eq!(editor.object(n).unwrap().field(1).unwrap().str(), Some(&*new_text(n)));
    }
    editor.replace(2500, source.object(499).unwrap()).unwrap();
    let rebuilt = |old: Object<'_>, object: &mut dray_page::ObjectBuilder<'_>| {
        object.set(&number, old.field(0).unwrap().i64().unwrap() + 1)
    };
    editor.rebuild(2600, rebuilt).unwrap();
    let refused = editor.change(2700, |object| object.clear(&number)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Inside(dray_page::ErrorKind::Missing));
    let refused = editor.change(rows, |_| Ok(())).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Usage);
    assert!(
        editor.is_changed() && editor.file().object(1000).is_ok_and(|old| is_object(old, 1000))
    );
    let written = editor.write(&mut after).unwrap();
    assert_eq!(written.objects, rows);
    let file = PageFile::from_bytes(Bytes::from(after.clone())).unwrap();
    file.check().unwrap();
    for n in 0..rows {
        let object = file.object(n).unwrap();
        let value =
            (object.field(0).unwrap().i64().unwrap(), object.field(1).unwrap().str().unwrap());
        let expected = match n {
            1000..2000 => (-1, new_text(n)),
            2500 => (249, text(499)),
            2600 => (1301, String::new()),
            _ => ((n / 2) as i64, text(n)),
        };
        assert_eq!(value, (expected.0, &*expected.1), "object {n}");
    }
    assert_eq!(file.find(&[KeyValue::Integer(-1)]).unwrap(), (1000..2000).collect::<Vec<_>>());
    // As if they had never been other ones.
    let mut anew = Vec::new();
    let mut writer = PageFileWriter::new(&mut anew, schema(), &small_pages()).unwrap();
    (0..rows).for_each(|n| writer.copy(file.object(n).unwrap()).unwrap());
    writer.finish().unwrap();
    assert!(anew == after);
    assert!(PageFileEditor::new(source).write(Vec::new()).is_ok());
}

#[test]
fn a_cut_file_is_refused_and_its_whole_pages_are_salvaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pages");
    let mut whole = Vec::new();
    write(&mut whole, 3000, &small_pages());
    let file = PageFile::from_bytes(Bytes::from(whole.clone())).unwrap();
    // Where each page ends, and the objects up to there.
    let mut ends = vec![(UNIT, 0)];
    for page in file.pages() {
        let (end, objects) = ends[ends.len() - 1];
        let page = page.unwrap();
        ends.push((end + page.bytes().len(), objects + page.len() as u64));
    }
    for cut in (0..whole.len()).step_by(701).chain(whole.len() - 140..whole.len()) {
        fs::write(&path, &whole[..cut]).unwrap();
        let error = PageFile::open(&path).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Cut | ErrorKind::Magic), "{cut}: {error}");
        let Some((_, objects)) = ends.iter().rev().find(|(end, _)| *end <= cut) else {
            assert!(Salvage::open(&path).is_err());
            continue;
        };
        let said = format!("with {objects} objects are whole and can be salvaged");
        assert!(error.to_string().ends_with(&said), "{cut}: {error}");
        let salvage = Salvage::open(&path).unwrap();
        assert_eq!(salvage.objects(), *objects, "{cut}");
        let all = salvage.pages().iter().flat_map(|page| page.objects());
        assert_eq!(all.zip(0..).filter(|(it, n)| is_object(*it, *n)).count() as u64, *objects);
    }
}

#[test]
fn a_damaged_page_hides_no_other() {
    let mut whole = Vec::new();
    write(&mut whole, 2000, &small_pages());
    let pages = PageFile::from_bytes(Bytes::from(whole.clone())).unwrap().page_count();
    let mut objects_seen = 0;
    for at in (0..whole.len()).step_by(509) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        let Ok(file) = PageFile::from_bytes(Bytes::from(damaged)) else { continue };
        let read = file.pages().filter(Result::is_ok).count();
        let keys = file.find(&[KeyValue::Integer(500)]);
        assert!(file.check().is_err(), "byte {at} is not checked");
        assert!(read >= pages - 1, "byte {at}: {read} of {pages} pages");
        for n in 0..2000 {
            match file.object(n) {
                Ok(object) => assert!(is_object(object, n), "byte {at}, object {n}"),
                Err(error) => assert!(error.to_string().starts_with("page "), "{error}"),
            }
            objects_seen += 1;
        }
        if let Ok(found) = keys {
            assert_eq!(found, [1000, 1001], "byte {at}");
        }
    }
    assert!(objects_seen > 0);
}

#[test]
fn what_is_no_key_is_refused_before_anything_is_written() {
    let refused = |key: &[&str]| {
        let path = key.iter().map(|name| (*name).to_owned()).collect();
        let options = PageFileOptions { key: vec![path], ..PageFileOptions::default() };
        let mut out = Vec::new();
        let error = PageFileWriter::new(&mut out, schema(), &options).unwrap_err().to_string();
        assert!(out.is_empty());
        error
    };
    assert_eq!(refused(&["m"]), "the key \"m\" is not one field; there are n, text");
    assert_eq!(refused(&["n", "m"]), "the key \"n.m\" is not within structs alone");
    assert_eq!(refused(&[]), "a key path without names");
}

/// A disk that is full.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.0.checked_sub(bytes.len()) {
            Some(left) => {
                self.0 = left;
                Ok(bytes.len())
            }
            None => Err(std::io::ErrorKind::StorageFull.into()),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error_wherever_it_is_met() {
    let mut whole = Vec::new();
    write(&mut whole, 500, &small_pages());
    for room in (0..whole.len()).step_by(1000).chain([whole.len() - 1]) {
        let written = PageFileWriter::new(Full(room), schema(), &small_pages())
            .and_then(|mut writer| {
                writer.write(&batch(0, 500))?;
                writer.finish()
            })
            .unwrap_err();
        assert_eq!(written.kind(), ErrorKind::Io, "{written}");
    }
}
