//! Uris: `hive://user:password@host:port/database?auth=plain|nosasl`, `spark://…`, `impala://…`.
//!
//! No error quotes a uri: it may hold a password, also in the place of another part.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use dray_net::{parse_seconds, percent_decode};

/// The ports where servers listen.
const PORTS: [(&str, u16); 3] = [("hive", 10_000), ("spark", 10_000), ("impala", 21_050)];
const KEYS: &str = "auth, ssl, ssl-ca, connect-timeout, rows";
/// What stands for a name, and for a password, that the uri lacks, as with Hive's own driver.
/// Servers with SASL refuse an empty password, even if they check none.
const ANONYMOUS: &str = "anonymous";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The most rows that a server is asked for at once.
const ROWS_MAX: u32 = 65_536;

/// Where a server is, and how to log in.
#[derive(Clone)]
pub(crate) struct Params {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) database: Option<String>,
    /// Whether SASL lets users in, by PLAIN.
    pub(crate) has_sasl: bool,
    /// The authorities of the server's certificate; None without TLS.
    pub(crate) tls: Option<Authorities>,
    pub(crate) connect_timeout: Duration,
    /// The most rows that are asked for at once.
    pub(crate) rows_max: u32,
}

/// Whose certificates are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Authorities {
    System,
    File(PathBuf),
}

/// Without the password.
impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, user, database, has_sasl, tls, .. } = self;
        f.debug_struct("Params")
            .field("host", host)
            .field("port", port)
            .field("user", user)
            .field("database", database)
            .field("has_sasl", has_sasl)
            .field("tls", tls)
            .finish_non_exhaustive()
    }
}

impl Params {
    /// Reads a uri.
    ///
    /// # Errors
    /// A clause without parts of the uri.
    pub(crate) fn parse(uri: &str) -> Result<Self, String> {
        let found = uri.split_once("://").and_then(|(scheme, rest)| {
            PORTS.iter().find(|(known, _)| *known == scheme).map(|(_, port)| (*port, rest))
        });
        let (default_port, rest) =
            found.ok_or("its uri begins with none of hive://, spark:// and impala://")?;
        if rest.contains('#') {
            return Err("its uri has a #: write it as %23".to_owned());
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (server, database) = rest.split_once('/').unwrap_or((rest, ""));
        if database.contains(['@', '/']) {
            let what = "its uri has an @ or another / after the first /: \
                        write / in a password as %2F, and @ in a database's name as %40";
            return Err(what.to_owned());
        }
        let (login, host) = server.rsplit_once('@').unwrap_or(("", server));
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let (host, port) = split_port(host)?;
        if host.is_empty() {
            return Err("its uri has no host".to_owned());
        }
        let mut params = Self {
            host: decode(host, "host")?,
            port: match port {
                "" => default_port,
                port => port.parse().map_err(|_| "its uri's port is no number up to 65535")?,
            },
            user: Some(decode(user, "user")?)
                .filter(|user| !user.is_empty())
                .unwrap_or_else(|| ANONYMOUS.to_owned()),
            password: Some(decode(password, "password")?)
                .filter(|password| !password.is_empty())
                .unwrap_or_else(|| ANONYMOUS.to_owned()),
            database: Some(decode(database, "database")?).filter(|name| !name.is_empty()),
            has_sasl: true,
            tls: None,
            connect_timeout: CONNECT_TIMEOUT,
            rows_max: ROWS_MAX,
        };
        params.read_options(query)?;
        Ok(params)
    }

    fn read_options(&mut self, query: &str) -> Result<(), String> {
        let (mut ssl, mut authority, mut seen) = (None, None, Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let key = key.to_ascii_lowercase().replace('_', "-");
            let value = decode(value, "options")?;
            let expected = match key.as_str() {
                "auth" => match value.to_ascii_lowercase().as_str() {
                    "plain" | "none" | "ldap" | "custom" => set(&mut self.has_sasl, true),
                    "nosasl" => set(&mut self.has_sasl, false),
                    _ => Err("plain or nosasl"),
                },
                "ssl" => match value.as_str() {
                    "true" => set(&mut ssl, Some(true)),
                    "false" => set(&mut ssl, Some(false)),
                    _ => Err("true or false"),
                },
                "ssl-ca" => set(&mut authority, Some(PathBuf::from(&value))),
                "connect-timeout" => match parse_seconds(&value) {
                    Some(time) => set(&mut self.connect_timeout, time),
                    None => Err("a number of seconds"),
                },
                "rows" => match value.parse() {
                    Ok(rows @ 1..=ROWS_MAX) => set(&mut self.rows_max, rows),
                    _ => Err("1 to 65536"),
                },
                _ => return Err(format!("its uri has an unknown option: they are {KEYS}")),
            };
            expected.map_err(|expected| format!("its uri's {key} must be {expected}"))?;
            if seen.contains(&key) {
                return Err(format!("its uri gives {key} twice"));
            }
            seen.push(key);
        }
        self.tls = match (ssl, authority) {
            (Some(false), Some(_)) => return Err("its uri's ssl-ca needs ssl=true".to_owned()),
            (Some(false), None) | (None, None) => None,
            (_, Some(file)) => Some(Authorities::File(file)),
            (Some(true), None) => Some(Authorities::System),
        };
        Ok(())
    }
}

#[allow(clippy::unnecessary_wraps, reason = "an arm among others that may fail")]
fn set<T>(place: &mut T, value: T) -> Result<(), &'static str> {
    *place = value;
    Ok(())
}

