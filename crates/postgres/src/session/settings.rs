//! Settings that the server reports, and that results depend on.

use std::collections::BTreeMap;

use crate::error::{Error, ErrorKind};

/// A setting whose value results depend on.
struct Requirement {
    name: &'static str,
    /// Whether a value is right.
    is_right: fn(&str) -> bool,
    /// The value to set.
    right: &'static str,
}

/// The settings that results and statements depend on. The server reports each change.
const REQUIREMENTS: &[Requirement] = &[
    // The encoding of text in both directions.
    Requirement { name: "client_encoding", is_right: |value| value == "UTF8", right: "UTF8" },
    // Dates and times inside of types that come as text (spec/types.md section 3).
    Requirement { name: "DateStyle", is_right: |value| value.starts_with("ISO"), right: "ISO" },
    // Binary times are integers. A server before version 10 may be built otherwise.
    Requirement { name: "integer_datetimes", is_right: |value| value == "on", right: "on" },
];
/// The setting that decides where strings in a statement end.
const STANDARD_STRINGS: &str = "standard_conforming_strings";

/// The settings of a session that results depend on.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    values: BTreeMap<&'static str, String>,
    /// The last wrong value that was reported since [`Self::begin`].
    wrong: Option<(&'static str, String)>,
}

impl Settings {
    /// Notes a report of the server. Most settings don't matter here.
    pub(crate) fn report(&mut self, name: &str, value: &str) {
        let known = REQUIREMENTS
            .iter()
            .map(|requirement| requirement.name)
            .chain([STANDARD_STRINGS])
            .find(|known| *known == name);
        let Some(name) = known else { return };
        if wrong(name, value).is_some() {
            self.wrong = Some((name, value.to_owned()));
        }
        self.values.insert(name, value.to_owned());
    }

    /// Sets the rule of strings where no report does.
    pub(crate) fn report_escapes(&mut self, escapes: bool) {
        self.report(STANDARD_STRINGS, if escapes { "off" } else { "on" });
    }

    /// Whether backslashes escape in plain strings, once the server has reported it.
    pub(crate) fn escapes(&self) -> Option<bool> {
        self.values.get(STANDARD_STRINGS).map(|value| value == "off")
    }

    /// Why results can't be read now; a statement that sets the setting right can still be sent.
    pub(crate) fn unreadable(&self) -> Option<Error> {
        self.values
            .iter()
            .find_map(|(name, value)| Some(refused(wrong(name, value)?, value, "was")))
    }

    /// Begins a statement. A setting that it changes counts against its own result.
    pub(crate) fn begin(&mut self) {
        self.wrong = None;
    }

    /// Why the rows of the statement that has ended can't be trusted: a setting was wrong for some
    /// of them.
    pub(crate) fn changed_since_begin(&self) -> Option<Error> {
        let (name, value) = self.wrong.as_ref()?;
        Some(refused(wrong(name, value)?, value, "was, by this statement or while it ran,"))
    }
}

fn wrong(name: &str, value: &str) -> Option<&'static Requirement> {
    REQUIREMENTS
        .iter()
        .find(|requirement| requirement.name == name && !(requirement.is_right)(value))
}

fn refused(requirement: &Requirement, value: &str, was: &str) -> Error {
    let Requirement { name, right, .. } = requirement;
    let what = format!("{name} {was} set to {value:?}, and results are read as {right:?}");
    Error::new(ErrorKind::Usage, what)
        .with_hint(format!("SET {name} TO '{right}', or connect again and leave it as it is"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_values_are_noticed() {
        let mut settings = Settings::default();
        for (name, value) in
            [("client_encoding", "UTF8"), ("DateStyle", "ISO, DMY"), ("TimeZone", "Asia/Tokyo")]
        {
            settings.report(name, value);
        }
        assert!(
            settings.unreadable().is_none()
                && settings.changed_since_begin().is_none()
                && settings.escapes().is_none()
        );
        settings.report("standard_conforming_strings", "off");
        assert_eq!(settings.escapes(), Some(true));
        for (name, value, right) in [
            ("client_encoding", "LATIN1", "UTF8"),
            ("DateStyle", "German, DMY", "ISO"),
            ("integer_datetimes", "off", "on"),
        ] {
            settings.report(name, value);
            assert!(settings.unreadable().is_some_and(|error| error.to_string().contains(name)));
            settings.report(name, right);
            assert!(settings.unreadable().is_none());
            // The value in between counts for the running statement.
            assert!(
                settings
                    .changed_since_begin()
                    .is_some_and(|error| error.to_string().contains(value))
            );
            settings.begin();
            assert!(settings.changed_since_begin().is_none());
        }
    }
}
