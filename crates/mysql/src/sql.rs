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

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A keyword, a name without quotes, or a number.
    Word,
    /// A name in backticks.
    Name,
    /// A string in single quotes.
    Literal,
    /// A name or a string in double quotes.
    Quoted,
    /// One byte of anything else.
    Other,
}

/// A token of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: TokenKind,
    pub(crate) text: &'a str,
    /// Where it begins in the statement.
    pub(crate) at: usize,
    /// In how many parentheses it stands; both of a pair stand outside of them.
    pub(crate) depth: usize,
}

impl Token<'_> {
    /// Whether it is this word, which is in lower case.
    pub(crate) fn is(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(word)
    }

    /// Where it ends in the statement.
    pub(crate) fn end(&self) -> usize {
        self.at + self.text.len()
    }
}

/// The tokens of a statement, without comments; None if a token has no end, parentheses don't
/// match, or a comment has code or hints. `escapes` says whether backslashes escape in strings.
pub(crate) fn tokens(sql: &str, escapes: bool) -> Option<Vec<Token<'_>>> {
    // A hint may set a variable, such as sql_select_limit, for the statement.
    read_tokens(sql, escapes, &["/*!", "/*M!", "/*+"])
}

/// [`tokens`] of a statement whose optimizer hints, if it has some, do not matter.
pub(crate) fn tokens_beside_hints(sql: &str, escapes: bool) -> Option<Vec<Token<'_>>> {
    read_tokens(sql, escapes, &["/*!", "/*M!"])
}

/// The tokens, unless a comment begins with one of `refused`.
fn read_tokens<'a>(sql: &'a str, escapes: bool, refused: &[&str]) -> Option<Vec<Token<'a>>> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 128..);
    let mut found = Vec::new();
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(&first) = sql.as_bytes().get(at) {
        let rest = &sql.as_bytes()[at..];
        let word = rest.iter().position(|byte| !is_word(*byte)).unwrap_or(rest.len());
        let mut end = match word {
            0 => sql.len() - after_token(rest, escapes)?.len(),
            length => at + length,
        };
        // A doubled quote goes on with the same token.
        while matches!(first, b'\'' | b'"' | b'`') && sql.as_bytes().get(end) == Some(&first) {
            end = sql.len() - after_token(&sql.as_bytes()[end..], escapes)?.len();
        }
        let kind = match first {
            _ if word > 0 => Some(TokenKind::Word),
            b'`' => Some(TokenKind::Name),
            b'\'' => Some(TokenKind::Literal),
            b'"' => Some(TokenKind::Quoted),
            b'/' if refused.iter().any(|begin| rest.starts_with(begin.as_bytes())) => return None,
            // A comment, or space.
            _ if end > at + 1 || matches!(first, b'#' | b' ' | b'\t'..=b'\r') => None,
            _ => Some(TokenKind::Other),
        };
        depth = depth.checked_sub(usize::from(first == b')' && word == 0))?;
        if let Some(kind) = kind {
            found.push(Token { kind, text: &sql[at..end], at, depth });
        }
        depth += usize::from(first == b'(' && word == 0);
        at = end;
    }
    (depth == 0).then_some(found)
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
    fn tokens_of_statements() {
        let text = |sql| {
            let tokens = tokens(sql, true)?;
            Some(tokens.iter().map(|token| token.text).collect::<Vec<_>>())
        };
        assert_eq!(
            text("a1.`b``c`=('x''y')-- z\n+\"q\" /* d */# e"),
            Some(vec!["a1", ".", "`b``c`", "=", "(", "'x''y'", ")", "+", "\"q\""])
        );
        assert_eq!(text("größe--1 -"), Some(vec!["größe", "-", "-", "1", "-"]));
        for sql in ["(", ")(", "'", "/* a", "/*! a */", "/*M! a */", "a /*+ b */", "'\\'"] {
            assert_eq!(text(sql), None, "{sql}");
        }
        let depths = tokens("a(b(c)d)e", true).unwrap();
        let depths = depths.iter().map(|token| token.depth).collect::<Vec<_>>();
        assert_eq!(depths, [0, 0, 1, 1, 2, 1, 1, 0, 0]);
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
