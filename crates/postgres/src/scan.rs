//! Which statements several connections can share: what a statement reads, refers to and changes.

mod aggregate;
mod effects;
mod plan;
mod references;
mod table_scan;

pub(crate) use self::effects::{attribute_names, controls_transaction, preserves_session};
pub use self::references::{References, Unreadable};
pub use self::table_scan::{NotSplittable, TableScan};
use crate::sql::{Token, TokenKind};

/// Whether three tokens begin a name or string with Unicode escapes: `U&"…"`.
fn is_unicode_escape(tokens: &[Token<'_>]) -> bool {
    let [u, and, quoted] = tokens else { return false };
    u.is("u")
        && and.text == "&"
        && matches!(quoted.kind, TokenKind::Quoted | TokenKind::Literal)
        && and.end == u.end + 1
        && quoted.end == and.end + quoted.text.len()
}
