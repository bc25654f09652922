//! Settings of a session that decide what a statement means, and how long it may take.

use std::time::{Duration, Instant};

use dray_mysql::{CancelCheck as SocketCheck, Connection as Socket, Server, Session};

use super::reason::Reason;
use crate::error::{Error, ErrorKind, Result};

/// What decides the meaning of a statement, on all servers: settings, the database and the user.
const COMMON: &[&str] = &[
    "@@sql_mode",
    "@@sql_select_limit",
    "@@sql_auto_is_null",
    "@@autocommit",
    "@@character_set_client",
    "@@character_set_connection",
    "@@character_set_results",
    "@@collation_connection",
    "@@default_week_format",
    "@@div_precision_increment",
    "@@lc_time_names",
    "@@time_zone",
    "@@version",
    "@@hostname",
    "@@port",
    "DATABASE()",
    "CURRENT_USER()",
];
/// What only MariaDB has.
const MARIADB: &[&str] = &["@@old_mode", "CURRENT_ROLE()"];
/// Those of the settings that only some servers have. Regular expressions, literals and encryption
/// follow some, functions return NULL for more than a packet, and the last three choose which rows
/// are there.
const OF_SOME: &[&str] = &[
    "block_encryption_mode",
    "character_set_collations",
    "default_collation_for_utf8mb4",
    "default_regex_flags",
    "max_allowed_packet",
    "group_replication_consistency",
    "system_versioning_asof",
    "wsrep_sync_wait",
];
/// Limits of time, of what is sorted and joined into texts, and of the steps and digits of what is
/// computed, of which some servers have some. Other sessions get them from the user's.
const LIMITS: &[&str] = &[
    "cte_max_recursion_depth",
    "group_concat_max_len",
    "lock_wait_timeout",
    "max_execution_time",
    "max_recursive_iterations",
    "max_sort_length",
    "max_statement_time",
    "windowing_use_high_precision",
];
/// How long a session may say nothing because its reader is slow, in seconds.
const SILENCE_MAX: u32 = 86_400;
/// The value of `sql_select_limit` that is none.
const UNLIMITED: &str = "18446744073709551615";
/// SQLSTATE `query_canceled`.
const QUERY_CANCELED: &str = "70100";

/// The settings of a session by which its statements are compared with those of others.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    values: Vec<Option<String>>,
    /// Those of [`LIMITS`] that the server has.
    limits: Vec<(String, String)>,
    /// The session's time, in seconds since 1970.
    now: String,
}

impl Settings {
    /// Asks for the settings.
    ///
    /// # Errors
    /// When the connection breaks.
    pub(super) fn of(session: &mut Session<Socket>, check: SocketCheck<'_>) -> Result<Self> {
        let of_mariadb = if session.server().is_mariadb() { MARIADB } else { &[] };
        let names = COMMON.iter().chain(of_mariadb).chain(&["@@timestamp"]);
        let names = names.copied().collect::<Vec<_>>().join(", ");
        let values = session.ask(&format!("SELECT {names}"), check)?;
        let mut values = values.into_iter().flatten().collect::<Vec<_>>();
        let now = values.pop().flatten().unwrap_or_default();
        let names = OF_SOME.iter().chain(LIMITS).map(|name| format!("'{name}'"));
        let names = names.collect::<Vec<_>>().join(", ");
        let question = format!("SHOW SESSION VARIABLES WHERE Variable_name IN ({names})");
        let mut of_some = session.ask(&question, check)?;
        of_some.sort();
        let mut limits = Vec::new();
        for row in of_some {
            match row.as_slice() {
                [Some(name), Some(value)] if LIMITS.contains(&name.as_str()) => {
                    limits.push((name.clone(), value.clone()));
                }
                _ => values.extend(row),
            }
        }
        Ok(Self { values, limits, now })
    }

    /// Whether statements mean the same under these settings as under others, if the sessions have
    /// the same time.
    pub(super) fn mean_the_same(&self, others: &Self) -> bool {
        self.values == others.values
    }

    /// The statement by which another session with settings of its own gets the limits and the time
    /// of this one, waits for locks as long as this one or `lock_wait` seconds, and may say nothing
    /// for long.
    pub(super) fn to_another(
        &self,
        its_own: &Self,
        server: &Server,
        lock_wait: Option<u32>,
    ) -> String {
        let mut set = vec![format!("wait_timeout = {SILENCE_MAX}")];
        if server.is_mariadb() && server.number() >= (10, 3, 0) {
            set.push("idle_transaction_timeout = 0".to_owned());
            set.push("idle_readonly_transaction_timeout = 0".to_owned());
        }
        let other = self.limits.iter().filter(|limit| !its_own.limits.contains(limit));
        set.extend(other.map(|(name, value)| format!("{name} = {value}")));
        set.extend(lock_wait.map(|seconds| format!("lock_wait_timeout = {seconds}")));
        set.extend(self.time());
        format!("SET SESSION {}", set.join(", SESSION "))
    }

    /// The limit of a statement's time; None without one.
    pub(super) fn timeout(&self) -> Option<Duration> {
        let limits = self.limits.iter().filter_map(|(name, value)| {
            let value = value.parse::<f64>().ok()?;
            let seconds = match name.as_str() {
                "max_statement_time" => value,
                "max_execution_time" => value / 1e3,
                _ => return None,
            };
            (seconds > 0.0).then(|| Duration::try_from_secs_f64(seconds).ok()).flatten()
        });
        limits.min()
    }

    /// The setting of the session's time, at which all ranges are read as one statement is: a time
    /// of day that becomes a datetime gets its date. None if it can't be understood.
    fn time(&self) -> Option<String> {
        let seconds = self.now.parse::<f64>().ok().filter(|seconds| *seconds > 0.0)?;
        Some(format!("timestamp = {seconds:.6}"))
    }

    /// Why statements can't be divided under these settings.
    pub(super) fn reason(&self) -> Option<Reason> {
        let value =
            |i: usize| self.values.get(i).and_then(|value| value.as_deref()).unwrap_or_default();
        match (value(0), value(1), value(2), value(3)) {
            (mode, ..) if mode.contains("ORACLE") => Some(Reason::OracleMode),
            (_, limit, ..) if limit != UNLIMITED => Some(Reason::SelectLimit),
            // A column that IS NULL would be the last number that this session inserted.
            (_, _, "1", _) => Some(Reason::AutoIsNull),
            (.., "1") => None,
            _ => Some(Reason::InTransaction),
        }
    }

    /// The user, as GRANT takes it.
    pub(super) fn user(&self) -> String {
        let user = self.values.get(COMMON.len() - 1).cloned().flatten().unwrap_or_default();
        let (name, host) = user.rsplit_once('@').unwrap_or((&user, "%"));
        format!("'{}'@'{host}'", name.replace('\'', "''"))
    }
}

/// Limits a worker's next statement to the time until `deadline`: the session's limit is one of the
/// user's statement, not of each range.
///
/// # Errors
/// Execution, once the deadline has passed, and when the connection breaks.
pub(super) fn limit_statement(
    session: &mut Session<Socket>,
    deadline: Instant,
    check: SocketCheck<'_>,
) -> Result<()> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.as_millis() == 0 {
        return Err(Error::new(
            ErrorKind::Execution,
            "the query was interrupted: it took longer than the session's limit",
        )
        .with_sqlstate(QUERY_CANCELED));
    }
    let set = match session.server().is_mariadb() {
        true => format!("SET SESSION max_statement_time = {}", left.as_secs_f64()),
        false => format!("SET SESSION max_execution_time = {}", left.as_millis()),
    };
    session.ask(&set, check)?;
    Ok(())
}
