//! A file to write: its place, its format, and that it appears when it is complete.

use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use clap::Args;
use dray_server::stale_files;
use tempfile::NamedTempFile;

use crate::failure::Failure;
use crate::format::{FileCompression, FileOptions, Format, ROW_GROUP_ROWS};
use crate::interrupt::Interrupt;

/// What `--help` says of it.
pub(crate) const HELP: &str = "\
FILE's ending names the format: .parquet, .arrow or .feather (Arrow IPC file), .arrows (Arrow IPC stream), .csv, .json or \
.ndjson (one object a line). It is written aside, in the same folder, and takes FILE's place when it is complete and on \
disk; if anything goes wrong, FILE is as it was. A file that is replaced keeps its mode, owner and group.

Every value is exact in every format, or it is an error. In CSV NULL is an empty field, an empty string is \"\"; floats may be \
NaN, inf and -inf, which are \"NaN\", \"Infinity\" and \"-Infinity\" in JSON. Years beyond 9999 have a sign. Parquet has no \
timestamps or times of seconds, which become milliseconds, no date64, which becomes date32, and no intervals.";

/// How the names of files end that are not complete.
const UNFINISHED: &str = ".unfinished";

/// The file to write.
#[derive(Debug, Args)]
pub(crate) struct Output {
    /// The file to write: .parquet, .arrow, .feather, .arrows, .csv, .json or .ndjson
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) path: PathBuf,
    /// Compression within the file: none, lz4, snappy (Parquet), gzip (Parquet), zstd or zstd:LEVEL
    /// [default: zstd for Parquet, none for the others]
    #[arg(long, value_name = "CHOICE")]
    file_compression: Option<FileCompression>,
    /// The most rows in a Parquet row group; one is held in memory while it is written
    #[arg(long, value_name = "N", default_value_t = ROW_GROUP_ROWS)]
    row_group_rows: usize,
}

impl Output {
    /// What kind of file it is, and how it is written.
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
            _ => {
                let path = self.path.display();
                let endings = ".parquet, .arrow, .feather, .arrows, .csv, .json or .ndjson";
                return Err(Failure::Usage(format!(
                    "can't tell the format of {path} by its ending; use {endings}"
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
    /// The file that was there before.
    replaced: Option<Metadata>,
    interrupt: &'a Interrupt,
}

impl<'a> UnfinishedFile<'a> {
    pub(crate) fn create(path: &Path, interrupt: &'a Interrupt) -> Result<Self, Failure> {
        let failed =
            |cause: io::Error| Failure::Output(format!("can't write {}: {cause}", path.display()));
        let refused =
            |what: &str| Err(Failure::Output(format!("can't write {}: {what}", path.display())));
        // A link stays one: what it points to is replaced. The system is asked about the file
        // first, and so refuses a link that somebody else has put into a folder for all.
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
        // What replaces a file is nobody else's business until it has that file's owner and mode;
        // the user's mask takes away from those of a new one.
        let mode = if replaced.is_some() { 0o600 } else { 0o666 };
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(UNFINISHED).permissions(Permissions::from_mode(mode));
        let aside = loop {
            let aside = builder.tempfile_in(folder(&target)).map_err(failed)?;
            if stale_files::claim(aside.as_file(), aside.path()) {
                break aside;
            }
        };
        interrupt.set_unfinished(Some(aside.path().to_owned()));
        stale_files::remove(
            folder(&target),
            |name| {
                name.strip_prefix(&prefix)
                    .and_then(|name| name.strip_suffix(UNFINISHED))
                    .is_some_and(is_random)
            },
            |path| {
                eprintln!(
                    "removed {}, which was left behind by a program that was killed",
                    path.display()
                )
            },
        );
        Ok(Self { aside, target, replaced, interrupt })
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
        let failed = |cause: io::Error| {
            Failure::Output(format!("can't write {}: {cause}", self.target.display()))
        };
        if let Some(replaced) = &self.replaced {
            take_over(self.aside.as_file(), replaced).map_err(failed)?;
        }
        self.aside.as_file().sync_all().map_err(failed)?;
        let file = self.aside.persist(&self.target).map_err(|cause| failed(cause.error))?;
        self.interrupt.set_unfinished(None);
        File::open(folder(&self.target)).and_then(|folder| folder.sync_all()).map_err(failed)?;
        Ok(file.metadata().map_err(failed)?.len())
    }
}

/// Gives the file the owner, group and mode of the one that it replaces, as far as this user may.
/// What a group might do is left out where the file can't be of that group.
fn take_over(file: &File, replaced: &Metadata) -> io::Result<()> {
    let now = file.metadata()?;
    let mut mode = replaced.mode() & 0o777;
    if replaced.gid() != now.gid() && fchown(file, None, Some(replaced.gid())).is_err() {
        // Its own group may do no more than everybody.
        mode = mode & !0o070 | (mode & 0o007) << 3 & mode;
    }
    if replaced.uid() != now.uid() {
        // Only root may. To others it is their own file from now on, as with an editor.
        let _ = fchown(file, Some(replaced.uid()), None);
    }
    // After the owner, whose change may take rights away.
    file.set_permissions(Permissions::from_mode(mode))
}

/// Whether this may be what [`tempfile`] has put into a name.
fn is_random(text: &str) -> bool {
    text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}
