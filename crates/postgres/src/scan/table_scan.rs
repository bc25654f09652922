//! A query that can be read range by range: the filtered and projected rows of one table, or the
//! aggregates of each range by itself.
//!
//! A range is an interval of `ctid`, the place of a row in its table. Together the ranges cover the
//! table, and no two overlap. The decision here, from the statement's tokens, is conservative, and
//! the server confirms it: the plan of a range is one Tid Range Scan
//! ([`TableScan::is_range_plan`]), and all its functions are immutable.

use std::fmt;

use super::aggregate;
use super::literals::{is_unicode_escape, may_be_unstable};
use super::plan::{is_tid_range_aggregate, is_tid_range_scan};
use super::references::{References, Unreadable};
use crate::sql::{Token, TokenKind, enclosable, tokens};

/// Words that no table scan has.
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
    "table",
    "tablesample",
    "union",
    "window",
    "with",
    "within",
    "lateral",
    "natural",
    "cross",
];
/// Words that call functions which are not immutable.
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

/// A query that reads filtered rows of one table, each row on its own, or that aggregates them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableScan {
    /// The statement up to the end of the FROM clause.
    head: String,
    /// Where the table's name begins in `head`.
    table_at: usize,
    /// The condition of the WHERE clause.
    condition: Option<String>,
    /// What follows the condition: the GROUP BY clause, or nothing.
    tail: String,
    /// The table as the statement names it.
    pub table: String,
    /// The name that qualifies the table's columns: its alias or its own.
    qualifier: String,
    /// What the query's expressions refer to.
    pub references: References,
    /// Whether ranges leave out tables that inherit from this one, now or later.
    pub only: bool,
    /// Whether the query aggregates rows. Those of a range are then not rows of the query.
    pub aggregates: bool,
}

impl TableScan {
    /// Reads a statement. `escapes` as for [`enclosable`].
    ///
    /// # Errors
    /// When the statement is not such a query, or may not be.
    pub fn parse(sql: &str, escapes: bool) -> Result<Self, NotSplittable> {
        Self::read(sql, escapes, false)
    }

    /// Reads a statement that aggregates rows of a table, as `spec/partitions.md` section 3.1 has
    /// it: over a range it is a partial aggregate.
    ///
    /// # Errors
    /// When the statement has another form, or may have.
    pub fn parse_aggregate(sql: &str, escapes: bool) -> Result<Self, NotSplittable> {
        Self::read(sql, escapes, true)
    }

    fn read(sql: &str, escapes: bool, aggregates: bool) -> Result<Self, NotSplittable> {
        let sql = enclosable(sql, escapes).ok_or(NotSplittable::NotOneStatement)?;
        let tokens = tokens(sql, escapes).ok_or(NotSplittable::NotOneStatement)?;
        check_words(&tokens, escapes, aggregates)?;
        let outer = |word: &str| {
            let mut found =
                tokens.iter().enumerate().filter(|(_, token)| token.depth == 0 && token.is(word));
            (found.next().map(|(i, _)| i), found.next().is_some())
        };
        let (Some(from), false) = outer("from") else { return Err(NotSplittable::NotOneTable) };
        let group = match outer("group") {
            (Some(at), false) if at > from => at,
            (None, _) => tokens.len(),
            _ => return Err(NotSplittable::MoreThanFilter),
        };
        let end = match outer("where") {
            (Some(at), false) if at > from && at < group => at,
            (None, _) => group,
            _ => return Err(NotSplittable::MoreThanFilter),
        };
        let (table, qualifier) = table(&tokens[from + 1..end])?;
        let mut references = References::default();
        match aggregates {
            true => aggregate::add(&mut references, &tokens[1..from], &tokens[group..])?,
            false => references.add_list(&tokens[1..from])?,
        }
        references.add_condition(tokens.get(end + 1..group).unwrap_or_default())?;
        let head_end = tokens[end - 1].end;
        let tail_at = tokens.get(group).map_or(sql.len(), |group| group.end - group.text.len());
        let condition = (end < group).then(|| sql[tokens[end].end..tail_at].to_owned());
        let table_at = tokens[from + 1].end - tokens[from + 1].text.len();
        let (head, tail) = (sql[..head_end].to_owned(), sql[tail_at..].to_owned());
        let only = false;
        Ok(Self { head, table_at, condition, tail, table, qualifier, references, only, aggregates })
    }

