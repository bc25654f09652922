//! Connection parameters: a connection string, checked and completed as libpq does it.

mod auth;
#[cfg(test)]
mod tests;
mod tls;

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dray_net::{TcpParams, parse_seconds};
use tokio_postgres::config::ChannelBinding;

pub(super) use self::auth::RequiredAuth;
pub(super) use self::tls::{SslMode, TlsParams};
use super::files::PasswordFile;
use super::keywords::Keywords;
use crate::error::{Error, ErrorKind, Result};

/// The environment by name. Tests pass another one than their own.
type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

const DEFAULT_PORT: u16 = 5432;
/// The folders where Debian's server and PostgreSQL's own build put their sockets.
const SOCKET_FOLDERS: [&str; 2] = ["/var/run/postgresql", "/tmp"];
/// Stands for an unlimited wait. A clock can still add it.
pub(crate) const NO_TIMEOUT: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Where to connect to and how, read from a connection string as libpq reads it.
///
/// The string has one of two forms: `postgresql://user@host/db?sslmode=require` or `host=… dbname=…
/// user=…`. Missing values come from the service file, then from variables like `PGHOST`, then from
/// libpq's defaults. Passwords come from `~/.pgpass`, too.
#[derive(Clone)]
pub struct ConnectParams {
    pub(crate) hosts: Vec<Host>,
    pub(crate) user: String,
    pub(crate) dbname: String,
    pub(crate) application_name: String,
    pub(crate) options: Option<String>,
    /// The limit for each address.
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) tcp: TcpParams,
    /// How long the server may be silent while it is waited for.
    pub(crate) read_timeout: Option<Duration>,
    pub(crate) tls: TlsParams,
    pub(crate) channel_binding: ChannelBinding,
    pub(crate) required_auth: RequiredAuth,
    pub(crate) target: Target,
    pub(crate) shuffle: bool,
    /// Why the password file was ignored.
    pub(crate) password_warning: Option<String>,
}

/// A server to try, with its password.
#[derive(Clone)]
pub(crate) struct Host {
    pub(crate) place: Place,
    pub(crate) port: u16,
    pub(crate) password: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// The folder of a Unix socket.
    Unix(PathBuf),
    /// A host's name. If there is an address, the name is only for verification.
    Tcp { name: String, address: Option<IpAddr> },
}

/// `target_session_attrs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Any,
    ReadWrite,
    ReadOnly,
    Primary,
    Standby,
    PreferStandby,
}

