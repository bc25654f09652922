//! Queries that another session may answer in place of the user's.
//!
//! It has other variables, other numbers of rows and of connections, and no temporary tables of the
//! user's. So a query must read none of these. What the functions of a user's own and views read is
//! not known.

use super::{NotSplittable, unquoted};
use crate::sql::{Token, TokenKind, tokens_beside_hints};

/// What a query begins with.
const QUERIES: [&str; 4] = ["select", "table", "values", "with"];
/// Functions that tell of the session, or of its statements before.
const FUNCTIONS: [&str; 5] =
    ["connection_id", "found_rows", "last_insert_id", "lastval", "row_count"];
/// Words before the name of a table.
const BEFORE: [&str; 4] = ["from", "join", "straight_join", "table"];
/// Words that end a list of tables.
const AFTER: [&str; 10] = [
    "except",
    "group",
    "having",
    "intersect",
    "limit",
    "order",
    "select",
    "union",
    "where",
    "window",
];

/// The names in a query that may be those of its tables, each once and as the query has it: a
/// temporary table of this name is only the session's. `escapes` says whether backslashes escape in
/// strings.
///
/// # Errors
/// When the statement is no query, or reads what only its session has.
pub fn shared_tables(sql: &str, escapes: bool) -> Result<Vec<String>, NotSplittable> {
    let tokens = tokens_beside_hints(sql, escapes).ok_or(NotSplittable::NotOneStatement)?;
    let first = tokens.iter().find(|token| token.text != "(");
    if !first.is_some_and(|first| QUERIES.iter().any(|word| first.is(word))) {
        return Err(NotSplittable::NotSelect);
    }
    for (i, token) in tokens.iter().enumerate() {
        check_token(token, tokens.get(i + 1))?;
    }
    Ok(names(&tokens))
}

/// Refuses a token by which the session is read.
fn check_token(token: &Token<'_>, after: Option<&Token<'_>>) -> Result<(), NotSplittable> {
    if token.kind == TokenKind::Other && token.text == "@" {
        return Err(NotSplittable::Variables);
    }
    let is_called = after.is_some_and(|after| after.text == "(") && is_name(token);
    let name = unquoted(token.text).to_ascii_lowercase();
    if is_called && FUNCTIONS.contains(&name.as_str()) {
        return Err(NotSplittable::Function(name));
    }
    // PREVIOUS VALUE FOR a sequence.
    match token.is("previous") && after.is_some_and(|after| after.is("value")) {
        true => Err(NotSplittable::Word("PREVIOUS".to_owned())),
        false => Ok(()),
    }
}

/// The names that may be those of tables.
fn names(tokens: &[Token<'_>]) -> Vec<String> {
    let mut names = Vec::new();
    // How deep the lists of tables are in which this token stands.
    let mut lists: Vec<usize> = Vec::new();
    // Whether the next name is that of a table.
    let mut is_next = false;
    for (i, token) in tokens.iter().enumerate() {
        let is = |word: &&str| token.is(word);
        while lists.last().is_some_and(|depth| *depth > token.depth) {
            lists.pop();
        }
        let is_list = lists.last() == Some(&token.depth);
        let follows_dot = i > 0 && tokens[i - 1].text == ".";
        match token.kind {
            TokenKind::Word if !follows_dot && BEFORE.iter().any(is) => {
                is_next = true;
                if !is_list && token.is("from") {
                    lists.push(token.depth);
                }
            }
            TokenKind::Word if !follows_dot && AFTER.iter().any(is) => {
                is_next = false;
                if is_list {
                    lists.pop();
                }
            }
            TokenKind::Other if token.text == "," => is_next = is_list,
            TokenKind::Other if token.text == "(" && is_next => lists.push(token.depth + 1),
            _ if is_next && is_name(token) && !token.is("lateral") => {
                is_next = false;
                let name = match &tokens[i + 1..] {
                    [paren, ..] if paren.text == "(" => continue,
                    [dot, table, ..] if dot.text == "." && is_name(table) => {
                        format!("{}.{}", token.text, table.text)
                    }
                    _ => token.text.to_owned(),
                };
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            _ => {}
        }
    }
    names
}

/// Whether a token may be a name: in ANSI mode those in double quotes are.
fn is_name(token: &Token<'_>) -> bool {
    token.kind == TokenKind::Quoted || super::is_name(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(sql: &str) -> String {
        shared_tables(sql, true).unwrap().join(" ")
    }

    #[test]
    fn tables_of_queries() {
        for (sql, expected) in [
            ("SELECT 1, 2", ""),
            ("SELECT a, b FROM t", "t"),
            ("select x from a, b as c, `d e` where x in (1, 2) order by x, y", "a b `d e`"),
            ("SELECT * FROM s.a JOIN b USING (i, j), \"c\" GROUP BY p, q", "s.a b \"c\""),
            ("SELECT a, (SELECT max(x) FROM u, v), w FROM t, s.t, t", "u v t s.t"),
            ("SELECT * FROM (a, b) LEFT JOIN (c, d) ON a.i = c.i, e", "a b c d e"),
            ("SELECT * FROM (SELECT x, y FROM a) d, b LIMIT 1, 2", "a b"),
            ("SELECT * FROM a UNION SELECT x, y FROM b WINDOW w AS ()", "a b"),
            ("(SELECT 1 FROM a) UNION (TABLE b)", "a b"),
            ("WITH c AS (SELECT 1 FROM a) SELECT * FROM c, b", "a c b"),
            ("SELECT * FROM a PARTITION (p, q) x STRAIGHT_JOIN b, c USE INDEX (i, j)", "a b c"),
            ("SELECT * FROM t FOR SYSTEM_TIME AS OF '2020-01-01', u", "t u"),
            (
                "SELECT * FROM t, LATERAL (SELECT 1 FROM u) d, JSON_TABLE(j, '$' COLUMNS (k int))",
                "t u",
            ),
            ("SELECT t.from, t.table, t.join FROM t", "t"),
            ("SELECT /*+ MAX_EXECUTION_TIME(9) */ x FROM t -- FROM u", "t"),
            ("VALUES (1), (2)", ""),
        ] {
            assert_eq!(names(sql), expected, "{sql}");
        }
    }

    #[test]
    fn what_is_the_sessions_own() {
        for (sql, expected) in [
            ("SELECT @x", NotSplittable::Variables),
            ("SELECT i FROM t WHERE i < @@session.x", NotSplittable::Variables),
            ("SELECT i INTO @x FROM t", NotSplittable::Variables),
            ("SELECT Last_Insert_Id ()", NotSplittable::Function("last_insert_id".to_owned())),
            ("SELECT `connection_id`()", NotSplittable::Function("connection_id".to_owned())),
            ("SELECT PREVIOUS VALUE FOR s", NotSplittable::Word("PREVIOUS".to_owned())),
            ("SHOW VARIABLES", NotSplittable::NotSelect),
            ("DO 0", NotSplittable::NotSelect),
            ("", NotSplittable::NotSelect),
            ("SELECT /*!50000 @x */ 1", NotSplittable::NotOneStatement),
        ] {
            assert_eq!(shared_tables(sql, true), Err(expected), "{sql}");
        }
        for sql in ["SELECT '@x', row_count, previous FROM t", "SELECT value FROM connection_id"] {
            assert!(shared_tables(sql, true).is_ok(), "{sql}");
        }
    }
}
