//! The vectors of `spec/vectors`: accepted ones have the rows of their JSON, refused ones the name
//! of their refusal.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

mod rows;
#[path = "../../format/tests/words/mod.rs"]
mod words;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use dray_format::{Checksum, Schema};
use dray_page::{ColumnsBuilder, Layout, PageBuilder, VerifiedPage};
use rows::row;
use serde_json::{Value, json};
use words::{field, values};

fn vectors(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new("../../spec/vectors").join(folder);
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|kind| kind == "page")).collect();
    assert!(!files.is_empty(), "no vectors in {}", folder.display());
    files.sort();
    files
}

/// The layout and the page of a file, or the name and the message of the refusal.
fn decode(path: &Path) -> Result<(Arc<Layout>, VerifiedPage), (&'static str, String)> {
    let file = fs::read(path).unwrap();
    let (schema_bytes, rest) = file.split_first_chunk::<4>().unwrap();
    let (schema, page) = rest.split_at(u32::from_le_bytes(*schema_bytes) as usize);
    let schema = Schema::decode(schema).map_err(|error| (error.name(), error.to_string()))?;
    let page = Bytes::copy_from_slice(page);
    let verified = Layout::new(schema)
        .and_then(|layout| Ok((layout.clone(), VerifiedPage::verify(&layout, page)?)));
    verified.map_err(|error| (error.name(), error.to_string()))
}

#[test]
fn accepted() {
    for path in vectors("accept") {
        let expected: Value =
            serde_json::from_slice(&fs::read(path.with_extension("page.json")).unwrap()).unwrap();
        let name = path.file_stem().unwrap().display();
        let (layout, page) =
            decode(&path).unwrap_or_else(|(refusal, what)| panic!("{name}: {refusal} ({what})"));
        let fields = &layout.schema().fields;
        let rows = page.objects().map(|object| row(object, fields));
        let mut found = json!({
            "about": expected["about"],
            "schema": fields.iter().map(field).collect::<Vec<_>>(),
            "sequence": page.header().sequence,
            "rows": rows.collect::<Vec<_>>(),
        });
        if page.header().edition != 0 {
            found["edition"] = page.header().edition.into();
        }
        assert_eq!(found, expected, "{name}");

        let mut columns = ColumnsBuilder::new(layout.clone(), 1 << 20);
        columns.append(page.objects()).unwrap();
        let batch = columns.finish();
        for (i, (column, field)) in batch.columns.iter().zip(fields).enumerate() {
            let expected: Value =
                expected["rows"].as_array().unwrap().iter().map(|row| row[i].clone()).collect();
            assert_eq!(values(column, &field.data_type), expected, "{name}, column {i}");
        }

        // This crate's writer makes the same page of the values, apart from the header and
        // the order of its extents.
        let page_bytes = if page.header().large { 4 << 10 } else { page.bytes().len() };
        let mut builder = PageBuilder::new(layout, page_bytes, Checksum::None).unwrap();
        builder.append(&batch).unwrap();
        let again = builder.finish();
        assert_eq!(again.len(), 1, "{name}");
        if page.header().moved {
            let pairs = again[0].objects().zip(page.objects());
            assert!(pairs.clone().all(|(again, object)| again.bytes() == object.bytes()), "{name}");
        } else {
            assert_eq!(again[0].bytes()[64..], page.bytes()[64..], "{name}");
        }
    }
}

#[test]
fn refused() {
    let mut failures = Vec::new();
    for path in vectors("reject") {
        let file = path.file_stem().unwrap().to_str().unwrap();
        let expected = file.split('-').next().unwrap();
        match decode(&path) {
            Err((name, _)) if name == expected => {}
            Err((name, what)) => failures.push(format!("{file}: refused as {name} ({what})")),
            Ok(_) => failures.push(format!("{file}: accepted")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
