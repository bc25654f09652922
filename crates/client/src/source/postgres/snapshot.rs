//! One snapshot for several connections: the coordinator locks the table and exports its snapshot,
//! workers import it.

use std::collections::BTreeSet;
use std::time::Instant;

use dray_postgres::{
    CancelCheck as SocketCheck, Error as PostgresError, References, Session, Socket, TableScan,
};
use dray_wire::{ErrorKind as WireKind, ServerError};

use super::reason::{Decision, Reason, refused_by_server};
use super::sql::{ask_one, ask_optional, explain, oid_of, quoted};
use super::volatility::{self, Origin};
use crate::error::{Error, ErrorKind, Result};

/// How the transactions of coordinator and workers begin.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
/// Both transactions idle while the reader of the result is busy.
pub(super) const NO_IDLE_TIMEOUT: &str = "SET LOCAL idle_in_transaction_session_timeout = 0";
/// Leaves a Tid Range Scan as the only plan, so that the rows of a range come in the table's order
/// each time it is read.
pub(super) const ONE_PLAN: &str = "SET LOCAL enable_seqscan = off; \
     SET LOCAL enable_indexscan = off; \
     SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_bitmapscan = off; \
     SET LOCAL max_parallel_workers_per_gather = 0";

/// Settings that decide what a statement means, which rows it may see, and how it reads and writes
/// text. Sessions that begin later may have other values than the coordinator.
pub(super) const SETTINGS: &[&str] = &[
    "array_nulls",
    "bytea_output",
    "DateStyle",
    "default_text_search_config",
    "extra_float_digits",
    "IntervalStyle",
    "lc_monetary",
    "lc_numeric",
    "lc_time",
    "quote_all_identifiers",
    "role",
    "row_security",
    "search_path",
    "session_authorization",
    "standard_conforming_strings",
    "TimeZone",
    "timezone_abbreviations",
    "transform_null_equals",
    "xmlbinary",
    "xmloption",
];

/// The coordinator's snapshot, and what tells whether a worker sees the same table of the same
/// server in the same way.
#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    /// The name of the exported snapshot.
    pub(super) id: String,
    table: String,
    /// Settings that policies read, besides [`SETTINGS`].
    pub(super) settings: BTreeSet<String>,
    /// The answer to [`identity`].
    identity: String,
    /// The leaves of a partitioned table. Others may add some while the table is read.
    pub(super) leaves: Option<String>,
}

impl Snapshot {
    /// Locks the table so that its rows stay where they are, checks that the server reads a range
    /// of it by a range scan, and exports the snapshot. Leaves a transaction open, also if refused.
    /// `begin` are the statements that begin it, each with its semicolon; none if it has begun.
    /// Ranges scan the table, so what the server would read by an index is refused, unless it
    /// expects more than `index_bytes_max` of it.
    ///
    /// # Errors
    /// When the connection breaks or the statement is cancelled.
    pub(super) fn take(
        session: &mut Session<Socket>,
        begin: &str,
        scan: &TableScan,
        sql: &str,
        index_bytes_max: Option<u64>,
        check: SocketCheck<'_>,
    ) -> Result<Decision<Self>> {
        match Self::try_take(session, begin, scan, sql, index_bytes_max, check) {
            Ok(decision) => Ok(decision),
            Err(error) => refused_by_server(session, error),
        }
    }

