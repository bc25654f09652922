//! Uris: `mysql://user:password@host:port/database?key=value&…`, or `mariadb://…`.

use dray_net::percent_decode;

use crate::error::{Error, Result};

const FORM: &str = "mysql://user:password@host:port/database?key=value";

/// The keys of a uri's query part, as they are named here. Dashes and underscores are the same.
pub(super) const KEYS: [&str; 26] = [
    "user",
    "password",
    "host",
    "port",
    "database",
    "socket",
    "protocol",
    "connect-timeout",
    "read-timeout",
    "ssl-mode",
    "ssl",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl-crl",
    "ssl-verify-server-cert",
    "tls-version",
    "default-character-set",
    "compress",
    "enable-cleartext-plugin",
    "get-server-public-key",
    "server-public-key-path",
    "defaults-file",
    "defaults-extra-file",
    "defaults-group",
    "defaults-group-suffix",
];
/// Other spellings.
const ALIASES: [(&str, &str); 7] = [
    ("unix-socket", "socket"),
    ("sslmode", "ssl-mode"),
    ("charset", "default-character-set"),
    ("db", "database"),
    ("username", "user"),
    ("passwd", "password"),
    ("allow-cleartext-passwords", "enable-cleartext-plugin"),
];

/// The values of a uri by their keys. The first of equal keys counts.
///
/// No error quotes the uri: it may hold a password, also in the place of another part.
pub(super) fn split(uri: &str) -> Result<Vec<(&'static str, String)>> {
    let rest = uri.strip_prefix("mysql://").or_else(|| uri.strip_prefix("mariadb://"));
    let rest = rest.ok_or_else(|| {
        Error::usage("the uri begins neither with mysql:// nor with mariadb://").with_hint(FORM)
    })?;
    if rest.contains('#') {
        return Err(Error::usage("the uri has a #").with_hint("write # as %23"));
    }
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    if query.contains('@') && has_no_port(rest) {
        return Err(Error::usage("the uri has its first @ after a ?")
            .with_hint("write ? as %3F in a password, and @ after the ? as %40"));
    }
    let (server, database) = rest.split_once('/').unwrap_or((rest, ""));
    if database.contains('@') {
        return Err(Error::usage("the uri has an @ after its first /")
            .with_hint("write / in a password as %2F, and @ in a database's name as %40"));
    }
    let (user, host) = server.rsplit_once('@').unwrap_or(("", server));
    let (user, password) = match user.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (user, None),
    };
    let (host, port) = split_port(host)?;
    if !decode(port, "port")?.bytes().all(|c| c.is_ascii_digit()) {
        // Before the query: without a host, this and what follows may be a password.
        return Err(Error::usage("the port is not a number from 1 to 65535").with_hint(FORM));
    }
    if host.contains(',') {
        return Err(Error::usage("the uri has several hosts, but only one is supported"));
    }
    let mut values = Vec::new();
    for (key, value) in [("user", user), ("host", host), ("port", port), ("database", database)] {
        if !value.is_empty() {
            values.push((key, decode(value, key)?));
        }
    }
    if let Some(password) = password {
        values.push(("password", decode(password, "password")?));
    }
    // A password with a ? or an & goes on here.
    let mut is_secret = query.contains('@');
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let key = known_key(&decode(key, "key")?, is_secret || !pair.contains('='))?;
        is_secret |= key == "password";
        if values.iter().any(|(known, _)| *known == key) {
            return Err(Error::usage(format!("the uri gives {key} twice")));
        }
        values.push((key, decode(value, key)?));
    }
    Ok(values)
}

/// A key as it is named here. No error quotes one that may be part of a password.
fn known_key(key: &str, is_secret: bool) -> Result<&'static str> {
    let plain = key.to_ascii_lowercase().replace('_', "-");
    let alias = ALIASES.iter().find(|(alias, _)| *alias == plain).map(|(_, key)| *key);
    let known = alias.or_else(|| KEYS.into_iter().find(|known| *known == plain));
    known.ok_or_else(|| {
        let is_word = plain.chars().all(|c| c.is_ascii_lowercase() || c == '-') && plain.len() < 32;
        let what = match is_word && !is_secret {
            true => format!("{plain:?} is not a key of uris"),
            false => "the uri has an unknown key".to_owned(),
        };
        Error::usage(what).with_hint(format!("the keys are {}", KEYS.join(", ")))
    })
}

