//! Why one connection reads a statement.

use std::fmt;

use dray_mysql::NotSplittable;

/// Why one connection reads a statement. Prints as half a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reason {
    /// In a transaction, or without autocommit.
    InTransaction,
    NotSplittable(NotSplittable),
    SmallTableBefore,
    ConnectionsFailedBefore(String),
    UnknownTable,
    NotATable,
    Temporary,
    /// The table's engine has no snapshots.
    Engine(String),
    NoPrimaryKey,
    /// No index begins with the column that was named.
    NoIndex(String),
    /// The key is a column of this type.
    KeyType(String),
    /// The key is a timestamp, and the session has this time zone.
    TimeZone(String),
    OrderOfPartitions,
    /// Another key was named than the one that the order is of.
    OrderOfKey,
    Small,
    /// One part was asked for.
    OneAsked,
    /// No more may be held.
    OneConnection,
    /// So few may be opened that no two of them could read.
    FewConnections,
    FewKeys,
    IndexIsQuicker,
    SelectLimit,
    AutoIsNull,
    OracleMode,
    /// Settings of other sessions are different.
    OtherSettings,
    OtherServer,
    /// A privilege is missing. The user's name, as GRANT takes it.
    NoPrivilege(&'static str, String),
    /// Some commits can't be locked.
    BinlogFilter,
    /// The lock may hold back other sessions, and nobody has asked for it.
    LockNotAsked,
    /// The lock would wait for a statement, and others for the lock.
    LongStatement,
    /// The server refused one of the statements that come before.
    ServerRefused(String),
    /// Other connections can't be had, or can't see the same rows.
    NoOtherConnection(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InTransaction => {
                "other connections can't see what a transaction sees, nor without autocommit"
            }
            Self::NotSplittable(why) => return why.fmt(f),
            Self::SmallTableBefore => "its table was not worth more when it was last inspected",
            Self::ConnectionsFailedBefore(why) => {
                return write!(f, "more connections could not be had before: {why}");
            }
            Self::UnknownTable => "its table is not known to information_schema",
            Self::NotATable => "it reads a view or something else that is not a plain table",
            Self::Temporary => "it reads a temporary table",
            Self::Engine(engine) => {
                return write!(f, "tables of {engine} have no snapshots, those of InnoDB have");
            }
            Self::NoPrimaryKey => {
                "its table has no primary key; partition_by can name another column"
            }
            Self::KeyType(name) => {
                return write!(f, "its key begins with a {name}, which is not divided");
            }
            Self::TimeZone(zone) => {
                return write!(
                    f,
                    "its key begins with a timestamp, and time_zone is {zone}, where one time may \
                     come twice (SET time_zone = '+00:00')"
                );
            }
            Self::NoIndex(column) => {
                return write!(f, "no index of its table begins with the column {column:?}");
            }
            Self::OrderOfKey => "the order that was asked for is that of the primary key",
            Self::OrderOfPartitions => "the order of a partitioned table is that of its partitions",
            Self::Small => "the table or this machine is small",
            Self::OneAsked => "one was asked for",
            Self::OneConnection => "no more connections than one may be held for its parts",
            Self::FewConnections => "this machine or the number of free connections is small",
            Self::FewKeys => "its key begins with few values",
            Self::IndexIsQuicker => "an index is quicker than a scan of the table",
            Self::SelectLimit => "sql_select_limit is set",
            Self::AutoIsNull => "sql_auto_is_null is set",
            Self::OracleMode => "sql_mode is ORACLE",
            Self::OtherSettings => "other sessions have other settings, or another user",
            Self::OtherServer => "another connection reached another server",
            Self::NoPrivilege(privilege, user) => {
                return write!(
                    f,
                    "one snapshot for several connections needs the privilege {privilege} (GRANT \
                     {privilege} ON *.* TO {user})"
                );
            }
            Self::BinlogFilter => {
                "binlog_do_db or binlog_ignore_db is set, and this version of MariaDB can't lock \
                 commits that its binary log leaves out"
            }
            Self::LockNotAsked => {
                "FLUSH TABLES WITH READ LOCK may hold back other sessions, so several connections \
                 must be asked for (partitions, or --source-partitions of a Dray server)"
            }
            Self::LongStatement => {
                "FLUSH TABLES WITH READ LOCK would wait for a statement that has run for more than \
                 5 s, and other sessions would wait behind it"
            }
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
