//! Connection parameters: a uri, completed from option files and the environment as the servers'
//! own clients do it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use dray_net::{TcpParams, TlsParams, parse_seconds};

use super::option_files::OptionFiles;
use super::tls::{SslMode, mode_of, parse_tls};
use super::uri;
use crate::connection::Compressor;
use crate::error::{Error, Result};

const DEFAULT_PORT: u16 = 3306;
/// Where servers put their sockets: Debian's and Red Hat's. In `/tmp` anybody may listen.
const SOCKETS: [&str; 3] =
    ["/run/mysqld/mysqld.sock", "/var/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock"];
/// Keys and the variables that have their values where neither uri nor file does.
const VARIABLES: [(&str, &str); 5] = [
    ("host", "MYSQL_HOST"),
    ("port", "MYSQL_TCP_PORT"),
    ("socket", "MYSQL_UNIX_PORT"),
    ("password", "MYSQL_PWD"),
    ("user", "USER"),
];
const ON: [&str; 4] = ["1", "true", "on", "yes"];
const OFF: [&str; 4] = ["0", "false", "off", "no"];

/// Where to connect to and how.
///
/// ```text
///   mysql://user:password@host:port/database?ssl-mode=VERIFY_IDENTITY&ssl-ca=FILE
/// ```
///
/// Missing values come from option files (`~/.my.cnf` and others, the groups `[client]`,
/// `[client-server]` and `[client-mariadb]`), then from variables like `MYSQL_HOST`. Without a host
/// the server is on this one, at a Unix socket. `localhost` in a uri means TCP, unless it has a
/// `socket`.
#[derive(Clone)]
pub struct ConnectParams {
    pub(super) place: Place,
    pub(super) user: String,
    pub(super) password: Option<String>,
    pub(super) database: Option<String>,
    /// The limit for each address.
    pub(super) connect_timeout: Option<Duration>,
    /// How long the server may be silent while it is waited for.
    pub(super) read_timeout: Option<Duration>,
    pub(super) tcp: TcpParams,
    pub(super) ssl_mode: SslMode,
    pub(super) tls: TlsParams,
    /// Allows methods that send the password as it is.
    pub(super) cleartext: bool,
    pub(super) server_key: Option<PathBuf>,
    pub(super) asks_for_key: bool,
    pub(super) compress: Compress,
}

/// `compress`: whether packets are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compress {
    /// If the line seems slow.
    Auto,
    Never,
    /// If the server can.
    By(Compressor),
}

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Unix(PathBuf),
    Tcp { host: String, port: u16 },
}

/// Without the password.
impl fmt::Debug for ConnectParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectParams")
            .field("place", &self.place())
            .field("user", &self.user)
            .field("ssl_mode", &self.ssl_mode)
            .finish_non_exhaustive()
    }
}

