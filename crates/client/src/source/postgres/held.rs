//! A snapshot that a planner holds for readers in other processes, and what tells whether a reader
//! sees the same under it: `spec/partitions.md` sections 2 and 3.

use std::collections::BTreeSet;

use dray_postgres::{
    CancelCheck as SocketCheck, Error as PostgresError, Parameter, Session, Socket,
};
use dray_wire::partition::seal;

use super::snapshot::SETTINGS;
use super::sql::{ask_one, clock_us, epoch_us};
use crate::error::{Error, Result};

/// Whose settings these are. Not a setting itself, as the session's user is no readable one.
const USER: &str = "current_user";
/// The statement of a plan with parameters, and the savepoint before it, while it is explained.
const STATEMENT: &str = "dray_part";

/// The server of a session: its run, and the time by its clock in microseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerRun {
    pub(super) name: String,
    pub(super) now_us: u64,
}

impl ServerRun {
    /// Asks the server, outside of a transaction: managed servers may refuse to name their system.
    ///
    /// # Errors
    /// When the connection breaks.
    pub(super) fn of(session: &mut Session<Socket>, check: SocketCheck<'_>) -> Result<Self> {
        let system = "SELECT pg_catalog.concat_ws(' ', s.system_identifier, c.timeline_id) \
             FROM pg_catalog.pg_control_system() s, pg_catalog.pg_control_checkpoint() c";
        let system = match ask_one(session, system, check) {
            Err(error) if error.sqlstate().is_none() || session.is_broken() => {
                return Err(error.into());
            }
            answer => answer.unwrap_or_default(),
        };
        let question = format!(
            "SELECT pg_catalog.concat_ws(' ', {}, pg_catalog.pg_is_in_recovery(), \
             pg_catalog.current_database()), {}",
            epoch_us("pg_postmaster_start_time"),
            epoch_us("clock_timestamp")
        );
        let mut answer = session.ask(&question, check)?.into_iter().flatten().flatten();
        let run = answer.next().unwrap_or_default();
        let now_us = clock_us(&answer.next().unwrap_or_default())?;
        Ok(Self { name: format!("{system} {run}"), now_us })
    }
}

/// The settings of a session that decide what a statement means, with their values. Those that
/// policies read are the user's own and may be secret: they come as a digest.
///
/// # Errors
/// When the connection breaks.
pub(super) fn settings(
    session: &mut Session<Socket>,
    of_policies: &[String],
    check: SocketCheck<'_>,
) -> Result<Vec<(String, String)>, PostgresError> {
    let known = SETTINGS.iter().map(|name| format!("pg_catalog.current_setting('{name}')"));
    // A setting of the user's own need not exist.
    let own = of_policies.iter().map(|name| {
        let name = name.replace('\'', "''");
        format!("pg_catalog.quote_nullable(pg_catalog.current_setting('{name}', true))")
    });
    let asked = known.chain(own).collect::<Vec<_>>().join(", ");
    let answer = session.ask(&format!("SELECT {USER}, {asked}"), check)?;
    let mut values = answer.into_iter().flatten().map(Option::unwrap_or_default);
    let mut named = Vec::with_capacity(1 + SETTINGS.len() + of_policies.len());
    for name in std::iter::once(&USER).chain(SETTINGS) {
        named.push(((*name).to_owned(), values.next().unwrap_or_default()));
    }
    for name in of_policies {
        let value = seal(values.next().unwrap_or_default().as_bytes());
        named.push((name.clone(), value.iter().map(|byte| format!("{byte:02x}")).collect()));
    }
    Ok(named)
}

/// The names of the settings outside of Dray's own list.
pub(super) fn policy_settings(settings: &[(String, String)]) -> Vec<String> {
    settings.iter().skip(1 + SETTINGS.len()).map(|(name, _)| name.clone()).collect()
}

/// The digest of the transaction's snapshot.
///
/// # Errors
/// When the connection breaks.
pub(super) fn snapshot_digest(
    session: &mut Session<Socket>,
    check: SocketCheck<'_>,
) -> Result<[u8; 32], PostgresError> {
    let text = "SELECT pg_catalog.txid_current_snapshot()::pg_catalog.text";
    Ok(seal(ask_one(session, text, check)?.as_bytes()))
}

/// What this transaction has locked for a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LockedRelations {
    /// Oids of tables, partitions and views.
    pub(super) oids: String,
    /// One of them was rewritten or emptied after the snapshot was taken, before it was locked.
    pub(super) changed: bool,
    /// A foreign table, which no snapshot covers.
    pub(super) foreign: Option<String>,
}

