//! Settings of a session that decide what a statement means, and how long it may take.

use std::time::{Duration, Instant};

use dray_mysql::{CancelCheck as SocketCheck, Connection as Socket, Session};

use super::reason::Reason;
use crate::error::{Error, ErrorKind, Result};

/// What decides the meaning of a statement, on all servers: settings, the database and the user.
const COMMON: &[&str] = &[
    "@@sql_mode",
    "@@sql_select_limit",
    "@@autocommit",
    "@@character_set_client",
    "@@character_set_connection",
    "@@character_set_results",
    "@@collation_connection",
    "@@default_week_format",
    "@@div_precision_increment",
    "@@lc_time_names",
    "@@sql_auto_is_null",
    "@@time_zone",
    "@@version",
    "@@hostname",
    "@@port",
    "DATABASE()",
    "CURRENT_USER()",
];
/// What only MariaDB has.
const MARIADB: &[&str] = &["@@old_mode", "CURRENT_ROLE()"];
/// The value of `sql_select_limit` that is none.
const UNLIMITED: &str = "18446744073709551615";
/// SQLSTATE `query_canceled`.
const QUERY_CANCELED: &str = "70100";

/// The settings of a session by which its statements are compared with those of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settings(Vec<Option<String>>);

impl Settings {
    /// Asks for the settings.
    ///
    /// # Errors
    /// When the connection breaks.
    pub(super) fn of(session: &mut Session<Socket>, check: SocketCheck<'_>) -> Result<Self> {
        let of_mariadb = if session.server().is_mariadb() { MARIADB } else { &[] };
        let names = COMMON.iter().chain(of_mariadb).copied().collect::<Vec<_>>();
        let values = session.ask(&format!("SELECT {}", names.join(", ")), check)?;
        Ok(Self(values.into_iter().flatten().collect()))
    }

    /// Why statements can't be divided under these settings.
    pub(super) fn reason(&self) -> Option<Reason> {
        let value = |i: usize| self.0.get(i).and_then(|value| value.as_deref()).unwrap_or_default();
        match (value(0), value(1), value(2)) {
            (mode, ..) if mode.contains("ORACLE") => Some(Reason::OracleMode),
            (_, limit, _) if limit != UNLIMITED => Some(Reason::SelectLimit),
            (.., "1") => None,
            _ => Some(Reason::InTransaction),
        }
    }

    /// The user, as GRANT takes it.
    pub(super) fn user(&self) -> String {
        let user = self.0.get(COMMON.len() - 1).cloned().flatten().unwrap_or_default();
        let (name, host) = user.rsplit_once('@').unwrap_or((&user, "%"));
        format!("'{}'@'{host}'", name.replace('\'', "''"))
    }
}

/// The session's limit of a statement's time; None without one.
///
/// # Errors
/// When the connection breaks.
pub(super) fn timeout(
    session: &mut Session<Socket>,
    check: SocketCheck<'_>,
) -> Result<Option<Duration>> {
    let rows = session.ask("SHOW SESSION VARIABLES LIKE 'max\\_%\\_time'", check)?;
    let limits = rows.iter().filter_map(|row| {
        let [Some(name), Some(value)] = row.as_slice() else { return None };
        let value = value.parse::<f64>().ok()?;
        let seconds = match name.as_str() {
            "max_statement_time" => value,
            "max_execution_time" => value / 1e3,
            _ => return None,
        };
        (seconds > 0.0).then(|| Duration::try_from_secs_f64(seconds).ok()).flatten()
    });
    Ok(limits.min())
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
