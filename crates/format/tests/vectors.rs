//! The vectors of `spec/vectors`: accepted ones have the values of their JSON, refused ones the
//! name of their refusal.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

mod words;

use std::fs;
use std::path::{Path, PathBuf};

use arrow_array::{Array, RecordBatch};
use bytes::Bytes;
use dray_format::arrow::{Decoder, StringLayout};
use dray_format::{Batch, Error, Header, Limits, Schema, Tables, read_with};
use serde_json::{Value, json};
use words::{field, values};

fn vectors(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new("../../spec/vectors").join(folder);
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|kind| kind == "chunk")).collect();
    assert!(!files.is_empty(), "no vectors in {}", folder.display());
    files.sort();
    files
}

fn decode(path: &Path) -> Result<(Schema, Header, Batch, RecordBatch), Error> {
    let file = fs::read(path).unwrap();
    let (schema_bytes, rest) = file.split_first_chunk::<4>().unwrap();
    let (schema, chunk) = rest.split_at(u32::from_le_bytes(*schema_bytes) as usize);
    let schema = Schema::decode(schema)?;
    let (mut chunk, mut tables, limits) =
        (Bytes::copy_from_slice(chunk), Tables::default(), Limits::default());
    tables.take(&mut chunk, &limits)?;
    let (header, batch) = read_with(&chunk, &schema, &limits, &tables)?;
    let (_, arrow) =
        Decoder::new(schema.clone(), StringLayout::Offsets).read_with(&chunk, &limits, &tables)?;
    Ok((schema, header, batch, arrow))
}

#[test]
fn accepted() {
    let mut failures = Vec::new();
    for path in vectors("accept") {
        let expected: Value =
            serde_json::from_slice(&fs::read(path.with_extension("json")).unwrap()).unwrap();
        let name = path.file_stem().unwrap().display();
        let (schema, header, batch, arrow) = match decode(&path) {
            Ok(decoded) => decoded,
            Err(error) => {
                failures.push(format!("{name}: {} ({error})", error.name()));
                continue;
            }
        };
        let columns = batch
            .columns
            .iter()
            .zip(&schema.fields)
            .map(|(column, field)| values(column, &field.data_type));
        let found = json!({
            "about": expected["about"],
            "schema": schema.fields.iter().map(field).collect::<Vec<_>>(),
            "sequence": header.sequence,
            "rows": header.rows,
            "decoded_bytes": header.decoded_bytes,
            "columns": columns.collect::<Vec<_>>(),
        });
        if found != expected {
            failures.push(format!("{name}: found {found}, expected {expected}"));
        }
        let mut encoded = Vec::new();
        schema.encode(&mut encoded).unwrap();
        assert_eq!(Schema::decode(&encoded).unwrap(), schema, "{name}");
        for column in arrow.columns() {
            if let Err(error) = column.to_data().validate_full() {
                failures.push(format!("{name}: not a valid Arrow array: {error}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn refused() {
    let mut failures = Vec::new();
    for path in vectors("reject") {
        let file = path.file_stem().unwrap().to_str().unwrap();
        let expected = file.split('-').next().unwrap();
        match decode(&path) {
            Err(error) if error.name() == expected => {}
            Err(error) => failures.push(format!("{file}: refused as {} ({error})", error.name())),
            Ok(_) => failures.push(format!("{file}: accepted")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