    fn try_take(
        session: &mut Session<Socket>,
        begin: &str,
        scan: &TableScan,
        sql: &str,
        index_bytes_max: Option<u64>,
        check: SocketCheck<'_>,
    ) -> Result<Decision<Self>, PostgresError> {
        let table = &scan.table;
        // The lock precedes the snapshot: a command that rewrites the table has then either ended,
        // and the snapshot sees its effect, or it waits.
        session.ask(&format!("{begin}LOCK TABLE {table} IN ACCESS SHARE MODE"), check)?;
        let plan = explain(session, sql, check)?;
        if plan.iter().any(|line| line.contains("Index ") || line.contains("Bitmap "))
            && !is_larger(session, sql, index_bytes_max, check)?
        {
            return Ok(Decision::Refused(Reason::IndexIsQuicker));
        }
        session.ask(ONE_PLAN, check)?;
        let plan = explain(session, &scan.block_range(0, Some(1)), check)?;
        if !scan.is_range_plan(&plan) {
            return Ok(Decision::Refused(Reason::NotARangeScan));
        }
        let settings = match settings_of_policies(session, table, &plan, check)? {
            Decision::Run(settings) => settings,
            Decision::Refused(reason) => return Ok(Decision::Refused(reason)),
        };
        // A table may have come to inherit from this one since it was inspected. One that comes
        // later is not in the snapshot.
        if scan.only && ask_one(session, &has_inheritance_children(table), check)? != "f" {
            return Ok(Decision::Refused(Reason::InheritedFrom));
        }
        let leaves = match scan.only {
            true => None,
            false => Some(ask_one(session, &leaves(table), check)?),
        };
        Ok(Decision::Run(Self {
            identity: ask_one(session, &identity(table, &settings), check)?,
            settings,
            leaves,
            id: ask_one(session, "SELECT pg_catalog.pg_export_snapshot()", check)?,
            table: table.clone(),
        }))
    }

    /// Begins a worker's transaction with the coordinator's snapshot and locks. Checks that it is
    /// the same server and table, and that the plan reads a range in the order of the table.
    ///
    /// No lock is waited for long: whoever is ahead in the queue waits for the coordinator, which
    /// waits for this worker.
    ///
    /// # Errors
    /// Connection, if the coordinator's transaction has ended; Execution, if the worker would not
    /// see the same; the server's own error, if it refuses.
    pub(super) fn join(
        &self,
        session: &mut Session<Socket>,
        scan: &TableScan,
        check: SocketCheck<'_>,
    ) -> Result<()> {
        let Self { id, table, settings, .. } = self;
        // The name comes from the server. It has no quotes.
        let id = id.replace('\'', "");
        let begun = session.ask(
            &format!(
                "{BEGIN}; SET TRANSACTION SNAPSHOT '{id}'; {NO_IDLE_TIMEOUT}; \
                 SET LOCAL lock_timeout = '1s'; LOCK TABLE {table} IN ACCESS SHARE MODE; {ONE_PLAN}"
            ),
            check,
        );
        begun.map_err(|error| match error.sqlstate() {
            // The snapshot is gone. Which of the two the server says depends on its version.
            Some("22023" | "42704") => Error::new(
                ErrorKind::Connection,
                "the connection that held the table's snapshot has ended",
            ),
            _ => error.into(),
        })?;
        if ask_one(session, &identity(table, settings), check)? != self.identity {
            let what = "another connection reached another server or table, or has other settings";
            return Err(Error::new(ErrorKind::Execution, what));
        }
        // EXPLAIN locks the indexes, too.
        if !scan.is_range_plan(&explain(session, &scan.block_range(0, Some(1)), check)?) {
            return Err(Error::new(
                ErrorKind::Execution,
                "another connection plans the statement in another way",
            ));
        }
        session.ask("SET LOCAL lock_timeout TO DEFAULT", check)?;
        Ok(())
    }

    /// Checks that the table has the same leaves as when the snapshot was taken.
    ///
    /// # Errors
    /// Execution, if partitions were added meanwhile.
    pub(super) fn check_leaves(
        &self,
        session: &mut Session<Socket>,
        check: SocketCheck<'_>,
    ) -> Result<()> {
        match &self.leaves {
            Some(before) if ask_one(session, &leaves(&self.table), check)? != *before => {
                let what = format!("partitions of {} were added while it was read", self.table);
                Err(Error::new(ErrorKind::Execution, what).with_hint(
                    "read it again, or with one connection (partitions=1, not by a relay)",
                ))
            }
            _ => Ok(()),
        }
    }
}

