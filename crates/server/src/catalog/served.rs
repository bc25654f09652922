//! Served files, and the detection of changes to them.
//!
//! A table's columns, types and statistics are those of its files at the time when it was opened.
//! So each read is followed by a check of the file's metadata. If the file was replaced or written
//! to, the read fails: a scan returns the rows of the original files, or an error. An object of a
//! store is asked for by its version, and each answer is checked.

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

use dray_store::{Object, ObjectReader, StoreError, StoreErrorKind};

/// The resolution of the kernel's modification times. A file that was modified more recently could
/// change again without a new modification time.
const CLOCK_TICK: Duration = Duration::from_millis(20);
/// How often to check a file that is being written to before giving up.
const CHECKS_MAX: usize = 100;

/// What identifies a file and its version.
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

    /// The identity of the file at `path`. Waits until later changes would alter it.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        for _ in 0..CHECKS_MAX {
            let metadata = fs::metadata(path)?;
            match SystemTime::now().duration_since(metadata.modified()?) {
                Ok(age) if age < CLOCK_TICK => sleep(CLOCK_TICK - age),
                _ => return Ok(Self::new(&metadata)),
            }
        }
        Err(io::Error::other("it is being written to; start the server again when that has ended"))
    }
}

/// A file of a table.
#[derive(Debug)]
pub(super) struct ServedFile {
    /// The path or URL, which only the server's log shows.
    pub(super) path: PathBuf,
    /// The name that clients see: `table/file`, or `table/folder/file`.
    pub(super) name: String,
    version: Version,
    /// Columns that are too large to read; set when the footer is read.
    oversized: OnceLock<Vec<OversizedColumn>>,
    /// The memory that reading an Arrow file takes; set when its table is opened.
    batch_bytes: OnceLock<u64>,
}

/// The version of a file that is served.
#[derive(Debug)]
enum Version {
    Local(Identity),
    Stored(Object),
}

/// A column chunk whose batches would be too large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OversizedColumn {
    /// Its bytes in the file.
    pub(super) range: Range<u64>,
    pub(super) column: String,
    pub(super) rows: u64,
    pub(super) unpacked_bytes: u64,
}

impl ServedFile {
    /// The file at `path`.
    pub(super) fn new(path: PathBuf, name: String) -> io::Result<Self> {
        let version = Version::Local(Identity::of(&path)?);
        Ok(Self::of_version(path, name, version))
    }

    /// A file in an object store, at the URL `path`.
    pub(super) fn in_store(path: PathBuf, name: String, object: Object) -> Self {
        Self::of_version(path, name, Version::Stored(object))
    }

    fn of_version(path: PathBuf, name: String, version: Version) -> Self {
        Self { path, name, version, oversized: OnceLock::new(), batch_bytes: OnceLock::new() }
    }

    /// The object, if the file is one of a store.
    pub(super) fn object(&self) -> Option<&Object> {
        match &self.version {
            Version::Local(_) => None,
            Version::Stored(object) => Some(object),
        }
    }

    /// What tells the file's version from others, on this host or everywhere.
    pub(super) fn version(&self) -> String {
        match &self.version {
            Version::Local(identity) => format!("{identity:?}"),
            Version::Stored(object) => object.version(),
        }
    }

    /// Makes reads of these column chunks fail.
    pub(super) fn set_oversized(&self, columns: Vec<OversizedColumn>) {
        // A second call has the same columns.
        let _ = self.oversized.set(columns);
    }

    /// Sets the memory that reading the file takes at a time.
    pub(super) fn set_batch_bytes(&self, bytes: u64) {
        // A second call has the same bytes.
        let _ = self.batch_bytes.set(bytes);
    }

    /// The memory that reading the file takes at a time; None if it is no Arrow file.
    pub(super) fn batch_bytes(&self) -> Option<u64> {
        self.batch_bytes.get().copied()
    }

    /// Fails if the range overlaps an oversized column chunk.
    pub(super) fn check_range(&self, range: &Range<u64>) -> Result<(), FileError> {
        let oversized = self.oversized.get().map(Vec::as_slice).unwrap_or_default();
        let overlaps = |column: &&OversizedColumn| {
            column.range.start < range.end && range.start < column.range.end
        };
        match oversized.iter().find(overlaps) {
            Some(column) => {
                let problem = Problem::Oversized(column.clone());
                Err(FileError { name: self.name.clone(), problem })
            }
            None => Ok(()),
        }
    }

    /// The file's size when the table was opened.
    pub(super) fn bytes(&self) -> u64 {
        match &self.version {
            Version::Local(identity) => identity.bytes,
            Version::Stored(object) => object.bytes(),
        }
    }

    /// The file's modification time when the table was opened: seconds and nanoseconds.
    pub(super) fn modified(&self) -> (i64, u32) {
        match &self.version {
            Version::Local(identity) => {
                (identity.modified.0, u32::try_from(identity.modified.1).unwrap_or(0))
            }
            Version::Stored(object) => object.modified(),
        }
    }

    /// Fails if the file of this host has changed or is gone. Objects are checked by
    /// [`Object::check_all`].
    pub(super) fn check(&self) -> Result<(), FileError> {
        match &self.version {
            Version::Local(identity) => fs::metadata(&self.path)
                .map_err(|cause| self.error(&cause))
                .and_then(|metadata| self.compare(identity, &metadata)),
            Version::Stored(_) => Ok(()),
        }
    }

