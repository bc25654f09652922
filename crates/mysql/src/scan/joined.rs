//! Statements whose rows the server's planner can count without running any part of them.
//!
//! An EXPLAIN may evaluate what it takes for constant: a stored function, a subquery. So there are
//! none of these here, and nobody may call one in a view: the tables have names, and the caller
//! asks whether they are tables.

use super::{Rules, check_token, is_name, unquoted};
use crate::sql::{Token, tokens};

/// Words that a [`super::TableScan`] has not, and that don't change what EXPLAIN evaluates.
const ALLOWED: &[&str] = &[
    "cross",
    "current_date",
    "current_time",
    "current_timestamp",
    "force",
    "ignore",
    "join",
    "limit",
    "natural",
    "order",
    "straight_join",
    "use",
];

/// A query of joined and filtered tables, whose rows are those that the planner joins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// The database and the name of each table, without quotes.
    pub tables: Vec<(Option<String>, String)>,
    /// The most rows.
    pub limit: Option<u64>,
}

impl Joined {
    /// Reads a statement. `escapes` says whether backslashes escape in strings.
    pub fn parse(sql: &str, escapes: bool) -> Option<Self> {
        let mut tokens = tokens(sql, escapes)?;
        if tokens.last().is_some_and(|token| token.text == ";") {
            tokens.pop();
        }
        let lists = &["index", "key", "on", "using"];
        let functions = &["curdate", "now"];
        let rules = Rules { allowed: ALLOWED, lists, functions, is_free: false };
        for (i, token) in tokens.iter().enumerate() {
            check_token(&rules, &tokens[..i], *token, tokens.get(i + 1)).ok()?;
        }
        let count = |word: &str| tokens.iter().filter(|token| token.is(word)).count();
        if !tokens.first()?.is("select") || count("select") != 1 || count("from") != 1 {
            return None;
        }
        let from = tokens.iter().position(|token| token.is("from") && token.depth == 0)?;
        let after = &tokens[from + 1..];
        let ends = |token: &Token<'_>| {
            token.depth == 0 && ["where", "order", "limit"].iter().any(|word| token.is(word))
        };
        let end = after.iter().position(ends).unwrap_or(after.len());
        let limit = match after.iter().position(|token| token.is("limit")) {
            None => None,
            Some(at) => match &after[at + 1..] {
                [rows] => Some(rows.text.parse().ok()?),
                _ => return None,
            },
        };
        Some(Self { tables: tables(&after[..end])?, limit })
    }
}

/// The tables of a FROM clause; None if one is something else.
fn tables(from: &[Token<'_>]) -> Option<Vec<(Option<String>, String)>> {
    let begins = |i: &usize| {
        *i == 0 || {
            let before = &from[*i - 1];
            before.depth == 0
                && (before.text == "," || before.is("join") || before.is("straight_join"))
        }
    };
    let table = |i: usize| match &from[i..] {
        [database, dot, table, ..] if dot.text == "." => (is_name(database) && is_name(table))
            .then(|| (Some(unquoted(database.text)), unquoted(table.text))),
        [table, ..] => is_name(table).then(|| (None, unquoted(table.text))),
        [] => None,
    };
    // A comma or a JOIN at the end leaves nothing, which is no table.
    (0..=from.len()).filter(begins).map(table).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
mod tests {
    use super::*;

    fn names(sql: &str) -> Vec<String> {
        let name = |(database, name): (Option<String>, String)| match database {
            Some(database) => format!("{database}.{name}"),
            None => name,
        };
        let joined = Joined::parse(sql, true).unwrap_or_else(|| panic!("{sql}"));
        joined.tables.into_iter().map(name).collect()
    }

    #[test]
    fn tables_of_joins() {
        for (sql, expected) in [
            ("SELECT * FROM a", "a"),
            ("SELECT a.x, lower(y) FROM s.a, `t ``b` AS b WHERE a.i = b.i", "s.a t `b"),
            (
                "SELECT * FROM a JOIN b USING (i) LEFT JOIN c ON (b.j = c.j AND c.k IN (1, 2))",
                "a b c",
            ),
            ("SELECT * FROM a STRAIGHT_JOIN b ON a.i = b.i ORDER BY a.i;", "a b"),
            ("SELECT * FROM a NATURAL JOIN s . b USE INDEX (x) WHERE d < now()", "a s.b"),
            ("SELECT * FROM a x, b WHERE left(x.c, 2) = 'a,' AND x.i = b.i", "a b"),
        ] {
            assert_eq!(names(sql).join(" "), expected, "{sql}");
        }
        assert_eq!(Joined::parse("SELECT i FROM a LIMIT 10", true).unwrap().limit, Some(10));
    }

    #[test]
    fn statements_that_are_not_explained() {
        for sql in [
            "SELECT f(1) FROM a",
            "SELECT * FROM a WHERE x = s.f(1)",
            "SELECT count(*) FROM a",
            "SELECT sleep(10) FROM a",
            "SELECT * FROM a WHERE get_lock('x', 1)",
            "SELECT * FROM a WHERE i = (SELECT max(i) FROM b)",
            "SELECT * FROM (SELECT 1) d",
            "SELECT * FROM a, (b, c)",
            "SELECT * FROM a JOIN (b)",
            "SELECT * FROM a,",
            "SELECT * FROM",
            "SELECT 1",
            "SELECT DISTINCT x FROM a",
            "SELECT x FROM a GROUP BY x",
            "SELECT x FROM a HAVING x > 1",
            "SELECT x FROM a UNION SELECT 1",
            "SELECT x FROM a FOR UPDATE",
            "SELECT x FROM a LOCK IN SHARE MODE",
            "SELECT x INTO OUTFILE 'f' FROM a",
            "SELECT x INTO @v FROM a",
            "SELECT @v := x FROM a",
            "SELECT x FROM a WHERE i = ?",
            "SELECT x FROM a LIMIT 5, 10",
            "SELECT x FROM a LIMIT 5 OFFSET 10",
            "SELECT NEXT VALUE FOR s FROM a",
            "SELECT nextval(s) FROM a",
            "SELECT x FROM a PROCEDURE ANALYSE()",
            "SELECT x FROM a; DELETE FROM a",
            "SELECT x FROM a /*! FOR UPDATE */",
            "DELETE FROM a",
            "WITH b AS (SELECT 1) SELECT * FROM b",
        ] {
            assert_eq!(Joined::parse(sql, true), None, "{sql}");
        }
    }
}
