//! Errors of a sort.

use std::fmt;
use std::io;

/// Why rows can't be sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// A column to sort by that the schema does not have.
    Column {
        /// The index of the column, from 0.
        column: usize,
        /// The number of columns in the schema.
        columns: usize,
    },
    /// A setting that is out of range.
    Setting(String),
    /// A batch number that is not larger than the one before it, or is larger than 2³³ - 1.
    Sequence {
        /// The number.
        sequence: u64,
        /// The least number that was expected.
        expected: u64,
    },
    /// The memory does not suffice.
    Memory {
        /// The bytes that would suffice, as far as is known.
        needed: usize,
        /// The bytes of the budget.
        bytes_max: usize,
        /// Whether there is a folder to spill to.
        may_spill: bool,
    },
    /// The spill files would be larger than allowed.
    SpillLimit {
        /// The most bytes that may be on disk at a time.
        spill_bytes_max: u64,
    },
    /// A spill file can't be created, written or read.
    Spill {
        /// The operation that failed: "create", "write" or "read".
        doing: &'static str,
        /// The kind of the system's error.
        kind: io::ErrorKind,
        /// The system's message.
        what: String,
    },
    /// Rows that don't fit the schema or a page, or a spilled page that is damaged.
    Page(dray_page::Error),
    /// Spilled keys or compressed pages that are damaged.
    Damaged(String),
    /// A thread that can't be started, or that ended early.
    Thread(String),
    /// The sort was cancelled.
    Cancelled,
    /// Rows came after the sort was finished.
    Finished,
    /// A broken invariant that would lose or misplace rows: a defect of this crate.
    Internal(String),
}

/// The result of a fallible operation of a sort.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of the system while `doing` something with a spill file.
    pub(crate) fn spill(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::Spill { doing, kind: error.kind(), what: error.to_string() }
    }

    /// Something that the sort itself has made is missing.
    #[cold]
    pub(crate) fn missing(what: &'static str) -> Self {
        Self::Internal(format!("{what} is not where it must be"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column { column, columns } => {
                write!(out, "no column {column} to sort by, there are {columns}")
            }
            Self::Setting(what) | Self::Thread(what) => out.write_str(what),
            Self::Sequence { sequence, expected } => {
                write!(out, "batch number {sequence}, expected one from {expected} to 2^33 - 1")
            }
            Self::Memory { needed, bytes_max, may_spill } => {
                write!(out, "sorting needs {needed} bytes of memory, and may take {bytes_max}")?;
                if !may_spill {
                    out.write_str("; with a spill folder it needs less")?;
                }
                Ok(())
            }
            Self::SpillLimit { spill_bytes_max } => {
                write!(out, "sorting would spill more than the {spill_bytes_max} bytes allowed")
            }
            Self::Spill { doing, what, .. } => write!(out, "can't {doing} a spill file: {what}"),
            Self::Page(error) => write!(out, "{error}"),
            Self::Damaged(what) => write!(out, "spilled data is damaged: {what}"),
            Self::Cancelled => out.write_str("the sort was cancelled"),
            Self::Finished => out.write_str("rows came after the sort was finished"),
            Self::Internal(what) => {
                write!(out, "internal error of the sort: {what}; please report it")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Page(error) => Some(error),
            _ => None,
        }
    }
}

impl From<dray_page::Error> for Error {
    fn from(error: dray_page::Error) -> Self {
        Self::Page(error)
    }
}