    /// Opens the file for reading. Reads of an object block the thread.
    pub(super) fn open(self: &Arc<Self>) -> Result<CheckedFile, FileError> {
        let served = Arc::clone(self);
        match &self.version {
            Version::Local(identity) => {
                let file = File::open(&self.path).map_err(|cause| self.error(&cause))?;
                let file = CheckedFile { opened: Opened::Local(file, *identity), served };
                file.check()?;
                Ok(file)
            }
            Version::Stored(object) => {
                Ok(CheckedFile { opened: Opened::Stored(object.reader()), served })
            }
        }
    }

    fn compare(&self, before: &Identity, metadata: &fs::Metadata) -> Result<(), FileError> {
        let now = Identity::new(metadata);
        let problem = if *before == now {
            return Ok(());
        } else if (before.device, before.inode) != (now.device, now.inode) {
            Problem::Replaced
        } else if before.bytes != now.bytes {
            Problem::Resized { before: before.bytes, now: now.bytes }
        } else {
            Problem::Written
        };
        Err(FileError { name: self.name.clone(), problem })
    }

    fn error(&self, cause: &io::Error) -> FileError {
        let of_store = cause.get_ref().and_then(|inner| inner.downcast_ref::<StoreError>());
        if let Some(cause) = of_store {
            return self.store_error(cause);
        }
        let problem = match cause.kind() {
            io::ErrorKind::NotFound => Problem::Gone,
            _ => Problem::Unreadable(cause.to_string()),
        };
        FileError { name: self.name.clone(), problem }
    }

    /// The error of this file for one of its store.
    pub(super) fn store_error(&self, cause: &StoreError) -> FileError {
        let problem = match cause.kind() {
            StoreErrorKind::NotFound => Problem::Gone,
            StoreErrorKind::Changed => Problem::Replaced,
            _ => Problem::Unreadable(cause.to_string()),
        };
        FileError { name: self.name.clone(), problem }
    }
}

/// An open file that is checked for changes after each read.
#[derive(Debug)]
pub(super) struct CheckedFile {
    opened: Opened,
    served: Arc<ServedFile>,
}

#[derive(Debug)]
enum Opened {
    Local(File, Identity),
    /// It checks the object's version itself.
    Stored(ObjectReader),
}

impl CheckedFile {
    fn check(&self) -> Result<(), FileError> {
        let Opened::Local(file, identity) = &self.opened else { return Ok(()) };
        let metadata = file.metadata().map_err(|cause| self.served.error(&cause))?;
        self.served.compare(identity, &metadata)
    }

    /// The file's size. If it changes, reads fail.
    pub(super) fn bytes(&self) -> u64 {
        self.served.bytes()
    }

    /// Whether reads wait for an object store.
    pub(super) fn is_remote(&self) -> bool {
        matches!(self.opened, Opened::Stored(_))
    }

    /// Fills `buffer` from `offset`.
    pub(super) fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), FileError> {
        let read = match &self.opened {
            Opened::Local(file, _) => file.read_exact_at(buffer, offset),
            Opened::Stored(object) => object.read_at(buffer, offset),
        };
        self.checked(read)
    }

    /// Fills `buffer` from `offset`. Of an object, nothing is read ahead.
    pub(super) fn read_alone_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), FileError> {
        let read = match &self.opened {
            Opened::Local(file, _) => file.read_exact_at(buffer, offset),
            Opened::Stored(object) => object.read_alone_at(buffer, offset),
        };
        self.checked(read)
    }

    fn checked(&self, read: io::Result<()>) -> Result<(), FileError> {
        // Check first: that the file was truncated is the better error.
        self.check()?;
        read.map_err(|cause| self.served.error(&cause))
    }
}

impl Read for CheckedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.opened {
            Opened::Local(file, _) => file.read(buffer),
            Opened::Stored(object) => object.read(buffer),
        };
        self.check().map_err(io::Error::other)?;
        read.map_err(|cause| io::Error::other(self.served.error(&cause)))
    }
}

impl Seek for CheckedFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match &mut self.opened {
            Opened::Local(file, _) => file.seek(to),
            Opened::Stored(object) => object.seek(to),
        }
    }
}

/// A file that has changed since its table was opened, or can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileError {
    name: String,
    problem: Problem,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Problem {
    Gone,
    Replaced,
    Resized { before: u64, now: u64 },
    Written,
    Oversized(OversizedColumn),
    Unreadable(String),
}

impl FileError {
    /// The SQLSTATE, and a hint for the user.
    pub(crate) fn advice(&self) -> (&'static str, &'static str) {
        match self.problem {
            Problem::Gone | Problem::Replaced | Problem::Resized { .. } | Problem::Written => (
                "58030",
                "restart dray to serve the current files; don't change files while they are served",
            ),
            Problem::Oversized(_) => {
                ("54000", "leave the column out, or rewrite the file with shorter values")
            }
            Problem::Unreadable(_) => ("58030", ""),
        }
    }

    /// The file error among the sources of an error, if there is one.
    pub(crate) fn source_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref::<Self>() {
                return Some(found);
            }
            // The inner error of an `io::Error` is not its source.
            let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            next = inner.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source());
        }
        None
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.problem {
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
            Problem::Oversized(OversizedColumn { column, rows, unpacked_bytes, .. }) => write!(
                f,
                "column '{column}' of file '{name}' unpacks to {unpacked_bytes} bytes for {rows} \
                 rows, more than a batch may hold"
            ),
            Problem::Unreadable(cause) => write!(f, "file '{name}' can't be read: {cause}"),
        }
    }
}

impl Error for FileError {}
