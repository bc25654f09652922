//! Table names: from `NAME=PATH`, or from the path.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::CatalogError;

/// One table to serve: `PATH` or `NAME=PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSpec {
    /// The table's name in lower case, as SQL folds it; None derives it from the path.
    pub name: Option<String>,
    /// A file or folder, or the URL of one in an object store.
    pub path: PathBuf,
}

impl FromStr for TableSpec {
    type Err = CatalogError;

    /// Splits at the first `=`, unless the text before it has a `/` or `.`: `data/year=2024` is a
    /// path. For a folder `year=2024` in the working folder, write `./year=2024`.
    fn from_str(text: &str) -> Result<Self, CatalogError> {
        let (name, path) = match text.split_once('=') {
            Some((name, path)) if !name.contains(['/', '.']) => (Some(name), path),
            _ => (None, text),
        };
        if path.is_empty() || name.is_some_and(str::is_empty) {
            return Err(CatalogError::BadSpec { found: text.to_owned() });
        }
        let name = match name {
            Some(name)
                if table_name(name).as_deref() != Some(name.to_ascii_lowercase().as_str()) =>
            {
                return Err(CatalogError::BadName { found: name.to_owned() });
            }
            Some(name) => Some(name.to_ascii_lowercase()),
            None => None,
        };
        Ok(Self { name, path: PathBuf::from(path) })
    }
}

/// The table name for a file name without its ending: in lower case, with `_` for characters that
/// would need quotes in SQL. None if no letter or digit is left.
pub(super) fn table_name(stem: &str) -> Option<String> {
    let mut name: String = stem
        .to_ascii_lowercase()
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { '_' })
        .collect();
    if name.starts_with(|c: char| c.is_numeric()) {
        name.insert(0, '_');
    }
    name.contains(char::is_alphanumeric).then_some(name)
}

/// The name of a file or folder as text, with `..` and `.` resolved.
pub(super) fn file_name(path: &Path) -> String {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    name(path).or_else(|| name(&path.canonicalize().ok()?)).unwrap_or_default()
}

/// Splits `orders.CSV.gz` into `orders` and `CSV.gz`; None if the ending is unknown.
pub(super) fn split_ending(name: &str) -> Option<(&str, &str)> {
    const TEXT: [&str; 5] = ["csv", "tsv", "json", "ndjson", "jsonl"];
    const BINARY: [&str; 5] = ["parquet", "arrow", "arrows", "feather", "ipc"];
    let is_one_of =
        |endings: &[&str], ending: &str| endings.iter().any(|e| e.eq_ignore_ascii_case(ending));

    let (stem, last) = name.rsplit_once('.')?;
    if is_one_of(&TEXT, last) || is_one_of(&BINARY, last) {
        return Some((stem, last));
    }
    let (stem, format) = stem.rsplit_once('.')?;
    (is_one_of(&["gz", "zst"], last) && is_one_of(&TEXT, format))
        .then(|| (stem, &name[stem.len() + 1..]))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_before_the_first_equals_sign() {
        let spec: TableSpec = "Orders=data/o=1.csv".parse().unwrap();
        assert_eq!(spec, TableSpec { name: Some("orders".into()), path: "data/o=1.csv".into() });
        let spec: TableSpec = "./year=2024".parse().unwrap();
        assert_eq!(spec, TableSpec { name: None, path: "./year=2024".into() });
        for bad in ["", "=x.csv", "x=", "a b=x.csv", "1=x.csv", "é-=x.csv"] {
            assert!(bad.parse::<TableSpec>().is_err(), "{bad}");
        }
    }

    #[test]
    fn names_need_no_quotes() {
        assert_eq!(table_name("bts_ontime_2019_01").as_deref(), Some("bts_ontime_2019_01"));
        assert_eq!(table_name("2019-Sales (1)").as_deref(), Some("_2019_sales__1_"));
        assert_eq!(table_name("Größe").as_deref(), Some("größe"));
        assert_eq!(table_name("--"), None);
    }
}
