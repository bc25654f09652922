//! Statements that were run before, whose columns are known.

use std::io::{Read, Write};
use std::time::SystemTime;

use bytes::BytesMut;
use dray_pgtypes::Options as TypeOptions;
use postgres_protocol::message::frontend;

use super::parameter::Parameter;
use super::prepare::{Columns, Described};
use super::rows::BindReport;
use super::{BOUND, Session, invalid};
use crate::error::{CancelCheck, Result};
use crate::scan::{controls_transaction, has_unstable_literal, preserves_session};

/// The most statements that are cached.
const STATEMENTS_MAX: usize = 64;

/// A statement that was run before.
#[derive(Debug)]
pub(super) struct CachedStatement {
    pub(super) statement: String,
    /// The types of its parameters.
    pub(super) oids: Vec<u32>,
    pub(super) types: TypeOptions,
    pub(super) described: Described,
    pub(super) columns: Columns,
    /// The name of its prepared statement at the server, from its second run on; None if it has to
    /// be parsed for each run.
    pub(super) prepared: Option<String>,
}

/// Statements that were run before, and the names of those that are prepared at the server.
#[derive(Debug, Default)]
pub(super) struct StatementCache {
    /// In the order of their last run.
    statements: Vec<CachedStatement>,
    /// The beginning of the names of prepared statements; None if statements may run in different
    /// server processes.
    name_prefix: Option<String>,
    names_given: u64,
    /// Prepared statements that the server can forget.
    obsolete: Vec<String>,
    /// A statement of the open transaction may have changed what others mean. Its end may take that
    /// back, and so may a savepoint.
    changed_in_transaction: bool,
}

impl StatementCache {
    /// Allows names for prepared statements, which all run in the server process with this number.
    pub(super) fn allow_names(&mut self, process_id: i32) {
        // If a pooler is in between all the same, nobody else's statements have such names.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.name_prefix = Some(format!("dray_{process_id}_{:x}", now.as_nanos()));
    }

    /// Takes a statement out, if it was run with the same types before.
    pub(super) fn take(
        &mut self,
        statement: &str,
        oids: &[u32],
        types: &TypeOptions,
    ) -> Option<CachedStatement> {
        let at = self.statements.iter().position(|cached| {
            cached.statement == statement && cached.oids == oids && cached.types == *types
        })?;
        Some(self.statements.remove(at))
    }

    /// Adds the statement that was run last.
    pub(super) fn push(&mut self, statement: CachedStatement) {
        if self.statements.len() >= STATEMENTS_MAX {
            self.obsolete.extend(self.statements.remove(0).prepared);
        }
        self.statements.push(statement);
        debug_assert!(self.statements.len() <= STATEMENTS_MAX);
    }

    /// Forgets all statements.
    pub(super) fn clear(&mut self) {
        self.obsolete.extend(self.statements.drain(..).filter_map(|cached| cached.prepared));
    }

    /// Notes that no transaction is open.
    pub(super) fn end_transaction(&mut self) {
        if std::mem::take(&mut self.changed_in_transaction) {
            self.clear();
        }
    }

    fn next_name(&mut self) -> Option<String> {
        let name = self.name_prefix.as_ref().map(|prefix| format!("{prefix}_{}", self.names_given));
        self.names_given += 1;
        name
    }

    /// Has the server forget obsolete statements with the next message. Names that it does not know
    /// do no harm.
    pub(super) fn close_obsolete(&mut self, out: &mut BytesMut) -> Result<()> {
        self.obsolete
            .drain(..)
            .try_for_each(|name| frontend::close(b'S', &name, out).map_err(invalid))
    }
}

impl<S: Read + Write> Session<S> {
    /// Starts a cached statement; None if it must be prepared anew.
    ///
    /// The second run prepares the statement under a name. Later runs use that name and spare the
    /// server parsing, planning and describing it.
    pub(super) fn start_cached(
        &mut self,
        cached: CachedStatement,
        parameters: &[Parameter],
        check: CancelCheck<'_>,
    ) -> Result<Option<(Columns, BindReport)>> {
        let Some(name) = &cached.prepared else {
            return self.start_described(cached, parameters, check);
        };
        let columns = cached.columns.clone();
        self.execute(name, &columns.columns, parameters, check)?;
        match self.done(BOUND, check) {
            Ok(()) => {
                self.cache.push(cached);
                Ok(Some((columns, BindReport::Received)))
            }
            Err(error) => {
                self.cache.obsolete.extend(cached.prepared);
                // The prepared statement is gone, or its columns have changed.
                let is_stale = matches!(error.sqlstate(), Some("26000" | "0A000"))
                    && !self.is_in_transaction();
                let outcome = if is_stale { Ok(None) } else { Err(error) };
                self.wait_ready(outcome, check)
            }
        }
    }

    /// Starts a cached statement that is not prepared at the server. Its columns are described
    /// again, since they may have changed.
    fn start_described(
        &mut self,
        mut cached: CachedStatement,
        parameters: &[Parameter],
        check: CancelCheck<'_>,
    ) -> Result<Option<(Columns, BindReport)>> {
        let columns = cached.columns.clone();
        self.cache.close_obsolete(self.messages.out())?;
        if !has_unstable_literal(&cached.statement, self.escapes()) {
            cached.prepared = self.cache.next_name();
        }
        let name = cached.prepared.clone().unwrap_or_default();
        let out = self.messages.out();
        frontend::parse(&name, &cached.statement, cached.oids.iter().copied(), out)
            .map_err(invalid)?;
        frontend::describe(b'S', &name, out).map_err(invalid)?;
        // If the columns have changed, their formats may not fit, and that error would end the
        // user's transaction.
        let waits = self.is_in_transaction();
        if waits {
            frontend::flush(self.messages.out());
            self.messages.send(check)?;
        } else {
            self.execute(&name, &columns.columns, parameters, check)?;
        }
        let described = self.described(parameters, check);
        if described.as_ref().is_ok_and(|described| *described == cached.described) {
            self.cache.push(cached);
            let executed = match waits {
                true => self.execute(&name, &columns.columns, parameters, check),
                false => Ok(()),
            };
            return match executed {
                Ok(()) => Ok(Some((columns, BindReport::Pending))),
                Err(error) => self.give_up(error, check),
            };
        }
        self.cache.obsolete.extend(cached.prepared);
        match described {
            Ok(_) if waits => Ok(None),
            // It only reads, so it can run again.
            Ok(_) => self.drain(check).map(|()| None),
            Err(error) if waits => self.give_up(error, check),
            Err(error) => self.wait_ready(Err(error), check),
        }
    }

    /// Clears the cache if a statement may change what others mean without a word from the server:
    /// it may be DEALLOCATE, create a temporary table with another's name, or set how literals are
    /// read.
    pub(super) fn invalidate_cache(&mut self, statement: &str) {
        if self.cache.statements.is_empty() && !self.is_in_transaction() {
            return;
        }
        let escapes = self.escapes();
        if preserves_session(statement, escapes) {
            return;
        }
        if !controls_transaction(statement, escapes) {
            self.cache.changed_in_transaction = self.is_in_transaction();
        } else if !self.cache.changed_in_transaction {
            return;
        }
        self.cache.clear();
    }
}
