//! A connection that statements share: whose turn it is, and its transaction.

use std::sync::{Mutex, MutexGuard, PoisonError};

use adbc_core::error::{Result, Status};
use arrow::record_batch::RecordBatchReader;
use dray_client::{
    Connection, ConnectionSlot, Isolation, Lease, LeaseError, Plan, QueryOptions, Results,
    SourceKind, Transaction, WriteMode, WriteOptions,
};

use crate::cancel::{Cancel, Running};
use crate::error::{failed, invalid_state, not_implemented, of_client};

/// Rows as text, None for NULL.
pub(crate) type TextRows = Vec<Vec<Option<String>>>;

/// A connection. One statement at a time leases it.
#[derive(Debug)]
pub(crate) struct Session {
    slot: ConnectionSlot,
    pub(crate) kind: SourceKind,
    /// Whether a Dray server passes the statements on to a database.
    is_relayed: bool,
    /// Whether its tables can be listed.
    pub(crate) has_catalog: bool,
    /// The server's name and version.
    pub(crate) server: String,
    mode: Mutex<Mode>,
    /// Cancels what runs.
    current: Mutex<Cancel>,
    /// Plans whose parts others read.
    plans: Mutex<Vec<Plan>>,
}

/// How transactions begin and end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mode {
    /// Each statement is a transaction of its own.
    pub(crate) autocommit: bool,
    /// None for the server's default.
    pub(crate) isolation: Option<Isolation>,
    pub(crate) read_only: bool,
}

impl Session {
    pub(crate) fn new(connection: Connection) -> Self {
        let kind = connection.kind();
        Self {
            kind,
            is_relayed: connection.dialect() != kind,
            has_catalog: connection.dialect() != SourceKind::Other,
            server: connection.server().to_owned(),
            slot: ConnectionSlot::new(connection),
            mode: Mutex::new(Mode {
                autocommit: true,
                isolation: None,
                read_only: kind == SourceKind::Dray,
            }),
            current: Mutex::default(),
            plans: Mutex::default(),
        }
    }

    /// # Errors
    /// NotImplemented, if a Dray server passes the statements on: what only a direct connection
    /// knows of a database would be asked of the wrong one.
    pub(crate) fn check_direct(&self) -> Result<()> {
        match self.is_relayed {
            false => Ok(()),
            true => Err(not_implemented(
                "the Dray server passes statements on to a database: ask it in SQL",
            )),
        }
    }

    /// Closes the connection. One that a result has closes when the result ends.
    pub(crate) fn close(&self) {
        self.slot.close();
        let plans = std::mem::take(&mut *lock(&self.plans));
        drop(plans);
    }

    /// Keeps a plan's snapshot until its lease is over or the connection closes.
    pub(crate) fn hold(&self, plan: Plan) {
        let mut plans = lock(&self.plans);
        plans.retain(|plan| !plan.is_over());
        plans.push(plan);
    }

    pub(crate) fn mode(&self) -> Mode {
        *lock(&self.mode)
    }

    /// Runs a statement, in a transaction if autocommit is off.
    ///
    /// # Errors
    /// When another result has the connection, or the statement fails.
    pub(crate) fn query(
        &self,
        sql: &str,
        options: &QueryOptions,
        running: &Running,
    ) -> Result<Results<Lease>> {
        let mut lease = self.lease(running)?;
        if !options.plan_only {
            self.begin_transaction(&mut lease, running)?;
        }
        start(lease, sql, options, running)
    }

    /// Runs a statement that sets what a rollback would undo, so in no transaction.
    ///
    /// # Errors
    /// InvalidState in a transaction; when another result has the connection, or the statement
    /// fails.
    pub(crate) fn set_by_query(&self, sql: &str, running: &Running) -> Result<Results<Lease>> {
        let mut lease = self.lease(running)?;
        check_no_transaction(&mut lease, "changing the current schema")?;
        start(lease, sql, &QueryOptions::default(), running)
    }

    /// Writes data into a table, in a transaction if autocommit is off, and returns the number of
    /// rows. MySQL creates a table outside of transactions: none begins for that.
    ///
    /// # Errors
    /// When another result has the connection, or writing fails.
    pub(crate) fn write(
        &self,
        table: &str,
        data: Box<dyn RecordBatchReader + Send>,
        options: &WriteOptions,
        running: &Running,
    ) -> Result<u64> {
        let mut lease = self.lease(running)?;
        let creates = options.mode != WriteMode::Append && !options.temporary;
        if self.kind != SourceKind::Mysql || !creates {
            self.begin_transaction(&mut lease, running)?;
        }
        let watch = running.cancel().watch();
        let written = connection(&mut lease).write(table, data, options, Some(watch));
        written.map(|stats| stats.rows).map_err(|error| of_client(&error))
    }

    /// Begins a transaction, if autocommit is off and none is open.
    fn begin_transaction(&self, lease: &mut Lease, running: &Running) -> Result<()> {
        let Mode { autocommit, isolation, read_only } = self.mode();
        match autocommit || connection(lease).is_in_transaction() {
            true => Ok(()),
            false => step(lease, Transaction::Begin { isolation, read_only }, running.cancel()),
        }
    }

