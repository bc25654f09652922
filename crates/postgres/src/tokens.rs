//! A statement's tokens, with the parentheses around them.

use crate::sql::{Scanner, Token};

pub(crate) struct Piece<'a> {
    pub(crate) kind: Token,
    pub(crate) text: &'a str,
    /// Where it ends.
    pub(crate) end: usize,
    /// How many parentheses are open around it.
    pub(crate) depth: usize,
}

impl Piece<'_> {
    pub(crate) fn is(&self, word: &str) -> bool {
        self.kind == Token::Word && self.text.eq_ignore_ascii_case(word)
    }

    /// Whether it may be a name.
    pub(crate) fn is_name(&self) -> bool {
        matches!(self.kind, Token::Word | Token::Quoted)
    }

    /// The name that it stands for; none where the server's encoding decides which letters are
    /// folded.
    pub(crate) fn name(&self) -> Option<String> {
        match self.kind {
            Token::Quoted => self
                .text
                .strip_prefix('"')?
                .strip_suffix('"')
                .map(|inner| inner.replace("\"\"", "\"")),
            _ => self.text.is_ascii().then(|| self.text.to_ascii_lowercase()),
        }
    }
}

/// The tokens but for white space; none where one has no end, or a parenthesis no beginning.
pub(crate) fn tokens(sql: &str, escapes: bool) -> Option<Vec<Piece<'_>>> {
    let mut scanner = Scanner::new(sql, escapes);
    let (mut pieces, mut depth) = (Vec::new(), 0usize);
    loop {
        let start = scanner.at;
        let Some(kind) = scanner.next()? else { return Some(pieces) };
        match kind {
            Token::Space => continue,
            Token::Open => depth += 1,
            Token::Close => depth = depth.checked_sub(1)?,
            _ => {}
        }
        pieces.push(Piece { kind, text: sql.get(start..scanner.at)?, end: scanner.at, depth });
    }
}
