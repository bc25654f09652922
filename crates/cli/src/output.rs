//! The output file: its path and format, and its atomic replacement.

use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use clap::Args;
use dray_pagefile::KeyPath;
use dray_server::stale_files;
use tempfile::NamedTempFile;

use crate::failure::Failure;
use crate::format::{FileCompression, FileOptions, Format, ROW_GROUP_ROWS};
use crate::interrupt::Interrupt;

/// The description of output files in `--help`.
pub(crate) const HELP: &str = "\
FILE's ending selects the format: .parquet, .arrow or .feather (Arrow IPC file), .arrows (Arrow \
IPC stream), .csv, .json or .ndjson (one object per line), .pages (objects that `dray pages` reads \
in place). The output is written to a temporary file in the same folder, which replaces FILE once \
it is complete and on disk. If anything fails, FILE is unchanged. The new file keeps FILE's mode, \
owner and group.

Every value is exact in every format, or it is an error. In CSV, NULL is an empty field and an \
empty string is \"\"; floats may be NaN, inf and -inf, which are \"NaN\", \"Infinity\" and \
\"-Infinity\" in JSON. Years beyond 9999 have a sign. Parquet has no timestamps or times in \
seconds, which become milliseconds, no date64, which becomes date32, and no intervals.";

/// The ending of incomplete files.
const UNFINISHED: &str = ".unfinished";

/// The file to write.
#[derive(Debug, Args)]
pub(crate) struct Output {
    /// The file to write: .parquet, .arrow, .feather, .arrows, .csv, .json, .ndjson or .pages
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
        let ending = self
            .path
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
                let path = self.path.display();
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

/// A temporary file that replaces the output file once it is complete. Dropping it before that
/// removes it.
pub(crate) struct UnfinishedFile<'a> {
    temporary: NamedTempFile,
    target: PathBuf,
    /// The metadata of the file to replace.
    replaced: Option<Metadata>,
    interrupt: &'a Interrupt,
}

impl<'a> UnfinishedFile<'a> {
    pub(crate) fn create(path: &Path, interrupt: &'a Interrupt) -> Result<Self, Failure> {
        let failed =
            |cause: io::Error| Failure::Output(format!("can't write {}: {cause}", path.display()));
        let refused =
            |what: &str| Err(Failure::Output(format!("can't write {}: {what}", path.display())));
        // Links are followed: their target is replaced. Reading the metadata first makes the kernel
        // refuse links that another user put into a world-writable folder.
        let (target, replaced) = match path.metadata() {
            Ok(metadata) if !metadata.is_file() => return refused("it is not a regular file"),
            Ok(metadata) => (path.canonicalize().map_err(failed)?, Some(metadata)),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound && path.is_symlink() => {
                return refused("it is a link to a file that is not there");
            }
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => (path.to_owned(), None),
            Err(cause) => return Err(failed(cause)),
        };
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let prefix = format!(".{name}.");
        // A replacement is private until it gets the file's owner and mode. The mode of a new file
        // is reduced by the umask.
        let mode = if replaced.is_some() { 0o600 } else { 0o666 };
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(UNFINISHED).permissions(Permissions::from_mode(mode));
        let temporary = loop {
            let temporary = builder.tempfile_in(folder(&target)).map_err(failed)?;
            if stale_files::claim(temporary.as_file(), temporary.path()) {
                break temporary;
            }
        };
        interrupt.set_unfinished(Some(temporary.path().to_owned()));
        stale_files::remove(
            folder(&target),
            |name| {
                name.strip_prefix(&prefix)
                    .and_then(|name| name.strip_suffix(UNFINISHED))
                    .is_some_and(is_random)
            },
            |path| {
                eprintln!("removed {}, left behind by a program that was killed", path.display())
            },
        );
        Ok(Self { temporary, target, replaced, interrupt })
    }

    pub(crate) fn open(&self) -> io::Result<File> {
        self.temporary.as_file().try_clone()
    }

    /// The failure to write the file.
    pub(crate) fn failure(&self, cause: &(dyn std::error::Error + 'static)) -> Failure {
        Failure::output(&self.target.display().to_string(), cause)
    }

    /// Replaces the output file, durably. Returns its size in bytes.
    pub(crate) fn finish(self) -> Result<u64, Failure> {
        let failed = |cause: io::Error| {
            Failure::Output(format!("can't write {}: {cause}", self.target.display()))
        };
        if let Some(replaced) = &self.replaced {
            copy_owner_and_mode(self.temporary.as_file(), replaced).map_err(failed)?;
        }
        self.temporary.as_file().sync_all().map_err(failed)?;
        let file = self.temporary.persist(&self.target).map_err(|cause| failed(cause.error))?;
        self.interrupt.set_unfinished(None);
        File::open(folder(&self.target)).and_then(|folder| folder.sync_all()).map_err(failed)?;
        Ok(file.metadata().map_err(failed)?.len())
    }
}

/// Gives the file the owner, group and mode of the one that it replaces, as far as this user may.
/// If the group can't be kept, its permissions are dropped.
fn copy_owner_and_mode(file: &File, replaced: &Metadata) -> io::Result<()> {
    let now = file.metadata()?;
    let mut mode = replaced.mode() & 0o777;
    if replaced.gid() != now.gid() && fchown(file, None, Some(replaced.gid())).is_err() {
        // The file's own group may do no more than everybody may.
        mode = mode & !0o070 | (mode & 0o007) << 3 & mode;
    }
    if replaced.uid() != now.uid() {
        // Only root may. For other users the file becomes their own, as with an editor.
        let _ = fchown(file, Some(replaced.uid()), None);
    }
    // After the change of owner, which may clear permissions.
    file.set_permissions(Permissions::from_mode(mode))
}

/// Whether this may be the random part of a name by [`tempfile`].
fn is_random(text: &str) -> bool {
    text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
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