impl LockedRelations {
    /// Plans a statement, which locks what it reads until the transaction ends, and returns that,
    /// with the plan's lines.
    ///
    /// # Errors
    /// When the statement does not plan, the connection breaks, or it has to wait for a lock for
    /// longer than `lock_timeout`.
    pub(super) fn of(
        session: &mut Session<Socket>,
        sql: &str,
        parameters: &[Parameter],
        check: SocketCheck<'_>,
    ) -> Result<(Self, Vec<String>)> {
        let Some(statement) = session.enclosable(sql).map(str::to_owned) else {
            return Err(Error::usage("a plan of partitions is of one statement"));
        };
        let plan = match parameters {
            [] => session.ask(&format!("EXPLAIN {statement}"), check)?,
            _ => explain_with(session, &statement, parameters, check)?,
        };
        let mut row = session.ask(&locked_relations(), check)?.into_iter().flatten();
        let oids = sorted_oids(&row.next().flatten().unwrap_or_default());
        let changed = row.next().flatten().is_some_and(|flag| flag == "t");
        let foreign = row.next().flatten();
        Ok((Self { oids, changed, foreign }, plan.into_iter().flatten().flatten().collect()))
    }
}

/// Explains a statement with its parameters as the server plans it with these values.
fn explain_with(
    session: &mut Session<Socket>,
    statement: &str,
    parameters: &[Parameter],
    check: SocketCheck<'_>,
) -> Result<Vec<Vec<Option<String>>>> {
    let oids: BTreeSet<u32> = parameters.iter().map(|parameter| parameter.oid).collect();
    // The types are the server's own: a name without its schema could be another's.
    let named = oids.iter().map(|oid| {
        format!(
            "(SELECT pg_catalog.quote_ident(t.typname) FROM pg_catalog.pg_type t \
             WHERE t.oid OPERATOR(pg_catalog.=) '{oid}'::pg_catalog.oid)"
        )
    });
    let names = session.ask(&format!("SELECT {}", named.collect::<Vec<_>>().join(", ")), check)?;
    let names = names.into_iter().flatten().collect::<Vec<_>>();
    let types = parameters.iter().map(|parameter| {
        let at = oids.iter().position(|known| *known == parameter.oid);
        let name = at.and_then(|at| names.get(at)?.as_deref()).unwrap_or("unknown");
        format!("pg_catalog.{name}")
    });
    let types = types.collect::<Vec<_>>().join(", ");
    // E'…' has escapes in every session.
    let values = parameters.iter().map(|parameter| match &parameter.text {
        None => "NULL".to_owned(),
        Some(text) => format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''")),
    });
    let values = values.collect::<Vec<_>>().join(", ");
    session.ask(
        &format!("SAVEPOINT {STATEMENT}; PREPARE {STATEMENT} ({types}) AS {statement}"),
        check,
    )?;
    let plan = session.ask(&format!("EXPLAIN EXECUTE {STATEMENT} ({values})"), check);
    // A prepared statement outlives its transaction, and one that has failed can't deallocate it.
    let end = if plan.is_ok() { "RELEASE" } else { "ROLLBACK TO" };
    let ended = session.ask(&format!("{end} SAVEPOINT {STATEMENT}; DEALLOCATE {STATEMENT}"), check);
    // The first error counts.
    let plan = plan?;
    ended?;
    Ok(plan)
}

/// Asks for [`LockedRelations`]. The rows of `pg_class` are those of the snapshot; the functions
/// see the present. A relation without a row is younger than the snapshot.
fn locked_relations() -> String {
    let [equal, different, least] =
        ["=", "<>", ">="].map(|name| format!("OPERATOR(pg_catalog.{name})"));
    format!(
        "SELECT pg_catalog.string_agg(r.oid::pg_catalog.text, ' '),
             pg_catalog.bool_or(r.changed),
             (SELECT f.oid::pg_catalog.regclass::pg_catalog.text FROM pg_catalog.pg_class f
                 WHERE f.relkind {equal} 'f'::pg_catalog.\"char\" AND f.oid {equal} ANY (\
                     pg_catalog.array_agg(r.oid)) LIMIT 1)
         FROM (
             SELECT l.relation AS oid, c.oid IS NULL OR c.relfilenode {different} \
                     '0'::pg_catalog.oid AND c.relfilenode {different} coalesce(\
                     pg_catalog.pg_relation_filenode(l.relation::pg_catalog.regclass), \
                     '0'::pg_catalog.oid) AS changed
             FROM pg_catalog.pg_locks l
             LEFT JOIN pg_catalog.pg_class c ON c.oid {equal} l.relation
             WHERE l.pid {equal} pg_catalog.pg_backend_pid() AND l.granted
                 AND l.locktype {equal} 'relation' AND l.relation {least} '16384'::pg_catalog.oid
                 AND (c.relkind {equal} ANY ('{{r,p,v,m,f}}'::pg_catalog.\"char\"[])
                     OR c.oid IS NULL AND pg_catalog.pg_index_has_property(\
                         l.relation::pg_catalog.regclass, 'index_scan') IS NULL)
         ) r"
    )
}

/// Oids with a space between, in ascending order.
pub(super) fn sorted_oids(text: &str) -> String {
    let oids = text.split_ascii_whitespace().filter_map(|oid| oid.parse::<u32>().ok());
    let oids = oids.collect::<BTreeSet<_>>();
    oids.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}
