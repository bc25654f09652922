//! The generated modules of `tests/generated` are what the generator writes. `DRAY_WRITE=1` writes
//! them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by them")]

#[allow(dead_code, reason = "the other test uses more of it")]
mod schemas;

use std::fs;
use std::path::Path;

use dray_accessors::Language;

#[test]
fn modules_are_as_the_generator_writes_them() {
    for (module, name, schema, key) in schemas::all() {
        let sources = Language::Rust.sources(&schemas::model(name, schema, key), module);
        let [source] = &sources[..] else { panic!("{} files", sources.len()) };
        let path = Path::new("tests/generated").join(&source.path);
        if std::env::var_os("DRAY_WRITE").is_some() {
            fs::write(&path, &source.text).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        let differs = found.lines().zip(source.text.lines()).find(|(a, b)| a != b);
        assert!(found == source.text, "{}: {differs:?}; run with DRAY_WRITE=1", path.display());
        let long = source.text.lines().filter(|line| line.chars().count() > 100);
        assert_eq!(long.collect::<Vec<_>>(), [""; 0], "{}", path.display());
    }
}
