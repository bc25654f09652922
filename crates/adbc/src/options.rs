//! Options: the standard names of ADBC, and Dray's own, which are `dray.` and the name that the
//! option has in the Python package.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use adbc_core::constants::{ADBC_OPTION_VALUE_DISABLED, ADBC_OPTION_VALUE_ENABLED};
use adbc_core::error::{Error, Result, Status};
use adbc_core::options::OptionValue;
use dray_client::{
    Checksums, ConnectOptions, Limits, PlanOptions, QueryOptions, Secret, StringLayout,
    timeout_from_seconds,
};

use crate::error::{failed, invalid_argument, not_implemented};

/// The value of an option as text.
///
/// # Errors
/// NotImplemented for bytes, which no option takes.
pub(crate) fn text(key: &str, value: OptionValue) -> Result<String> {
    match value {
        OptionValue::String(text) => Ok(text),
        OptionValue::Int(number) => Ok(number.to_string()),
        OptionValue::Double(number) => Ok(number.to_string()),
        _ => Err(not_implemented(format!("there is no option {key} that takes bytes"))),
    }
}

/// A boolean, as ADBC writes it.
///
/// # Errors
/// InvalidArguments, for any other text.
pub(crate) fn boolean(key: &str, value: &str) -> Result<bool> {
    match value {
        ADBC_OPTION_VALUE_ENABLED => Ok(true),
        ADBC_OPTION_VALUE_DISABLED => Ok(false),
        _ => Err(invalid_argument(format!("{key} is {value:?}, expected true or false"))),
    }
}

/// The text of a boolean.
pub(crate) fn boolean_text(value: bool) -> String {
    let text = if value { ADBC_OPTION_VALUE_ENABLED } else { ADBC_OPTION_VALUE_DISABLED };
    text.to_owned()
}

/// The error of an option that does not exist, when it is set.
pub(crate) fn unknown(key: &str) -> Error {
    match key.starts_with("adbc.ingest.") {
        true => not_implemented(format!("{key} is an option of statements")),
        false => not_implemented(format!("there is no option {key}")),
    }
}

/// The error of an option that does not exist or has no value, when it is read.
pub(crate) fn not_found(key: &str) -> Error {
    failed(Status::NotFound, format!("the option {key} does not exist or has no value"))
}

/// An option's value as a number.
///
/// # Errors
/// NotFound if the value is no number.
pub(crate) fn number<T: FromStr>(key: &str, value: Result<String>) -> Result<T> {
    value?.parse().map_err(|_| failed(Status::NotFound, format!("the option {key} is no number")))
}

/// An option's value by its type.
///
/// # Errors
/// InvalidArguments, for a bad value.
pub(crate) fn parsed<T: FromStr<Err: Display>>(key: &str, value: &str) -> Result<T> {
    value.parse().map_err(|error| invalid_argument(format!("{key}: {error}")))
}

fn seconds(key: &str, value: &str) -> Result<Duration> {
    let seconds = value.parse().ok().and_then(|value| timeout_from_seconds(value).ok());
    seconds.ok_or_else(|| invalid_argument(format!("{key} is {value:?}, expected seconds above 0")))
}

/// How statements run. Databases hand them on to connections, and connections to statements.
#[derive(Debug, Clone, Default)]
pub(crate) struct QuerySettings {
    options: QueryOptions,
    chunk_bytes_max: Option<u64>,
    decoded_bytes_max: Option<u64>,
    row_bytes_max: Option<u64>,
    plan: PlanOptions,
}

