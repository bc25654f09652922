//! Statements as MySQL reads them, as far as it matters here.

/// The number of `?` in a statement, outside of strings, names and comments; None if one of these
/// has no end. `escapes` says whether backslashes escape in strings.
pub fn parameters_in(sql: &str, escapes: bool) -> Option<usize> {
    let mut count = 0;
    let mut rest = sql.as_bytes();
    while !rest.is_empty() {
        count += usize::from(rest[0] == b'?');
        rest = after_token(rest, escapes)?;
    }
    Some(count)
}

/// Whether a statement that returns no rows changes some. A `WITH` that returns none does.
pub(crate) fn is_change(sql: &str) -> bool {
    const CHANGES: [&str; 7] = ["insert", "replace", "update", "delete", "load", "call", "with"];
    let word = first_word(sql);
    CHANGES.iter().any(|change| word.eq_ignore_ascii_case(change))
}

/// Whether a statement calls a procedure.
pub(crate) fn is_call(sql: &str) -> bool {
    first_word(sql).eq_ignore_ascii_case("call")
}

/// The first word of a statement.
pub(crate) fn first_word(sql: &str) -> &str {
    let mut rest = sql.as_bytes();
    while let Some(first) = rest.first()
        && !first.is_ascii_alphabetic()
    {
        rest = after_token(rest, true).unwrap_or_default();
    }
    let word = &sql[sql.len() - rest.len()..];
    let end = word.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(word.len());
    &word[..end]
}

/// What follows the first token: a string, a name in backticks, a comment, or a byte of anything
/// else. The inside of `/*! … */` is code.
fn after_token(sql: &[u8], escapes: bool) -> Option<&[u8]> {
    match sql {
        [b'/', b'*', b'!', rest @ ..] | [b'/', b'*', b'M', b'!', rest @ ..] => Some(rest),
        [b'/', b'*', rest @ ..] => {
            let end = rest.windows(2).position(|pair| pair == b"*/")?;
            Some(&rest[end + 2..])
        }
        [b'#', rest @ ..] => Some(after_line(rest)),
        [b'-', b'-'] => Some(&[]),
        [b'-', b'-', space, rest @ ..] if space.is_ascii_whitespace() || *space < b' ' => {
            Some(if *space == b'\n' { rest } else { after_line(rest) })
        }
        [quote @ (b'\'' | b'"' | b'`'), rest @ ..] => {
            after_quote(rest, *quote, escapes && *quote != b'`')
        }
        [_, rest @ ..] => Some(rest),
        [] => Some(&[]),
    }
}

fn after_line(sql: &[u8]) -> &[u8] {
    let end = sql.iter().position(|byte| *byte == b'\n');
    end.map_or(&[], |end| &sql[end + 1..])
}

/// What follows the quote that ends a string. A doubled quote ends it and begins another.
fn after_quote(mut sql: &[u8], quote: u8, escapes: bool) -> Option<&[u8]> {
    loop {
        match sql {
            [b'\\', _, rest @ ..] if escapes => sql = rest,
            [byte, rest @ ..] if *byte == quote => return Some(rest),
            [_, rest @ ..] => sql = rest,
            [] => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters() {
        for (sql, expected) in [
            ("", Some(0)),
            ("SELECT ?, ? + 1", Some(2)),
            ("SELECT '?', \"?\", `?`, ?", Some(1)),
            ("SELECT 'it''s ?', 'it\\'s ?', \"\\\"?\", ?", Some(1)),
            ("SELECT `\\`, ?", Some(1)),
            ("SELECT ? -- ?\n, ? # ?\n, ? /* ? */, ?", Some(4)),
            ("SELECT 1--?", Some(1)),
            ("SELECT 1 --", Some(0)),
            ("SELECT 1 --\n?", Some(1)),
            ("SELECT /*!50000 ? */ /*M! ? */ /* ? */ ?", Some(3)),
            ("SELECT 'ü?', ?", Some(1)),
            ("SELECT '?", None),
            ("SELECT '\\'", None),
            ("SELECT /* ?", None),
            ("SELECT `?", None),
        ] {
            assert_eq!(parameters_in(sql, true), expected, "{sql}");
        }
        assert_eq!(parameters_in("SELECT '\\', ?", false), Some(1));
    }

    #[test]
    fn changes() {
        for sql in ["insert into t", " /* a */ (UPDATE", "-- x\nREPLACE", "/*!50000 DELETE */"] {
            assert!(is_change(sql), "{sql}");
        }
        for sql in ["", "SET x = 1", "'insert", "inserted", "CREATE TABLE t (i INT)"] {
            assert!(!is_change(sql), "{sql}");
        }
    }
}
