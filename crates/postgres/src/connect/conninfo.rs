//! The two forms of libpq's connection strings, split into keywords and values.

use dray_net::percent_decode;

use crate::error::{Error, ErrorKind, Result};

/// The keywords and values of `key=value` pairs or of a `postgresql://` uri, in order; later ones
/// win.
///
/// No error quotes the string: it may hold a password, also in the place of another part.
pub(crate) fn split(text: &str) -> Result<Vec<(String, String)>> {
    match text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://")) {
        Some(rest) => split_uri(rest),
        None => split_pairs(text),
    }
}

fn usage(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, what)
}

/// Splits `key = value` pairs. Quotes enclose spaces, a backslash escapes the next character.
fn split_pairs(text: &str) -> Result<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len());
        let (key, tail) = rest.split_at(end);
        let Some(tail) = tail.trim_start().strip_prefix('=') else {
            // This may be the tail of an unquoted password.
            let what =
                "the connection string has a word without \"=\" where a keyword was expected";
            return Err(usage(what).with_hint(
                "postgresql://user@host/db, or host=… dbname=… with values quoted by '…'",
            ));
        };
        let (value, tail) = read_value(tail.trim_start()).ok_or_else(|| {
            usage("a quoted value in the connection string has no end").with_hint("quote it by '…'")
        })?;
        pairs.push((key.to_owned(), value));
        rest = tail.trim_start();
    }
    Ok(pairs)
}

/// A value and the text after it; None if its quote does not end.
fn read_value(text: &str) -> Option<(String, &str)> {
    let quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut characters = text.char_indices();
    if quoted {
        characters.next();
    }
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => value.extend(characters.next().map(|(_, c)| c)),
            '\'' if quoted => return Some((value, &text[at + 1..])),
            c if !quoted && c.is_whitespace() => return Some((value, &text[at..])),
            c => value.push(c),
        }
    }
    (!quoted).then_some((value, ""))
}

/// Splits `[user[:password]@][host][:port][,…][/dbname][?key=value&…]`, the uri after its scheme.
fn split_uri(text: &str) -> Result<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    let mut push = |key: &str, value: &str| -> Result<()> {
        if !value.is_empty() {
            pairs.push((key.to_owned(), decode(value, key)?));
        }
        Ok(())
    };
    let (before, query) = text.split_once('?').unwrap_or((text, ""));
    // libpq takes all before the first @ for user and password, unless it has a slash.
    if before.contains('/') && query.contains('@') && has_no_port(before) {
        return Err(usage("the uri has its first @ after a ?")
            .with_hint("within a password write / as %2F and ? as %3F, and @ after the ? as %40"));
    }
    let mut rest = text;
    if let Some(at) = text.find(['@', '/']).filter(|at| text[*at..].starts_with('@')) {
        let (user, password) = text[..at].split_once(':').unwrap_or((&text[..at], ""));
        push("user", user)?;
        push("password", password)?;
        rest = &text[at + 1..];
    }
    let (places, tail) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if places.contains('@') || tail.split('?').next().is_some_and(|path| path.contains('@')) {
        let what = "the uri has an @ after the beginning of its host";
        return Err(usage(what).with_hint("within a password write @ as %40 and / as %2F"));
    }
    let mut hosts = Vec::new();
    let mut ports = Vec::new();
    for place in places.split(',') {
        let (host, port) = split_place(place)?;
        if !decode(port, "port")?.bytes().all(|c| c.is_ascii_digit()) {
            // Before the query: without a host, this and what follows may be a password.
            return Err(usage("the port is not a number from 1 to 65535")
                .with_hint("postgresql://user:password@host:port/db"));
        }
        hosts.push(host);
        ports.push(port);
    }
    push("host", &hosts.join(",")).and_then(|()| {
        match ports.iter().all(|port| port.is_empty()) {
            true => Ok(()),
            false => push("port", &ports.join(",")),
        }
    })?;
    let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
    push("dbname", path.strip_prefix('/').unwrap_or(path))?;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let Some((key, value)) = pair.split_once('=').filter(|(_, value)| !value.contains('='))
        else {
            let what = "a parameter after \"?\" in the uri is not key=value";
            return Err(usage(what).with_hint("write = within a value as %3D and & as %26"));
        };
        let (key, value) = (decode(key, "keyword")?, decode(value, "parameter")?);
        // JDBC's form, which libpq accepts, too.
        match (key.as_str(), value.as_str()) {
            ("ssl", "true") => pairs.push(("sslmode".into(), "require".into())),
            _ => pairs.push((key, value)),
        }
    }
    Ok(pairs)
}

