//! What a statement does to its session, as far as its tokens say.

use std::collections::BTreeSet;

use super::literals::is_unicode_escape;
use super::references::{folded, is_called};
use crate::sql::{Token, enclosable, tokens};

/// Functions that leave a session as it is.
const HARMLESS: &[&str] = &[
    "abs",
    "avg",
    "ceil",
    "coalesce",
    "concat",
    "count",
    "current_setting",
    "date_trunc",
    "exists",
    "extract",
    "floor",
    "generate_series",
    "greatest",
    "least",
    "ilike",
    "left",
    "length",
    "like",
    "lower",
    "max",
    "min",
    "now",
    "nullif",
    "pg_backend_pid",
    "replace",
    "right",
    "round",
    "row_number",
    "strpos",
    "substr",
    "substring",
    "sum",
    "to_char",
    "trim",
    "unnest",
    "upper",
    "using",
    "version",
];

/// Whether a statement surely leaves the session as it was: its settings, role, and transaction.
/// Only then may other sessions take its place. Only the server knows whether its
/// [`attribute_names`] are functions.
pub(crate) fn preserves_session(sql: &str, escapes: bool) -> bool {
    let Some(tokens) = enclosable(sql, escapes).and_then(|sql| tokens(sql, escapes)) else {
        return false;
    };
    let begins = ["select", "values", "table", "show", "with"]
        .iter()
        .any(|word| tokens.first().is_some_and(|t| t.is(word)));
    let changes = |token: &Token<'_>| {
        ["insert", "update", "delete", "merge", "into", "for"].iter().any(|word| token.is(word))
    };
    let mut calls = (0..tokens.len()).filter(|at| is_called(&tokens, *at));
    let is_harmless =
        |at: usize| tokens[at].name().is_some_and(|name| HARMLESS.contains(&name.as_str()));
    begins
        && !tokens.iter().any(changes)
        && !tokens.windows(3).any(is_unicode_escape)
        && calls.all(is_harmless)
}

/// Whether a statement begins or ends a transaction or a savepoint.
pub(crate) fn controls_transaction(sql: &str, escapes: bool) -> bool {
    let first = enclosable(sql, escapes).and_then(|sql| tokens(sql, escapes)?.into_iter().next());
    let words = ["begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release"];
    first.is_some_and(|first| words.iter().any(|word| first.is(word)))
}

/// The names after a dot, which may be functions: `t.f` is `f(t)` if `t` has no column `f`. A name
/// whose letters the server folds by its encoding appears in both forms.
pub(crate) fn attribute_names(sql: &str, escapes: bool) -> BTreeSet<String> {
    let tokens = enclosable(sql, escapes).and_then(|sql| tokens(sql, escapes)).unwrap_or_default();
    let after_dot = tokens.windows(2).filter(|pair| pair[0].text == ".").map(|pair| &pair[1]);
    after_dot.flat_map(folded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preserved_sessions() {
        for sql in [
            "SELECT 1",
            "SELECT count(*) FROM t WHERE a IN (1)",
            "SHOW work_mem",
            "SELECT a FROM t JOIN u USING (a)",
            "SELECT a FROM (SELECT * FROM t) q",
            "WITH x AS (SELECT 1) TABLE x",
        ] {
            assert!(preserves_session(sql, false), "{sql}");
        }
        for sql in [
            "SET ROLE x",
            "BEGIN",
            "SELECT set_config('a', 'b', false)",
            "SELECT f(1)",
            "SELECT U&\"set!005fconfig\" UESCAPE '!' ('a', 'b', false)",
            "SELECT 1 INTO x",
            "SELECT 1;SET x=1",
        ] {
            assert!(!preserves_session(sql, false), "{sql}");
        }
    }

    #[test]
    fn transactions_controlled() {
        for sql in [
            "BEGIN",
            " begin isolation level serializable;",
            "-- x\nROLLBACK TO s",
            "END",
            "COMMIT AND CHAIN",
        ] {
            assert!(controls_transaction(sql, false), "{sql}");
        }
        for sql in ["", "SELECT 1", "\"begin\"", "DISCARD ALL", "PREPARE TRANSACTION 'x'"] {
            assert!(!controls_transaction(sql, false), "{sql}");
        }
    }

    #[test]
    fn attributes_that_may_be_functions() {
        let names = |sql: &str| attribute_names(sql, false).into_iter().collect::<Vec<_>>();
        assert_eq!(
            names("SELECT t.A, (t).\"B\", s.f(1), 1.5, t.* FROM s.t -- t.d"),
            ["B", "a", "f", "t"]
        );
        assert_eq!(names("SELECT t.ÄRGER FROM t"), ["\u{c4}rger", "ärger"]);
        assert_eq!(names("SELECT 1; SELECT t.a"), [""; 0]);
    }
}