    /// Whether the server reads a range as it should: by its plan of [`Self::block_range`], as
    /// EXPLAIN prints it.
    pub fn is_range_plan(&self, plan: &[String]) -> bool {
        match self.aggregates {
            true => is_tid_range_aggregate(plan),
            false => is_tid_range_scan(plan),
        }
    }

    /// The statement for the blocks from `from` up to, but without, `to`; None is the table's end.
    pub fn block_range(&self, from: u32, to: Option<u32>) -> String {
        debug_assert!(to.is_none_or(|to| from < to), "blocks {from} to {to:?}");
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
        let condition =
            self.condition.as_ref().map_or_else(String::new, |own| format!(" AND ({own}\n)"));
        let tail = match self.tail.as_str() {
            "" => String::new(),
            tail => format!("\n{tail}"),
        };
        format!("{before}{only}{table}\nWHERE {range}{condition}{tail}")
    }
}

/// Refuses words that a table scan has not.
fn check_words(tokens: &[Token<'_>], escapes: bool, aggregates: bool) -> Result<(), NotSplittable> {
    if !tokens.first().is_some_and(|token| token.is("select")) {
        return Err(NotSplittable::NotSelect);
    }
    if tokens.windows(3).any(is_unicode_escape) {
        return Err(NotSplittable::UnicodeEscapes);
    }
    for token in tokens {
        let lower = token.text.to_ascii_lowercase();
        let is_own_group = aggregates && token.depth == 0 && lower == "group";
        match token.kind {
            TokenKind::Word if REFUSED.contains(&lower.as_str()) && !is_own_group => {
                return Err(NotSplittable::MoreThanFilter);
            }
            TokenKind::Word if UNSTABLE.contains(&lower.as_str()) => {
                return Err(NotSplittable::TimeOrUser);
            }
            TokenKind::Literal if may_be_unstable(token.text, escapes) => {
                return Err(NotSplittable::TimeOrUser);
            }
            TokenKind::Other if token.text == "$" => return Err(NotSplittable::Parameters),
            _ => {}
        }
    }
    match tokens.iter().skip(1).any(|token| token.is("select")) {
        true => Err(NotSplittable::MoreThanFilter),
        false => Ok(()),
    }
}

/// Why a statement is not a [`TableScan`]. Prints as half a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotSplittable {
    /// Not one whole statement.
    NotOneStatement,
    /// It does not begin with SELECT.
    NotSelect,
    /// Names or strings with Unicode escapes.
    UnicodeEscapes,
    /// It joins, groups, sorts, limits, or has a subquery.
    MoreThanFilter,
    /// It asks for the time or the user.
    TimeOrUser,
    /// It has parameters.
    Parameters,
    /// Not exactly one table in its FROM clause.
    NotOneTable,
    /// `FROM ONLY`.
    OnlyTable,
    /// Not an aggregate that each part of a table may compute.
    NotPartial,
    /// An expression whose references can't be told.
    Expression(Unreadable),
}

impl fmt::Display for NotSplittable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotOneStatement => "it is not one statement",
            Self::NotSelect => "it is not a plain SELECT",
            Self::UnicodeEscapes => "it has Unicode escapes",
            Self::MoreThanFilter => "it is more than the filtered rows of one table",
            Self::TimeOrUser => "it asks for the time or the user",
            Self::Parameters => "it has parameters",
            Self::NotOneTable => "it does not read one table",
            Self::OnlyTable => "it reads ONLY a table",
            Self::NotPartial => {
                "it is no aggregate of one table by count, max, min and sum, with or without GROUP \
                 BY, of which each part can compute its own"
            }
            Self::Expression(unreadable) => return unreadable.fmt(f),
        })
    }
}

impl From<Unreadable> for NotSplittable {
    fn from(unreadable: Unreadable) -> Self {
        Self::Expression(unreadable)
    }
}

