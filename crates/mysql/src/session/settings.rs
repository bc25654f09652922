//! The settings by which statements are sent and results are read.

use dray_mysqltypes::ColumnDefinition;

use super::Parameter;
use crate::answer::SETTINGS;
use crate::error::{Error, Result};
use crate::server::Server;
use crate::sql;

const UTF8: &str = "utf8mb4";
/// The time zone as it is set, and others that are the same.
const UTC: [&str; 4] = ["+00:00", "-00:00", "utc", "etc/utc"];
/// TIMESTAMP, whose values come in the session's time zone.
const TIMESTAMP: u8 = 7;

/// The statement that sets up a session.
///
/// A server gives up a client that takes nothing for `net_write_timeout`, a minute by default. The
/// user of a result may take longer to come back for more. A server may be configured without
/// autocommit, and would then undo what a program wrote.
pub(super) fn set_up(server: &Server) -> String {
    let mut text = format!(
        "SET NAMES {UTF8}, time_zone = '{}', net_write_timeout = 86400, autocommit = 1",
        UTC[0]
    );
    if server.tracks() {
        // Of the default variables autocommit does not matter here, and a server that has more in
        // its configuration has them for others.
        text.push_str(", session_track_system_variables = '");
        text.push_str(&SETTINGS.join(","));
        text.push('\'');
    }
    text
}

/// The settings, as [`set_up`] sets them and the server reports their changes.
#[derive(Debug)]
pub(super) struct Settings {
    time_zone: String,
    client: String,
    results: String,
    /// A statement has failed, and may have changed settings before it did: errors report none. Or
    /// the server reports no changes.
    is_stale: bool,
    /// Whether the server reports changes. Once it does not, it is asked for good.
    is_tracked: bool,
    /// How often the time zone was set.
    zone_changes: u64,
}

impl Settings {
    /// Those of [`set_up`], of a server that reports changes or does not.
    pub(super) fn new(is_tracked: bool) -> Self {
        Self {
            time_zone: UTC[0].into(),
            client: UTF8.into(),
            results: UTF8.into(),
            is_stale: false,
            is_tracked,
            zone_changes: 0,
        }
    }

    /// Asks for the settings, in the order of [`SETTINGS`], and for what changes are reported.
    pub(super) fn question(&self) -> String {
        let tracked = if self.is_tracked { ", @@session_track_system_variables" } else { "" };
        format!("SELECT @@{}{tracked}", SETTINGS.join(", @@"))
    }

    /// Notes the last values of the [`SETTINGS`] that have changed.
    pub(super) fn note(&mut self, values: [Option<String>; 3]) {
        let [time_zone, client, results] = values;
        self.zone_changes += u64::from(time_zone.is_some());
        for (setting, value) in [
            (&mut self.time_zone, time_zone),
            (&mut self.client, client),
            (&mut self.results, results),
        ] {
            if let Some(value) = value {
                *setting = value;
            }
        }
    }

    /// Notes the answer to [`Self::question`].
    pub(super) fn learn(&mut self, mut values: impl Iterator<Item = Option<String>>) {
        self.note(SETTINGS.map(|_| Some(values.next().flatten().unwrap_or_default())));
        let tracked = values.next().flatten().unwrap_or_default().to_ascii_lowercase();
        let has =
            |name: &str| tracked.split(',').any(|tracked| [name, "*"].contains(&tracked.trim()));
        self.is_tracked &= SETTINGS.iter().all(|name| has(name));
        self.trust();
    }

    /// Notes that a statement may change settings without a report.
    pub(super) fn doubt(&mut self) {
        self.is_stale = true;
    }

    /// Notes that the settings are known.
    pub(super) fn trust(&mut self) {
        self.is_stale = false;
    }

    /// Whether the server reports changes.
    pub(super) fn is_tracked(&self) -> bool {
        self.is_tracked
    }

    /// Whether the server must be asked for the settings. Until it is, nothing that depends on the
    /// time zone is sent or read.
    pub(super) fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// How often the time zone was set so far.
    pub(super) fn zone_changes(&self) -> u64 {
        self.zone_changes
    }

    /// Checks that the server reads a statement as it is written.
    pub(super) fn check_sendable(&self, statement: &str) -> Result<()> {
        match self.client == UTF8 || statement.is_ascii() {
            true => Ok(()),
            false => Err(changed("character_set_client", &self.client, "the statement is UTF-8")),
        }
    }