    /// The rows of a statement of the driver's own at a PostgreSQL server.
    ///
    /// # Errors
    /// When another result has the connection, or the statement fails.
    pub(crate) fn ask(&self, sql: &str, running: &Running) -> Result<TextRows> {
        let mut lease = self.lease(running)?;
        let mut verdict = || running.cancel().verdict();
        connection(&mut lease).ask(sql, &mut verdict).map_err(|error| of_client(&error))
    }

    /// The highest of `$1, $2 …` in a statement.
    ///
    /// # Errors
    /// When another result has the connection.
    pub(crate) fn parameters_in(&self, sql: &str, running: &Running) -> Result<usize> {
        Ok(connection(&mut self.lease(running)?).parameters_in(sql))
    }

    /// Sets whether each statement is a transaction of its own. If it becomes so, an open
    /// transaction is committed.
    ///
    /// # Errors
    /// NotImplemented for transactions of a Dray server; those of the commit.
    pub(crate) fn set_autocommit(&self, autocommit: bool) -> Result<()> {
        if self.kind == SourceKind::Dray && !autocommit {
            return Err(no_transactions());
        }
        if autocommit && !self.mode().autocommit {
            self.end(Transaction::Commit)?;
        }
        lock(&self.mode).autocommit = autocommit;
        Ok(())
    }

    /// Sets the isolation of later transactions; None for the server's default.
    ///
    /// # Errors
    /// NotImplemented at a Dray server, InvalidState in a transaction.
    pub(crate) fn set_isolation(&self, isolation: Option<Isolation>) -> Result<()> {
        if self.kind == SourceKind::Dray && isolation.is_some() {
            return Err(no_transactions());
        }
        self.check_no_transaction()?;
        lock(&self.mode).isolation = isolation;
        Ok(())
    }

    /// Sets whether later statements may only read.
    ///
    /// # Errors
    /// NotImplemented for changes at a Dray server, InvalidState in a transaction.
    pub(crate) fn set_read_only(&self, read_only: bool) -> Result<()> {
        if self.kind == SourceKind::Dray {
            return match read_only {
                true => Ok(()),
                false => Err(not_implemented("a Dray server only reads")),
            };
        }
        self.check_no_transaction()?;
        // For statements that are transactions of their own; a pooler may forget it.
        let how = if read_only { "READ ONLY" } else { "READ WRITE" };
        let running = self.begin();
        let sql = match self.kind {
            SourceKind::Mysql => format!("SET SESSION TRANSACTION {how}"),
            _ => format!("SET SESSION CHARACTERISTICS AS TRANSACTION {how}"),
        };
        self.ask(&sql, &running)?;
        lock(&self.mode).read_only = read_only;
        Ok(())
    }

    /// Ends the transaction, if statements have begun one.
    ///
    /// # Errors
    /// InvalidState with autocommit, or when a result has the connection; when the server refuses.
    pub(crate) fn end(&self, how: Transaction) -> Result<()> {
        if self.mode().autocommit {
            let what = "autocommit is on, so there is no transaction to end (set \
                        adbc.connection.autocommit to false first)";
            return Err(invalid_state(what));
        }
        let running = self.begin();
        let mut lease = self.lease(&running)?;
        match connection(&mut lease).is_in_transaction() {
            true => step(&mut lease, how, running.cancel()),
            false => Ok(()),
        }
    }

    /// Begins an operation of the connection itself, such as listing tables.
    pub(crate) fn begin(&self) -> Running {
        Cancel::default().begin()
    }

    /// Asks what runs on this connection to stop. Returns false if nothing runs.
    pub(crate) fn cancel(&self) -> bool {
        lock(&self.current).request()
    }

    fn check_no_transaction(&self) -> Result<()> {
        let running = self.begin();
        check_no_transaction(&mut self.lease(&running)?, "changing how transactions begin")
    }

    pub(crate) fn lease(&self, running: &Running) -> Result<Lease> {
        let mut lease = self.slot.lease().map_err(|error| match error {
            LeaseError::Leased => invalid_state(
                "the connection is busy with another result (read that result to its end, release \
                 it, or open another connection: a connection runs one statement at a time)",
            ),
            LeaseError::Closed => invalid_state("the connection is closed"),
        })?;
        if !connection(&mut lease).is_usable() {
            return Err(failed(Status::IO, "the connection is broken (connect again)"));
        }
        lock(&self.current).clone_from(running.cancel());
        Ok(lease)
    }
}

pub(crate) fn connection(lease: &mut Lease) -> &mut Connection {
    std::borrow::BorrowMut::borrow_mut(lease)
}

fn start(
    lease: Lease,
    sql: &str,
    options: &QueryOptions,
    running: &Running,
) -> Result<Results<Lease>> {
    Connection::query_with(lease, sql, options, Some(running.cancel().watch()))
        .map_err(|error| of_client(&error))
}

fn check_no_transaction(lease: &mut Lease, before: &str) -> Result<()> {
    match connection(lease).is_in_transaction() {
        true => Err(invalid_state(format!(
            "a transaction is open: commit it or roll it back before {before}"
        ))),
        false => Ok(()),
    }
}

fn step(lease: &mut Lease, step: Transaction, cancel: &Cancel) -> Result<()> {
    connection(lease).transaction(step, &mut || cancel.verdict()).map_err(|error| of_client(&error))
}

fn no_transactions() -> adbc_core::error::Error {
    not_implemented(
        "a Dray server has no transactions: each statement is one of its own (leave autocommit on)",
    )
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
