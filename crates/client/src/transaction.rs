//! Transactions of a connection, and statements of the program's own.

use crate::connection::Connection;
use crate::error::Result;
use crate::source::SourceKind;
use crate::watch::Verdict;

/// A step of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transaction {
    /// Begins one.
    Begin {
        /// How far it is isolated; None for the server's default.
        isolation: Option<Isolation>,
        /// Whether it may only read.
        read_only: bool,
    },
    /// Ends it and keeps its changes.
    Commit,
    /// Ends it and undoes its changes.
    Rollback,
}

/// How far a transaction is isolated, in the words of the SQL standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// PostgreSQL treats it as read committed.
    ReadUncommitted,
    /// Each statement has a snapshot of its own.
    ReadCommitted,
    /// All statements share a snapshot.
    RepeatableRead,
    /// As if transactions ran one after the other.
    Serializable,
}

impl Connection {
    /// Which kind of server this is a connection to.
    pub fn kind(&self) -> SourceKind {
        self.source_ref().kind()
    }

    /// The kind of server whose SQL the connection takes. It is another than [`Self::kind`] if a
    /// Dray server passes statements on to a database.
    pub fn dialect(&self) -> SourceKind {
        self.source_ref().dialect()
    }

    /// Whether a transaction is open, also one that has failed.
    pub fn is_in_transaction(&self) -> bool {
        self.source_ref().is_in_transaction()
    }

    /// The parameters of a statement: the highest of `$1, $2 …`, or the number of `?`, as the
    /// database writes them.
    pub fn parameters_in(&self, sql: &str) -> usize {
        self.source_ref().parameters_in(sql)
    }

    /// Begins or ends a transaction.
    ///
    /// # Errors
    /// When the server refuses, or has no transactions. A commit of a transaction that has failed
    /// is an error: the server rolls it back.
    pub fn transaction(
        &mut self,
        step: Transaction,
        cancel: &mut dyn FnMut() -> Verdict,
    ) -> Result<()> {
        self.check_own()?;
        self.source().transaction(step, cancel)
    }

    /// Runs a statement of the program's own at a database and returns its rows as text. It must
    /// change nothing: later statements may still run over several connections.
    ///
    /// # Errors
    /// When it fails, or the server is a Dray server.
    pub fn ask(
        &mut self,
        sql: &str,
        cancel: &mut dyn FnMut() -> Verdict,
    ) -> Result<Vec<Vec<Option<String>>>> {
        self.check_own()?;
        self.source().ask(sql, cancel)
    }
}
