//! Whether and how a table of PostgreSQL is read in parts: what the coordinator asks the server.

use dray_postgres::{Error as PostgresError, Patience, Session, Socket, Split, is_range_scan};

use crate::error::Result;

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
}

impl Table {
    /// A statement for each part; the last is open, as the table may have grown.
    pub(super) fn parts(&self, split: &Split) -> Vec<String> {
        let count = (self.workers as u64 * PARTS_PER_WORKER).min(self.blocks.max(1));
        let bound = |i: u64| u32::try_from(self.blocks * i / count).unwrap_or(u32::MAX);
        (0..count).map(|i| split.part(bound(i), (i + 1 < count).then(|| bound(i + 1)))).collect()
    }
}

/// Looks at the table: whether it can be split, and is worth it. `wanted` are the connections that the user asked for.
pub(super) fn look(
    session: &mut Session<Socket>,
    split: &Split,
    wanted: Option<usize>,
    patience: Patience<'_>,
) -> Result<Result<Table, String>> {
    let rows = match session.ask(&question(split), patience) {
        Ok(rows) => rows,
        // What is wrong with the statement, its own run will say.
        Err(error) if !error.sqlstate().is_empty() => return Ok(Err(error.to_string())),
        Err(error) => return Err(error.into()),
    };
    let Some(row) = rows.into_iter().next() else { return Ok(Err(format!("{} is not a table", split.table))) };
    let text = |i: usize| row.get(i).and_then(|value| value.as_deref()).unwrap_or_default();
    let number = |i: usize| text(i).parse::<u64>().unwrap_or_default();
    let (kind, strange_leaves, blocks, bytes, connections, unstable) =
        (text(0), number(1), number(2), number(3), number(4), text(5));
    let reason = match kind {
        "r" | "p" if strange_leaves > 0 => {
            "it reads a table that is temporary, foreign or inherited from, or has such parts"
        }
        "r" | "p" => "",
        _ => "it reads no table, but a view or the like",
    };
    if !reason.is_empty() {
        return Ok(Err(reason.to_owned()));
    }
    if !unstable.is_empty() {
        return Ok(Err(format!("it calls {unstable}, which is not immutable")));
    }
    let workers = match wanted {
        Some(wanted) => wanted,
        None => {
            let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            let by_size = usize::try_from(bytes / PARTITION_BYTES_MIN).unwrap_or(usize::MAX);
            // Half of what is free is left to others.
            processors.min(by_size).min(usize::try_from(connections / 2).unwrap_or(usize::MAX))
        }
    };
    Ok(match workers {
        0 | 1 => Err("the table, this machine or the number of free connections is small".to_owned()),
        _ => Ok(Table { blocks, workers }),
    })
}

/// Kind; leaves that can't be split; blocks of the largest leaf; bytes of all; free connections; a function that is not immutable.
fn question(split: &Split) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let functions = split.functions.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(",");
    format!(
        "WITH root AS (SELECT c.oid, c.relkind FROM pg_catalog.pg_class c WHERE c.oid = {table}::pg_catalog.regclass),
         leaves AS (
             SELECT l.relkind, l.relpersistence, l.relhassubclass, a.amname, pg_catalog.pg_relation_size(l.oid) AS bytes
             FROM root r
             CROSS JOIN LATERAL (
                 SELECT r.oid WHERE r.relkind <> 'p'
                 UNION ALL SELECT p.relid FROM pg_catalog.pg_partition_tree(r.oid) p WHERE p.isleaf AND r.relkind = 'p'
             ) leaf
             JOIN pg_catalog.pg_class l ON l.oid = leaf.oid LEFT JOIN pg_catalog.pg_am a ON a.oid = l.relam
         )
         SELECT r.relkind,
             (SELECT count(*) FROM leaves WHERE relkind <> 'r' OR relpersistence = 't' OR relhassubclass
                 OR amname IS DISTINCT FROM 'heap'),
             (SELECT coalesce(max(bytes), 0) / pg_catalog.current_setting('block_size')::bigint FROM leaves),
             (SELECT coalesce(sum(bytes), 0)::bigint FROM leaves),
             greatest(0, pg_catalog.current_setting('max_connections')::bigint
                 - pg_catalog.current_setting('superuser_reserved_connections')::bigint
                 - (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend')),
             (SELECT p.proname FROM pg_catalog.pg_proc p WHERE p.proname = ANY (ARRAY[{functions}]::name[])
                 AND (p.provolatile <> 'i' OR p.prokind <> 'f' OR p.proretset) LIMIT 1)
         FROM root r",
        table = quoted(&split.table),
    )
}

/// Locks the table, so that its rows stay where they are, makes sure that a part is a range of it, and exports the snapshot;
/// or says why not. The transaction is to be rolled back then.
pub(super) fn hold(
    session: &mut Session<Socket>,
    split: &Split,
    patience: Patience<'_>,
) -> Result<Result<String, String>> {
    let mut ask = |statement: &str| session.ask(statement, patience);
    let mut held = || -> Result<Option<String>, PostgresError> {
        // The lock comes before the snapshot: what rewrites the table has then either ended, and is seen, or waits.
        ask(&format!(
            "{BEGIN}; SET LOCAL idle_in_transaction_session_timeout = 0; LOCK TABLE {} IN ACCESS SHARE MODE",
            split.table
        ))?;
        let plan: Vec<String> =
            ask(&format!("EXPLAIN {}", split.part(0, Some(1))))?.into_iter().flatten().flatten().collect();
        if !is_range_scan(&plan) {
            return Ok(None);
        }
        Ok(ask("SELECT pg_catalog.pg_export_snapshot()")?.into_iter().flatten().flatten().next())
    };
    match held() {
        Ok(Some(snapshot)) => Ok(Ok(snapshot)),
        Ok(None) => Ok(Err("its plan is not a scan of a range of the table".to_owned())),
        Err(error) if !error.sqlstate().is_empty() => Ok(Err(error.to_string())),
        Err(error) => Err(error.into()),
    }
}
