//! The uri of a source: `adbc:DRIVER?OPTION=VALUE&…`.

use dray_bridge::{Failure, FailureKind};

/// What has to be in the place of a secret.
const HIDDEN: &str = "***";
/// Options with these words in their names have secret values.
const SECRET_WORDS: [&str; 6] = ["pass", "pwd", "secret", "token", "key", "credential"];

/// A database that an ADBC driver reaches.
#[derive(Clone)]
pub(crate) struct Source {
    /// The path of a library, or a name that the driver manager finds.
    pub(crate) driver: String,
    /// The name of the library's function, if it is not the usual one.
    pub(crate) entrypoint: Option<String>,
    /// The options of the database, such as `uri` and `username`.
    pub(crate) options: Vec<(String, String)>,
}

impl Source {
    /// Reads a uri, whose parts may have percent signs for what separates them.
    pub(crate) fn parse(uri: &str) -> Result<Self, Failure> {
        let rest = uri.strip_prefix("adbc:").unwrap_or(uri);
        let (driver, query) = rest.split_once('?').unwrap_or((rest, ""));
        let driver = decode(driver).filter(|driver| !driver.is_empty()).ok_or_else(wrong)?;
        let mut source = Self { driver, entrypoint: None, options: Vec::new() };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(wrong)?;
            let (name, value) = decode(name).zip(decode(value)).ok_or_else(wrong)?;
            match name.as_str() {
                "entrypoint" => source.entrypoint = Some(value),
                _ => source.options.push((name, value)),
            }
        }
        Ok(source)
    }

    /// A message without passwords.
    pub(crate) fn hide(&self, message: &str) -> String {
        let mut secrets: Vec<&str> = Vec::new();
        for (name, value) in &self.options {
            if is_secret(name) {
                secrets.push(value);
            }
            // A uri may have a password in front of its host, and in its parameters.
            if value.contains("://") {
                secrets.push(value);
            }
            let user = value.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
            secrets.extend(user.and_then(|(user, _)| user.split_once(':')).map(|(_, word)| word));
            secrets.extend(value.split(['?', '&', ';', ' ']).filter_map(|pair| {
                pair.split_once('=').filter(|(name, _)| is_secret(name)).map(|(_, word)| word)
            }));
        }
        // The longest first: one may be a part of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.iter().filter(|secret| !secret.is_empty()).fold(message.to_owned(), |text, one| {
            let text = text.replace(one, HIDDEN);
            decode(one)
                .filter(|one| !one.is_empty())
                .map_or(text.clone(), |one| text.replace(&one, HIDDEN))
        })
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

fn wrong() -> Failure {
    Failure::new(
        FailureKind::Connection,
        "08001",
        "the uri is not of the form adbc:DRIVER?OPTION=VALUE&OPTION=VALUE, with percent signs for \
         characters that separate them",
    )
}

/// A text whose `%XX` stand for bytes; None if they don't, or not for UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        // from_str_radix takes a sign.
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris() {
        let uri =
            "adbc:/lib/a b.so?uri=postgresql://u@h/d%3Fx=1%26y=2&username=%C3%BC&entrypoint=f";
        let source = Source::parse(uri).unwrap();
        assert_eq!(source.driver, "/lib/a b.so");
        assert_eq!(source.entrypoint.as_deref(), Some("f"));
        let options: Vec<_> =
            source.options.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(options, [("uri", "postgresql://u@h/d?x=1&y=2"), ("username", "ü")]);
        assert_eq!(Source::parse("adbc:sqlite").unwrap().options, []);
        for wrong in
            ["adbc:", "adbc:?uri=x", "adbc:x?uri", "adbc:x?a=%", "adbc:x?a=%+1", "adbc:x?a=%ff"]
        {
            assert!(Source::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn secrets() {
        for uri in [
            "adbc:x?password=s3cret",
            "adbc:x?adbc.flight.sql.authorization_token=s3cret",
            "adbc:x?uri=postgresql://u:s3cret@h/d",
            "adbc:x?uri=postgresql://u@h/d%3Fpassword=s3cret%26a=b",
            "adbc:x?uri=host=h%20password=s3cret",
            "adbc:x?uri=postgresql://u:s%2533cret@h/d",
        ] {
            let source = Source::parse(uri).unwrap();
            assert_eq!(source.hide("no s3cret here"), "no *** here", "{uri}");
        }
        assert_eq!(Source::parse("adbc:x?uri=a").unwrap().hide("a"), "a");
    }
}
