//! A file to write: its place, its format, and that it appears when it is complete.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use tempfile::NamedTempFile;

use crate::failure::Failure;
use crate::format::{FileCompression, FileOptions, Format, ROW_GROUP_ROWS};
use crate::interrupt::Interrupt;

/// What `--help` says of it.
pub(crate) const HELP: &str = "\
FILE's ending names the format: .parquet, .arrow or .feather (Arrow IPC file), .arrows (Arrow IPC stream), .csv, .json or
.ndjson (one object a line). It is written aside, in the same folder, and takes FILE's place when it is complete and on
disk; if anything goes wrong, FILE is as it was.";

/// The file to write.
#[derive(Debug, Args)]
pub(crate) struct Output {
    /// The file to write: .parquet, .arrow, .feather, .arrows, .csv, .json or .ndjson
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) path: PathBuf,
    /// Compression within the file: none, lz4, snappy (Parquet), gzip (Parquet), zstd or zstd:LEVEL [default: zstd for
    /// Parquet, none for the others]
    #[arg(long, value_name = "CHOICE")]
    file_compression: Option<FileCompression>,
    /// The most rows in a Parquet row group; one is held in memory while it is written
    #[arg(long, value_name = "N", default_value_t = ROW_GROUP_ROWS)]
    row_group_rows: usize,
}

impl Output {
    /// What kind of file it is, and how it is written.
    pub(crate) fn format(&self) -> Result<(Format, FileOptions), Failure> {
        let ending = self.path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
        let format = match ending.as_str() {
            "parquet" => Format::Parquet,
            "arrow" | "feather" => Format::ArrowFile,
            "arrows" => Format::ArrowStream,
            "csv" => Format::Csv,
            "json" | "ndjson" | "jsonl" => Format::Json,
            _ => {
                let path = self.path.display();
                let endings = ".parquet, .arrow, .feather, .arrows, .csv, .json or .ndjson";
                return Err(Failure::Usage(format!("can't tell the format of {path} by its ending; use {endings}")));
            }
        };
        if let Some(compression) = self.file_compression.filter(|compression| !format.allows(*compression)) {
            return Err(Failure::Usage(
                format!("a .{ending} file can't be compressed with {compression:?}").to_lowercase(),
            ));
        }
        if self.row_group_rows == 0 {
            return Err(Failure::Usage("--row-group-rows 0: expected 1 or more".to_owned()));
        }
        Ok((
            format,
            FileOptions {
                compression: self.file_compression,
                row_group_rows: self.row_group_rows,
                ..FileOptions::default()
            },
        ))
    }
}

/// A file under another name, until it is complete. Dropped before, it is removed.
pub(crate) struct UnfinishedFile<'a> {
    aside: NamedTempFile,
    target: PathBuf,
    interrupt: &'a Interrupt,
}

impl<'a> UnfinishedFile<'a> {
    pub(crate) fn create(path: &Path, interrupt: &'a Interrupt) -> Result<Self, Failure> {
        let failed = |cause: io::Error| Failure::Output(format!("can't write {}: {cause}", path.display()));
        // A link stays one: what it points to is replaced.
        let target = match path.canonicalize() {
            Ok(target) if !target.is_file() => {
                return Err(Failure::Output(format!("can't write {}: it is not a regular file", path.display())));
            }
            Ok(target) => target,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => path.to_owned(),
            Err(cause) => return Err(failed(cause)),
        };
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let aside = tempfile::Builder::new()
            .prefix(&format!(".{name}."))
            .suffix(".unfinished")
            // As for any new file; the user's mask takes away from it.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder(&target))
            .map_err(failed)?;
        interrupt.set_unfinished(Some(aside.path().to_owned()));
        Ok(Self { aside, target, interrupt })
    }

    pub(crate) fn open(&self) -> io::Result<File> {
        self.aside.as_file().try_clone()
    }

    /// What to say when writing it failed.
    pub(crate) fn failure(&self, cause: &(dyn std::error::Error + 'static)) -> Failure {
        Failure::output(&self.target.display().to_string(), cause)
    }

    /// Puts the file in its place, safe from a loss of power. Its size.
    pub(crate) fn finish(self) -> Result<u64, Failure> {
        let failed = |cause: io::Error| Failure::Output(format!("can't write {}: {cause}", self.target.display()));
        self.aside.as_file().sync_all().map_err(failed)?;
        let file = self.aside.persist(&self.target).map_err(|cause| failed(cause.error))?;
        self.interrupt.set_unfinished(None);
        File::open(folder(&self.target)).and_then(|folder| folder.sync_all()).map_err(failed)?;
        Ok(file.metadata().map_err(failed)?.len())
    }
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}
