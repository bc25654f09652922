//! A query that can be read in parts: the rows of one table, filtered and projected, each on its
//! own.
//!
//! The parts are ranges of `ctid`, where a row lies in its table; together they are the table, and
//! none overlaps another. What is decided here from the statement's tokens is conservative, and
//! confirmed by the server: the plan of a part is one Tid Range Scan ([`is_range_scan`]), and all
//! its functions are immutable.

use std::collections::BTreeSet;

use crate::sql::{Token, enclosable};
use crate::tokens::{Piece, tokens};
use crate::used::{Used, folded, is_called};

/// Words that a query of this kind does not have.
const REFUSED: &[&str] = &[
    "distinct",
    "except",
    "fetch",
    "for",
    "group",
    "having",
    "intersect",
    "into",
    "join",
    "limit",
    "offset",
    "order",
    "over",
    "tablesample",
    "union",
    "window",
    "with",
    "within",
    "lateral",
    "natural",
    "cross",
];
/// Words that stand for functions that are not immutable.
const UNSTABLE: &[&str] = &[
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "localtime",
    "localtimestamp",
    "session_user",
    "system_user",
    "user",
];
/// Words that mean another time in each transaction, where a literal is read as one.
const UNSTABLE_TIMES: &[&str] = &["now", "today", "tomorrow", "yesterday"];

/// A query that can be read in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// Up to the end of the FROM clause.
    head: String,
    /// Where in it the table's name begins.
    table_at: usize,
    /// The condition, if there is one.
    condition: Option<String>,
    /// The table as the statement names it.
    pub table: String,
    /// What the statement calls its columns' owner.
    qualifier: String,
    /// What its expressions use.
    pub used: Used,
    /// Whether a part reads the table without what inherits from it, now or later.
    pub only: bool,
}

impl Split {
    /// Looks at a statement; says why it can't be split. `escapes` as for [`enclosable`].
    ///
    /// # Errors
    /// With the reason.
    pub fn of(sql: &str, escapes: bool) -> Result<Self, &'static str> {
        let sql = enclosable(sql, escapes).ok_or("it is not one statement")?;
        let tokens = tokens(sql, escapes).ok_or("it is not one statement")?;
        let is = |i: usize, word: &str| tokens.get(i).is_some_and(|token| token.is(word));
        if !is(0, "select") {
            return Err("it is not a plain SELECT");
        }
        if tokens.windows(3).any(is_unicode) {
            return Err("it has Unicode escapes");
        }
        for token in &tokens {
            let lower = token.text.to_ascii_lowercase();
            match token.kind {
                Token::Word if REFUSED.contains(&lower.as_str()) => {
                    return Err("it is more than the filtered rows of one table");
                }
                Token::Word if UNSTABLE.contains(&lower.as_str()) => {
                    return Err("it asks for the time or the user");
                }
                Token::Literal if may_be_unstable(&lower, escapes) => {
                    return Err("it asks for the time or the user");
                }
                Token::Other if token.text == "$" => return Err("it has parameters"),
                _ => {}
            }
        }
        if tokens.iter().skip(1).any(|token| token.is("select")) {
            return Err("it is more than the filtered rows of one table");
        }
        let outer = |word: &str| {
            let mut found =
                tokens.iter().enumerate().filter(|(_, token)| token.depth == 0 && token.is(word));
            (found.next().map(|(i, _)| i), found.next().is_some())
        };
        let (Some(from), false) = outer("from") else { return Err("it does not read one table") };
        let end = match outer("where") {
            (Some(at), false) if at > from => at,
            (None, _) => tokens.len(),
            _ => return Err("it is more than the filtered rows of one table"),
        };
        let (table, qualifier) = table(&tokens[from + 1..end])?;
        let mut used = Used::default();
        used.add_list(&tokens[1..from])?;
        used.add_condition(tokens.get(end + 1..).unwrap_or_default())?;
        let head_end = tokens[end - 1].end;
        let condition = (end < tokens.len()).then(|| sql[tokens[end].end..].to_owned());
        let table_at = tokens[from + 1].end - tokens[from + 1].text.len();
        let head = sql[..head_end].to_owned();
        Ok(Self { head, table_at, condition, table, qualifier, used, only: false })
    }

    /// The statement for the blocks from `from` on, up to `to` or to the end.
    pub fn part(&self, from: u32, to: Option<u32>) -> String {
        let Self { qualifier, .. } = self;
        let (before, table) = self.head.split_at(self.table_at);
        let only = if self.only { "ONLY " } else { "" };
        let upper = to
            .map(|to| {
                format!(" AND {qualifier}.ctid OPERATOR(pg_catalog.<) '({to},0)'::pg_catalog.tid")
            })
            .unwrap_or_default();
        let range =
            format!("{qualifier}.ctid OPERATOR(pg_catalog.>=) '({from},0)'::pg_catalog.tid{upper}");
        match &self.condition {
            Some(condition) => format!("{before}{only}{table}\nWHERE {range} AND ({condition}\n)"),
            None => format!("{before}{only}{table}\nWHERE {range}"),
        }
    }
}

