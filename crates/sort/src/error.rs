//! Why rows can't be sorted.

use std::fmt;
use std::io;

/// Why rows can't be sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// A column to sort by is none of the rows'.
    Column {
        /// The column that was asked for, from 0.
        column: usize,
        /// How many there are.
        columns: usize,
    },
    /// A setting that can't be.
    Setting(String),
    /// The number of a batch that is not larger than that of the one before, or larger than 2³³ -
    /// 1.
    Sequence {
        /// The number.
        sequence: u64,
        /// The least that would have done.
        expected: u64,
    },
    /// The memory does not suffice.
    Memory {
        /// Bytes that would, as far as is known.
        needed: usize,
        /// Bytes that may be taken.
        bytes_max: usize,
        /// Whether there is a folder to spill to.
        may_spill: bool,
    },
    /// More would be spilled than is allowed.
    SpillLimit {
        /// Bytes that may be on disk at a time.
        spill_bytes_max: u64,
    },
    /// The spill folder can't be written to, or what was written can't be read again.
    Spill {
        /// What was done: "create", "write" or "read".
        doing: &'static str,
        /// What kind of error it was.
        kind: io::ErrorKind,
        /// What the system says.
        what: String,
    },
    /// Rows that are no objects of the schema, or a spilled page that was damaged.
    Page(dray_page::Error),
    /// Spilled keys, or packed pages, that were damaged.
    Damaged(String),
    /// A thread can't be started, or has ended before it was done.
    Thread(String),
    /// The sort was cancelled.
    Cancelled,
    /// Rows came after the sort was finished.
    Finished,
    /// Something that the sort has made itself is not as it must be, so that rows would be lost or
    /// in a wrong order: a defect of this crate.
    Internal(String),
}

/// What may fail.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn spill(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::Spill { doing, kind: error.kind(), what: error.to_string() }
    }

    /// For what must be there and is not.
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
                write!(out, "sorting would spill more than the {spill_bytes_max} bytes that it may")
            }
            Self::Spill { doing, what, .. } => write!(out, "can't {doing} a spill file: {what}"),
            Self::Page(error) => write!(out, "{error}"),
            Self::Damaged(what) => write!(out, "what was spilled was damaged: {what}"),
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
