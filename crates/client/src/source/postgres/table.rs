//! Whether a table can be read over several connections, and is worth it.

use std::collections::BTreeSet;
use std::time::Duration;

use dray_postgres::{CancelCheck as SocketCheck, Session, Socket, TableScan};

use super::super::partitioned::Distance;
use super::reason::{Decision, Reason, refused_by_server};
use super::sql::{ask_optional, name_array, oid_of, quoted};
use super::volatility::{self, Origin};
use crate::error::Result;

/// A table that can be read over several connections.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table {
    /// Blocks of the table, or of its largest partition.
    pub(super) blocks: u64,
    /// Bytes of the table with its partitions.
    pub(super) bytes: u64,
    /// Connections to read it with.
    pub(super) workers: usize,
    /// The limit of the session's `statement_timeout`.
    pub(super) timeout: Option<Duration>,
}

/// What the user asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Requested {
    /// The number of connections; None to choose.
    pub(super) connections: Option<usize>,
    /// The most connections.
    pub(super) at_most: usize,
    /// Whether rows come in the table's order.
    pub(super) ordered: bool,
}

impl Table {
    /// Inspects the table of a scan. `attributes` are names in earlier statements that may be
    /// functions.
    ///
    /// The ranges of a plain table exclude what inherits from it, so that tables that are made to
    /// inherit meanwhile have no part in the result.
    ///
    /// # Errors
    /// When the connection breaks or the statement is cancelled.
    pub(super) fn inspect(
        session: &mut Session<Socket>,
        scan: &mut TableScan,
        attributes: &BTreeSet<String>,
        requested: Requested,
        check: SocketCheck<'_>,
    ) -> Result<Decision<Self>> {
        let names = volatility::names(&scan.references).chain(attributes);
        if scan.table.contains('\\') || names.into_iter().any(|name| name.contains('\\')) {
            return Ok(Decision::Refused(Reason::Backslashes));
        }
        let rows = match session.ask(&question(scan, attributes), check) {
            Ok(rows) => rows,
            Err(error) => return refused_by_server(session, error),
        };
        let Some(row) = rows.into_iter().next() else {
            return Ok(Decision::Refused(Reason::UnknownTable(scan.table.clone())));
        };
        let Facts { kind, unsuitable_leaves, blocks, bytes, free_connections, called, timeout } =
            Facts::from_row(&row);
        if requested.ordered && kind == "p" {
            return Ok(Decision::Refused(Reason::OrderOfPartitions));
        }
        match kind {
            "r" | "p" if unsuitable_leaves > 0 => {
                return Ok(Decision::Refused(Reason::UnsuitableTable));
            }
            "r" | "p" => {}
            _ => return Ok(Decision::Refused(Reason::NotATable)),
        }
        if !called.is_empty() {
            return Ok(Decision::Refused(Reason::EarlierCall(called.to_owned())));
        }
        scan.only = kind == "r";
        let workers = requested.connections.unwrap_or_else(|| {
            let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            let by_size = Distance::of(session.stream()).connections_for(bytes);
            // Half of the free connections are left to others.
            let by_connections = usize::try_from(free_connections / 2).unwrap_or(usize::MAX);
            processors.min(by_size).min(by_connections)
        });
        let workers = workers.min(requested.at_most);
        if workers < 2 {
            return Ok(Decision::Refused(Reason::Small));
        }
        let unstable =
            volatility::question(&scan.references, Origin::Statement, &oid_of(&scan.table));
        match ask_optional(session, &unstable, check) {
            Ok(None) => Ok(Decision::Run(Self { blocks, bytes, workers, timeout })),
            Ok(Some(unstable)) => Ok(Decision::Refused(Reason::Unstable(unstable))),
            Err(error) => refused_by_server(session, error),
        }
    }

    /// A statement for each range of blocks. The last range is open, since the table may have
    /// grown.
    pub(super) fn ranges(&self, scan: &TableScan, per_worker: usize) -> Vec<String> {
        let count = ((self.workers * per_worker) as u64).min(self.blocks.max(1));
        let bound = |i: u64| u32::try_from(self.blocks * i / count).unwrap_or(u32::MAX);
        debug_assert!((1..count).all(|i| bound(i - 1) < bound(i)), "no range is empty");
        (0..count)
            .map(|i| scan.block_range(bound(i), (i + 1 < count).then(|| bound(i + 1))))
            .collect()
    }
}

