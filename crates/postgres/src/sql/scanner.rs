//! PostgreSQL's lexical rules (its manual, chapter "Lexical Structure").

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// White space or a comment.
    Space,
    Semicolon,
    Open,
    Close,
    /// A keyword or a name.
    Word,
    /// A name in quotes.
    Quoted,
    /// A string, in whatever quotes.
    Literal,
    /// A number, or a sign.
    Other,
}

pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    pub(crate) at: usize,
    escapes: bool,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(sql: &'a str, escapes: bool) -> Self {
        Self { bytes: sql.as_bytes(), at: 0, escapes }
    }

    /// The next token; `Some(None)` at the end, none where a string or comment has no end.
    #[allow(clippy::option_option, reason = "the end, and a statement without one")]
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

/// Comments may be nested.
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

/// A quote within quotes is doubled.
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

/// A string with all its pieces: after white space with a newline in it, another quote goes on with
/// the string, in which backslashes mean what they meant before.
fn literal(rest: &[u8], escapes: bool) -> Option<usize> {
    let mut at = quoted(rest, b'\'', escapes)?;
    while let Some(space) = space_within(&rest[at..]) {
        at += space;
        at += quoted(&rest[at..], b'\'', escapes)?;
    }
    Some(at)
}

/// The length of what separates a piece of a string from the next one, if that is what comes. It
/// may have comments to the end of a line, but none of the other kind.
fn space_within(rest: &[u8]) -> Option<usize> {
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

/// `$tag$ … $tag$`, or just a sign or a parameter.
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