impl QuerySettings {
    /// Sets an option. Returns false if there is none of this name.
    ///
    /// # Errors
    /// InvalidArguments, for a bad value.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<bool> {
        let options = &mut self.options;
        match key {
            "dray.chunk_bytes_max" => self.chunk_bytes_max = Some(parsed(key, value)?),
            "dray.decoded_bytes_max" => self.decoded_bytes_max = Some(parsed(key, value)?),
            "dray.row_bytes_max" => self.row_bytes_max = Some(parsed(key, value)?),
            "dray.batch_rows" => options.batch_rows = parsed(key, value)?,
            "dray.batch_bytes" => options.batch_bytes = parsed(key, value)?,
            "dray.compression" => options.compression = parsed(key, value)?,
            "dray.checksums" => options.checksums = one_of(key, value, CHECKSUMS)?,
            "dray.strings" => options.strings = one_of(key, value, STRINGS)?,
            "dray.extension" => options.postgres.extension = parsed(key, value)?,
            "dray.numeric" => options.postgres.numeric = parsed(key, value)?,
            "dray.nonfinite" => options.postgres.nonfinite = parsed(key, value)?,
            "dray.partitions" => options.postgres.partitions = parsed(key, value)?,
            "dray.partition_by" => {
                options.postgres.partition_by =
                    Some(value.to_owned()).filter(|name| !name.is_empty());
            }
            "dray.ordered" => options.postgres.ordered = boolean(key, value)?,
            "dray.at_most" => self.plan.at_most = Some(parsed(key, value)?),
            "dray.lease" => self.plan.lease = seconds(key, value)?,
            "dray.include_password" => self.plan.include_password = boolean(key, value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The text of an option; None if there is none of this name.
    pub(crate) fn get(&self, key: &str) -> Option<String> {
        let QueryOptions { limits, batch_rows, batch_bytes, compression, postgres, .. } =
            self.options();
        Some(match key {
            "dray.chunk_bytes_max" => limits.chunk_bytes_max.to_string(),
            "dray.decoded_bytes_max" => limits.decoded_bytes_max.to_string(),
            "dray.row_bytes_max" => limits.row_bytes_max.to_string(),
            "dray.batch_rows" => batch_rows.to_string(),
            "dray.batch_bytes" => batch_bytes.to_string(),
            "dray.compression" => compression.to_string(),
            "dray.checksums" => name_of(self.options.checksums, CHECKSUMS),
            "dray.strings" => name_of(self.options.strings, STRINGS),
            "dray.extension" => postgres.extension.to_string(),
            "dray.numeric" => postgres.numeric.to_string(),
            "dray.nonfinite" => postgres.nonfinite.to_string(),
            "dray.partitions" => postgres.partitions.to_string(),
            "dray.partition_by" => postgres.partition_by.clone()?,
            "dray.ordered" => boolean_text(postgres.ordered),
            "dray.at_most" => self.plan.at_most?.to_string(),
            "dray.lease" => self.plan.lease.as_secs_f64().to_string(),
            "dray.include_password" => boolean_text(self.plan.include_password),
            _ => return None,
        })
    }

    /// How statements are divided into parts.
    pub(crate) fn plan(&self) -> &PlanOptions {
        &self.plan
    }

    /// The options for the client. Raising one limit also raises those that must be at least as
    /// high.
    pub(crate) fn options(&self) -> QueryOptions {
        let limits = Limits::default();
        let chunk_bytes_max = self.chunk_bytes_max.unwrap_or(limits.chunk_bytes_max);
        let at_least = |default: u64| default.max(chunk_bytes_max);
        QueryOptions {
            limits: Limits {
                chunk_bytes_max,
                decoded_bytes_max: self
                    .decoded_bytes_max
                    .unwrap_or(at_least(limits.decoded_bytes_max)),
                row_bytes_max: self.row_bytes_max.unwrap_or(at_least(limits.row_bytes_max)),
            },
            ..self.options.clone()
        }
    }
}

const CHECKSUMS: &[(&str, Checksums)] =
    &[("auto", Checksums::Auto), ("on", Checksums::On), ("off", Checksums::Off)];
const STRINGS: &[(&str, StringLayout)] = &[
    ("utf8", StringLayout::Offsets),
    ("large", StringLayout::LargeOffsets),
    ("view", StringLayout::Views),
];

fn one_of<T: Copy>(key: &str, value: &str, all: &[(&str, T)]) -> Result<T> {
    all.iter().find(|(name, _)| *name == value).map(|(_, of)| *of).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        invalid_argument(format!("{key} is {value:?}, expected {}", names.join(", ")))
    })
}

fn name_of<T: PartialEq>(value: T, all: &[(&str, T)]) -> String {
    all.iter().find(|(_, of)| *of == value).map_or_else(String::new, |(name, _)| (*name).to_owned())
}

/// How to connect, and the first settings of connections.
#[derive(Debug, Clone)]
pub(crate) struct DatabaseSettings {
    /// It may have a password.
    uri: Option<Secret>,
    username: Option<String>,
    password: Option<Secret>,
    connect: ConnectOptions,
    pub(crate) query: QuerySettings,
}

impl Default for DatabaseSettings {
    fn default() -> Self {
        let client = concat!("dray-adbc ", env!("CARGO_PKG_VERSION")).to_owned();
        Self {
            uri: None,
            username: None,
            password: None,
            connect: ConnectOptions { client, ..ConnectOptions::default() },
            query: QuerySettings::default(),
        }
    }
}

