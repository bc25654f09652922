//! A statement's tokens with their depth in parentheses.

use super::scanner::{Scanner, TokenKind};

/// A token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token<'a> {
    pub(crate) kind: TokenKind,
    pub(crate) text: &'a str,
    /// The byte after the token.
    pub(crate) end: usize,
    /// The number of open parentheses around the token; a parenthesis that opens counts itself.
    pub(crate) depth: usize,
}

impl Token<'_> {
    /// Whether the token is this unquoted word.
    pub(crate) fn is(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(word)
    }

    /// Whether the token may be a name.
    pub(crate) fn is_name(&self) -> bool {
        matches!(self.kind, TokenKind::Word | TokenKind::Quoted)
    }

    /// The name that the token stands for; None if the server's encoding decides how its letters
    /// fold.
    pub(crate) fn name(&self) -> Option<String> {
        match self.kind {
            TokenKind::Quoted => self
                .text
                .strip_prefix('"')?
                .strip_suffix('"')
                .map(|inner| inner.replace("\"\"", "\"")),
            _ => self.text.is_ascii().then(|| self.text.to_ascii_lowercase()),
        }
    }
}

/// The tokens without white space; None if one has no end, or a parenthesis no beginning.
pub(crate) fn tokens(sql: &str, escapes: bool) -> Option<Vec<Token<'_>>> {
    let mut scanner = Scanner::new(sql, escapes);
    let (mut tokens, mut depth) = (Vec::new(), 0usize);
    loop {
        let start = scanner.at;
        let Some(kind) = scanner.next()? else { return Some(tokens) };
        match kind {
            TokenKind::Space => continue,
            TokenKind::Open => depth += 1,
            TokenKind::Close => depth = depth.checked_sub(1)?,
            _ => {}
        }
        tokens.push(Token { kind, text: sql.get(start..scanner.at)?, end: scanner.at, depth });
    }
}