/// Whether what is before the query has no @, and a colon that begins no port, but a password.
fn has_no_port(rest: &str) -> bool {
    let server = rest.split_once('/').map_or(rest, |(server, _)| server);
    let port = server.split_once(':').filter(|_| !server.starts_with('['));
    !rest.contains('@') && port.is_some_and(|(_, port)| !port.bytes().all(|c| c.is_ascii_digit()))
}

/// A host and its port. An address of IPv6 is in brackets.
fn split_port(server: &str) -> Result<(&str, &str)> {
    if let Some(rest) = server.strip_prefix('[') {
        let (host, port) = rest
            .split_once(']')
            .ok_or_else(|| Error::usage("the uri's host has no closing bracket").with_hint(FORM))?;
        return match port.strip_prefix(':') {
            Some(port) => Ok((host, port)),
            None if port.is_empty() => Ok((host, "")),
            None => Err(Error::usage("the uri has more after its host's bracket")),
        };
    }
    Ok(server.split_once(':').unwrap_or((server, "")))
}

fn decode(text: &str, what: &str) -> Result<String> {
    percent_decode(text).filter(|text| !text.contains('\0')).ok_or_else(|| {
        Error::usage(format!("bad percent-encoding in the uri's {what}"))
            .with_hint("write % itself as %25; %00 is not allowed")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(uri: &str, expected: &[(&str, &str)]) {
        let found = split(uri).unwrap();
        let found: Vec<_> = found.iter().map(|(key, value)| (*key, value.as_str())).collect();
        assert_eq!(found, expected, "{uri}");
    }

    #[test]
    fn uris() {
        check("mysql://", &[]);
        check("mariadb:///db", &[("database", "db")]);
        check(
            "mysql://u%40:p%2F@h:1/d%25",
            &[("user", "u@"), ("host", "h"), ("port", "1"), ("database", "d%"), ("password", "p/")],
        );
        check(
            "mysql://u:@[::1]:5",
            &[("user", "u"), ("host", "::1"), ("port", "5"), ("password", "")],
        );
        check(
            "mysql://h:1/d?user=a@b",
            &[("host", "h"), ("port", "1"), ("database", "d"), ("user", "a@b")],
        );
        check(
            "mysql://h?SSL_Mode=REQUIRED&unix_socket=%2Ftmp%2Fs",
            &[("host", "h"), ("ssl-mode", "REQUIRED"), ("socket", "/tmp/s")],
        );
    }

    #[test]
    fn refused() {
        for (uri, expected) in [
            ("postgresql://h", "mysql://"),
            ("mysql://h?sslkeey=1", "sslkeey"),
            ("mysql://h?ssl-key=a&ssl_key=b", "twice"),
            ("mysql://a,b/", "several hosts"),
            ("mysql://[::1/", "bracket"),
            ("mysql://[::1]x/", "bracket"),
            ("mysql://u:secret%zz@h/", "percent-encoding"),
            ("mysql://u@h/?password=secret&secret2=5", "unknown key"),
            ("mysql://u@h/?password=abc&secret", "unknown key"),
            ("mysql://u@h/?password=abc&secret=5", "unknown key"),
            ("mysql://u@h/?password=abc&ssl=1&secret=5", "unknown key"),
            ("mysql://u:pa?secret@h/", "%3F"),
            ("mysql://u:pa?secret=2@h/", "%3F"),
            ("mysql://u:pa?ssl=secret@h/", "%3F"),
            ("mysql://u:1/2?secret=2@h/", "unknown key"),
            ("mysql://us?er:secret@h/", "unknown key"),
            ("mysql://u:p@a?secret=2@h/", "unknown key"),
            ("mysql://u:pa?secret=2", "port"),
            ("mysql://root:secret/x@db/shop", "%2F"),
            ("mysql://root:a/secret@db/shop", "%2F"),
            ("mysql://h/#secret", "%23"),
        ] {
            let error = split(uri).unwrap_err();
            assert!(error.to_string().contains(expected), "{uri}: {error}");
            assert!(!error.to_string().contains("secret"), "{uri}: {error}");
        }
    }
}