/// The answer to [`question`].
struct Facts<'a> {
    /// `relkind`.
    kind: &'a str,
    /// Leaves of the table that can't be read by ranges.
    unsuitable_leaves: u64,
    /// Blocks of the largest leaf.
    blocks: u64,
    /// Bytes of all leaves.
    bytes: u64,
    free_connections: u64,
    /// A function that an attribute may have been, and which may have changed the session.
    called: &'a str,
    /// `statement_timeout`.
    timeout: Option<Duration>,
}

impl<'a> Facts<'a> {
    fn from_row(row: &'a [Option<String>]) -> Self {
        let text = |i: usize| row.get(i).and_then(|value| value.as_deref()).unwrap_or_default();
        let number = |i: usize| text(i).parse::<u64>().unwrap_or_default();
        Self {
            kind: text(0),
            unsuitable_leaves: number(1),
            blocks: number(2),
            bytes: number(3),
            free_connections: number(4),
            called: text(5),
            timeout: Some(number(6)).filter(|ms| *ms > 0).map(Duration::from_millis),
        }
    }
}

/// Asks for [`Facts`].
fn question(scan: &TableScan, attributes: &BTreeSet<String>) -> String {
    let [equal, different, minus] =
        ["=", "<>", "-"].map(|name| format!("OPERATOR(pg_catalog.{name})"));
    let setting = |name: &str| format!("pg_catalog.current_setting('{name}')");
    let number = |name: &str| format!("{}::pg_catalog.int8", setting(name));
    format!(
        "WITH root AS (
             SELECT c.oid, c.relkind FROM pg_catalog.pg_class c
             WHERE c.oid {equal} {table}::pg_catalog.regclass::pg_catalog.oid
         ),
         leaves AS (
             SELECT l.relkind, l.relpersistence, l.relhassubclass, a.amname, \
                 pg_catalog.pg_relation_size(l.oid) AS bytes
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
             (SELECT pg_catalog.count(*) FROM leaves \
                 WHERE relkind {different} 'r'::pg_catalog.\"char\"
                 OR relpersistence {equal} 't'::pg_catalog.\"char\" OR relhassubclass
                 OR coalesce(amname {different} 'heap'::pg_catalog.name, true)),
             (SELECT coalesce(pg_catalog.max(bytes), 0) OPERATOR(pg_catalog./) {block_size} \
                 FROM leaves),
             (SELECT coalesce(pg_catalog.sum(bytes), 0)::pg_catalog.int8 FROM leaves),
             greatest(0, {connections} {minus} {reserved} {minus} (
                 SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity \
                     WHERE datid IS NOT NULL)),
             {called},
             (pg_catalog.date_part('epoch', {timeout}::pg_catalog.interval) \
                 OPERATOR(pg_catalog.*) 1000)::pg_catalog.int8
         FROM root r",
        table = quoted(&scan.table),
        block_size = number("block_size"),
        connections = number("max_connections"),
        reserved = number("superuser_reserved_connections"),
        timeout = setting("statement_timeout"),
        called = called_function(attributes),
    )
}

/// Asks for a function of the user's that an attribute in an earlier statement may have been.
pub(super) fn called_function(attributes: &BTreeSet<String>) -> String {
    let [equal, different, least, most, minus] =
        ["=", "<>", ">=", "<=", "-"].map(|name| format!("OPERATOR(pg_catalog.{name})"));
    format!(
        "(SELECT p.proname FROM pg_catalog.pg_proc p WHERE p.proname {equal} ANY ({attributes})
             AND p.pronamespace {different} 'pg_catalog'::pg_catalog.regnamespace::pg_catalog.oid
             AND p.pronargs {least} 1 AND p.pronargs {minus} p.pronargdefaults {most} 1 LIMIT 1)",
        attributes = name_array(attributes),
    )
}
