//! Arrays as text: `{1,NULL,"a b"}` (PostgreSQL's manual, section "Array Input and Output Syntax").

use crate::error::{Error, Result};

/// An item without its quotes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Item<'a> {
    Plain(&'a [u8]),
    /// An item with backslashes, which [`unescaped`] removes.
    Escaped(&'a [u8]),
}

/// The bytes of an item. Each backslash precedes another byte.
pub(crate) fn unescaped(item: &[u8]) -> impl Iterator<Item = u8> {
    let mut bytes = item.iter().copied();
    std::iter::from_fn(move || match bytes.next() {
        Some(b'\\') => bytes.next(),
        other => other,
    })
}

/// Passes the items of a one-dimensional array to `push`, None for NULL. A lower bound is dropped.
pub(crate) fn items<'a>(
    text: &'a [u8],
    delimiter: u8,
    mut push: impl FnMut(Option<Item<'a>>) -> Result<()>,
) -> Result<()> {
    let malformed = || Error::Malformed("an array that can't be read".to_owned());
    let dimensions = text.iter().take_while(|byte| **byte == b'[').count();
    let body = match dimensions {
        0 => text,
        // `[0:2]={…}`
        _ => text
            .iter()
            .position(|byte| *byte == b'=')
            .map(|at| &text[at + 1..])
            .ok_or_else(malformed)?,
    };
    let body =
        body.strip_prefix(b"{").and_then(|body| body.strip_suffix(b"}")).ok_or_else(malformed)?;
    if body.is_empty() {
        return Ok(());
    }
    if body[0] == b'{' {
        return Err(more_dimensions());
    }
    let mut rest = body;
    loop {
        let quoted = rest.first() == Some(&b'"');
        let start = usize::from(quoted);
        let mut at = start;
        let mut escaped = false;
        loop {
            match (rest.get(at), quoted) {
                (Some(b'\\'), _) => {
                    escaped = true;
                    at += 2;
                }
                (Some(b'"'), true) => break,
                (Some(byte), false) if *byte == delimiter => break,
                (Some(_), _) => at += 1,
                (None, false) => break,
                (None, true) => return Err(malformed()),
            }
        }
        // Nothing follows a trailing backslash.
        let item = rest.get(start..at).ok_or_else(malformed)?;
        push(match (escaped, quoted) {
            (true, _) => Some(Item::Escaped(item)),
            (false, false) if item == b"NULL" => None,
            (false, _) => Some(Item::Plain(item)),
        })?;
        at += usize::from(quoted);
        match rest.get(at) {
            None => return Ok(()),
            Some(byte) if *byte == delimiter => rest = &rest[at + 1..],
            Some(_) => return Err(malformed()),
        }
    }
}

pub(crate) fn more_dimensions() -> Error {
    let what = "an array of more than one dimension has no column type: \
                select it as text (column::text), its items (unnest), or as JSON (to_json)";
    Error::Unrepresentable(what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Option<String>> {
        let mut found = Vec::new();
        let push = |item: Option<Item<'_>>| {
            found.push(item.map(|item| {
                String::from_utf8(match item {
                    Item::Plain(bytes) => bytes.to_vec(),
                    Item::Escaped(bytes) => unescaped(bytes).collect(),
                })
                .unwrap()
            }));
            Ok(())
        };
        items(text.as_bytes(), b',', push).unwrap();
        found
    }

    #[test]
    fn what_servers_write() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read("{}"), []);
        assert_eq!(
            read("{a,NULL,\"NULL\",\"x \\\"y\\\\\"}"),
            [some("a"), None, some("NULL"), some("x \"y\\")]
        );
        assert_eq!(read("[0:1]={\"\",b}"), [some(""), some("b")]);
        assert_eq!(read("{\"a,b\"}"), [some("a,b")]);
    }

    #[test]
    fn what_is_refused() {
        for text in ["", "{", "x", "{\"a}", "{\"a\"b}", "{a\\", "{a\\}", "{{1},{2}}", "[1:2"] {
            assert!(items(text.as_bytes(), b',', |_| Ok(())).is_err(), "{text}");
        }
    }
}
