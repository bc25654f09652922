//! What a source's uri has that must not get into errors or the log.

use std::cmp::Reverse;

/// What is in the place of a secret.
const HIDDEN: &str = "…";
/// The values of names with these words are secret.
const WORDS: [&str; 6] = ["pass", "pwd", "secret", "token", "key", "credential"];

/// The secrets of a uri. Their order is that of their lengths, the longest first: one may be a part
/// of another.
#[derive(Clone, Default)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// Those of a uri of ODBC (`odbc:`), ADBC (`adbc:`) or JDBC: itself, values of keywords such as
    /// `PWD`, and passwords before a host, as they are and with their `%XX` decoded.
    pub fn of_uri(uri: &str) -> Self {
        let mut found = vec![uri.to_owned()];
        if let Some(string) = uri.strip_prefix("odbc:") {
            of_connection_string(string, &mut found);
        } else if let Some(rest) = uri.strip_prefix("adbc:") {
            of_adbc(rest, &mut found);
        } else {
            of_jdbc(uri, &mut found);
        }
        for raw in found.clone() {
            found.extend(percent_decoded(&raw));
            found.extend(percent_decoded(&raw.replace('+', " ")));
        }
        found.retain(|secret| !secret.trim().is_empty());
        found.sort_by_key(|secret| Reverse(secret.len()));
        found.dedup();
        Self(found)
    }

    /// A text without them.
    pub fn hide(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), HIDDEN))
    }

    /// The start of a text that goes on, without them and without what may be the start of one.
    pub fn hide_in_start(&self, text: &str) -> String {
        let mut text = self.hide(text.trim_end_matches(char::REPLACEMENT_CHARACTER));
        let starts_one = |secret: &String| {
            let ends = secret.char_indices().map(|(at, _)| at).skip(1);
            ends.filter(|end| secret.get(..*end).is_some_and(|start| text.ends_with(start))).max()
        };
        if let Some(bytes) = self.0.iter().filter_map(starts_one).max() {
            text.truncate(text.len() - bytes);
        }
        text + HIDDEN
    }
}

/// Without the secrets.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    WORDS.iter().any(|word| name.contains(word))
}

/// `KEYWORD=value;KEYWORD={va;lue}`, itself and its secret values, with and without braces.
fn of_connection_string(string: &str, found: &mut Vec<String>) {
    found.push(string.to_owned());
    let mut rest = string;
    while let Some((keyword, after)) = rest.split_once('=') {
        let (value, after) = after.split_at(value_end(after));
        rest = after.strip_prefix(';').unwrap_or(after);
        if is_secret(keyword) {
            found.extend([value.trim().to_owned(), unbraced(value.trim())]);
        }
    }
}

/// A value without its braces, within which a closing one is doubled.
fn unbraced(value: &str) -> String {
    match value.strip_prefix('{').and_then(|value| value.strip_suffix('}')) {
        Some(inner) => inner.replace("}}", "}"),
        None => value.to_owned(),
    }
}

fn value_end(text: &str) -> usize {
    let end = |from: usize| text.get(from..).and_then(|rest| rest.find(';')).map(|at| from + at);
    let start = text.len() - text.trim_start().len();
    if !text.trim_start().starts_with('{') {
        return end(0).unwrap_or(text.len());
    }
    let mut from = start + 1;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find('}')) {
        from += at + 1;
        if text.get(from..).is_none_or(|rest| !rest.starts_with('}')) {
            return end(from).unwrap_or(text.len());
        }
        from += 1;
    }
    text.len()
}

/// `DRIVER?OPTION=VALUE&…`, whose values may themselves be uris or `password=x host=y`.
fn of_adbc(rest: &str, found: &mut Vec<String>) {
    let (_, options) = rest.split_once('?').unwrap_or((rest, ""));
    for (name, raw) in options.split('&').filter_map(|option| option.split_once('=')) {
        let value = percent_decoded(raw).unwrap_or_else(|| raw.to_owned());
        if is_secret(&percent_decoded(name).unwrap_or_else(|| name.to_owned())) {
            found.extend([raw.to_owned(), value.clone()]);
        }
        if let Some((_, rest)) = value.split_once("://") {
            found.extend([raw.to_owned(), value.clone()]);
            let user = rest.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
            found.extend(user.map(|(_, password)| password.to_owned()));
        }
        found.extend(value.split(['?', '&', ';', ' ']).filter_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            is_secret(name).then(|| value.to_owned())
        }));
    }
}