impl ConnectParams {
    /// Parses a uri, and completes it from option files and the environment.
    ///
    /// # Errors
    /// Usage names the key that is unknown, wrong, or not supported.
    pub fn parse(uri: &str) -> Result<Self> {
        Self::parse_with(uri, &|name| match name {
            // If the variable is empty, the system's user database has it.
            "HOME" => std::env::home_dir().map(|home| home.to_string_lossy().into_owned()),
            _ => std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()),
        })
    }

    /// Like [`ConnectParams::parse`], with another environment than the process's own.
    ///
    /// # Errors
    /// Those of [`ConnectParams::parse`].
    pub fn parse_with(uri: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        Self::complete(&Values::read(uri, variable)?)
    }

    /// Sets how long the server may be silent while it is waited for, unless the uri does.
    pub fn set_read_timeout(&mut self, read_timeout: Option<Duration>) {
        self.read_timeout = self.read_timeout.or(read_timeout);
    }

    /// The server's uri without user and password.
    pub(super) fn place(&self) -> String {
        let database = self.database.as_deref().unwrap_or_default();
        match &self.place {
            Place::Unix(path) => format!("mysql:///{database}?socket={}", path.display()),
            Place::Tcp { host, port } if host.contains(':') => {
                format!("mysql://[{host}]:{port}/{database}")
            }
            Place::Tcp { host, port } => format!("mysql://{host}:{port}/{database}"),
        }
    }

    fn complete(values: &Values<'_>) -> Result<Self> {
        if let Some(name) = values.given("default-character-set")
            && !name.eq_ignore_ascii_case("utf8mb4")
        {
            return Err(values.invalid(
                "default-character-set",
                name,
                "utf8mb4, as text is UTF-8 here",
            ));
        }
        let user = match values.value("user") {
            Some(user) => user,
            None => whoami::username().map_err(|cause| {
                let what = "no user is given, and the system does not know who runs this";
                Error::usage(what).with_cause(cause).with_hint("mysql://user@host/database")
            })?,
        };
        let (ssl_mode, tls) = parse_tls(values)?;
        let place = parse_place(values)?;
        if matches!(place, Place::Unix(_)) && mode_of(&values.of_uri())? >= Some(SslMode::Required)
        {
            return Err(Error::usage("the uri asks for TLS, which a Unix socket does not have")
                .with_hint("name a host, or take the keys of TLS out: nobody reads along here"));
        }
        let seconds = |key: &str| match values.value(key) {
            Some(value) => match parse_seconds(&value) {
                Some(timeout) => Ok(Some(timeout)),
                None => Err(values.invalid(key, &value, "seconds above 0")),
            },
            None => Ok(None),
        };
        Ok(Self {
            place,
            user,
            password: values.value("password"),
            database: values.value("database"),
            connect_timeout: seconds("connect-timeout")?,
            read_timeout: seconds("read-timeout")?,
            tcp: TcpParams::default(),
            ssl_mode,
            tls,
            cleartext: values.flag("enable-cleartext-plugin")?.unwrap_or(false),
            server_key: values.value("server-public-key-path").map(PathBuf::from),
            asks_for_key: values.flag("get-server-public-key")?.unwrap_or(false),
            compress: parse_compression(values)?,
        })
    }
}

/// A socket or host of the uri counts more than one of a file or of the environment, of either
/// kind.
fn parse_place(values: &Values<'_>) -> Result<Place> {
    let port = match values.value("port") {
        Some(port) => port
            .parse()
            .ok()
            .filter(|port| *port > 0)
            // It may be part of a password.
            .ok_or_else(|| Error::usage("the port is not a number from 1 to 65535"))?,
        None => DEFAULT_PORT,
    };
    let tcp = |host: &str| Place::Tcp { host: host.to_owned(), port };
    let is_here = |host: &str| matches!(host, "localhost" | "127.0.0.1" | "::1");
    match (values.given("socket"), values.given("host")) {
        (Some(_), Some(host)) if !is_here(host) => {
            // The host may be part of a password.
            return Err(Error::usage("the uri has a socket, which is not on its host"));
        }
        (Some(socket), _) => return Ok(Place::Unix(socket.into())),
        (None, Some(host)) => return Ok(tcp(host)),
        (None, None) => {}
    }
    let choices = [("tcp", true), ("socket", false)];
    let by_tcp = match values.value("protocol") {
        Some(protocol) => {
            let lower = protocol.to_ascii_lowercase();
            let found = choices.iter().find(|(name, _)| *name == lower);
            let found =
                found.ok_or_else(|| values.invalid("protocol", &protocol, "tcp or socket"))?;
            Some(found.1)
        }
        // A port alone is one of this host.
        None => values.given("port").map(|_| true),
    };
    match (values.value("host"), by_tcp) {
        (Some(host), None) if host != "localhost" => return Ok(tcp(&host)),
        (host, Some(true)) => return Ok(tcp(host.as_deref().unwrap_or("localhost"))),
        _ => {}
    }
    let found = SOCKETS.into_iter().find(|path| PathBuf::from(path).exists());
    let socket = values.value("socket").unwrap_or_else(|| found.unwrap_or(SOCKETS[0]).to_owned());
    Ok(Place::Unix(socket.into()))
}

