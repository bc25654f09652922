//! Whether and how a table of PostgreSQL is read in parts: what the coordinator asks the server.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use dray_postgres::{
    Error as PostgresError, Patience, Session, Socket, Split, Used, is_range_scan,
};
use dray_wire::{ErrorKind as WireKind, ServerError};

use super::stability::{self, From};
use crate::error::{Error, ErrorKind, Result};

/// The transactions of coordinator and workers.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
/// A connection should have so much of a table to read.
const PARTITION_BYTES_MIN: u64 = 32 << 20;
/// Parts for each connection, so that they end together.
const PARTS_PER_WORKER: u64 = 8;

/// A table that can be read in parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table {
    /// Blocks of the table, or of its largest partition.
    blocks: u64,
    /// Connections to read it with.
    pub(super) workers: usize,
    /// How long a statement may take, if that is limited.
    pub(super) timeout: Option<Duration>,
}

impl Table {
    /// A statement for each part; the last is open, as the table may have grown.
    pub(super) fn parts(&self, split: &Split) -> Vec<String> {
        let count = (self.workers as u64 * PARTS_PER_WORKER).min(self.blocks.max(1));
        let bound = |i: u64| u32::try_from(self.blocks * i / count).unwrap_or(u32::MAX);
        (0..count).map(|i| split.part(bound(i), (i + 1 < count).then(|| bound(i + 1)))).collect()
    }
}

/// What the coordinator holds: the snapshot, and what tells whether a worker sees the same table on
/// the same server, and in the same way.
#[derive(Debug, Clone)]
pub(super) struct Held {
    snapshot: String,
    identity: String,
    /// Settings that belong to it, besides those that always do.
    settings: BTreeSet<String>,
    /// The leaves of a partitioned table, which others may add to.
    leaves: Option<String>,
    table: String,
}

/// Looks at the table: whether it can be split, and is worth it. `wanted` are the connections that
/// the user asked for, `attributes` the names in earlier statements that may have been functions.
///
/// Of a plain table the parts read only that: what is made to inherit from it meanwhile has no part
/// in the result.
pub(super) fn look(
    session: &mut Session<Socket>,
    split: &mut Split,
    attributes: &BTreeSet<String>,
    (wanted, ordered): (Option<usize>, bool),
    patience: Patience<'_>,
) -> Result<Result<Table, String>> {
    if split.table.contains('\\')
        || stability::names(&split.used).chain(attributes).any(|name| name.contains('\\'))
    {
        return Ok(Err("it has names with backslashes".to_owned()));
    }
    let rows = match session.ask(&question(split, attributes), patience) {
        Ok(rows) => rows,
        Err(error) => return reason(session, error).map(Err),
    };
    let Some(row) = rows.into_iter().next() else {
        return Ok(Err(format!("{} is not a table", split.table)));
    };
    let text = |i: usize| row.get(i).and_then(|value| value.as_deref()).unwrap_or_default();
    let number = |i: usize| text(i).parse::<u64>().unwrap_or_default();
    let (kind, strange_leaves, blocks, bytes, connections, called, timeout_ms) =
        (text(0), number(1), number(2), number(3), number(4), text(5), number(6));
    if ordered && kind == "p" {
        return Ok(Err("the order of a partitioned table is that of its partitions".to_owned()));
    }
    let unfit = match kind {
        "r" | "p" if strange_leaves > 0 => {
            "it reads a table that is temporary, foreign or inherited from, or has such parts"
        }
        "r" | "p" => "",
        _ => "it reads no table, but a view or the like",
    };
    if !unfit.is_empty() {
        return Ok(Err(unfit.to_owned()));
    }
    if !called.is_empty() {
        return Ok(Err(format!(
            "an earlier statement may have called {called}, and other sessions may not see the same"
        )));
    }
    split.only = kind == "r";
    let workers = match wanted {
        Some(wanted) => wanted,
        None => {
            let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            let by_size = usize::try_from(bytes / PARTITION_BYTES_MIN).unwrap_or(usize::MAX);
            // Half of what is free is left to others.
            processors.min(by_size).min(usize::try_from(connections / 2).unwrap_or(usize::MAX))
        }
    };
    if workers < 2 {
        return Ok(Err(
            "the table, this machine or the number of free connections is small".to_owned()
        ));
    }
    let unstable = match session
        .ask(&stability::question(&split.used, From::Statement, &oid_of(&split.table)), patience)
    {
        Ok(rows) => rows.into_iter().flatten().flatten().next(),
        Err(error) => Some(reason(session, error)?),
    };
    if let Some(unstable) = unstable {
        return Ok(Err(unstable));
    }
    Ok(Ok(Table {
        blocks,
        workers,
        timeout: (timeout_ms > 0).then(|| Duration::from_millis(timeout_ms)),
    }))
}