/// The table of a FROM clause, and the name that qualifies its columns.
fn table(from: &[Token<'_>]) -> Result<(String, String), NotSplittable> {
    let wrong = NotSplittable::NotOneTable;
    if from.iter().any(|token| token.is("only")) {
        return Err(NotSplittable::OnlyTable);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_are_table_scans() {
        let scan = TableScan::parse(
            "SELECT a, lower(b) FROM s.\"T x\" AS t WHERE a > 5 OR b IN ('x') -- yes",
            false,
        )
        .unwrap();
        assert_eq!((scan.table.as_str(), scan.qualifier.as_str()), ("s.\"T x\"", "t"));
        assert_eq!(scan.references.functions.iter().collect::<Vec<_>>(), ["lower"]);
        assert_eq!(
            scan.block_range(0, Some(8)),
            "SELECT a, lower(b) FROM s.\"T x\" AS t\nWHERE t.ctid OPERATOR(pg_catalog.>=) \
                 '(0,0)'::pg_catalog.tid AND \
             t.ctid OPERATOR(pg_catalog.<) \
             '(8,0)'::pg_catalog.tid AND ( a > 5 OR b IN ('x')\n)"
        );
        let scan = TableScan::parse("select * from lineitem;", false).unwrap();
        assert_eq!(
            scan.block_range(3, None),
            "select * from lineitem\nWHERE lineitem.ctid OPERATOR(pg_catalog.>=) \
                 '(3,0)'::pg_catalog.tid"
        );
        let scan = TableScan {
            only: true,
            ..TableScan::parse("SELECT a FROM /* b */ s . \"T x\" t", false).unwrap()
        };
        assert!(
            scan.block_range(3, None)
                .starts_with("SELECT a FROM /* b */ ONLY s . \"T x\" t\nWHERE t.ctid ")
        );
        for sql in [
            "SELECT a::text, CAST(b AS numeric(9, 2)), c::pg_catalog.int4 FROM t",
            "SELECT 1 FROM t WHERE a > '2024-01-01'::date \
                 AND b < CAST('2024-01-01' AS timestamptz)",
            "SELECT a::varchar(5)[], NULL::date, '{2024-01-01}' :: date[] FROM t",
            "SELECT CAST(CAST(a AS text) AS json), a[1::int:2] FROM t",
        ] {
            assert!(TableScan::parse(sql, false).is_ok(), "{sql}");
        }
        let scan = TableScan::parse(
            "SELECT daterange(a, f(b)), tsrange(c), t.d, g(ARRAY[a, b]), h() FROM t",
            false,
        )
        .unwrap();
        assert_eq!(
            scan.references.casts.iter().collect::<Vec<_>>(),
            ["d", "f", "g", "h", "tsrange"]
        );
        let dates = |sql: &str| {
            TableScan::parse(sql, false)
                .map(|scan| scan.references.dates.into_iter().collect::<Vec<_>>())
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
            TableScan::parse(sql, false)
                .unwrap()
                .references
                .functions
                .into_iter()
                .collect::<Vec<_>>()
        };
        // Only the server can tell a column from a function of the same name.
        assert_eq!(names("SELECT t.a, (t).\"B\"\"\" FROM s.t WHERE t . C > 1"), ["B\"", "a", "c"]);
        assert_eq!(names("SELECT \"\"\"F\"(a), LOWER(\"ö\") FROM s.t"), ["\"F", "lower"]);
        for sql in
            ["SELECT a FROM t WHERE b = 'knows nowhere' AND c = E'it''s'", "SELECT \"now\" FROM t"]
        {
            assert!(TableScan::parse(sql, false).is_ok(), "{sql}");
        }
        let extract = TableScan::parse("SELECT extract(year FROM d) FROM t", false).unwrap();
        assert_eq!(extract.references.functions.iter().collect::<Vec<_>>(), ["extract"]);
    }

    #[test]
    fn statements_that_are_not() {
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
            "SELECT a FROM t WHERE a IN (TABLE u)",
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
            assert!(TableScan::parse(sql, false).is_err(), "{sql}");
        }
    }
}
