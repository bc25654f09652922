//! Statements as tokens. Nothing here parses SQL: what can't be told from tokens is left to the
//! server.

mod scanner;
mod statement;
mod tokens;

pub(crate) use self::scanner::TokenKind;
pub use self::statement::{enclosable, is_query, parameters_in};
pub(crate) use self::statement::{mentions, reads_only, sets};
pub(crate) use self::tokens::{Token, tokens};