/// The number of a table, as an expression.
fn oid_of(table: &str) -> String {
    format!("{}::pg_catalog.regclass::pg_catalog.oid", quoted(table))
}

/// Kind; leaves that can't be split; blocks of the largest leaf; bytes of all; free connections; a
/// function that an attribute may have been, and which may have changed the session; milliseconds
/// that a statement may take, 0 for any.
fn question(split: &Split, attributes: &BTreeSet<String>) -> String {
    let names = |names: &BTreeSet<String>| {
        let names = names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(",");
        format!("ARRAY[{names}]::pg_catalog.name[]")
    };
    // Operators are qualified, as in all that Dray sends by itself: `IN` and `IS DISTINCT FROM`
    // would look in `search_path`.
    let [equal, different, least, minus] =
        ["=", "<>", ">=", "-"].map(|name| format!("OPERATOR(pg_catalog.{name})"));
    let setting = |name: &str| format!("pg_catalog.current_setting('{name}')");
    let number = |name: &str| format!("{}::pg_catalog.int8", setting(name));
    format!(
        "WITH root AS (
             SELECT c.oid, c.relkind FROM pg_catalog.pg_class c
             WHERE c.oid {equal} {table}::pg_catalog.regclass::pg_catalog.oid
         ),
         leaves AS (
             SELECT l.relkind, l.relpersistence, l.relhassubclass, a.amname, pg_catalog.pg_relation_size(l.oid) AS bytes
             FROM root r
             CROSS JOIN LATERAL (
                 SELECT r.oid WHERE r.relkind {different} 'p'::pg_catalog.\"char\"
                 UNION ALL SELECT p.relid FROM pg_catalog.pg_partition_tree(r.oid) p
                     WHERE p.isleaf AND r.relkind {equal} 'p'::pg_catalog.\"char\"
             ) leaf
             JOIN pg_catalog.pg_class l ON l.oid {equal} leaf.oid
             LEFT JOIN pg_catalog.pg_am a ON a.oid {equal} l.relam
         )
         SELECT r.relkind,
             (SELECT pg_catalog.count(*) FROM leaves WHERE relkind {different} 'r'::pg_catalog.\"char\"
                 OR relpersistence {equal} 't'::pg_catalog.\"char\" OR relhassubclass
                 OR coalesce(amname {different} 'heap'::pg_catalog.name, true)),
             (SELECT coalesce(pg_catalog.max(bytes), 0) OPERATOR(pg_catalog./) {block_size} FROM leaves),
             (SELECT coalesce(pg_catalog.sum(bytes), 0)::pg_catalog.int8 FROM leaves),
             greatest(0, {connections} {minus} {reserved} {minus} (
                 SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity WHERE datid IS NOT NULL)),
             (SELECT p.proname FROM pg_catalog.pg_proc p WHERE p.proname {equal} ANY ({attributes})
                 AND p.pronamespace {different} 'pg_catalog'::pg_catalog.regnamespace::pg_catalog.oid
                 AND p.pronargs {least} 1 AND p.pronargs {minus} p.pronargdefaults OPERATOR(pg_catalog.<=) 1 LIMIT 1),
             (pg_catalog.date_part('epoch', {timeout}::pg_catalog.interval) OPERATOR(pg_catalog.*) 1000)::pg_catalog.int8
         FROM root r",
        table = quoted(&split.table),
        block_size = number("block_size"),
        connections = number("max_connections"),
        reserved = number("superuser_reserved_connections"),
        timeout = setting("statement_timeout"),
        attributes = names(attributes),
    )
}

/// Locks the table, so that its rows stay where they are, makes sure that a part is a range of it,
/// and exports the snapshot; or says why not. The transaction is to be rolled back then.
pub(super) fn hold(
    session: &mut Session<Socket>,
    split: &Split,
    sql: &str,
    patience: Patience<'_>,
) -> Result<Result<Held, String>> {
    match try_hold(session, split, sql, patience) {
        Ok(held) => Ok(held),
        Err(error) => reason(session, error).map(Err),
    }
}

