//! The output: its path and format. It appears as a whole or not at all.

mod file;
mod object;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use dray_pagefile::KeyPath;

use self::file::LocalFile;
use self::object::{ObjectWriter, StoredObject};
use crate::failure::Failure;
use crate::format::{FileCompression, FileOptions, Format, ROW_GROUP_ROWS};
use crate::interrupt::Interrupt;

/// The description of output files in `--help`.
pub(crate) const HELP: &str = "\
FILE's ending selects the format: .parquet, .arrow or .feather (Arrow IPC file), .arrows (Arrow \
IPC stream), .csv, .json or .ndjson (one object per line), .pages (objects that `dray pages` reads \
in place). The output is written to a temporary file in the same folder, which replaces FILE once \
it is complete and on disk. If anything fails, FILE is unchanged. The new file keeps FILE's mode, \
owner and group. FILE may be a URL: s3://BUCKET/KEY, gs:// or az://. The object is sent in parts \
and appears once it is complete; if anything fails, the parts are removed.

Every value is exact in every format, or it is an error. In CSV, NULL is an empty field and an \
empty string is \"\"; floats may be NaN, inf and -inf, which are \"NaN\", \"Infinity\" and \
\"-Infinity\" in JSON. Years beyond 9999 have a sign. Parquet has no timestamps or times in \
seconds, which become milliseconds, no date64, which becomes date32, and no intervals.";

/// The file to write.
#[derive(Debug, Args)]
pub(crate) struct Output {
    /// The file or URL to write: .parquet, .arrow, .feather, .arrows, .csv, .json, .ndjson or
    /// .pages
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) path: PathBuf,
    /// Compression within the file: none, lz4, snappy (Parquet), gzip (Parquet), zstd or zstd:LEVEL
    /// [default: zstd for Parquet, none for the others]
    #[arg(long, value_name = "CHOICE")]
    file_compression: Option<FileCompression>,
    /// Maximum rows of a Parquet row group, which is held in memory while it is written
    #[arg(long, value_name = "N", default_value_t = ROW_GROUP_ROWS)]
    row_group_rows: usize,
    /// Fields by which `dray pages --find` finds objects of a .pages file; NAME.NAME is a field of
    /// a struct, and "NAME" a name with points, commas or quotes, which are written twice
    #[arg(long, value_name = "NAME,…", value_parser = key_paths)]
    key: Vec<Key>,
}

impl Output {
    /// The file at `path`, with the defaults of its format.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, file_compression: None, row_group_rows: ROW_GROUP_ROWS, key: Vec::new() }
    }

    /// The file's format, and how to write it.
    pub(crate) fn format(&self) -> Result<(Format, FileOptions), Failure> {
        let path = match self.path.to_str().filter(|text| dray_store::is_url(text)) {
            Some(url) => dray_store::shown(url).into(),
            None => self.path.clone(),
        };
        let ending = path
            .extension()
            .and_then(|ending| ending.to_str())
            .unwrap_or_default()
            .to_ascii_lowercase();
        let format = match ending.as_str() {
            "parquet" => Format::Parquet,
            "arrow" | "feather" => Format::ArrowFile,
            "arrows" => Format::ArrowStream,
            "csv" => Format::Csv,
            "json" | "ndjson" | "jsonl" => Format::Json,
            "pages" => Format::Pages,
            _ => {
                let path = path.display();
                let endings = ".parquet, .arrow, .feather, .arrows, .csv, .json, .ndjson or .pages";
                return Err(Failure::Usage(format!(
                    "the ending of {path} selects no format; use {endings}"
                )));
            }
        };
        if let Some(compression) =
            self.file_compression.filter(|compression| !format.allows(*compression))
        {
            return Err(Failure::Usage(
                format!("a .{ending} file can't be compressed with {compression:?}").to_lowercase(),
            ));
        }
        if self.row_group_rows == 0 {
            return Err(Failure::Usage("--row-group-rows 0: expected 1 or more".to_owned()));
        }
        if format != Format::Pages && !self.key.is_empty() {
            return Err(Failure::Usage(format!("a .{ending} file has no key; use .pages")));
        }
        Ok((
            format,
            FileOptions {
                compression: self.file_compression,
                row_group_rows: self.row_group_rows,
                key: self.key.iter().flat_map(|key| key.0.clone()).collect(),
                ..FileOptions::default()
            },
        ))
    }
}