/// Functions that change nothing in a session.
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
    "version",
];

/// Whether a statement surely leaves the session as it was: its settings, role, and transaction.
/// What other sessions are to do in its place depends on that. Of its [`attributes`] only the
/// server knows whether they are functions.
pub fn leaves_session_alone(sql: &str, escapes: bool) -> bool {
    let Some(tokens) = enclosable(sql, escapes).and_then(|sql| tokens(sql, escapes)) else {
        return false;
    };
    let begins = ["select", "values", "table", "show", "with"]
        .iter()
        .any(|word| tokens.first().is_some_and(|t| t.is(word)));
    let changes = |token: &Piece<'_>| {
        ["insert", "update", "delete", "merge", "into", "for"].iter().any(|word| token.is(word))
    };
    let mut calls = (0..tokens.len()).filter(|at| is_called(&tokens, *at));
    let is_harmless =
        |at: usize| tokens[at].name().is_some_and(|name| HARMLESS.contains(&name.as_str()));
    begins
        && !tokens.iter().any(changes)
        && !tokens.windows(3).any(is_unicode)
        && calls.all(is_harmless)
}

/// Whether a statement begins or ends a transaction, or a part of one.
pub fn controls_transaction(sql: &str, escapes: bool) -> bool {
    let first = enclosable(sql, escapes).and_then(|sql| tokens(sql, escapes)?.into_iter().next());
    let words = ["begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release"];
    first.is_some_and(|first| words.iter().any(|word| first.is(word)))
}

/// The names after a dot that may be functions: `t.f` is `f(t)` if `t` has no column of that name.
/// Where the server's encoding decides which letters are folded, both ways.
pub fn attributes(sql: &str, escapes: bool) -> BTreeSet<String> {
    let tokens = enclosable(sql, escapes).and_then(|sql| tokens(sql, escapes)).unwrap_or_default();
    let after_dot = tokens.windows(2).filter(|pair| pair[0].text == ".").map(|pair| &pair[1]);
    after_dot.flat_map(folded).collect()
}

/// Whether a plan, as EXPLAIN writes it, is one Tid Range Scan, or several of a partitioned table
/// one after the other.
pub fn is_range_scan(plan: &[String]) -> bool {
    let nodes: Vec<_> =
        plan.iter().filter(|line| line.contains("(cost=")).map(|line| line.trim_start()).collect();
    let is_scan =
        |node: &&str| node.trim_start_matches("->").trim_start().starts_with("Tid Range Scan on ");
    match nodes.split_first() {
        Some((root, [])) => is_scan(root),
        Some((root, rest)) => root.starts_with("Append ") && rest.iter().all(is_scan),
        None => false,
    }
}

