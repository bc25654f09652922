//! What the source remembers of earlier statements to choose a path for the next one.

use std::collections::{BTreeSet, HashSet};

use dray_postgres::{Session, Socket, TableScan, is_query};

use super::super::partitioned::{FailedConnections, SmallTables};
use super::connection::{Connection, Extension};
use super::reason::{Decision, Reason};
use crate::options::{ExtensionChoice, Partitions, QueryOptions};

/// The most attribute names that are remembered.
const ATTRIBUTES_MAX: usize = 4096;

/// Up to this many rows arrive sooner as rows: the server takes 20 to 40 us longer to begin and end
/// a COPY of the extension.
const FEW_ROWS: u64 = 32;
/// The most statements with few rows that are remembered.
const FEW_ROWS_STATEMENTS_MAX: usize = 256;

/// What is remembered of a connection's statements.
#[derive(Debug)]
pub(super) struct StatementPolicy {
    /// Statements whose last result had few rows.
    few_rows: HashSet<String>,
    /// Statements whose tables were too small for more connections.
    pub(super) small_tables: SmallTables,
    /// Why workers could not connect.
    failed_connections: FailedConnections,
    /// The last statement that ran over one connection.
    statement: String,
    /// No statement can have changed the session, if none of `attributes` is a function.
    session_unchanged: bool,
    /// Names after a dot in statements so far, which may be functions.
    attributes: BTreeSet<String>,
}

impl Default for StatementPolicy {
    fn default() -> Self {
        Self {
            few_rows: HashSet::new(),
            small_tables: SmallTables::default(),
            failed_connections: FailedConnections::default(),
            statement: String::new(),
            session_unchanged: true,
            attributes: BTreeSet::new(),
        }
    }
}

/// A statement that may be read over several connections.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) scan: TableScan,
    /// The number of connections that the user asked for; None to choose.
    pub(super) connections: Option<usize>,
}

/// Whether the extension can run a statement, by the statement and the options alone.
pub(super) fn decide_extension(
    extension: &Extension,
    sql: &str,
    choice: ExtensionChoice,
) -> Decision<()> {
    Decision::Refused(match extension {
        Extension::Missing => Reason::ExtensionMissing,
        Extension::NotLoadable(error) => Reason::ExtensionNotLoadable(error.clone()),
        Extension::Installed(_) if choice == ExtensionChoice::Never => Reason::ExtensionOff,
        Extension::Installed(_) if !is_query(sql) => Reason::NotAQuery,
        Extension::Installed(_) => return Decision::Run(()),
    })
}

impl StatementPolicy {
    /// Whether to run a statement through the extension.
    pub(super) fn decide_extension(
        &self,
        Connection { session, extension, .. }: &Connection,
        sql: &str,
        choice: ExtensionChoice,
    ) -> Decision<()> {
        match decide_extension(extension, sql, choice) {
            Decision::Run(()) if choice == ExtensionChoice::Auto && self.few_rows.contains(sql) => {
                Decision::Refused(Reason::FewRowsLastTime)
            }
            Decision::Run(())
                if choice == ExtensionChoice::Auto
                    && session.is_in_transaction()
                    && !session.only_reads(sql) =>
            {
                Decision::Refused(Reason::ChangeInTransaction)
            }
            decision => decision,
        }
    }

    /// Whether a statement's table is worth inspecting for several connections.
    pub(super) fn decide_partitions(
        &self,
        session: &Session<Socket>,
        sql: &str,
        options: &QueryOptions,
    ) -> Decision<Candidate> {
        let connections = match options.postgres.partitions {
            Partitions::Exactly(1) => return Decision::Refused(Reason::OneConnectionAsked),
            Partitions::Exactly(count) => Some(usize::from(count)),
            Partitions::Auto => match self.failed_connections.recent() {
                Some(why) => {
                    return Decision::Refused(Reason::ConnectionsFailedBefore(why.to_owned()));
                }
                // Inspecting the table takes longer than a small statement that runs over and over.
                None if self.small_tables.has(sql) => {
                    return Decision::Refused(Reason::SmallTableBefore);
                }
                None => None,
            },
        };
        if session.is_in_transaction() || !self.is_session_unchanged() {
            return Decision::Refused(Reason::SessionMayDiffer);
        }
        if options.parameters.as_ref().is_some_and(|row| row.num_columns() > 0) {
            return Decision::Refused(Reason::Parameters);
        }
        match session.table_scan(sql) {
            Ok(scan) => Decision::Run(Candidate { scan, connections }),
            Err(why) => Decision::Refused(Reason::NotSplittable(why)),
        }
    }

    /// Remembers why workers could not connect.
    pub(super) fn note_failed_connections(&mut self, why: String) {
        self.failed_connections.note(why);
    }

    /// Remembers a statement that is about to run over one connection.
    pub(super) fn note_statement(&mut self, session: &Session<Socket>, sql: &str) {
        if self.statement == sql {
            return;
        }
        self.session_unchanged &=
            session.is_preserved_by(sql) && self.attributes.len() <= ATTRIBUTES_MAX;
        if self.session_unchanged {
            self.attributes.extend(session.attribute_names(sql));
        }
        sql.clone_into(&mut self.statement);
    }

    /// Remembers whether the last statement that ran over one connection had few rows.
    pub(super) fn note_rows(&mut self, rows: u64, extension: &Extension) {
        if rows > FEW_ROWS || !matches!(extension, Extension::Installed(_)) {
            self.few_rows.remove(&self.statement);
        } else if !self.few_rows.contains(&self.statement) {
            if self.few_rows.len() >= FEW_ROWS_STATEMENTS_MAX {
                self.few_rows.clear();
            }
            self.few_rows.insert(self.statement.clone());
        }
    }

    /// Whether no statement can have changed the session, but for functions in
    /// [`Self::attributes`].
    pub(super) fn is_session_unchanged(&self) -> bool {
        self.session_unchanged
    }

    /// Names in earlier statements that may be functions, which may have changed the session.
    pub(super) fn attributes(&self) -> &BTreeSet<String> {
        &self.attributes
    }
}