fn try_hold(
    session: &mut Session<Socket>,
    split: &Split,
    sql: &str,
    patience: Patience<'_>,
) -> Result<Result<Held, String>, PostgresError> {
    // The lock comes before the snapshot: what rewrites the table has then either ended, and is
    // seen, or waits.
    session.ask(
        &format!("{BEGIN}; {NO_TIMEOUT}; LOCK TABLE {} IN ACCESS SHARE MODE", split.table),
        patience,
    )?;
    let plan = explain(session, sql, patience)?;
    if plan.iter().any(|line| line.contains("Index ") || line.contains("Bitmap ")) {
        return Ok(Err("an index is quicker than a scan of the table".to_owned()));
    }
    session.ask(ONE_PLAN, patience)?;
    let plan = explain(session, &split.part(0, Some(1)), patience)?;
    if !is_range_scan(&plan) {
        return Ok(Err("its plan is not a scan of a range of the table".to_owned()));
    }
    let settings = match settings_of_policies(session, &split.table, &plan, patience)? {
        Ok(settings) => settings,
        Err(unstable) => {
            return Ok(Err(format!(
                "a policy of its table may differ between connections: {unstable}"
            )));
        }
    };
    // Since it was looked at, that is: a table that inherits from it later is not in the snapshot,
    // and not read.
    if split.only && one(session, &has_heirs(&split.table), patience)? != "f" {
        return Ok(Err("it reads a table that is inherited from".to_owned()));
    }
    let leaves = match split.only {
        true => None,
        false => Some(one(session, &leaves(&split.table), patience)?),
    };
    let held = Held {
        identity: one(session, &identity(&split.table, &settings), patience)?,
        settings,
        leaves,
        snapshot: one(session, "SELECT pg_catalog.pg_export_snapshot()", patience)?,
        table: split.table.clone(),
    };
    Ok(Ok(held))
}

/// The settings that policies of row security ask for, which may be anybody's; or why policies may
/// show other connections other rows. They stand in the plan only.
fn settings_of_policies(
    session: &mut Session<Socket>,
    table: &str,
    plan: &[String],
    patience: Patience<'_>,
) -> Result<Result<BTreeSet<String>, String>, PostgresError> {
    let table = oid_of(table);
    if one(session, &format!("SELECT pg_catalog.row_security_active({table})"), patience)? == "f" {
        return Ok(Ok(BTreeSet::new()));
    }
    let used = match Used::by_filters(plan) {
        Ok(used) if stability::names(&used).any(|name| name.contains('\\')) => {
            return Ok(Err("it has names with backslashes".to_owned()));
        }
        Ok(used) => used,
        Err(reason) => return Ok(Err(reason.to_owned())),
    };
    let unstable = session.ask(&stability::question(&used, From::Policies, &table), patience)?;
    Ok(unstable.into_iter().flatten().flatten().next().map_or(Ok(used.settings), Err))
}

/// Begins a worker's transaction: with the coordinator's snapshot and locks, on the same server and
/// table, and with plans that read a part in the order of the table, every time.
///
/// It waits for no lock for long: who stands before it in the queue waits for the coordinator,
/// which waits for this.
pub(super) fn join(
    session: &mut Session<Socket>,
    held: &Held,
    split: &Split,
    patience: Patience<'_>,
) -> Result<()> {
    // The name comes from the server, and has no quotes in it.
    let snapshot = held.snapshot.replace('\'', "");
    let table = &held.table;
    let begun = session.ask(
        &format!(
            "{BEGIN}; SET TRANSACTION SNAPSHOT '{snapshot}'; {NO_TIMEOUT}; SET LOCAL lock_timeout = '1s'; \
             LOCK TABLE {table} IN ACCESS SHARE MODE; {ONE_PLAN}"
        ),
        patience,
    );
    begun.map_err(|error| match error.sqlstate() {
        // The server knows it no more, which it says as if the statement were wrong: in two ways,
        // by its version.
        "22023" | "42704" => Error::new(
            ErrorKind::Connection,
            "the connection that held the table's snapshot has ended",
        ),
        _ => error.into(),
    })?;
    if one(session, &identity(table, &held.settings), patience)? != held.identity {
        let what = "another connection reached another server or table, or has other settings";
        return Err(Error::new(ErrorKind::Execution, what));
    }
    // This locks indexes, too.
    if !is_range_scan(&explain(session, &split.part(0, Some(1)), patience)?) {
        return Err(Error::new(
            ErrorKind::Execution,
            "another connection plans the statement in another way",
        ));
    }
    session.ask("SET LOCAL lock_timeout TO DEFAULT", patience)?;
    Ok(())
}