/// The table of a FROM clause, and what its columns are qualified by.
fn table(from: &[Piece<'_>]) -> Result<(String, String), &'static str> {
    let wrong = "it does not read one table";
    if from.iter().any(|piece| piece.is("only")) {
        return Err("it reads ONLY a table");
    }
    let mut rest = from;
    let mut names = Vec::new();
    loop {
        let (first, tail) = rest.split_first().filter(|(first, _)| first.is_name()).ok_or(wrong)?;
        names.push(first.text);
        rest = tail;
        match rest.split_first() {
            Some((dot, tail)) if dot.text == "." => rest = tail,
            _ => break,
        }
    }
    let table = names.join(".");
    let alias = match rest {
        [] => names.last().copied().unwrap_or_default(),
        [alias] if alias.is_name() => alias.text,
        [word, alias] if word.is("as") && alias.is_name() => alias.text,
        _ => return Err(wrong),
    };
    Ok((table, alias.to_owned()))
}

/// Whether a literal, in lower case, may have a word for the present time in it. What its escapes
/// and pieces come to is not looked at.
fn may_be_unstable(lower: &str, escapes: bool) -> bool {
    let plain = lower
        .strip_prefix('e')
        .unwrap_or(lower)
        .strip_prefix('\'')
        .and_then(|text| text.strip_suffix('\''));
    let has_escapes = (escapes || lower.starts_with('e')) && lower.contains('\\');
    let in_pieces = plain.is_some_and(|text| text.replace("''", "").contains('\''));
    has_escapes && plain.is_some()
        || in_pieces
        || lower
            .split(|char: char| !char.is_ascii_alphabetic())
            .any(|word| UNSTABLE_TIMES.contains(&word))
}

/// Whether these begin a name or string with Unicode escapes, `U&"…"`.
fn is_unicode(pieces: &[Piece<'_>]) -> bool {
    let [u, and, quoted] = pieces else { return false };
    u.is("u")
        && and.text == "&"
        && matches!(quoted.kind, Token::Quoted | Token::Literal)
        && and.end == u.end + 1
        && quoted.end == and.end + quoted.text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_split() {
        let split = Split::of(
            "SELECT a, lower(b) FROM s.\"T x\" AS t WHERE a > 5 OR b IN ('x') -- yes",
            false,
        )
        .unwrap();
        assert_eq!((split.table.as_str(), split.qualifier.as_str()), ("s.\"T x\"", "t"));
        assert_eq!(split.used.functions.iter().collect::<Vec<_>>(), ["lower"]);
        assert_eq!(
            split.part(0, Some(8)),
            "SELECT a, lower(b) FROM s.\"T x\" AS t\nWHERE t.ctid OPERATOR(pg_catalog.>=) '(0,0)'::pg_catalog.tid AND \
             t.ctid OPERATOR(pg_catalog.<) \
             '(8,0)'::pg_catalog.tid AND ( a > 5 OR b IN ('x')\n)"
        );
        let split = Split::of("select * from lineitem;", false).unwrap();
        assert_eq!(
            split.part(3, None),
            "select * from lineitem\nWHERE lineitem.ctid OPERATOR(pg_catalog.>=) '(3,0)'::pg_catalog.tid"
        );
        let split = Split {
            only: true,
            ..Split::of("SELECT a FROM /* b */ s . \"T x\" t", false).unwrap()
        };
        assert!(
            split
                .part(3, None)
                .starts_with("SELECT a FROM /* b */ ONLY s . \"T x\" t\nWHERE t.ctid ")
        );
        for sql in [
            "SELECT a::text, CAST(b AS numeric(9, 2)), c::pg_catalog.int4 FROM t",
            "SELECT 1 FROM t WHERE a > '2024-01-01'::date AND b < CAST('2024-01-01' AS timestamptz)",
            "SELECT a::varchar(5)[], NULL::date, '{2024-01-01}' :: date[] FROM t",
            "SELECT CAST(CAST(a AS text) AS json), a[1::int:2] FROM t",
        ] {
            assert!(Split::of(sql, false).is_ok(), "{sql}");
        }
        let split = Split::of(
            "SELECT daterange(a, f(b)), tsrange(c), t.d, g(ARRAY[a, b]), h() FROM t",
            false,
        )
        .unwrap();
        assert_eq!(split.used.casts.iter().collect::<Vec<_>>(), ["d", "f", "g", "h", "tsrange"]);
        let dates = |sql: &str| {
            Split::of(sql, false).map(|split| split.used.dates.into_iter().collect::<Vec<_>>())
        };
        assert_eq!(
            dates("SELECT a::date, t.B::time, CAST(c AS date) FROM t"),
            Ok(vec!["a".into(), "b".into(), "c".into()])
        );
        assert_eq!(
            dates("SELECT cast(t.\"D\" AS timestamptz), -e::mine.int4 FROM t"),
            Ok(vec!["D".into(), "e".into()])
        );
        assert_eq!(dates("SELECT a::text, CAST('2024-01-01' AS date) FROM t"), Ok(vec![]));
        let names = |sql: &str| {
            Split::of(sql, false).unwrap().used.functions.into_iter().collect::<Vec<_>>()
        };
        // Only the server can tell a column from a function that is called like one.
        assert_eq!(names("SELECT t.a, (t).\"B\"\"\" FROM s.t WHERE t . C > 1"), ["B\"", "a", "c"]);
        assert_eq!(names("SELECT \"\"\"F\"(a), LOWER(\"ö\") FROM s.t"), ["\"F", "lower"]);
        for sql in
            ["SELECT a FROM t WHERE b = 'knows nowhere' AND c = E'it''s'", "SELECT \"now\" FROM t"]
        {
            assert!(Split::of(sql, false).is_ok(), "{sql}");
        }
        let extract = Split::of("SELECT extract(year FROM d) FROM t", false).unwrap();
        assert_eq!(extract.used.functions.iter().collect::<Vec<_>>(), ["extract"]);
    }

    #[test]
    fn what_can_not() {
        for sql in [
            "SELECT 1",
            "SELECT * FROM a, b",
            "SELECT * FROM a JOIN b ON true",
            "SELECT * FROM f(1)",
            "SELECT * FROM (SELECT 1) x",
            "SELECT DISTINCT a FROM t",
            "SELECT a FROM t LIMIT 5",
            "SELECT a FROM t ORDER BY a",
            "SELECT a FROM t FOR UPDATE",
            "SELECT a FROM t UNION ALL SELECT b FROM u",
            "SELECT a FROM t WHERE a IN (SELECT b FROM u)",
            "SELECT sum(a) OVER () FROM t",
            "SELECT a FROM t GROUP BY a",
            "SELECT a FROM t TABLESAMPLE SYSTEM (1)",
            "SELECT a FROM ONLY t",
            "SELECT a FROM t AS t (b)",
            "SELECT a, current_date FROM t",
            "SELECT a FROM t WHERE d = 'today'",
            "SELECT a FROM t WHERE d = ' Today 12:00'",
            "SELECT a FROM t WHERE d = E'now'",
            "SELECT a FROM t WHERE d = E'n\\o\\x77'",
            "SELECT a FROM t WHERE d = 'no'\n'w'",
            "SELECT a FROM t WHERE d = $$NOW$$",
            "SELECT a FROM t WHERE d = $_$tomorrow$_$",
            "SELECT a FROM t WHERE r && '[yesterday,)'",
            "SELECT U&\"f\"(a) FROM t",
            "SELECT a FROM t WHERE d = u&'no\\0077'",
            "SELECT Ärger(a) FROM t",
            "SELECT t.größe FROM t",
            "SELECT f(a)::date, (a)::date FROM t",
            "SELECT a COLLATE b :: date FROM t",
            "SELECT CASE WHEN a THEN b ELSE c END::date FROM t",
            "SELECT (t).a::date, s.t.a::date FROM t",
            "SELECT s.t.a::date FROM t",
            "SELECT a[1]::date, f(a)::date FROM t",
            "SELECT a::text::timestamp FROM t",
            "SELECT ('to' || 'day')::timestamp FROM t",
            "SELECT lower(a)::\"date\"[] FROM t",
            "SELECT lower(a)::regclass, lower(a)::mine.text FROM t",
            "SELECT CAST(-a AS timestamptz) FROM t",
            "SELECT CAST(a + b AS timestamptz) FROM t",
            "SELECT CAST(a || t.b AS timestamptz) FROM t",
            "SELECT cast ( (a || b) AS pg_catalog.date ) FROM t",
            "SELECT CAST('a' || b AS time) FROM t",
            "SELECT JSON_VALUE(a, '$' RETURNING date) FROM t",
            "SELECT a FROM t WHERE a = $1",
            "WITH x AS (SELECT 1) SELECT * FROM x",
            "INSERT INTO t VALUES (1)",
            "TABLE t",
            "SELECT a FROM t; SELECT 1",
        ] {
            assert!(Split::of(sql, false).is_err(), "{sql}");
        }
    }

    #[test]
    fn sessions_left_alone() {
        for sql in [
            "SELECT 1",
            "SELECT count(*) FROM t WHERE a IN (1)",
            "SHOW work_mem",
            "WITH x AS (SELECT 1) TABLE x",
        ] {
            assert!(leaves_session_alone(sql, false), "{sql}");
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
            assert!(!leaves_session_alone(sql, false), "{sql}");
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
        let names = |sql: &str| attributes(sql, false).into_iter().collect::<Vec<_>>();
        assert_eq!(
            names("SELECT t.A, (t).\"B\", s.f(1), 1.5, t.* FROM s.t -- t.d"),
            ["B", "a", "f", "t"]
        );
        assert_eq!(names("SELECT t.ÄRGER FROM t"), ["\u{c4}rger", "ärger"]);
        assert_eq!(names("SELECT 1; SELECT t.a"), [""; 0]);
    }

    #[test]
    fn plans() {
        let plan = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        let scan = "Tid Range Scan on t  (cost=0.01..2.0 rows=1 width=4)";
        let filter = "  TID Cond: (ctid >= '(0,0)'::tid)";
        assert!(is_range_scan(&plan(&[scan, filter])));
        assert!(is_range_scan(&plan(&[
            "Append  (cost=0.01..4.0 rows=2 width=4)",
            &format!("  ->  {scan}"),
            filter,
            &format!("  ->  {scan}")
        ])));
        assert!(!is_range_scan(&plan(&["Seq Scan on t  (cost=0.00..1.0 rows=1 width=4)"])));
        assert!(!is_range_scan(&plan(&[
            "Aggregate  (cost=0.00..1.0 rows=1 width=4)",
            &format!("  ->  {scan}")
        ])));
        assert!(!is_range_scan(&[]));
    }
}
