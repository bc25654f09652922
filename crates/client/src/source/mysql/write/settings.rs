//! The session's settings while it writes.
//!
//! Text is UTF-8 and a TIMESTAMP is in UTC, whatever the user has set meanwhile. What does not fit
//! is an error or a warning, never a value that fits; 0 is 0 in a column with AUTO_INCREMENT. The
//! server waits for a slow source of rows as long as it takes.

use dray_mysql::{CancelCheck as SocketCheck, Connection as Socket, Session};

use super::table::literal;
use crate::error::{Error, ErrorKind, Result};

/// The variables that are set, in the order in which they are set back: a collation has to follow
/// its character set.
const NAMES: [&str; 8] = [
    "character_set_client",
    "character_set_results",
    "character_set_connection",
    "collation_connection",
    "time_zone",
    "sql_mode",
    "sql_notes",
    "net_read_timeout",
];
/// Modes of the user's that stay.
const KEPT_MODES: [&str; 4] =
    ["ALLOW_INVALID_DATES", "NO_ZERO_DATE", "NO_ZERO_IN_DATE", "ERROR_FOR_DIVISION_BY_ZERO"];

/// The settings before.
pub(super) struct Settings {
    values: Vec<String>,
    /// The largest packet that the server takes.
    pub(super) packet_bytes_max: usize,
}

impl Settings {
    /// Sets what writing needs.
    ///
    /// # Errors
    /// When the server can't be asked, or refuses.
    pub(super) fn set(session: &mut Session<Socket>, check: SocketCheck<'_>) -> Result<Self> {
        let names: Vec<_> = NAMES.iter().map(|name| format!("@@{name}")).collect();
        let question = format!("SELECT {}, @@max_allowed_packet", names.join(", "));
        let row = session.ask(&question, check)?.into_iter().next().unwrap_or_default();
        let mut values = row.into_iter().collect::<Option<Vec<_>>>().unwrap_or_default();
        let packet_bytes_max = values.pop().and_then(|bytes| bytes.parse().ok());
        let (Some(packet_bytes_max), NAMES_COUNT) = (packet_bytes_max, values.len()) else {
            let what = "the server's settings can't be understood";
            return Err(Error::new(ErrorKind::Protocol, what));
        };
        let kept = values[5].split(',').filter(|mode| KEPT_MODES.contains(mode));
        let modes = ["STRICT_ALL_TABLES", "NO_AUTO_VALUE_ON_ZERO", "NO_ENGINE_SUBSTITUTION"];
        let modes: Vec<_> = kept.chain(modes).collect();
        let statement = format!(
            "SET NAMES utf8mb4, time_zone = '+00:00', sql_mode = '{}', sql_notes = 1, \
             net_read_timeout = 86400",
            modes.join(",")
        );
        session.ask(&statement, check)?;
        Ok(Self { values, packet_bytes_max })
    }

    /// The statement that sets the settings back.
    pub(super) fn reset(&self) -> String {
        let set = NAMES.iter().zip(&self.values).map(|(name, value)| {
            match value.bytes().all(|byte| byte.is_ascii_digit()) && !value.is_empty() {
                true => format!("{name} = {value}"),
                false => format!("{name} = {}", literal(value)),
            }
        });
        format!("SET {}", set.collect::<Vec<_>>().join(", "))
    }
}

const NAMES_COUNT: usize = NAMES.len();