impl ConnectParams {
    /// Parses a connection string, and completes it from the environment and libpq's files.
    ///
    /// # Errors
    /// Usage names the keyword that is unknown, wrong, or not supported.
    pub fn parse(conninfo: &str) -> Result<Self> {
        // A value that is not UTF-8 is refused or not found, but it does not count as unset.
        Self::parse_with(conninfo, &|name| match name {
            // If the variable is empty, the system's user database has it.
            "HOME" => std::env::home_dir().map(|home| home.to_string_lossy().into_owned()),
            _ => std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()),
        })
    }

    /// Like [`ConnectParams::parse`], with another environment than the process's own.
    ///
    /// # Errors
    /// Those of [`ConnectParams::parse`].
    pub fn parse_with(conninfo: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        Self::complete(&Keywords::read(conninfo, variable as Variables<'_>)?)
    }

    /// Sets how long the server may be silent while it is waited for, unless the connection string
    /// does.
    pub fn set_read_timeout(&mut self, read_timeout: Option<Duration>) {
        self.read_timeout = self.read_timeout.or(read_timeout);
    }

    fn complete(keywords: &Keywords<'_>) -> Result<Self> {
        check_constants(keywords)?;
        let user = match keywords.value("user") {
            Some(user) => user,
            None => whoami::username().map_err(|cause| {
                let what = "no user is given, and the system does not know who runs this";
                Error::new(ErrorKind::Usage, what)
                    .with_cause(cause)
                    .with_hint("postgresql://user@host/db")
            })?,
        };
        let dbname = keywords.value("dbname").unwrap_or_else(|| user.clone());
        let mut hosts = parse_hosts(keywords)?;
        let mut password_warning = None;
        let password = keywords.value("password");
        if password.is_none() {
            let default = || keywords.home().map(|home| home.join(".pgpass"));
            if let Some(path) = keywords.value("passfile").map(PathBuf::from).or_else(default) {
                let file = PasswordFile::read(&path);
                for host in &mut hosts {
                    host.password =
                        file.find(&host.password_file_name(), host.port, &dbname, &user);
                }
                password_warning = file.warning;
            }
        } else {
            hosts.iter_mut().for_each(|host| host.password.clone_from(&password));
        }
        let application_name = keywords.value("application_name");
        let application_name =
            application_name.or_else(|| keywords.value("fallback_application_name"));
        let bindings = [
            ("disable", ChannelBinding::Disable),
            ("prefer", ChannelBinding::Prefer),
            ("require", ChannelBinding::Require),
        ];
        let targets = [
            ("any", Target::Any),
            ("read-write", Target::ReadWrite),
            ("read-only", Target::ReadOnly),
            ("primary", Target::Primary),
            ("standby", Target::Standby),
            ("prefer-standby", Target::PreferStandby),
        ];
        let shuffle =
            keywords.choice("load_balance_hosts", &[("disable", false), ("random", true)])?;
        Ok(Self {
            user,
            dbname,
            hosts,
            password_warning,
            application_name: application_name.unwrap_or_else(|| "dray".into()),
            options: keywords.value("options"),
            connect_timeout: keywords.number("connect_timeout")?.map(
                |seconds| match u64::try_from(seconds) {
                    Ok(0) | Err(_) => NO_TIMEOUT,
                    Ok(seconds) => Duration::from_secs(seconds),
                },
            ),
            tcp: parse_tcp(keywords)?,
            read_timeout: parse_read_timeout(keywords)?,
            tls: TlsParams::parse(keywords)?,
            channel_binding: keywords
                .choice("channel_binding", &bindings)?
                .unwrap_or(ChannelBinding::Prefer),
            required_auth: RequiredAuth::parse(keywords)?,
            target: keywords.choice("target_session_attrs", &targets)?.unwrap_or(Target::Any),
            shuffle: shuffle.unwrap_or(false),
        })
    }
}

/// Without the password.
impl fmt::Debug for ConnectParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places: Vec<_> = self.hosts.iter().map(|host| host.uri(&self.dbname)).collect();
        f.debug_struct("ConnectParams")
            .field("places", &places)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl Host {
    /// The host as a uri, for messages.
    pub(crate) fn uri(&self, dbname: &str) -> String {
        match &self.place {
            Place::Unix(folder) => {
                format!("postgresql:///{dbname}?host={}&port={}", folder.display(), self.port)
            }
            Place::Tcp { name, .. } if name.contains(':') => {
                format!("postgresql://[{name}]:{}/{dbname}", self.port)
            }
            Place::Tcp { name, .. } => format!("postgresql://{name}:{}/{dbname}", self.port),
        }
    }

    /// The host's name in the password file.
    fn password_file_name(&self) -> String {
        match &self.place {
            Place::Unix(folder)
                if SOCKET_FOLDERS.iter().any(|known| Path::new(known) == folder) =>
            {
                "localhost".into()
            }
            Place::Unix(folder) => folder.display().to_string(),
            Place::Tcp { name, .. } => name.clone(),
        }
    }
}

/// Checks keywords that only allow the values supported here.
fn check_constants(keywords: &Keywords<'_>) -> Result<()> {
    if let Some(encoding) = keywords.value("client_encoding") {
        let known = ["auto", "utf8", "utf-8", "unicode"];
        if !known.contains(&encoding.to_ascii_lowercase().as_str()) {
            let expected = "UTF8: the server converts from its own encoding";
            return Err(keywords.invalid("client_encoding", &encoding, expected));
        }
    }
    if keywords.choice("gssencmode", &[("disable", false), ("prefer", false), ("require", true)])?
        == Some(true)
    {
        let error =
            Error::new(ErrorKind::Usage, "gssencmode is \"require\", but GSSAPI is not supported");
        return Err(error.with_hint("sslmode=verify-full encrypts, too"));
    }
    keywords.choice("min_protocol_version", &[("3.0", ())])?;
    keywords.choice("max_protocol_version", &[("3.0", ()), ("3.2", ()), ("latest", ())])?;
    Ok(())
}

fn parse_hosts(keywords: &Keywords<'_>) -> Result<Vec<Host>> {
    let (names, addresses, ports) =
        (keywords.list("host"), keywords.list("hostaddr"), keywords.list("port"));
    let count = names.len().max(addresses.len()).max(1);
    let mismatch =
        |what: String| Err(Error::new(ErrorKind::Usage, what).with_hint("give one for each host"));
    if !names.is_empty() && !addresses.is_empty() && names.len() != addresses.len() {
        return mismatch(format!(
            "{} host names, but {} in hostaddr",
            names.len(),
            addresses.len()
        ));
    }
    if ports.len() > 1 && ports.len() != count {
        return mismatch(format!("{} ports for {count} hosts", ports.len()));
    }
    let at =
        |list: &[String], index: usize| list.get(index).cloned().filter(|text| !text.is_empty());
    let host = |index: usize| {
        let port = match at(&ports, if ports.len() == 1 { 0 } else { index }) {
            None => DEFAULT_PORT,
            Some(port) => match port.trim().parse() {
                Ok(number) if number > 0 => number,
                // Not quoted: in a uri without a host it is the password.
                _ => {
                    let error =
                        Error::new(ErrorKind::Usage, "the port is not a number from 1 to 65535");
                    return Err(error.with_hint("postgresql://user:password@host:port/db"));
                }
            },
        };
        let place = match (at(&names, index), at(&addresses, index)) {
            (name, Some(address)) => {
                let parsed = address.parse();
                let parsed =
                    parsed.map_err(|_| keywords.invalid("hostaddr", &address, "an IP address"))?;
                Place::Tcp { name: name.unwrap_or(address), address: Some(parsed) }
            }
            (Some(name), None) if name.starts_with('@') => {
                return Err(keywords.invalid(
                    "host",
                    &name,
                    "a host or the folder of a socket that is not abstract",
                ));
            }
            (Some(name), None) if name.starts_with('/') => Place::Unix(name.into()),
            (Some(name), None) => Place::Tcp { name, address: None },
            (None, None) => default_place(port),
        };
        Ok(Host { place, port, password: None })
    };
    (0..count).map(host).collect()
}

/// An existing socket in the usual folders, else localhost.
fn default_place(port: u16) -> Place {
    let folder = SOCKET_FOLDERS.iter().find(|folder| socket_path(Path::new(folder), port).exists());
    match folder {
        Some(folder) => Place::Unix(folder.into()),
        None => Place::Tcp { name: "localhost".into(), address: None },
    }
}

/// The path of a server's socket.
pub(crate) fn socket_path(folder: &Path, port: u16) -> PathBuf {
    folder.join(format!(".s.PGSQL.{port}"))
}

/// Negative numbers count as 0.
fn parse_tcp(keywords: &Keywords<'_>) -> Result<TcpParams> {
    let number =
        |keyword| Ok(keywords.number(keyword)?.map(|number| u32::try_from(number).unwrap_or(0)));
    let probes =
        [number("keepalives_idle")?, number("keepalives_interval")?, number("keepalives_count")?];
    let user_timeout = number("tcp_user_timeout")?.map(u64::from).map(Duration::from_millis);
    Ok(TcpParams::new(keywords.number("keepalives")? != Some(0), probes, user_timeout))
}

/// `read_timeout`, which libpq does not have: seconds, with or without a fraction.
fn parse_read_timeout(keywords: &Keywords<'_>) -> Result<Option<Duration>> {
    let Some(value) = keywords.value("read_timeout") else { return Ok(None) };
    match parse_seconds(&value) {
        Some(timeout) => Ok(Some(timeout)),
        None => Err(keywords.invalid("read_timeout", &value, "seconds above 0")),
    }
}
