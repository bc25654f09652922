//! The files that are served, each as it was when its table was opened.
//!
//! A table's columns, types and statistics are those of the files that were there then. So each
//! read of a file is followed by a look at the file that was read: if it is not the one that was
//! opened, or somebody wrote to it, the read fails. What comes out of a scan is then of the files
//! that the table knows, or it is an error.

use std::error::Error;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

/// Kernels note the time of a change no finer than this. A file whose last change is as recent
/// could change once more, and show the same time.
const CLOCK_TICK: Duration = Duration::from_millis(20);
/// How often a file is looked at that is written to.
const LOOKS_MAX: usize = 100;

/// What tells a file from any other, and from itself after somebody wrote to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
    bytes: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
}

impl Identity {
    fn new(metadata: &fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }

    /// Of the file at `path`, once a later change would show.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        for _ in 0..LOOKS_MAX {
            let metadata = fs::metadata(path)?;
            match SystemTime::now().duration_since(metadata.modified()?) {
                Ok(age) if age < CLOCK_TICK => sleep(CLOCK_TICK - age),
                _ => return Ok(Self::new(&metadata)),
            }
        }
        Err(io::Error::other("it is written to all the time; start when that has ended"))
    }
}

/// A file of a table.
#[derive(Debug)]
pub(super) struct ServedFile {
    /// Where it is. Nobody but the server's own log is told.
    pub(super) path: PathBuf,
    /// What clients know it by: `table/file`, or `table/folder/file`.
    pub(super) name: String,
    identity: Identity,
    /// Columns of it that can't be read, known once it has been looked at.
    too_long: OnceLock<Vec<TooLong>>,
}

/// A part of a file that unpacks to more than a batch may hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TooLong {
    pub(super) range: Range<u64>,
    pub(super) column: String,
    pub(super) rows: u64,
    pub(super) unpacked_bytes: u64,
}

impl ServedFile {
    /// The file at `path`.
    pub(super) fn new(path: PathBuf, name: String) -> io::Result<Self> {
        let identity = Identity::of(&path)?;
        Ok(Self { path, name, identity, too_long: OnceLock::new() })
    }

    /// From now on, reading these parts is an error.
    pub(super) fn refuse(&self, parts: Vec<TooLong>) {
        // Whoever looks a second time finds the same.
        let _ = self.too_long.set(parts);
    }

    /// Fails if what is to be read unpacks to too much.
    pub(super) fn admit(&self, range: &Range<u64>) -> Result<(), FileError> {
        let parts = self.too_long.get().map(Vec::as_slice).unwrap_or_default();
        match parts.iter().find(|part| part.range.start < range.end && range.start < part.range.end)
        {
            Some(part) => {
                Err(FileError { name: self.name.clone(), what: Problem::TooLong(part.clone()) })
            }
            None => Ok(()),
        }
    }

    /// Its size when the table was opened.
    pub(super) fn bytes(&self) -> u64 {
        self.identity.bytes
    }

    /// When it was last written to before the table was opened.
    pub(super) fn modified(&self) -> (i64, i64) {
        self.identity.modified
    }

    /// Fails if another file is at its place, or none.
    pub(super) fn check(&self) -> Result<(), FileError> {
        fs::metadata(&self.path)
            .map_err(|cause| self.error(&cause))
            .and_then(|metadata| self.compare(&metadata))
    }

    /// Opens it to be read.
    pub(super) fn open(self: &Arc<Self>) -> Result<CheckedFile, FileError> {
        let file = File::open(&self.path).map_err(|cause| self.error(&cause))?;
        let file = CheckedFile { file, served: Arc::clone(self) };
        file.check()?;
        Ok(file)
    }

    fn compare(&self, metadata: &fs::Metadata) -> Result<(), FileError> {
        let (before, now) = (self.identity, Identity::new(metadata));
        let what = if before == now {
            return Ok(());
        } else if (before.device, before.inode) != (now.device, now.inode) {
            Problem::Replaced
        } else if before.bytes != now.bytes {
            Problem::Resized { before: before.bytes, now: now.bytes }
        } else {
            Problem::Written
        };
        Err(FileError { name: self.name.clone(), what })
    }

    fn error(&self, cause: &io::Error) -> FileError {
        let what = match cause.kind() {
            io::ErrorKind::NotFound => Problem::Gone,
            _ => Problem::Unreadable(cause.to_string()),
        };
        FileError { name: self.name.clone(), what }
    }
}

/// A file that is read, and looked at after each read.
#[derive(Debug)]
pub(super) struct CheckedFile {
    file: File,
    served: Arc<ServedFile>,
}

impl CheckedFile {
    fn check(&self) -> Result<(), FileError> {
        let metadata = self.file.metadata().map_err(|cause| self.served.error(&cause))?;
        self.served.compare(&metadata)
    }

    /// Its size, which stays what it is or makes reads fail.
    pub(super) fn bytes(&self) -> u64 {
        self.served.bytes()
    }

    /// Fills `buffer` with what is at `offset`.
    pub(super) fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), FileError> {
        let read = self.file.read_exact_at(buffer, offset);
        // A file that was cut says so, rather than that its end came early.
        self.check()?;
        read.map_err(|cause| self.served.error(&cause))
    }
}

impl Read for CheckedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer);
        self.check().map_err(io::Error::other)?;
        read.map_err(|cause| io::Error::other(self.served.error(&cause)))
    }
}

impl Seek for CheckedFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// A file that is not what it was when its table was opened, or can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileError {
    name: String,
    what: Problem,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Problem {
    Gone,
    Replaced,
    Resized { before: u64, now: u64 },
    Written,
    TooLong(TooLong),
    Unreadable(String),
}

impl FileError {
    /// Its SQLSTATE, and what can be done about it.
    pub(crate) fn advice(&self) -> (&'static str, &'static str) {
        match self.what {
            Problem::Gone | Problem::Replaced | Problem::Resized { .. } | Problem::Written => (
                "58030",
                "start dray again to read what is there now, and let files be while they are in use",
            ),
            Problem::TooLong(_) => {
                ("54000", "leave the column out, or write the file with shorter values")
            }
            Problem::Unreadable(_) => ("58030", ""),
        }
    }

    /// The error behind another one, if it is that a file changed.
    pub(crate) fn source_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref::<Self>() {
                return Some(found);
            }
            // What an I/O error was made of is not among its sources.
            let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            next = inner.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source());
        }
        None
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.what {
            Problem::Gone => {
                write!(f, "file '{name}' was removed or renamed after its table was opened")
            }
            Problem::Replaced => {
                write!(f, "file '{name}' was replaced by another one after its table was opened")
            }
            Problem::Resized { before, now } => {
                write!(
                    f,
                    "file '{name}' had {before} bytes when its table was opened, and now has {now}"
                )
            }
            Problem::Written => {
                write!(f, "file '{name}' was written to after its table was opened")
            }
            Problem::TooLong(TooLong { column, rows, unpacked_bytes, .. }) => write!(
                f,
                "column '{column}' of file '{name}' unpacks to {unpacked_bytes} bytes for {rows} rows, more than a \
                 batch may hold"
            ),
            Problem::Unreadable(cause) => write!(f, "file '{name}' can't be read: {cause}"),
        }
    }
}

impl Error for FileError {}
