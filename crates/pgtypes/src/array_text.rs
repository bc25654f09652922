//! Arrays as text: `{1,NULL,"a b"}`, section 8.15.6 of PostgreSQL's manual.

use crate::error::{Error, Result};

/// The items of a one-dimensional array, none for a NULL. The lower bound, if it is shown, is dropped.
pub(crate) fn items(text: &[u8], delimiter: u8) -> Result<Vec<Option<Vec<u8>>>> {
    let malformed = || Error::Malformed("an array that can't be read".to_owned());
    let dimensions = text.iter().take_while(|byte| **byte == b'[').count();
    let body = match dimensions {
        0 => text,
        // `[0:2]={…}`
        _ => text.iter().position(|byte| *byte == b'=').map(|at| &text[at + 1..]).ok_or_else(malformed)?,
    };
    let body = body.strip_prefix(b"{").and_then(|body| body.strip_suffix(b"}")).ok_or_else(malformed)?;
    let mut items = Vec::new();
    if body.is_empty() {
        return Ok(items);
    }
    if body[0] == b'{' {
        return Err(more_dimensions());
    }
    let mut rest = body;
    loop {
        let mut item = Vec::new();
        let quoted = rest.first() == Some(&b'"');
        let mut at = usize::from(quoted);
        loop {
            match (rest.get(at), quoted) {
                (Some(b'\\'), _) => {
                    item.push(*rest.get(at + 1).ok_or_else(malformed)?);
                    at += 2;
                }
                (Some(b'"'), true) => {
                    at += 1;
                    break;
                }
                (Some(byte), false) if *byte == delimiter => break,
                (Some(byte), _) => {
                    item.push(*byte);
                    at += 1;
                }
                (None, false) => break,
                (None, true) => return Err(malformed()),
            }
        }
        let missing = !quoted && item == b"NULL";
        items.push((!missing).then_some(item));
        match rest.get(at) {
            None => return Ok(items),
            Some(byte) if *byte == delimiter => rest = &rest[at + 1..],
            Some(_) => return Err(malformed()),
        }
    }
}

pub(crate) fn more_dimensions() -> Error {
    let what = "an array of more than one dimension has no column type: select it as text (column::text), its items \
                (unnest), or as JSON (to_json)";
    Error::Unrepresentable(what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Option<String>> {
        let items = items(text.as_bytes(), b',').unwrap();
        items.into_iter().map(|item| item.map(|item| String::from_utf8(item).unwrap())).collect()
    }

    #[test]
    fn what_servers_write() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read("{}"), []);
        assert_eq!(read("{a,NULL,\"NULL\",\"x \\\"y\\\\\"}"), [some("a"), None, some("NULL"), some("x \"y\\")]);
        assert_eq!(read("[0:1]={\"\",b}"), [some(""), some("b")]);
        assert_eq!(read("{\"a,b\"}"), [some("a,b")]);
    }

    #[test]
    fn what_is_refused() {
        for text in ["", "{", "x", "{\"a}", "{\"a\"b}", "{a\\", "{{1},{2}}", "[1:2"] {
            assert!(items(text.as_bytes(), b',').is_err(), "{text}");
        }
    }
}