    /// Checks that the server reads values as they are written.
    pub(super) fn check_parameters(&self, parameters: &[Parameter]) -> Result<()> {
        for parameter in parameters {
            match parameter {
                Parameter::Text(text) => self.check_sendable(text)?,
                Parameter::Utc(_) => {
                    self.check_zone("a timestamp with a time zone is sent in UTC")?
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn check_zone(&self, why: &str) -> Result<()> {
        if self.is_stale {
            let what = format!("a statement before may have set time_zone, but {why}");
            return Err(Error::usage(what).with_hint("use a statement of its own for it"));
        }
        match UTC.contains(&self.time_zone.to_ascii_lowercase().as_str()) {
            true => Ok(()),
            false => Err(changed("time_zone", &self.time_zone, why)),
        }
    }

    /// Checks that the values of columns of a statement mean what they say.
    pub(super) fn check_readable(
        &self,
        statement: &str,
        columns: &[ColumnDefinition],
    ) -> Result<()> {
        if self.results != UTF8 {
            let why = "text is read as UTF-8";
            return Err(changed("character_set_results", &self.results, why));
        }
        let Some(column) = columns.iter().find(|column| is_timestamp(column)) else {
            return Ok(());
        };
        self.check_zone(&format!("TIMESTAMP {:?} is read as UTC", column.name))?;
        // MySQL's hint SET_VAR and MariaDB's SET STATEMENT set it for the statement alone. Not
        // every server reports that; what is reported is refused at the end of the rows.
        let lower = statement.to_ascii_lowercase();
        let sets = lower.contains("set_var") || sql::first_word(&lower) == "set";
        if sets && lower.contains("time_zone") {
            return Err(zone_set_within(&column.name));
        }
        match !self.is_tracked && matches!(sql::first_word(&lower), "call" | "execute") {
            true => {
                let what = format!(
                    "a procedure may set time_zone, which is not reported, but TIMESTAMP {:?} is \
                     read as UTC",
                    column.name
                );
                Err(Error::usage(what).with_hint("select the rows without the procedure"))
            }
            false => Ok(()),
        }
    }
}

pub(super) fn is_timestamp(column: &ColumnDefinition) -> bool {
    column.type_code == TIMESTAMP
}

/// The error of a statement that sets the time zone before it returns a TIMESTAMP.
pub(super) fn zone_set_within(column: &str) -> Error {
    Error::usage(format!("the statement sets time_zone, but TIMESTAMP {column:?} is read as UTC"))
        .with_hint("convert it by CONVERT_TZ instead")
}

fn changed(name: &str, value: &str, why: &str) -> Error {
    let hint = match name {
        "time_zone" => "SET time_zone = '+00:00', and convert by CONVERT_TZ",
        _ => "SET NAMES utf8mb4",
    };
    Error::usage(format!("{name} was set to {value:?}, but {why}")).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &str, value: &str) -> Settings {
        let mut settings = Settings::new(true);
        settings.note(SETTINGS.map(|known| (known == name).then(|| value.to_owned())));
        settings
    }

    #[test]
    fn changes() {
        let settings = note("time_zone", "UTC");
        settings.check_sendable("ü").unwrap();
        settings.check_readable("", &[]).unwrap();
        let settings = note("character_set_client", "latin1");
        settings.check_sendable("SET NAMES utf8mb4").unwrap();
        let error = settings.check_sendable("SELECT 'ü'").unwrap_err();
        assert!(error.to_string().contains("latin1"), "{error}");
        let settings = note("character_set_results", "");
        settings.check_readable("", &[]).unwrap_err();
        let mut settings = note("time_zone", "SYSTEM");
        assert_eq!(settings.time_zone, "SYSTEM");
        settings.learn([Some("+00:00".to_owned()), None, None].into_iter());
        assert_eq!((settings.time_zone.as_str(), settings.client.as_str()), ("+00:00", ""));
    }

    /// Who changes what is reported is asked from then on.
    #[test]
    fn reports() {
        let after = |tracked: &str| {
            let mut settings = Settings::new(true);
            assert!(settings.question().ends_with(", @@session_track_system_variables"));
            let values = ["+00:00", "utf8mb4", "utf8mb4", tracked];
            settings.learn(values.iter().map(|value| Some((*value).to_owned())));
            settings
        };
        assert!(
            after("Time_zone, character_set_client,character_set_results,autocommit").is_tracked
        );
        assert!(after("*").is_tracked);
        for tracked in ["", "autocommit", "time_zone,character_set_client"] {
            let mut settings = after(tracked);
            assert!(!settings.is_tracked, "{tracked}");
            assert!(settings.question().ends_with("@@character_set_results"));
            settings.learn([Some("UTC".to_owned())].into_iter());
            assert!(!settings.is_tracked);
        }
    }

    /// A statement that reads what the one before has left runs before the question.
    #[test]
    fn doubts() {
        let mut settings = Settings::new(true);
        settings.check_parameters(&[Parameter::Utc(String::new())]).unwrap();
        settings.doubt();
        let error = settings.check_parameters(&[Parameter::Utc(String::new())]).unwrap_err();
        assert!(error.to_string().contains("may have set time_zone"), "{error}");
        settings.learn([Some("UTC".to_owned())].into_iter());
        settings.check_parameters(&[Parameter::Utc(String::new())]).unwrap();
    }
}
