//! Connection strings, whose passwords must not get into errors.

/// Parts of a keyword whose value is secret.
const SECRET_WORDS: [&str; 6] = ["PWD", "PASS", "SECRET", "TOKEN", "KEY", "CREDENTIAL"];

/// A connection string, and what is secret in it.
pub(crate) struct ConnectionString {
    text: String,
    secrets: Vec<String>,
}

impl ConnectionString {
    /// Of a source's uri, `odbc:` and the keywords with their values.
    pub(crate) fn of_uri(uri: &str) -> Self {
        let text = uri.strip_prefix("odbc:").unwrap_or(uri).to_owned();
        let mut secrets: Vec<String> = pairs(&text)
            .filter(|(keyword, _)| is_secret(keyword))
            .flat_map(|(_, value)| [value.to_owned(), plain(value)])
            .filter(|secret| !secret.is_empty())
            .collect();
        // Longer ones first: another may be within them.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { text, secrets }
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.text
    }

    /// A text without what is secret.
    pub(crate) fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        if !self.text.is_empty() {
            text = text.replace(&self.text, "…");
        }
        for secret in &self.secrets {
            text = text.replace(secret.as_str(), "…");
        }
        text
    }
}

fn is_secret(keyword: &str) -> bool {
    let keyword = keyword.to_ascii_uppercase();
    SECRET_WORDS.iter().any(|word| keyword.contains(word))
}

/// A value without its braces, within which a closing one is doubled.
fn plain(value: &str) -> String {
    match value.strip_prefix('{').and_then(|value| value.strip_suffix('}')) {
        Some(inner) => inner.replace("}}", "}"),
        None => value.to_owned(),
    }
}

/// The keywords and values of `KEYWORD=value;KEYWORD={va;lue}`.
fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (keyword, after) = rest.split_once('=')?;
        let end = value_end(after);
        let (value, after) = after.split_at(end);
        rest = after.strip_prefix(';').unwrap_or(after);
        Some((keyword.trim(), value.trim()))
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_redacted() {
        for (uri, text, redacted) in [
            ("odbc:DSN=x;PWD=hunter2;UID=me", "no hunter2 for me", "no … for me"),
            ("odbc:DSN=x;Pwd={a;b}}c};UID=me", "no a;b}c, {a;b}}c}", "no …, …"),
            ("odbc:UID=me; PASSWORD = s3 ;x=1", "s3", "…"),
            ("odbc:AccessToken=tt;SSLKEY=/k", "tt /k", "… …"),
            ("odbc:PWD=ab;TOKEN=abab", "abab ab", "… …"),
            ("odbc:PWD=;UID=me", "me", "me"),
            ("odbc:PWD={never closed", "never closed {never closed", "never closed …"),
            ("odbc:DSN=x;UID=u", "in DSN=x;UID=u", "in …"),
        ] {
            assert_eq!(ConnectionString::of_uri(uri).redact(text), redacted, "{uri}");
        }
    }
}