/// Limits a worker's next statement to the time until `deadline`: `statement_timeout` limits the
/// user's statement, not each range.
///
/// # Errors
/// The server's own error for a timeout, once the deadline has passed.
pub(super) fn limit_statement(
    session: &mut Session<Socket>,
    deadline: Instant,
    check: SocketCheck<'_>,
) -> Result<()> {
    match deadline.saturating_duration_since(Instant::now()).as_millis() {
        0 => Err(ServerError {
            statement: 0,
            kind: WireKind::Execution,
            sqlstate: "57014".to_owned(),
            message: "canceling statement due to statement timeout".to_owned(),
            hint: String::new(),
        }
        .into()),
        left_ms => {
            session.ask(&format!("SET LOCAL statement_timeout = {left_ms}"), check)?;
            Ok(())
        }
    }
}

/// Whether the server expects more than so many bytes of a result; no without a limit.
fn is_larger(
    session: &mut Session<Socket>,
    sql: &str,
    bytes_max: Option<u64>,
    check: SocketCheck<'_>,
) -> Result<bool, PostgresError> {
    let Some(bytes_max) = bytes_max else { return Ok(false) };
    let estimate = session.estimate(sql, check)?;
    Ok(estimate.is_some_and(|(rows, row_bytes)| rows.saturating_mul(row_bytes) > bytes_max))
}

/// The settings that the table's policies of row security read, which may be the user's own.
/// Refused if policies may show other rows to other connections. Policies appear only in the plan.
fn settings_of_policies(
    session: &mut Session<Socket>,
    table: &str,
    plan: &[String],
    check: SocketCheck<'_>,
) -> Result<Decision<BTreeSet<String>>, PostgresError> {
    let table = oid_of(table);
    let is_active = format!("SELECT pg_catalog.row_security_active({table})");
    if ask_one(session, &is_active, check)? == "f" {
        return Ok(Decision::Run(BTreeSet::new()));
    }
    let references = match References::of_filters(plan) {
        Ok(references) => references,
        Err(why) => return Ok(Decision::Refused(Reason::PolicyUnreadable(why))),
    };
    if volatility::names(&references).any(|name| name.contains('\\')) {
        return Ok(Decision::Refused(Reason::PolicyBackslashes));
    }
    let unstable = volatility::question(&references, Origin::Policies, &table);
    Ok(match ask_optional(session, &unstable, check)? {
        None => Decision::Run(references.settings),
        Some(unstable) => Decision::Refused(Reason::PolicyUnstable(unstable)),
    })
}

/// Asks for values that are different on another server, for another table, or in a session with
/// other settings.
fn identity(table: &str, policy_settings: &BTreeSet<String>) -> String {
    let settings = SETTINGS.iter().map(|name| format!("pg_catalog.current_setting('{name}')"));
    // A setting of the user's own need not exist.
    let policy_settings = policy_settings.iter().map(|name| {
        format!("pg_catalog.quote_nullable(pg_catalog.current_setting('{name}', true))")
    });
    let settings = settings.chain(policy_settings).collect::<Vec<_>>();
    format!(
        "SELECT pg_catalog.concat_ws(' ', pg_catalog.pg_postmaster_start_time(), {}, {})",
        oid_of(table),
        settings.join(", ")
    )
}

/// Asks whether other tables inherit from a plain one, or did.
fn has_inheritance_children(table: &str) -> String {
    format!(
        "SELECT c.relhassubclass FROM pg_catalog.pg_class c
         WHERE c.oid OPERATOR(pg_catalog.=) {}",
        oid_of(table)
    )
}

/// Asks for the oids of a partitioned table's leaves.
pub(super) fn leaves(table: &str) -> String {
    format!(
        "SELECT pg_catalog.concat(pg_catalog.string_agg(\
             t.relid::pg_catalog.oid::pg_catalog.text, ' ')) \
         FROM pg_catalog.pg_partition_tree({}::pg_catalog.regclass) t",
        quoted(table)
    )
}
