//! Why the catalog can't be opened.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use datafusion::error::DataFusionError;

/// Why the catalog can't be opened: one sentence that says what was found and what to do.
#[derive(Debug)]
pub enum CatalogError {
    /// Not `PATH` or `NAME=PATH`.
    BadSpec {
        /// What was given.
        found: String,
    },
    /// A name that SQL can't use without quoting.
    BadName {
        /// What was given.
        found: String,
    },
    /// No such file or folder.
    NotFound {
        /// What was given.
        path: PathBuf,
    },
    /// A file of an ending that says nothing.
    UnknownEnding {
        /// The file.
        path: PathBuf,
    },
    /// A folder without data files.
    EmptyFolder {
        /// The folder.
        path: PathBuf,
    },
    /// A file without columns.
    EmptyFile {
        /// The file.
        path: PathBuf,
    },
    /// Files of several kinds in a folder that is to be one table.
    MixedKinds {
        /// A file of one kind.
        first: PathBuf,
        /// A file of another.
        second: PathBuf,
    },
    /// Files of one table that do not agree on the `key=value` folders.
    MixedPartitions {
        /// A file under one set of keys.
        first: PathBuf,
        /// A file under another.
        second: PathBuf,
    },
    /// Two sources of one table name.
    NameTaken {
        /// The name.
        name: String,
        /// What has it already.
        first: String,
        /// What would take it.
        second: String,
    },
    /// Files of one table whose columns do not go together.
    ColumnsDiffer {
        /// The first file.
        first: PathBuf,
        /// The file that does not fit.
        second: PathBuf,
        /// What differs.
        difference: String,
    },
    /// Two columns of one name.
    DuplicateColumn {
        /// The file or folder.
        path: PathBuf,
        /// The name.
        column: String,
    },
    /// A file or folder that can't be read.
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A TPC-H scale factor out of range.
    TpchScale {
        /// What was given.
        found: f64,
    },
    /// A spill folder that can't be written to.
    SpillDir {
        /// What was given.
        path: PathBuf,
        /// What kind of error it was.
        kind: io::ErrorKind,
    },
    /// The engine failed.
    Engine(DataFusionError),
}

impl CatalogError {
    /// `path` can't be read because of `error`, of which the one line that matters to a reader is
    /// kept.
    pub(super) fn unreadable(path: &Path, error: impl fmt::Display) -> Self {
        // The engine's wrapping says it once for each layer.
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
                "'{found}' can't be a table name; name the table with NAME=PATH, where NAME is of letters, \
                 digits and underscores and begins with no digit"
            ),
            Self::NotFound { path } => {
                write!(f, "no file or folder '{}'; check the path", path.display())
            }
            Self::UnknownEnding { path } => write!(
                f,
                "'{}' has none of the known endings: .parquet; .csv, .tsv, .json, .ndjson, .jsonl, also with \
                 .gz or .zst; .arrow, .arrows, .feather, .ipc; rename the file",
                path.display()
            ),
            Self::EmptyFolder { path } => write!(
                f,
                "folder '{}' holds no Parquet, CSV, JSON or Arrow files; name another folder or a file",
                path.display()
            ),
            Self::EmptyFile { path } => write!(
                f,
                "'{}' is empty, so its columns are unknown; leave it out or give it a header line or a row",
                path.display()
            ),
            Self::MixedKinds { first, second } => write!(
                f,
                "'{}' and '{}' are of different kinds; one table needs files of one kind and ending, so serve \
                 them as two tables",
                first.display(),
                second.display()
            ),
            Self::MixedPartitions { first, second } => write!(
                f,
                "'{}' and '{}' lie under different key=value folders; one table needs the same keys, and no other \
                 folders, above all its files",
                first.display(),
                second.display()
            ),
            Self::NameTaken { name, first, second } => {
                write!(
                    f,
                    "'{first}' and '{second}' both give the table name '{name}'; name one of them with NAME=PATH"
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
            Self::Unreadable { path, reason } => {
                write!(f, "can't read '{}': {reason}", path.display())
            }
            Self::TpchScale { found } => write!(
                f,
                "expected a TPC-H scale factor above 0 and up to {}, found {found}; for more, write Parquet files \
                 with a generator and serve these",
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
