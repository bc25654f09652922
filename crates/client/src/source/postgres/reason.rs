//! Why a statement takes the path it takes.

use std::fmt;

use dray_postgres::{Error as PostgresError, NotSplittable, Session, Socket, Unreadable};

use super::super::partitioned::Connections;
use crate::error::Result;
use crate::stats::{PathKind, TransferPath};

/// Whether a statement can take a path.
#[derive(Debug)]
pub(super) enum Decision<T> {
    Run(T),
    Refused(Reason),
}

/// Why a statement can't take a path. Prints as half a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reason {
    // Why the extension does not run a statement.
    ExtensionMissing,
    ExtensionNotLoadable(String),
    ExtensionOff,
    NotAQuery,
    FewRowsLastTime,
    ChangeInTransaction,
    NotEnclosable,
    ExtensionRefused(String),

    // Why one connection reads a statement.
    OneConnectionAsked,
    ConnectionsFailedBefore(String),
    SmallTableBefore,
    SessionMayDiffer,
    Parameters,
    NotSplittable(NotSplittable),
    ExtensionRequired,
    Backslashes,
    UnknownTable(String),
    NotATable,
    UnsuitableTable,
    InheritedFrom,
    OrderOfPartitions,
    EarlierCall(String),
    Small,
    /// For a plan of partitions.
    SmallForParts,
    /// The server says that an expression may have another value on another connection.
    Unstable(String),
    IndexIsQuicker,
    NotARangeScan,
    PolicyUnreadable(Unreadable),
    PolicyBackslashes,
    PolicyUnstable(String),
    /// The server refused one of the coordinator's statements.
    ServerRefused(String),
    /// No worker could begin.
    NoOtherConnection(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const POLICY: &str = "a policy of its table may differ between connections";
        f.write_str(match self {
            Self::ExtensionMissing => "the database has no extension dray",
            Self::ExtensionNotLoadable(error) => {
                return write!(f, "the extension dray can't be loaded: {error}");
            }
            Self::ExtensionOff => "the extension is turned off",
            Self::NotAQuery => "COPY does not run statements of this kind",
            Self::FewRowsLastTime => {
                "its last result had few rows, which arrive sooner without the extension"
            }
            Self::ChangeInTransaction => {
                "COPY refuses some changes, which would end the transaction"
            }
            Self::NotEnclosable => "the statement can't be put into a COPY",
            Self::ExtensionRefused(error) => {
                return write!(f, "the extension does not run it: {error}");
            }
            Self::OneConnectionAsked => "only one was asked for",
            Self::ConnectionsFailedBefore(why) => {
                return write!(f, "more connections could not be had before: {why}");
            }
            Self::SmallTableBefore => "its table was not worth more when it was last inspected",
            Self::SessionMayDiffer => "other sessions may not see what this one sees",
            Self::Parameters => "the statement has parameters",
            Self::NotSplittable(why) => return why.fmt(f),
            Self::ExtensionRequired => "the extension can't be used",
            Self::Backslashes => "it has names with backslashes",
            Self::UnknownTable(name) => return write!(f, "{name} is not a table"),
            Self::NotATable => "it reads a view or something else that is not a table",
            Self::UnsuitableTable => {
                "it reads a table that is temporary, foreign or inherited from, or has such \
                 partitions"
            }
            Self::InheritedFrom => "it reads a table that is inherited from",
            Self::OrderOfPartitions => "the order of a partitioned table is that of its partitions",
            Self::EarlierCall(function) => {
                return write!(
                    f,
                    "an earlier statement may have called {function}, and other sessions may not \
                     see the same"
                );
            }
            Self::Small => "the table, this machine or the number of free connections is small",
            Self::SmallForParts => "the table is small",
            Self::Unstable(why) => why,
            Self::IndexIsQuicker => "an index is quicker than a scan of the table",
            Self::NotARangeScan => "its plan is not a scan of a range of the table",
            Self::PolicyUnreadable(why) => return write!(f, "{POLICY}: {why}"),
            Self::PolicyBackslashes => return write!(f, "{POLICY}: {}", Self::Backslashes),
            Self::PolicyUnstable(why) => return write!(f, "{POLICY}: {why}"),
            Self::ServerRefused(error) => error,
            Self::NoOtherConnection(error) => {
                return write!(
                    f,
                    "another connection can't be opened or can't see the same rows: {error}"
                );
            }
        })
    }
}

/// Makes a reason of an error with which the server refused one of the coordinator's statements. If
/// the user's statement is wrong, running it will say so.
///
/// # Errors
/// The error itself, if the server did not refuse: the connection broke or the statement was
/// cancelled.
pub(super) fn refused_by_server<T>(
    session: &Session<Socket>,
    error: PostgresError,
) -> Result<Decision<T>> {
    match error.sqlstate() {
        None | Some("57014") => Err(error.into()),
        Some(_) if session.is_broken() => Err(error.into()),
        Some(_) => Ok(Decision::Refused(Reason::ServerRefused(error.to_string()))),
    }
}

/// The path of a PostgreSQL result.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) format: Format,
    pub(super) connections: Connections<Reason>,
}

/// What the server sends.
#[derive(Debug)]
pub(super) enum Format {
    /// Chunks of the extension in this version; None for a statement that is only planned.
    Chunks { version: Option<String> },
    /// Rows, since the extension does not run the statement.
    Rows(Reason),
}

impl Path {
    /// As the user sees it. Each reason appears once.
    pub(super) fn describe(&self) -> TransferPath {
        let (kind, mut reason) = match &self.format {
            Format::Chunks { version: Some(version) } => {
                (PathKind::Extension, format!("the extension dray {version}"))
            }
            Format::Chunks { version: None } => (PathKind::Extension, String::new()),
            Format::Rows(reason) => (PathKind::Rows, reason.to_string()),
        };
        if !matches!(self.connections, Connections::One(None)) {
            reason += &format!("; {}", self.connections);
        }
        TransferPath { kind, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_is_told_once() {
        let failures = ["a", "b", "a"].map(str::to_owned).to_vec();
        let path = Path {
            format: Format::Chunks { version: Some("1.2".to_owned()) },
            connections: Connections::Several { count: 3, failures },
        };
        assert_eq!(
            path.describe().reason,
            "the extension dray 1.2; 3 connections, one snapshot; one of them failed: a; one of \
             them failed: b"
        );
        let path = Path {
            format: Format::Rows(Reason::FewRowsLastTime),
            connections: Connections::One(Some(Reason::Parameters)),
        };
        assert!(path.describe().reason.ends_with("; one connection: the statement has parameters"));
    }
}