/// Whether what is before the query has no @, and a colon that begins no port, but a password.
fn has_no_port(before: &str) -> bool {
    let places = before.split_once('/').map_or(before, |(places, _)| places);
    let port = places.split_once(':').filter(|_| !places.contains(['[', ',']));
    !before.contains('@') && port.is_some_and(|(_, port)| !port.bytes().all(|c| c.is_ascii_digit()))
}

/// Host and port. Colons within brackets belong to an IPv6 address.
fn split_place(place: &str) -> Result<(&str, &str)> {
    let Some(bracketed) = place.strip_prefix('[') else {
        return Ok(place.split_once(':').unwrap_or((place, "")));
    };
    let (host, tail) = bracketed
        .split_once(']')
        .filter(|(host, tail)| !host.is_empty() && (tail.is_empty() || tail.starts_with(':')))
        .ok_or_else(|| {
            usage("the uri has an IPv6 address that does not end")
                .with_hint("postgresql://[::1]:5432/db")
        })?;
    Ok((host, tail.strip_prefix(':').unwrap_or("")))
}

fn decode(text: &str, what: &str) -> Result<String> {
    percent_decode(text).filter(|text| !text.contains('\0')).ok_or_else(|| {
        usage(format!("bad percent-encoding in the uri's {what}"))
            .with_hint("write % itself as %25; %00 is not allowed")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str)]) {
        let found = split(text).unwrap();
        let found: Vec<_> =
            found.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn pairs() {
        check("", &[]);
        check("host=a port = 5", &[("host", "a"), ("port", "5")]);
        check(r"password='it\'s \\ me' user=b\ c", &[("password", r"it's \ me"), ("user", "b c")]);
        check("dbname='' host= user=u", &[("dbname", ""), ("host", "user=u")]);
        check("host=a options='-c x=1'", &[("host", "a"), ("options", "-c x=1")]);
        check("user='ü'password=x", &[("user", "ü"), ("password", "x")]);
        check("host=", &[("host", "")]);
    }

    #[test]
    fn uris() {
        check("postgresql://", &[]);
        check("postgres://localhost", &[("host", "localhost")]);
        check("postgresql://h:5433/d", &[("host", "h"), ("port", "5433"), ("dbname", "d")]);
        check("postgresql://u@h", &[("user", "u"), ("host", "h")]);
        check("postgresql://u:s%40c@/d", &[("user", "u"), ("password", "s@c"), ("dbname", "d")]);
        check("postgresql://a:1,b:2/d", &[("host", "a,b"), ("port", "1,2"), ("dbname", "d")]);
        check("postgresql://a,b:2", &[("host", "a,b"), ("port", ",2")]);
        check("postgresql://[::1]:5/d", &[("host", "::1"), ("port", "5"), ("dbname", "d")]);
        check("postgresql://%2Ftmp%2Fpg/d", &[("host", "/tmp/pg"), ("dbname", "d")]);
        check(
            "postgresql:///d?host=/tmp&port=7",
            &[("dbname", "d"), ("host", "/tmp"), ("port", "7")],
        );
        check("postgresql://h?ssl=true", &[("host", "h"), ("sslmode", "require")]);
        check("postgresql://h/?options=-c%20x%3D1", &[("host", "h"), ("options", "-c x=1")]);
        check("postgresql://u:a?b=c@h", &[("user", "u"), ("password", "a?b=c"), ("host", "h")]);
        check("postgresql://h:1/?user=a@b", &[("host", "h"), ("port", "1"), ("user", "a@b")]);
        check("postgresql://h/d?user=a%40b", &[("host", "h"), ("dbname", "d"), ("user", "a@b")]);
    }

    #[test]
    fn refused() {
        for text in [
            "db",
            "host=a b",
            "password='open",
            "postgresql://[::1",
            "postgresql://[]",
            "postgresql://[::1]5",
            "postgresql://h/%",
            "postgresql://h/%0",
            "postgresql://h/%zz",
            "postgresql://h/%+1",
            "postgresql://h/%00",
            "postgresql://h?sslmode",
            "postgresql://h?a=b=c",
            "postgresql://u:p@p@h",
            "postgresql://u:1/p@h",
            "postgresql://u:p/a?sslmode=1@h",
            "postgresql://u:p/a?sslmode=1",
        ] {
            let error = split(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage, "{text}");
            assert!(error.hint().is_some(), "{text}");
        }
    }
}
