//! Settings that the server reports, and by which its answers are read.

use std::collections::BTreeMap;

use crate::error::{Error, ErrorKind};

/// A setting, whether a value of it is what answers are read by, and how it is to be set.
struct Relied {
    name: &'static str,
    is_right: fn(&str) -> bool,
    right: &'static str,
}

/// What results, and the statements themselves, rely on. All of them are reported whenever they
/// change.
const RELIED: &[Relied] = &[
    // Text in either direction.
    Relied { name: "client_encoding", is_right: |value| value == "UTF8", right: "UTF8" },
    // Dates and times within types that come as text (spec/types.md section 3).
    Relied { name: "DateStyle", is_right: |value| value.starts_with("ISO"), right: "ISO" },
    // Binary times are integers, but for servers that were built otherwise, before version 10.
    Relied { name: "integer_datetimes", is_right: |value| value == "on", right: "on" },
];
/// Where strings in a statement end.
const STANDARD_STRINGS: &str = "standard_conforming_strings";

/// The settings of a session, as far as answers are read by them.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    values: BTreeMap<&'static str, String>,
    /// The last report of a value that answers are not read by, since [`Self::begin`].
    wrong: Option<(&'static str, String)>,
}

impl Settings {
    /// Takes note of what the server says. Most of it does not matter here.
    pub(crate) fn report(&mut self, name: &str, value: &str) {
        let known = RELIED
            .iter()
            .map(|relied| relied.name)
            .chain([STANDARD_STRINGS])
            .find(|known| *known == name);
        let Some(name) = known else { return };
        if wrong(name, value).is_some() {
            self.wrong = Some((name, value.to_owned()));
        }
        self.values.insert(name, value.to_owned());
    }

    /// Says what strings are like where no report says it.
    pub(crate) fn report_escapes(&mut self, escapes: bool) {
        self.report(STANDARD_STRINGS, if escapes { "off" } else { "on" });
    }

    /// Whether backslashes escape in plain strings, once the server has said it.
    pub(crate) fn escapes(&self) -> Option<bool> {
        self.values.get(STANDARD_STRINGS).map(|value| value == "off")
    }

    /// Why no statement but one that sets it right should be sent.
    pub(crate) fn unreadable(&self) -> Option<Error> {
        self.values
            .iter()
            .find_map(|(name, value)| Some(refused(wrong(name, value)?, value, "was")))
    }

    /// A statement begins: what it changes counts against its own result.
    pub(crate) fn begin(&mut self) {
        self.wrong = None;
    }

    /// Why the rows of the statement that has ended can't be trusted: some of them may have been
    /// written otherwise.
    pub(crate) fn changed_since_begin(&self) -> Option<Error> {
        let (name, value) = self.wrong.as_ref()?;
        Some(refused(wrong(name, value)?, value, "was, by this statement or while it ran,"))
    }
}

fn wrong(name: &str, value: &str) -> Option<&'static Relied> {
    RELIED.iter().find(|relied| relied.name == name && !(relied.is_right)(value))
}

fn refused(relied: &Relied, value: &str, was: &str) -> Error {
    let Relied { name, right, .. } = relied;
    let what = format!("{name} {was} set to {value:?}, and results are read as {right:?}");
    Error::new(ErrorKind::Usage, what)
        .with_hint(format!("SET {name} TO '{right}', or connect again and leave it as it is"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_answers_are_read_by() {
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
            // What it was in between counts for the statement that runs.
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