/// The paths of a key's fields.
#[derive(Debug, Clone)]
struct Key(Vec<KeyPath>);

/// Reads paths with commas between them, of names with points between them.
fn key_paths(text: &str) -> Result<Key, String> {
    let (mut paths, mut path, mut rest) = (Vec::new(), Vec::new(), text);
    loop {
        let (name, behind) = key_name(rest)?;
        path.push(name);
        match behind.chars().next() {
            Some('.') => {}
            Some(',') => paths.push(std::mem::take(&mut path)),
            Some(_) => return Err(format!("{behind:?} follows a name in quotes")),
            None => {
                paths.push(path);
                return Ok(Key(paths));
            }
        }
        rest = &behind[1..];
    }
}

/// A name at the start of a text, and what follows it.
fn key_name(text: &str) -> Result<(String, &str), String> {
    let Some(quoted) = text.strip_prefix('"') else {
        let (name, behind) = text.split_at(text.find(['.', ',']).unwrap_or(text.len()));
        return Ok((name.to_owned(), behind));
    };
    let (mut name, mut rest) = (String::new(), quoted);
    while let Some((part, behind)) = rest.split_once('"') {
        name += part;
        let Some(more) = behind.strip_prefix('"') else { return Ok((name, behind)) };
        name.push('"');
        rest = more;
    }
    Err("a name's closing quote is missing".to_owned())
}

/// Output that appears at its path or URL once it is complete. Dropping it before that removes it.
pub(crate) enum UnfinishedFile<'a> {
    Local(Box<LocalFile<'a>>),
    Stored(StoredObject<'a>),
}

/// Writes an [`UnfinishedFile`].
pub(crate) enum OutputWriter {
    Local(File),
    Stored(ObjectWriter),
}

impl<'a> UnfinishedFile<'a> {
    pub(crate) fn create(path: &Path, interrupt: &'a Interrupt) -> Result<Self, Failure> {
        match path.to_str().filter(|text| dray_store::is_url(text)) {
            Some(url) => Ok(Self::Stored(StoredObject::create(url, interrupt)?)),
            None => Ok(Self::Local(Box::new(LocalFile::create(path, interrupt)?))),
        }
    }

    pub(crate) fn open(&self) -> io::Result<OutputWriter> {
        Ok(match self {
            Self::Local(file) => OutputWriter::Local(file.open()?),
            Self::Stored(object) => OutputWriter::Stored(object.writer()),
        })
    }

    /// The failure to write the output.
    pub(crate) fn failure(&self, cause: &(dyn std::error::Error + 'static)) -> Failure {
        match self {
            Self::Local(file) => Failure::output(&file.target(), cause),
            Self::Stored(object) => object.failure(cause),
        }
    }

    /// Makes the output visible, durably. Returns its size in bytes.
    pub(crate) fn finish(self) -> Result<u64, Failure> {
        match self {
            Self::Local(file) => file.finish(),
            Self::Stored(object) => object.finish(),
        }
    }
}

impl Write for OutputWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Local(file) => file.write(bytes),
            Self::Stored(object) => object.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Local(file) => file.flush(),
            Self::Stored(object) => object.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_quotes_have_points() {
        let paths = |text: &str| {
            let names = key_paths(text)?.0.into_iter().map(|path| path.join("|"));
            Ok::<_, String>(names.collect::<Vec<_>>())
        };
        assert_eq!(paths("day,address.city").unwrap(), ["day", "address|city"]);
        assert_eq!(
            paths(r#""order.no",a."b,c".d,"say ""x""""#).unwrap(),
            ["order.no", "a|b,c|d", r#"say "x""#]
        );
        assert_eq!(paths(r#"5"6.x"#).unwrap(), [r#"5"6|x"#]);
        assert!(paths(r#""a"#).unwrap_err().contains("closing quote"));
        assert!(paths(r#""a"b"#).unwrap_err().contains("follows"));
    }
}