/// A host and its port. An address of IPv6 is in brackets.
fn split_port(server: &str) -> Result<(&str, &str), String> {
    if let Some(rest) = server.strip_prefix('[') {
        let (host, port) = rest.split_once(']').ok_or("its uri's host has no closing bracket")?;
        return match port.strip_prefix(':') {
            Some(port) => Ok((host, port)),
            None if port.is_empty() => Ok((host, "")),
            None => Err("its uri has more after its host's bracket".to_owned()),
        };
    }
    Ok(server.split_once(':').unwrap_or((server, "")))
}

fn decode(text: &str, what: &str) -> Result<String, String> {
    percent_decode(text)
        .filter(|text| !text.contains('\0'))
        .ok_or_else(|| format!("its uri's {what} is badly encoded: write % itself as %25"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn uris() {
        let params = Params::parse("hive://u%40:p%2F@h:1/d%25?auth=NOSASL&rows=10").unwrap();
        assert_eq!((params.host.as_str(), params.port), ("h", 1));
        assert_eq!((params.user.as_str(), params.password.as_str()), ("u@", "p/"));
        assert_eq!(params.database.as_deref(), Some("d%"));
        assert!(!params.has_sasl && params.tls.is_none() && params.rows_max == 10);
        let params = Params::parse("spark://[::1]?ssl=true").unwrap();
        assert_eq!((params.host.as_str(), params.port), ("::1", 10_000));
        assert_eq!((params.user.as_str(), params.database), ("anonymous", None));
        assert_eq!(params.password, "anonymous");
        assert_eq!(params.tls, Some(Authorities::System));
        let params = Params::parse("spark://reader@h/d").unwrap();
        assert_eq!((params.user.as_str(), params.password.as_str()), ("reader", "anonymous"));
        let params = Params::parse("impala://h/?ssl_ca=%2Fca.pem&connect-timeout=2").unwrap();
        assert_eq!((params.port, params.connect_timeout), (21_050, Duration::from_secs(2)));
        assert_eq!(params.tls, Some(Authorities::File("/ca.pem".into())));
    }

    #[test]
    fn refused() {
        for (uri, expected) in [
            ("hive:secret", "begins with none"),
            ("hive://", "no host"),
            ("hive://u:secret/x@h/", "%2F"),
            ("hive://u:secret#@h/", "%23"),
            ("hive://u:secret%@h/", "%25"),
            ("hive://u:secret%00@h/", "badly encoded"),
            ("hive://h:secret/", "no number"),
            ("hive://[::1/", "bracket"),
            ("hive://[::1]x/", "bracket"),
            ("hive://u:pa?secret@h/", "no number"),
            ("hive://h?auth=kerberos", "plain or nosasl"),
            ("hive://h?rows=0", "1 to 65536"),
            ("hive://h?rows=1&rows=2", "twice"),
            ("hive://h?ssl=false&ssl-ca=x", "ssl=true"),
        ] {
            let error = Params::parse(uri).unwrap_err();
            assert!(error.contains(expected), "{uri}: {error}");
            assert!(!error.contains("secret"), "{uri}: {error}");
        }
        let shown = format!("{:?}", Params::parse("hive://u:secret@h").unwrap());
        assert!(!shown.contains("secret"), "{shown}");
    }
}
