//! PostgreSQL's lexical rules (its manual, chapter "Lexical Structure").

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// White space or a comment.
    Space,
    Semicolon,
    Open,
    Close,
    /// A keyword or an unquoted name.
    Word,
    /// A quoted name.
    Quoted,
    /// A string in any kind of quotes.
    Literal,
    /// A number or a sign.
    Other,
}

/// Reads one token after the other.
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    /// The end of the last token.
    pub(super) at: usize,
    escapes: bool,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(sql: &'a str, escapes: bool) -> Self {
        Self { bytes: sql.as_bytes(), at: 0, escapes }
    }

    /// The next token; `Some(None)` at the end, None if a string or comment has no end.
    #[allow(clippy::option_option, reason = "an end, and a statement without one")]
    pub(crate) fn next(&mut self) -> Option<Option<TokenKind>> {
        let rest = &self.bytes[self.at..];
        let Some(&first) = rest.first() else { return Some(None) };
        let (token, bytes) = match first {
            b' ' | b'\t' | b'\n' | b'\r' | b'\x0b' | b'\x0c' => (TokenKind::Space, 1),
            b'-' if rest.starts_with(b"--") => (
                TokenKind::Space,
                rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len()),
            ),
            b'/' if rest.starts_with(b"/*") => (TokenKind::Space, comment(rest)?),
            b';' => (TokenKind::Semicolon, 1),
            b'(' => (TokenKind::Open, 1),
            b')' => (TokenKind::Close, 1),
            b'\'' => (TokenKind::Literal, literal(rest, self.escapes)?),
            b'"' => (TokenKind::Quoted, quoted(rest, b'"', false)?),
            b'e' | b'E' if rest.get(1) == Some(&b'\'') => {
                (TokenKind::Literal, 1 + literal(&rest[1..], true)?)
            }
            b'$' => match dollar_quoted(rest)? {
                1 => (TokenKind::Other, 1),
                bytes => (TokenKind::Literal, bytes),
            },
            _ if first.is_ascii_digit() => {
                let end = rest.iter().position(|byte| !is_word(*byte)).unwrap_or(rest.len());
                // `1E'…'` is an error, or up to PostgreSQL 14 a number and a string with escapes.
                if matches!(rest[end - 1], b'e' | b'E') && rest.get(end) == Some(&b'\'') {
                    return None;
                }
                (TokenKind::Other, end)
            }
            _ if is_word(first) => (
                TokenKind::Word,
                rest.iter().position(|byte| !is_word(*byte) && *byte != b'$').unwrap_or(rest.len()),
            ),
            _ => (TokenKind::Other, 1),
        };
        self.at += bytes;
        Some(Some(token))
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The length of a comment. Comments nest.
fn comment(rest: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (2, 1);
    while depth > 0 {
        match rest.get(at..at + 2)? {
            b"/*" => (at, depth) = (at + 2, depth + 1),
            b"*/" => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
    }
    Some(at)
}

/// The length of quoted text, in which quotes are doubled.
fn quoted(rest: &[u8], quote: u8, escapes: bool) -> Option<usize> {
    let mut at = 1;
    loop {
        match *rest.get(at)? {
            b'\\' if escapes => at += 2,
            byte if byte == quote && rest.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// The length of a string with its continuations: after white space with a newline, another quote
/// continues the string, with the same rule for backslashes.
fn literal(rest: &[u8], escapes: bool) -> Option<usize> {
    let mut at = quoted(rest, b'\'', escapes)?;
    while let Some(space) = continuation(&rest[at..]) {
        at += space;
        at += quoted(&rest[at..], b'\'', escapes)?;
    }
    Some(at)
}

/// The length of the white space before the continuation of a string, if one follows. It may have
/// comments to the end of a line, but no block comments.
fn continuation(rest: &[u8]) -> Option<usize> {
    let (mut at, mut newline) = (0, false);
    loop {
        match rest.get(at)? {
            b'\n' | b'\r' => (at, newline) = (at + 1, true),
            b' ' | b'\t' | b'\x0b' | b'\x0c' => at += 1,
            b'-' if rest[at..].starts_with(b"--") => {
                at += rest[at..].iter().position(|byte| matches!(byte, b'\n' | b'\r'))?;
            }
            b'\'' if newline => return Some(at),
            _ => return None,
        }
    }
}

/// The length of `$tag$ … $tag$`; 1 for a sign or a parameter.
fn dollar_quoted(rest: &[u8]) -> Option<usize> {
    let tag = rest[1..].iter().position(|byte| !is_word(*byte)).map(|at| at + 1);
    match tag {
        Some(end) if rest[end] == b'$' && !rest[1].is_ascii_digit() => {
            let tag = &rest[..=end];
            let found = rest[end + 1..].windows(tag.len()).position(|window| window == tag)?;
            Some(end + 1 + found + tag.len())
        }
        _ => Some(1),
    }
}