/// `…?password=x`, `…;password=x`, `user:password@host` and Oracle's `user/password@host`.
fn of_jdbc(uri: &str, found: &mut Vec<String>) {
    for (at, _) in uri.match_indices('=') {
        let (before, value) = uri.split_at(at);
        let name = before.rsplit(['?', '&', ';', ':', ',', '(', '=', '/']).next();
        if name.is_some_and(is_secret) {
            let value = value.get(1..).unwrap_or_default();
            let value = value.split(['&', ';']).next().unwrap_or_default();
            found.push(value.to_owned());
            // DB2's and others' parameters end at a comma or a colon.
            found.extend(value.split([',', ':', ')']).map(str::to_owned));
        }
    }
    let address = uri.split(['?', ';']).next().unwrap_or_default();
    if let Some((user, _)) = address.rsplit_once('@') {
        // A password may itself have a colon or a slash.
        let ends = user.match_indices([':', '/']);
        found.extend(ends.filter_map(|(at, _)| user.get(at + 1..)).map(str::to_owned));
    }
}

/// A text whose `%XX` stand for bytes; None if they don't, or not for UTF-8.
pub fn percent_decoded(text: &str) -> Option<String> {
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
    fn passwords_are_hidden() {
        for (uri, text, hidden) in [
            ("odbc:DSN=x;PWD=hunter2;UID=me", "no hunter2 for me", "no … for me"),
            ("odbc:DSN=x;Pwd={a;b}}c};UID=me", "no a;b}c, {a;b}}c}", "no …, …"),
            ("odbc:UID=me; PASSWORD = s3 ;x=1", "s3", "…"),
            ("odbc:AccessToken=tt;SSLKEY=/k", "tt /k", "… …"),
            ("odbc:PWD=ab;TOKEN=abab", "abab ab", "… …"),
            ("odbc:PWD=;UID=me", "me", "me"),
            ("odbc:PWD={never closed", "never closed {never closed", "never closed …"),
            ("odbc:DSN=x;UID=u", "in DSN=x;UID=u", "in …"),
            ("odbc:PWD=a%41b", "aAb a%41b", "… …"),
            ("adbc:x?uri=a", "a", "a"),
            ("adbc:x?password=a+b", "a b", "…"),
            ("jdbc:h2:mem:", "all", "all"),
            ("jdbc:x://h/d?password=a+b", "a b", "…"),
        ] {
            assert_eq!(Secrets::of_uri(uri).hide(text), hidden, "{uri}");
        }
    }

    #[test]
    fn passwords_of_many_forms() {
        for uri in [
            "adbc:x?password=s3cret",
            "adbc:x?adbc.flight.sql.authorization_token=s3cret",
            "adbc:x?uri=postgresql://u:s3cret@h/d",
            "adbc:x?uri=postgresql://u@h/d%3Fpassword=s3cret%26a=b",
            "adbc:x?uri=host=h%20password=s3cret",
            "adbc:x?uri=postgresql://u:s%2533cret@h/d",
            "jdbc:postgresql://h/d?user=u&password=s3cret&ssl=true",
            "jdbc:derby://h:1527/d;user=u;password=s3cret",
            "jdbc:h2:~/x;USER=sa;PASSWORD=s3cret",
            "jdbc:oracle:thin:scott/s3cret@//h:1521/x",
            "jdbc:db2://h:50000/d:user=u;password=s3cret;",
            "jdbc:sqlserver://h;user=u;trustStorePassword=s3cret;x=y",
            "jdbc:x://u:s3cret@h/d",
            "jdbc:x://u:p/a:s3cret@h/d?y=x@z",
            "jdbc:mysql://address=(host=h)(user=u)(password=s3cret)/d",
            "jdbc:x://h?private_key=s3cret",
            "jdbc:x://h?password=s%33cret",
        ] {
            let secrets = Secrets::of_uri(uri);
            assert_eq!(secrets.hide("no s3cret for u at h"), "no … for u at h", "{uri}");
            assert_eq!(secrets.hide(uri), "…", "{uri}");
            assert!(!format!("{secrets:?}").contains("s3cret"));
        }
    }

    #[test]
    fn secrets_that_go_on() {
        let secrets = Secrets::of_uri("odbc:PWD=päss;TOKEN=pätzold");
        for (start, hidden) in [
            ("it is päss, or pät", "it is …, or …"),
            ("it is p\u{fffd}", "it is …"),
            ("it is odbc:PWD=p", "it is …"),
            ("it is", "it is…"),
            ("päss", "……"),
        ] {
            assert_eq!(secrets.hide_in_start(start), hidden);
        }
    }
}
