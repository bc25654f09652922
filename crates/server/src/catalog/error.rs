//! Errors of opening the catalog.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use datafusion::error::DataFusionError;

/// Why the catalog can't be opened. Each message is one sentence that says what was found and what
/// to do.
#[derive(Debug)]
pub enum CatalogError {
    /// The argument is not `PATH` or `NAME=PATH`.
    BadSpec {
        /// The argument.
        found: String,
    },
    /// The name would need quotes in SQL.
    BadName {
        /// The argument.
        found: String,
    },
    /// The file or folder does not exist.
    NotFound {
        /// The argument.
        path: PathBuf,
    },
    /// The file's ending is unknown.
    UnknownEnding {
        /// The file.
        path: PathBuf,
    },
    /// The folder has no data files.
    EmptyFolder {
        /// The folder.
        path: PathBuf,
    },
    /// The file has no columns.
    EmptyFile {
        /// The file.
        path: PathBuf,
    },
    /// The files of one table are of several kinds.
    MixedKinds {
        /// A file of one kind.
        first: PathBuf,
        /// A file of another.
        second: PathBuf,
    },
    /// The files of one table are below different `key=value` folders.
    MixedPartitions {
        /// A file under one set of keys.
        first: PathBuf,
        /// A file under another.
        second: PathBuf,
    },
    /// The value of a `key=value` folder has another type than the one that was named.
    PartitionValue {
        /// A file below the folder.
        path: PathBuf,
        /// The value.
        value: String,
        /// What was expected.
        expected: &'static str,
    },
    /// Two sources have the same table name.
    NameTaken {
        /// The name.
        name: String,
        /// The first source.
        first: String,
        /// The second source.
        second: String,
    },
    /// The columns of one table's files can't be merged.
    ColumnsDiffer {
        /// The first file.
        first: PathBuf,
        /// The file that does not fit.
        second: PathBuf,
        /// What differs.
        difference: String,
    },
    /// Two columns have the same name.
    DuplicateColumn {
        /// The file or folder.
        path: PathBuf,
        /// The name.
        column: String,
    },
    /// The key of `key=value` folders is also a column of the files.
    KeyIsColumn {
        /// The folder.
        path: PathBuf,
        /// The key.
        key: String,
    },
    /// The file or folder can't be read.
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The TPC-H scale factor is out of range.
    TpchScale {
        /// The argument.
        found: f64,
    },
    /// The spill folder can't be written to.
    SpillDir {
        /// The argument.
        path: PathBuf,
        /// The kind of the error.
        kind: io::ErrorKind,
    },
    /// The engine failed.
    Engine(DataFusionError),
}

impl CatalogError {
    /// The error that `path` can't be read because of `error`, whose text becomes one line.
    pub(super) fn unreadable(path: &Path, error: impl fmt::Display) -> Self {
        // Each layer of the engine adds this prefix.
        let mut text = error.to_string();
        while text.contains("Parquet error: Parquet error: ") {
            text = text.replace("Parquet error: Parquet error: ", "Parquet error: ");
        }
        let reason = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect::<Vec<_>>()
            .join("; ");
        Self::Unreadable { path: path.to_owned(), reason }
    }
}

impl fmt::Display for CatalogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadSpec { found } => write!(f, "expected PATH or NAME=PATH, found '{found}'"),
            Self::BadName { found } => write!(
                f,
                "'{found}' can't be a table name; name the table with NAME=PATH, where NAME has \
                 letters, digits and underscores and does not begin with a digit"
            ),
            Self::NotFound { path } => {
                write!(f, "no file or folder '{}'; check the path", path.display())
            }
            Self::UnknownEnding { path } => write!(
                f,
                "'{}' has none of the known endings: .parquet; .csv, .tsv, .json, .ndjson, \
                 .jsonl, also with .gz or .zst; .arrow, .arrows, .feather, .ipc; rename the file",
                path.display()
            ),
            Self::EmptyFolder { path } => write!(
                f,
                "folder '{}' holds no Parquet, CSV, JSON or Arrow files; name another folder or a \
                 file",
                path.display()
            ),
            Self::EmptyFile { path } => write!(
                f,
                "'{}' is empty, so its columns are unknown; leave it out, or add a header line or \
                 a row",
                path.display()
            ),
            Self::MixedKinds { first, second } => write!(
                f,
                "'{}' and '{}' are of different kinds; one table needs files of one kind and \
                 ending, so serve them as two tables",
                first.display(),
                second.display()
            ),
            Self::MixedPartitions { first, second } => write!(
                f,
                "'{}' and '{}' lie under different key=value folders; one table needs the same \
                 keys, and no other folders, above all its files",
                first.display(),
                second.display()
            ),
            Self::PartitionValue { path, value, expected } => write!(
                f,
                "the folder '{value}' of '{}' is not {expected}, as --partition-types says; leave \
                 the option out, or name text",
                path.display()
            ),
            Self::NameTaken { name, first, second } => {
                write!(
                    f,
                    "'{first}' and '{second}' both give the table name '{name}'; name one of them \
                     with NAME=PATH"
                )
            }
            Self::ColumnsDiffer { first, second, difference } => write!(
                f,
                "'{}' and '{}' can't be one table: {difference}; serve them as two tables",
                first.display(),
                second.display()
            ),
            Self::DuplicateColumn { path, column } => {
                write!(
                    f,
                    "'{}' has two columns named '{column}'; rename one of them",
                    path.display()
                )
            }
            Self::KeyIsColumn { path, key } => write!(
                f,
                "the files of '{}' have a column '{key}', and so have its folders '{key}=…', which \
                 may differ; write the files without it",
                path.display()
            ),
            Self::Unreadable { path, reason } => {
                write!(f, "can't read '{}': {reason}", path.display())
            }
            Self::TpchScale { found } => write!(
                f,
                "expected a TPC-H scale factor above 0 and up to {}, found {found}; for larger \
                 ones, write Parquet files with a generator and serve them",
                crate::tpch::SCALE_MAX
            ),
            Self::SpillDir { path, kind } => {
                write!(
                    f,
                    "can't spill to '{}': {kind}; create this folder or name another",
                    path.display()
                )
            }
            Self::Engine(error) => write!(f, "the query engine failed: {error}"),
        }
    }
}

impl Error for CatalogError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Engine(error) => Some(error),
            _ => None,
        }
    }
}

impl From<DataFusionError> for CatalogError {
    fn from(error: DataFusionError) -> Self {
        Self::Engine(error)
    }
}