impl DatabaseSettings {
    /// Sets an option.
    ///
    /// # Errors
    /// NotImplemented if there is none of this name, InvalidArguments for a bad value.
    pub(crate) fn set(&mut self, key: &str, value: OptionValue) -> Result<()> {
        let value = text(key, value)?;
        let seconds = || {
            let timeout = value.parse().ok().and_then(|value| timeout_from_seconds(value).ok());
            timeout.ok_or_else(|| {
                invalid_argument(format!("{key} is {value:?}, expected seconds above 0"))
            })
        };
        match key {
            "uri" => self.uri = Some(value.into()),
            "username" => self.username = Some(value),
            "password" => self.password = Some(value.into()),
            "dray.token" => self.connect.token = Some(value.into()),
            "dray.plain_token" => self.connect.plain_token = boolean(key, &value)?,
            "dray.ca" => self.connect.ca = Some(value.into()),
            "dray.timeout" => self.connect.timeout = seconds()?,
            "dray.read_timeout" => self.connect.read_timeout = Some(seconds()?),
            "dray.local_socket" => self.connect.local_socket = boolean(key, &value)?,
            _ if self.query.set(key, &value)? => {}
            _ => return Err(unknown(key)),
        }
        Ok(())
    }

    /// The text of an option. Secrets are not given back, and neither is the uri, which may have
    /// one.
    ///
    /// # Errors
    /// NotFound.
    pub(crate) fn get(&self, key: &str) -> Result<String> {
        let found = match key {
            "username" => self.username.clone(),
            "dray.plain_token" => Some(boolean_text(self.connect.plain_token)),
            "dray.ca" => self.connect.ca.as_ref().map(|path| path.display().to_string()),
            "dray.timeout" => Some(self.connect.timeout.as_secs_f64().to_string()),
            "dray.read_timeout" => {
                self.connect.read_timeout.map(|timeout| timeout.as_secs_f64().to_string())
            }
            "dray.local_socket" => Some(boolean_text(self.connect.local_socket)),
            _ => self.query.get(key),
        };
        found.ok_or_else(|| not_found(key))
    }

    /// The uri and the options to connect with.
    ///
    /// # Errors
    /// InvalidState without a uri, InvalidArguments for a user at a server that has none.
    pub(crate) fn target(&self) -> Result<(String, ConnectOptions)> {
        let uri = self.uri.as_ref().map(Secret::reveal).ok_or_else(|| {
            let what = "no uri was set (set the option uri: dray://host:port, \
                        dray+unix:///path, postgresql:// or mysql://user@host/database)";
            failed(Status::InvalidState, what)
        })?;
        let mut connect = self.connect.clone();
        let is_dray =
            ["dray://", "drays://", "dray+unix://"].iter().any(|scheme| uri.starts_with(scheme));
        if !is_dray {
            let password = self.password.as_ref().map(Secret::reveal);
            return Ok((with_login(uri, self.username.as_deref(), password), connect));
        }
        if self.username.as_ref().is_some_and(|name| !name.is_empty()) {
            let what = "a Dray server has no users (its token is the option password or \
                        dray.token)";
            return Err(invalid_argument(what));
        }
        connect.token = connect.token.or_else(|| self.password.clone());
        Ok((uri.to_owned(), connect))
    }
}

/// A database's uri, or PostgreSQL's connection string, with this user and password, which replace
/// its own.
fn with_login(uri: &str, username: Option<&str>, password: Option<&str>) -> String {
    let given = [("user", username), ("password", password)];
    // PostgreSQL takes the last of equal keys, MySQL's uris refuse them.
    let mut uri = match ["mysql://", "mariadb://"].iter().any(|scheme| uri.starts_with(scheme)) {
        true => without_login(uri, username.is_some(), password.is_some()),
        false => uri.to_owned(),
    };
    for (key, value) in given.into_iter().filter_map(|(key, value)| Some((key, value?))) {
        uri += &match uri.contains("://") {
            true => {
                let separator = if uri.contains('?') { '&' } else { '?' };
                format!("{separator}{key}={}", percent_encode(value))
            }
            false => format!(" {key}='{}'", value.replace('\\', "\\\\").replace('\'', "\\'")),
        };
    }
    uri
}

