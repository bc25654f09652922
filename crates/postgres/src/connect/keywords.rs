//! The keywords of a connection, from the caller's string, a service file and the environment.

use std::path::PathBuf;

use super::{conninfo, files};
use crate::error::{Error, ErrorKind, Result};

/// Where Debian's and Red Hat's libpq look for `pg_service.conf`.
const SYSTEM_FOLDERS: [&str; 2] = ["/etc/postgresql-common", "/etc/sysconfig/pgsql"];

/// libpq's keywords and one of Dray's, each with its environment variable.
const KEYWORDS: [(&str, &str); 48] = [
    ("application_name", "PGAPPNAME"),
    ("channel_binding", "PGCHANNELBINDING"),
    ("client_encoding", "PGCLIENTENCODING"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("dbname", "PGDATABASE"),
    ("fallback_application_name", ""),
    ("gssdelegation", "PGGSSDELEGATION"),
    ("gssencmode", "PGGSSENCMODE"),
    ("gsslib", "PGGSSLIB"),
    ("host", "PGHOST"),
    ("hostaddr", "PGHOSTADDR"),
    ("keepalives", ""),
    ("keepalives_count", ""),
    ("keepalives_idle", ""),
    ("keepalives_interval", ""),
    ("krbsrvname", "PGKRBSRVNAME"),
    ("load_balance_hosts", "PGLOADBALANCEHOSTS"),
    ("max_protocol_version", "PGMAXPROTOCOLVERSION"),
    ("min_protocol_version", "PGMINPROTOCOLVERSION"),
    ("options", "PGOPTIONS"),
    ("passfile", "PGPASSFILE"),
    ("password", "PGPASSWORD"),
    ("port", "PGPORT"),
    // Dray's own.
    ("read_timeout", ""),
    ("replication", ""),
    ("require_auth", "PGREQUIREAUTH"),
    ("requirepeer", "PGREQUIREPEER"),
    ("scram_client_key", ""),
    ("scram_server_key", ""),
    ("service", "PGSERVICE"),
    ("servicefile", "PGSERVICEFILE"),
    ("sslcert", "PGSSLCERT"),
    ("sslcertmode", "PGSSLCERTMODE"),
    ("sslcompression", "PGSSLCOMPRESSION"),
    ("sslcrl", "PGSSLCRL"),
    ("sslcrldir", "PGSSLCRLDIR"),
    ("sslkey", "PGSSLKEY"),
    ("sslkeylogfile", ""),
    ("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION"),
    ("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION"),
    ("sslmode", "PGSSLMODE"),
    ("sslnegotiation", "PGSSLNEGOTIATION"),
    ("sslpassword", ""),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("sslsni", "PGSSLSNI"),
    ("target_session_attrs", "PGTARGETSESSIONATTRS"),
    ("tcp_user_timeout", ""),
    ("user", "PGUSER"),
];

/// Keywords of libpq that are refused, since ignoring them would break a promise.
const UNSUPPORTED: [&str; 7] = [
    "replication",
    "requirepeer",
    "scram_client_key",
    "scram_server_key",
    "sslcrldir",
    "sslkeylogfile",
    "sslpassword",
];

/// Values by keyword.
pub(crate) struct Keywords<'a> {
    /// From the caller's string and the service file; the first of equal keywords counts.
    given: Vec<(String, String)>,
    variable: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> Keywords<'a> {
    pub(crate) fn read(text: &str, variable: &'a dyn Fn(&str) -> Option<String>) -> Result<Self> {
        // The later of two equal keywords wins, so the last one comes first.
        let mut given = conninfo::split(text)?;
        given.reverse();
        let mut keywords = Self { given, variable };
        keywords.check_names()?;
        if let Some(service) = keywords.value("service") {
            let mut files = Vec::new();
            match keywords.value("servicefile") {
                Some(file) => files.push(PathBuf::from(file)),
                None => files.extend(keywords.home().map(|home| home.join(".pg_service.conf"))),
            }
            match variable("PGSYSCONFDIR") {
                Some(folder) => files.push(PathBuf::from(folder).join("pg_service.conf")),
                None => files.extend(
                    SYSTEM_FOLDERS.map(|folder| PathBuf::from(folder).join("pg_service.conf")),
                ),
            }
            keywords.given.extend(files::read_service(&files, &service)?);
            keywords.check_names()?;
        }
        for keyword in UNSUPPORTED {
            if keywords.value(keyword).is_some() {
                return Err(Error::new(ErrorKind::Usage, format!("{keyword} is not supported"))
                    .with_hint("leave it out"));
            }
        }
        Ok(keywords)
    }

    fn check_names(&self) -> Result<()> {
        // In the order of the string.
        let mut given = self.given.iter().rev();
        let Some((key, _)) = given.find(|(key, _)| KEYWORDS.iter().all(|(known, _)| known != key))
        else {
            return Ok(());
        };
        let is_word = key.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        let what = match !is_word || self.may_have_secret() {
            true => "the connection string has an unknown keyword".to_owned(),
            false => format!("{key:?} is not a keyword of connection strings"),
        };
        let hint = "they are libpq's: host, port, dbname, user, sslmode, …; quote values with \
             spaces by '…'";
        Err(Error::new(ErrorKind::Usage, what).with_hint(hint))
    }

    /// Whether other words may be parts of a password: of one that went on, in quotes or not, or of
    /// one in a uri with a `?` before the user's `@`.
    fn may_have_secret(&self) -> bool {
        self.given.iter().any(|(key, value)| key.contains("password") || value.contains('@'))
    }

    /// The error of a wrong value.
    pub(crate) fn invalid(&self, keyword: &str, value: &str, expected: &str) -> Error {
        let what = match self.may_have_secret() {
            true => format!("{keyword} has a wrong value"),
            false => format!("{keyword} is {value:?}"),
        };
        Error::new(ErrorKind::Usage, what).with_hint(format!("expected {expected}"))
    }

    /// What the caller's string and the service file say. The first of equal keywords counts.
    pub(crate) fn given(&self) -> impl Iterator<Item = (&str, &str)> {
        self.given.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// The value of a keyword. An empty value stands for the built-in default.
    pub(crate) fn value(&self, keyword: &str) -> Option<String> {
        let given =
            self.given.iter().find(|(key, _)| key == keyword).map(|(_, value)| value.clone());
        let known =
            KEYWORDS.iter().find(|(known, variable)| *known == keyword && !variable.is_empty());
        given
            .or_else(|| known.and_then(|(_, name)| (self.variable)(name)))
            .filter(|value| !value.is_empty())
    }

    /// Comma-separated values, which may be empty.
    pub(crate) fn list(&self, keyword: &str) -> Vec<String> {
        self.value(keyword)
            .map(|value| value.split(',').map(str::to_owned).collect())
            .unwrap_or_default()
    }

    /// A whole number.
    pub(crate) fn number(&self, keyword: &str) -> Result<Option<i32>> {
        let Some(value) = self.value(keyword) else { return Ok(None) };
        match value.trim().parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(self.invalid(keyword, &value, "a whole number")),
        }
    }

    /// A word out of `choices`.
    pub(crate) fn choice<T: Copy>(
        &self,
        keyword: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>> {
        let Some(value) = self.value(keyword) else { return Ok(None) };
        match choices.iter().find(|(word, _)| *word == value) {
            Some((_, choice)) => Ok(Some(*choice)),
            None => {
                let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
                Err(self.invalid(keyword, &value, &words.join(", ")))
            }
        }
    }

    pub(crate) fn home(&self) -> Option<PathBuf> {
        (self.variable)("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
    }

    /// A file in `~/.postgresql`.
    pub(crate) fn home_file(&self, name: &str) -> Option<PathBuf> {
        self.home().map(|home| home.join(".postgresql").join(name))
    }
}
