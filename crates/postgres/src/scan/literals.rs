//! Literals that mean something else in each transaction.

use crate::sql::{Token, TokenKind, tokens};

/// Words that mean another time in each transaction, in a literal that is read as a time.
const UNSTABLE_TIMES: &[&str] = &["now", "today", "tomorrow", "yesterday"];

/// Whether a statement may have a literal with a word for the present time. The server reads it
/// when it parses the statement, once for all runs of a prepared one. `escapes` as for
/// [`enclosable`](crate::enclosable).
pub(crate) fn has_unstable_literal(sql: &str, escapes: bool) -> bool {
    tokens(sql, escapes).is_none_or(|tokens| {
        let is_unstable = |token: &Token<'_>| {
            token.kind == TokenKind::Literal && may_be_unstable(token.text, escapes)
        };
        tokens.windows(3).any(is_unicode_escape) || tokens.iter().any(is_unstable)
    })
}

/// Whether three tokens begin a name or string with Unicode escapes: `U&"…"`.
pub(super) fn is_unicode_escape(tokens: &[Token<'_>]) -> bool {
    let [u, and, quoted] = tokens else { return false };
    u.is("u")
        && and.text == "&"
        && matches!(quoted.kind, TokenKind::Quoted | TokenKind::Literal)
        && and.end == u.end + 1
        && quoted.end == and.end + quoted.text.len()
}

/// Whether a literal may contain a word for the present time. One with escapes or continuations
/// may.
pub(super) fn may_be_unstable(literal: &str, escapes: bool) -> bool {
    let lower = literal.to_ascii_lowercase();
    let plain = lower
        .strip_prefix('e')
        .unwrap_or(&lower)
        .strip_prefix('\'')
        .and_then(|text| text.strip_suffix('\''));
    let has_escapes = (escapes || lower.starts_with('e')) && lower.contains('\\');
    let has_continuations = plain.is_some_and(|text| text.replace("''", "").contains('\''));
    has_escapes && plain.is_some()
        || has_continuations
        || lower
            .split(|char: char| !char.is_ascii_alphabetic())
            .any(|word| UNSTABLE_TIMES.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_of_the_present() {
        for sql in [
            "SELECT 'now'::timestamptz",
            "SELECT DATE ' Today '",
            "SELECT E'n\\x6fw'",
            "SELECT U&'no\\0077'",
            "SELECT 'to'\n'day'",
            "SELECT $$yesterday$$",
            "SELECT '{now}'::date[]",
        ] {
            assert!(has_unstable_literal(sql, false), "{sql}");
        }
        for sql in ["SELECT now(), 'known', 'it''s', today, 2", "SELECT 'n\\x6fw'"] {
            assert!(!has_unstable_literal(sql, false), "{sql}");
        }
        assert!(has_unstable_literal("SELECT 'n\\x6fw'", true));
    }
}