/// `compress`: a flag, as for the servers' own clients, or what to compress by.
fn parse_compression(values: &Values<'_>) -> Result<Compress> {
    let value = values.value("compress").map(|value| value.to_ascii_lowercase());
    match value.as_deref() {
        Some("auto") => Ok(Compress::Auto),
        Some("zlib") => Ok(Compress::By(Compressor::Zlib)),
        Some("zstd") => Ok(Compress::By(Compressor::Zstd)),
        Some("none" | "uncompressed") => Ok(Compress::Never),
        given => match values.flag("compress") {
            Ok(Some(true)) => Ok(Compress::By(Compressor::Zlib)),
            Ok(Some(false)) => Ok(Compress::Never),
            Ok(None) => Ok(Compress::Auto),
            Err(_) => {
                let expected = "auto, none, zlib or zstd";
                Err(values.invalid("compress", given.unwrap_or_default(), expected))
            }
        },
    }
}

/// The values by their keys: those of the uri, of option files, of the environment.
pub(super) struct Values<'a> {
    uri: Vec<(&'static str, String)>,
    files: Vec<(String, String)>,
    variable: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> Values<'a> {
    fn read(uri: &str, variable: &'a dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let mut values = Self { uri: uri::split(uri)?, files: Vec::new(), variable };
        let path = |key: &str| values.given(key).map(PathBuf::from);
        let files = OptionFiles {
            file: path("defaults-file"),
            extra_file: path("defaults-extra-file"),
            group: values.given("defaults-group").map(str::to_owned),
            group_suffix: values
                .given("defaults-group-suffix")
                .map(str::to_owned)
                .or_else(|| variable("MYSQL_GROUP_SUFFIX").filter(|suffix| !suffix.is_empty())),
            home: variable("HOME").filter(|home| !home.is_empty()).map(PathBuf::from),
        };
        values.files = files.read()?;
        Ok(values)
    }

    /// The uri's values alone.
    pub(super) fn of_uri(&self) -> Self {
        Self { uri: self.uri.clone(), files: Vec::new(), variable: &|_| None }
    }

    /// The uri's value of a key, unless it is empty.
    fn given(&self, key: &str) -> Option<&str> {
        let given = self.uri.iter().find(|(known, _)| *known == key);
        given.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// The value of a key. An empty one in the uri stands for none.
    pub(super) fn value(&self, key: &str) -> Option<String> {
        if let Some((_, value)) = self.uri.iter().find(|(known, _)| *known == key) {
            return Some(value.clone()).filter(|value| !value.is_empty());
        }
        let file = self.files.iter().rev().find(|(known, _)| known == key);
        let variable = || {
            let (_, name) = VARIABLES.iter().find(|(known, _)| *known == key)?;
            (self.variable)(name)
        };
        file.map(|(_, value)| value.clone())
            .or_else(variable)
            .filter(|value| !value.is_empty() && !value.contains('\0'))
    }

    /// Whether a key is on. Without a value it is.
    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>> {
        let is_bare = self.uri.iter().any(|(known, value)| *known == key && value.is_empty());
        let Some(value) = self.value(key) else { return Ok(is_bare.then_some(true)) };
        let lower = value.to_ascii_lowercase();
        match (ON.contains(&lower.as_str()), OFF.contains(&lower.as_str())) {
            (true, _) => Ok(Some(true)),
            (_, true) => Ok(Some(false)),
            _ => Err(self.invalid(key, &value, "1 or 0")),
        }
    }

    /// Whether parts of the uri's query may be parts of a password: of one with a `?` before the
    /// user's `@`, or of the query's own with an `&`.
    fn may_have_secret(&self) -> bool {
        self.uri.iter().any(|(key, value)| *key == "password" || value.contains('@'))
    }

    /// The error of a wrong value.
    pub(super) fn invalid(&self, key: &str, value: &str, expected: &str) -> Error {
        let what = match self.may_have_secret() {
            true => format!("{key} has a wrong value"),
            false => format!("{key} is {value:?}"),
        };
        Error::usage(what).with_hint(format!("expected {expected}"))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use dray_net::Verification;

    use super::*;

    fn parse(uri: &str, variables: &[(&str, &str)]) -> Result<ConnectParams> {
        ConnectParams::parse_with(uri, &|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn with_file(folder: &Path, text: &str) -> String {
        let path = folder.join("my.cnf");
        std::fs::write(&path, text).unwrap();
        format!("defaults-file={}", path.display())
    }

    #[test]
    fn places() {
        let folder = tempfile::tempdir().unwrap();
        let none = with_file(folder.path(), "");
        let place = |uri: &str, variables: &[(&str, &str)]| {
            parse(&format!("{uri}{}{none}", if uri.contains('?') { '&' } else { '?' }), variables)
                .unwrap()
                .place()
        };
        assert_eq!(place("mysql://u:p@h/d", &[]), "mysql://h:3306/d");
        assert_eq!(place("mysql://[::1]:5", &[]), "mysql://[::1]:5/");
        assert_eq!(place("mysql://localhost", &[]), "mysql://localhost:3306/");
        assert_eq!(place("mysql://:5", &[]), "mysql://localhost:5/");
        assert_eq!(place("mysql:///?socket=/s", &[]), "mysql:///?socket=/s");
        assert_eq!(place("mysql://localhost/d?unix_socket=/s", &[]), "mysql:///d?socket=/s");
        assert!(place("mysql://", &[]).contains(".sock"));
        let variables = [("MYSQL_HOST", "v"), ("MYSQL_TCP_PORT", "7"), ("MYSQL_UNIX_PORT", "/v")];
        assert_eq!(place("mysql://", &variables), "mysql://v:7/");
        assert_eq!(place("mysql://h", &variables), "mysql://h:7/");
        assert_eq!(place("mysql://?socket=/s", &variables), "mysql:///?socket=/s");
        assert_eq!(place("mysql://", &variables[1..]), "mysql:///?socket=/v");
        assert_eq!(place("mysql://?protocol=TCP", &variables[1..]), "mysql://localhost:7/");
        for (uri, expected) in [
            ("mysql://h?socket=/s", "socket"),
            ("mysql://h:0", "port"),
            ("mysql://root:secret", "port"),
            ("mysql://root:secret/x", "port"),
            ("mysql://?protocol=pipe", "tcp or socket"),
        ] {
            let error = parse(uri, &[]).unwrap_err();
            assert!(error.to_string().contains(expected), "{uri}: {error}");
            assert!(!error.to_string().contains("secret"), "{uri}: {error}");
        }
    }

    #[test]
    fn compression() {
        use Compressor::{Zlib, Zstd};
        let folder = tempfile::tempdir().unwrap();
        for (query, text, expected) in [
            ("", "", Compress::Auto),
            ("compress=auto", "compress", Compress::Auto),
            ("compress", "", Compress::By(Zlib)),
            ("", "compress", Compress::By(Zlib)),
            ("compress=1", "", Compress::By(Zlib)),
            ("compress=ZLIB", "", Compress::By(Zlib)),
            ("compress=zstd", "", Compress::By(Zstd)),
            ("compress=off", "compress", Compress::Never),
            ("compress=none", "", Compress::Never),
            ("", "skip-compress", Compress::Never),
        ] {
            let file = with_file(folder.path(), &format!("[client]\n{text}"));
            let params = parse(&format!("mysql://h?{query}&{file}"), &[]).unwrap();
            assert_eq!(params.compress, expected, "{query} {text}");
        }
    }

    #[test]
    fn precedence() {
        let folder = tempfile::tempdir().unwrap();
        let text = "[client]\nuser=file\npassword=file\nhost=file\nport=1\nssl-mode=REQUIRED\n\
                    default-character-set=latin1\nno-auto-rehash\n";
        let file = with_file(folder.path(), text);
        let variables = [("MYSQL_PWD", "env"), ("USER", "env"), ("MYSQL_HOST", "env")];
        let params = parse(&format!("mysql://?{file}"), &variables).unwrap();
        assert_eq!((params.user.as_str(), params.password.as_deref()), ("file", Some("file")));
        assert_eq!(
            (params.place().as_str(), params.ssl_mode),
            ("mysql://file:1/", SslMode::Required)
        );
        let params = parse(&format!("mysql://me:mine@h?ssl-mode=disabled&{file}"), &variables);
        let params = params.unwrap();
        assert_eq!((params.user.as_str(), params.password.as_deref()), ("me", Some("mine")));
        assert_eq!((params.place().as_str(), params.ssl_mode), ("mysql://h:1/", SslMode::Disabled));
        let none = with_file(folder.path(), "");
        let params = parse(&format!("mysql://h?{none}"), &variables).unwrap();
        assert_eq!((params.user.as_str(), params.password.as_deref()), ("env", Some("env")));
        assert!(!format!("{params:?}").contains("pass"), "{params:?}");
    }

    #[test]
    fn tls() {
        let folder = tempfile::tempdir().unwrap();
        let none = with_file(folder.path(), "");
        for (query, mode, is_verified) in [
            ("", SslMode::Preferred, false),
            ("ssl_mode=verify-ca&ssl-ca=/ca.pem", SslMode::VerifyCa, true),
            ("sslMode=VERIFY_IDENTITY", SslMode::VerifyIdentity, true),
            ("ssl", SslMode::Required, false),
            ("ssl=0", SslMode::Disabled, false),
            ("ssl-verify-server-cert=1", SslMode::VerifyIdentity, true),
            ("ssl-ca=/ca.pem", SslMode::VerifyCa, true),
            ("ssl-ca=/ca.pem&ssl-mode=PREFERRED", SslMode::Preferred, false),
            ("ssl=1&ssl-ca=/ca.pem", SslMode::VerifyCa, true),
        ] {
            let params = parse(&format!("mysql://h?{query}&{none}"), &[]).unwrap();
            assert_eq!(params.ssl_mode, mode, "{query}");
            assert_eq!(params.tls.verification != Verification::None, is_verified, "{query}");
        }
        for (query, text, mode) in [
            ("ssl-ca=/ca.pem", "ssl-mode=PREFERRED\nskip-ssl", SslMode::VerifyCa),
            ("ssl=1", "ssl-mode=DISABLED", SslMode::Required),
            ("ssl", "skip-ssl", SslMode::Required),
            ("ssl-verify-server-cert", "ssl-mode=DISABLED", SslMode::VerifyIdentity),
            ("ssl=0", "ssl-mode=VERIFY_CA\nssl-ca=/ca.pem", SslMode::Disabled),
            ("ssl-cert=/c.pem", "ssl-mode=REQUIRED", SslMode::Required),
            ("", "ssl-ca=/ca.pem", SslMode::VerifyCa),
        ] {
            let file = with_file(folder.path(), &format!("[client]\n{text}"));
            let params = parse(&format!("mysql://h?{query}&{file}"), &[]).unwrap();
            assert_eq!(params.ssl_mode, mode, "{query} {text}");
        }
        let none = with_file(folder.path(), "");
        for query in ["ssl-mode=REQUIRED", "ssl=1", "ssl-ca=/ca.pem", "ssl-verify-server-cert"] {
            let error = parse(&format!("mysql:///?socket=/s&{query}&{none}"), &[]).unwrap_err();
            assert!(error.to_string().contains("Unix socket"), "{query}: {error}");
        }
        // A file is for all servers.
        let file = with_file(folder.path(), "[client]\nssl-mode=REQUIRED");
        parse(&format!("mysql:///?socket=/s&{file}"), &[]).unwrap();
        let none = with_file(folder.path(), "");
        let params = parse(&format!("mysql://h?tls-version=TLSv1.3&{none}"), &[]).unwrap();
        assert!(params.tls.allow_1_3 && !params.tls.allow_1_2);
        for (query, expected) in [
            ("ssl-mode=on", "VERIFY_IDENTITY"),
            ("ssl-mode=VERIFY_CA", "without ssl-ca"),
            ("ssl=maybe", "1 or 0"),
            ("ssl-key=/k", "ssl-cert"),
            ("tls-version=TLSv1.1", "TLSv1.2"),
            ("charset=latin1", "utf8mb4"),
            ("connect-timeout=0", "seconds above 0"),
            ("compress=lz4", "auto, none, zlib or zstd"),
        ] {
            let error = parse(&format!("mysql://h?{query}&{none}"), &[]).unwrap_err();
            assert!(error.to_string().contains(expected), "{query}: {error}");
        }
    }
}
