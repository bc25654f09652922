//! The recorded connections of `spec/vectors`: accepted ones have the messages listed in their
//! JSON, others are refused with the refusal in their name.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod drive;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

fn vectors(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new("../../spec/vectors").join(folder);
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let is_recorded = |path: &PathBuf| {
        path.extension().is_some_and(|kind| {
            ["session", "requests", "exchange"].iter().any(|known| kind == *known)
        })
    };
    let mut files: Vec<_> = files.filter(is_recorded).collect();
    assert!(!files.is_empty(), "no vectors in {}", folder.display());
    files.sort();
    files
}

/// The names of the messages, or the refusal.
fn play(path: &Path) -> Result<Vec<&'static str>, drive::Refused> {
    let bytes = fs::read(path).unwrap();
    match path.extension().and_then(|kind| kind.to_str()) {
        Some("session") => drive::answers(&bytes),
        Some("requests") => drive::requests(&bytes),
        _ => drive::exchange(&bytes).map(|heard| heard.names),
    }
}

#[test]
fn accepted() {
    let mut failures = Vec::new();
    for path in vectors("accept") {
        let json = fs::read(format!("{}.json", path.display())).unwrap();
        let expected: Value = serde_json::from_slice(&json).unwrap();
        let name = path.file_name().unwrap().display();
        match play(&path) {
            Ok(names) if expected["messages"] == Value::from(names.clone()) => {}
            other => failures.push(format!("{name}: {other:?}, expected {expected}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn refused() {
    let mut failures = Vec::new();
    for path in vectors("reject") {
        let name = path.file_name().unwrap().to_str().unwrap();
        let expected = name.split('-').next().unwrap();
        match play(&path) {
            Err(refused) if refused.name == expected => {}
            other => failures.push(format!("{name}: {other:?}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