/// Leaves a worker's next statement what is left of `statement_timeout`, which limits the user's
/// statement, not each part of it.
pub(super) fn limit(
    session: &mut Session<Socket>,
    deadline: Instant,
    patience: Patience<'_>,
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
            session.ask(&format!("SET LOCAL statement_timeout = {left_ms}"), patience)?;
            Ok(())
        }
    }
}

/// Makes sure that the table has been the same all the while.
pub(super) fn check(
    session: &mut Session<Socket>,
    held: &Held,
    patience: Patience<'_>,
) -> Result<()> {
    match &held.leaves {
        Some(before) if one(session, &leaves(&held.table), patience)? != *before => {
            let what = format!("partitions of {} were added while it was read", held.table);
            Err(Error::new(ErrorKind::Execution, what)
                .hint("read it again, or with one connection (partitions=1)"))
        }
        _ => Ok(()),
    }
}

/// Workers and coordinator wait for the reader now and then.
const NO_TIMEOUT: &str = "SET LOCAL idle_in_transaction_session_timeout = 0";
/// A part is read in one way only.
const ONE_PLAN: &str = "SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off; \
     SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_bitmapscan = off; \
     SET LOCAL max_parallel_workers_per_gather = 0";

/// Settings that decide what a statement means, which rows it may see, and how it reads and writes
/// text. They may have been changed since the coordinator has logged in, for sessions that begin
/// later or by the coordinator's own statements.
const SETTINGS: &[&str] = &[
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

/// What tells this server, this table, and a session that sees it in this way, from all others.
fn identity(table: &str, others: &BTreeSet<String>) -> String {
    let settings = SETTINGS.iter().map(|name| format!("pg_catalog.current_setting('{name}')"));
    // Those that somebody has made up need not be there.
    let others = others.iter().map(|name| {
        format!("pg_catalog.quote_nullable(pg_catalog.current_setting('{name}', true))")
    });
    let settings = settings.chain(others).collect::<Vec<_>>();
    format!(
        "SELECT pg_catalog.concat_ws(' ', pg_catalog.pg_postmaster_start_time(), {}, {})",
        oid_of(table),
        settings.join(", ")
    )
}

/// Whether other tables inherit from a plain one, or did.
fn has_heirs(table: &str) -> String {
    format!(
        "SELECT c.relhassubclass FROM pg_catalog.pg_class c
         WHERE c.oid OPERATOR(pg_catalog.=) {}::pg_catalog.regclass::pg_catalog.oid",
        quoted(table)
    )
}

fn leaves(table: &str) -> String {
    format!(
        "SELECT pg_catalog.concat(pg_catalog.string_agg(t.relid::pg_catalog.oid::pg_catalog.text, ' ')) \
         FROM pg_catalog.pg_partition_tree({}::pg_catalog.regclass) t",
        quoted(table)
    )
}

fn explain(
    session: &mut Session<Socket>,
    sql: &str,
    patience: Patience<'_>,
) -> Result<Vec<String>, PostgresError> {
    let statement = session.enclosable(sql).unwrap_or(sql);
    let plan = session.ask(&format!("EXPLAIN {statement}"), patience)?;
    Ok(plan.into_iter().flatten().flatten().collect())
}

fn one(
    session: &mut Session<Socket>,
    sql: &str,
    patience: Patience<'_>,
) -> Result<String, PostgresError> {
    Ok(session.ask(sql, patience)?.into_iter().flatten().flatten().next().unwrap_or_default())
}

/// Why a table is not read in parts, if the server refused something; what is wrong with the
/// statement, its own run will say. An error in all other cases, a cancel too.
fn reason(session: &Session<Socket>, error: PostgresError) -> Result<String> {
    match error.sqlstate() {
        "" | "57014" => Err(error.into()),
        _ if session.is_broken() => Err(error.into()),
        _ => Ok(error.to_string()),
    }
}

pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
