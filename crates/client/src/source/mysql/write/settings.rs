//! The session's settings while it writes.
//!
//! Text is UTF-8 and a TIMESTAMP is in UTC, whatever the user has set meanwhile. What does not fit
//! is an error or a warning, never a value that fits; 0 is 0 in a column with AUTO_INCREMENT. The
//! server waits for a slow source of rows for a day.

use dray_mysql::{CancelCheck as SocketCheck, Connection as Socket, Session};

use super::table::literal;
use crate::error::{Error, ErrorKind, Result};

/// The variables that are set, in the order in which they are set back: a collation has to follow
/// its character set.
const NAMES: [&str; 9] = [
    "sql_mode",
    "character_set_client",
    "character_set_results",
    "character_set_connection",
    "collation_connection",
    "time_zone",
    "sql_notes",
    "net_read_timeout",
    "wait_timeout",
];
/// How long MariaDB lets a transaction wait for its next statement; 0 is for ever.
const MARIADB_NAMES: [&str; 2] = ["idle_transaction_timeout", "idle_write_transaction_timeout"];
/// The first MariaDB with [`MARIADB_NAMES`].
const IDLE_TIMEOUTS: (u32, u32, u32) = (10, 3, 0);
/// Modes of the user's that stay.
const KEPT_MODES: [&str; 4] =
    ["ALLOW_INVALID_DATES", "NO_ZERO_DATE", "NO_ZERO_IN_DATE", "ERROR_FOR_DIVISION_BY_ZERO"];

/// The settings of writing, and those before.
pub(super) struct Settings {
    statement: String,
    /// Variables and their values, None for NULL.
    before: Vec<(&'static str, Option<String>)>,
    /// The largest packet that the server takes.
    pub(super) packet_bytes_max: usize,
}

impl Settings {
    /// Sets what writing needs.
    ///
    /// # Errors
    /// When the server can't be asked, or refuses.
    pub(super) fn set(session: &mut Session<Socket>, check: SocketCheck<'_>) -> Result<Self> {
        let server = session.server();
        let own: &[&str] = match server.is_mariadb() && server.number() >= IDLE_TIMEOUTS {
            true => &MARIADB_NAMES,
            false => &[],
        };
        let names: Vec<_> = NAMES.iter().chain(own).copied().collect();
        let listed: Vec<_> = names.iter().map(|name| format!("@@{name}")).collect();
        let question = format!("SELECT {}, @@max_allowed_packet", listed.join(", "));
        let mut values = session.ask(&question, check)?.into_iter().next().unwrap_or_default();
        let packet_bytes_max = values.pop().flatten().and_then(|bytes| bytes.parse().ok());
        let is_whole = values.len() == names.len();
        let (Some(packet_bytes_max), Some(Some(mode)), true) =
            (packet_bytes_max, values.first().cloned(), is_whole)
        else {
            let what = "the server's settings can't be understood";
            return Err(Error::new(ErrorKind::Protocol, what));
        };
        let kept = mode.split(',').filter(|mode| KEPT_MODES.contains(mode));
        let modes = ["STRICT_ALL_TABLES", "NO_AUTO_VALUE_ON_ZERO", "NO_ENGINE_SUBSTITUTION"];
        let modes: Vec<_> = kept.chain(modes).collect();
        let idle: String = own.iter().map(|name| format!(", {name} = 0")).collect();
        let statement = format!(
            "SET NAMES utf8mb4, time_zone = '+00:00', sql_mode = '{}', sql_notes = 1, \
             net_read_timeout = 86400, wait_timeout = 86400{idle}",
            modes.join(",")
        );
        session.ask(&statement, check)?;
        let before = names.into_iter().zip(values).collect();
        Ok(Self { statement, before, packet_bytes_max })
    }

    /// Sets the same in another session.
    ///
    /// # Errors
    /// When the server refuses.
    pub(super) fn set_alike(
        &self,
        session: &mut Session<Socket>,
        check: SocketCheck<'_>,
    ) -> Result<()> {
        Ok(session.ask(&self.statement, check).map(drop)?)
    }

    /// The statement that sets back what was before.
    pub(super) fn reset(&self) -> String {
        let set = self.before.iter().map(|(name, value)| match value {
            None => format!("{name} = NULL"),
            Some(value) if value.parse::<u64>().is_ok() => format!("{name} = {value}"),
            Some(value) => format!("{name} = {}", literal(value)),
        });
        format!("SET {}", set.collect::<Vec<_>>().join(", "))
    }
}