/// A uri without the user, and the password, before its host.
fn without_login(uri: &str, user: bool, password: bool) -> String {
    let Some((scheme, rest)) = uri.split_once("://") else { return uri.to_owned() };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let Some((login, _)) = rest[..end].rsplit_once('@') else { return uri.to_owned() };
    let (old_user, old_password) = login.split_once(':').unwrap_or((login, ""));
    let kept_user = if user { "" } else { old_user };
    let kept = match password || old_password.is_empty() {
        true => kept_user.to_owned(),
        false => format!("{kept_user}:{old_password}"),
    };
    let at = if kept.is_empty() { "" } else { "@" };
    format!("{scheme}://{kept}{at}{}", &rest[login.len() + 1..])
}

fn percent_encode(text: &str) -> String {
    let encode = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_given_back() {
        let mut settings = DatabaseSettings::default();
        for (key, value) in [
            ("username", "me"),
            ("dray.plain_token", "true"),
            ("dray.timeout", "2.5"),
            ("dray.read_timeout", "30"),
            ("dray.local_socket", "false"),
            ("dray.compression", "zstd:3"),
            ("dray.checksums", "off"),
            ("dray.strings", "view"),
            ("dray.extension", "never"),
            ("dray.numeric", "decimal(38,10)"),
            ("dray.nonfinite", "null"),
            ("dray.partitions", "4"),
            ("dray.ordered", "true"),
            ("dray.batch_rows", "1000"),
            ("dray.batch_bytes", "2000"),
            ("dray.row_bytes_max", "1000000000"),
        ] {
            settings.set(key, value.into()).unwrap();
            assert_eq!(settings.get(key).unwrap(), value);
        }
        settings.set("dray.partitions", 2.into()).unwrap();
        assert_eq!(settings.get("dray.partitions").unwrap(), "2");
        for key in ["uri", "password", "dray.token"] {
            settings.set(key, "s3cret".into()).unwrap();
            assert_eq!(settings.get(key).unwrap_err().status, Status::NotFound);
        }
        assert!(!format!("{settings:?}").contains("s3cret"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let mut settings = DatabaseSettings::default();
        for (key, value, status) in [
            ("dray.nothing", "1", Status::NotImplemented),
            ("adbc.ingest.target_table", "t", Status::NotImplemented),
            ("dray.compression", "bzip2", Status::InvalidArguments),
            ("dray.strings", "short", Status::InvalidArguments),
            ("dray.timeout", "-1", Status::InvalidArguments),
            ("dray.ordered", "yes", Status::InvalidArguments),
            ("dray.batch_rows", "many", Status::InvalidArguments),
        ] {
            let error = settings.set(key, value.into()).unwrap_err();
            assert_eq!(error.status, status, "{key}");
        }
        assert!(settings.set("uri", OptionValue::Bytes(vec![1])).is_err());
    }

    #[test]
    fn a_limit_raises_those_above_it() {
        let mut settings = QuerySettings::default();
        assert!(settings.set("dray.chunk_bytes_max", "1000000000").unwrap());
        let limits = settings.options().limits;
        assert_eq!(
            (limits.decoded_bytes_max, limits.row_bytes_max),
            (1_000_000_000, 1_000_000_000)
        );
    }

    #[test]
    fn logins_become_part_of_the_uri() {
        let login = |uri| with_login(uri, Some("m e"), Some("a'b\\c&"));
        assert_eq!(login("postgresql://h/d"), "postgresql://h/d?user=m%20e&password=a%27b%5Cc%26");
        assert_eq!(
            login("postgresql://h/d?sslmode=require"),
            "postgresql://h/d?sslmode=require&user=m%20e&password=a%27b%5Cc%26"
        );
        assert_eq!(
            login("mysql://u:p@h/d?x=1"),
            "mysql://h/d?x=1&user=m%20e&password=a%27b%5Cc%26"
        );
        assert_eq!(with_login("mysql://u:p@h/d", None, Some("q")), "mysql://u@h/d?password=q");
        assert_eq!(login("host=h"), "host=h user='m e' password='a\\'b\\\\c&'");
    }

    #[test]
    fn targets() {
        let mut settings = DatabaseSettings::default();
        assert_eq!(settings.target().unwrap_err().status, Status::InvalidState);
        settings.set("uri", "dray://h".into()).unwrap();
        settings.set("password", "t".into()).unwrap();
        let (uri, connect) = settings.target().unwrap();
        assert_eq!((uri.as_str(), connect.token), ("dray://h", Some("t".into())));
        settings.set("username", "me".into()).unwrap();
        assert_eq!(settings.target().unwrap_err().status, Status::InvalidArguments);
    }
}
