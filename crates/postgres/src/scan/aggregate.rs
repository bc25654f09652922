//! Aggregates that each range of a table may compute for itself: `spec/partitions.md` section 3.1.
//!
//! ```text
//!   SELECT g, count(*), CAST(sum(x) AS bigint) AS s FROM t WHERE … GROUP BY g
//!          │  │         └ a cast of an aggregate
//!          │  └ an aggregate
//!          └ an expression without one
//! ```
//!
//! An aggregate within a larger expression is refused: `sum(a) + 1` of two ranges is not that of
//! both. So is everything that would make the server see other rows or other groups.

use super::references::{References, is_called};
use super::table_scan::NotSplittable;
use crate::sql::{Token, TokenKind};

/// The aggregates whose results over all ranges follow from those of each.
const AGGREGATES: &[&str] = &["count", "max", "min", "sum"];
/// Words of a GROUP BY with several sets of groups.
const GROUPING_SETS: &[&str] = &["all", "cube", "grouping", "rollup", "sets"];
/// Operators that stand where an alias may.
const POSTFIX: &[&str] = &["isnull", "notnull"];

type Result<T> = std::result::Result<T, NotSplittable>;

/// Adds the references of an aggregating statement's list and of its GROUP BY clause, which may be
/// empty.
///
/// # Errors
/// When ranges can't compute it for themselves, or may not.
pub(super) fn add(
    references: &mut References,
    list: &[Token<'_>],
    group: &[Token<'_>],
) -> Result<()> {
    for item in list.split(|token| token.depth == 0 && token.text == ",") {
        add_item(references, item)?;
    }
    let by = match group {
        [] if references.aggregates.is_empty() => return Err(NotSplittable::NotPartial),
        [] => return Ok(()),
        [_, by, expressions @ ..] if by.is("by") => expressions,
        _ => return Err(NotSplittable::NotPartial),
    };
    let is_set = |token: &Token<'_>| GROUPING_SETS.iter().any(|word| token.is(word));
    let is_empty_set = |at: usize| {
        by[at].kind == TokenKind::Open
            && by.get(at + 1).is_some_and(|next| next.kind == TokenKind::Close)
            && !(at > 0 && is_called(by, at - 1))
    };
    if by.is_empty() || by.iter().any(is_set) || (0..by.len()).any(is_empty_set) {
        return Err(NotSplittable::NotPartial);
    }
    check_no_aggregate(by)?;
    Ok(references.add_condition(by)?)
}

/// Adds the references of an item of the list.
fn add_item(references: &mut References, item: &[Token<'_>]) -> Result<()> {
    let item = without_alias(item);
    if let Some((aggregate, [])) = Aggregate::read(item) {
        return aggregate.add(references, &[], &[]);
    }
    match item {
        // CAST(sum(x) AS type): what follows AS is nothing but a type.
        [cast, open, inside @ .., close]
            if cast.is("cast")
                && open.kind == TokenKind::Open
                && close.kind == TokenKind::Close
                && inside.iter().all(|token| token.depth >= open.depth) =>
        {
            if let Some((aggregate, rest @ [word, ..])) = Aggregate::read(inside)
                && word.is("as")
            {
                let after = rest.iter().chain([close]).copied().collect::<Vec<_>>();
                return aggregate.add(references, &[*cast, *open], &after);
            }
        }
        _ => {
            if let Some((aggregate, rest @ [one, other, named @ ..])) = Aggregate::read(item)
                && one.text == ":"
                && other.text == ":"
                && is_type(named)
            {
                return aggregate.add(references, &[], rest);
            }
        }
    }
    check_no_aggregate(item)?;
    match item {
        [] => Err(NotSplittable::NotPartial),
        _ => Ok(references.add_condition(item)?),
    }
}

/// A call of one of [`AGGREGATES`].
struct Aggregate<'a, 't> {
    name: String,
    /// From one parenthesis to the other.
    arguments: &'a [Token<'t>],
}

impl<'a, 't> Aggregate<'a, 't> {
    /// Reads the call that tokens begin with, and returns what follows it.
    fn read(tokens: &'a [Token<'t>]) -> Option<(Self, &'a [Token<'t>])> {
        let unqualified = match tokens {
            [schema, dot, rest @ ..] if schema.is("pg_catalog") && dot.text == "." => rest,
            _ => tokens,
        };
        let (name, rest) = unqualified.split_first()?;
        let name = name.name().filter(|_| name.is_name())?;
        let open = rest.first().filter(|open| open.kind == TokenKind::Open)?;
        let close = rest.iter().position(|token| token.depth < open.depth)?;
        let (arguments, after) = rest.split_at(close + 1);
        AGGREGATES.contains(&name.as_str()).then_some((Self { name, arguments }, after))
    }

    /// Adds the aggregate, and the references of its arguments between these tokens: a cast of it
    /// is to no type that a cast of the argument would not be to.
    fn add(
        self,
        references: &mut References,
        before: &[Token<'_>],
        after: &[Token<'_>],
    ) -> Result<()> {
        let inner = &self.arguments[1..self.arguments.len() - 1];
        check_no_aggregate(inner)?;
        references.aggregates.insert(self.name);
        let inside = match before {
            [] => self.arguments,
            _ => inner,
        };
        let all = before.iter().chain(inside).chain(after).copied().collect::<Vec<_>>();
        Ok(references.add_condition(&all)?)
    }
}

/// Refuses expressions with an aggregate within.
fn check_no_aggregate(tokens: &[Token<'_>]) -> Result<()> {
    let is_aggregate = |at: usize| {
        tokens[at].name().is_none_or(|name| AGGREGATES.contains(&name.as_str()))
            && is_called(tokens, at)
    };
    match (0..tokens.len()).any(is_aggregate) {
        true => Err(NotSplittable::NotPartial),
        false => Ok(()),
    }
}

/// An item without the name of its column.
fn without_alias<'a, 't>(item: &'a [Token<'t>]) -> &'a [Token<'t>] {
    match item {
        [expression @ .., word, alias] if word.is("as") && word.depth == 0 && alias.is_name() => {
            expression
        }
        [expression @ .., alias]
            if alias.is_name()
                && expression.last().is_some_and(|last| last.kind == TokenKind::Close)
                && !POSTFIX.iter().any(|word| alias.is(word)) =>
        {
            expression
        }
        _ => item,
    }
}

/// Whether tokens are a type of one word, and nothing that could follow one.
fn is_type(tokens: &[Token<'_>]) -> bool {
    let unqualified = match tokens {
        [schema, dot, rest @ ..] if schema.is_name() && dot.text == "." => rest,
        _ => tokens,
    };
    let is_modifier = |token: &Token<'_>| {
        token.text == "," || token.text.bytes().all(|byte| byte.is_ascii_digit())
    };
    match unqualified {
        [name] => name.is_name(),
        [name, open, modifiers @ .., close] => {
            name.is_name()
                && open.kind == TokenKind::Open
                && close.kind == TokenKind::Close
                && modifiers.iter().all(is_modifier)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::TableScan;

    fn range(sql: &str) -> String {
        let scan = TableScan::parse_aggregate(sql, false).unwrap();
        assert!(scan.aggregates);
        scan.block_range(2, None)
    }

    #[test]
    fn ranges_of_aggregates() {
        let range_of_t = "WHERE t.ctid OPERATOR(pg_catalog.>=) '(2,0)'::pg_catalog.tid";
        assert_eq!(
            range("SELECT count(*) FROM t"),
            format!("SELECT count(*) FROM t\n{range_of_t}")
        );
        assert_eq!(
            range("SELECT a, max(b) FROM s.x AS t WHERE c OR d -- rows\nGROUP BY a, b + 1 -- all"),
            format!(
                "SELECT a, max(b) FROM s.x AS t\n{range_of_t} AND ( c OR d -- rows\n\n)\n\
                 GROUP BY a, b + 1"
            )
        );
        assert_eq!(
            range("SELECT sum(a) FROM t GROUP BY 1;"),
            format!("SELECT sum(a) FROM t\n{range_of_t}\nGROUP BY 1")
        );
        assert_eq!(
            range("SELECT FROM_a FROM t GROUP BY FROM_a"),
            format!("SELECT FROM_a FROM t\n{range_of_t}\nGROUP BY FROM_a")
        );
    }

    #[test]
    fn statements_that_are_partial() {
        for sql in [
            "SELECT count(*) AS \"count_0\", CAST(sum(\"id\") AS bigint) AS \"sum_1\" FROM t",
            "SELECT (\"s\" COLLATE \"C\") AS \"group_0\", count(\"x\") AS \"count_1\" FROM orders \
             WHERE (\"id\" > '5'::integer) AND (\"s\" = 'a'::text) GROUP BY (\"s\" COLLATE \"C\")",
            "SELECT CAST(min((\"s\" COLLATE \"C\")) AS text) AS m FROM t",
            "SELECT CAST(max(\"d\") AS date), CAST(min(t.\"d\") AS timestamp without time zone) \
             FROM t",
            "SELECT CAST(sum(\"n\") AS numeric(28, 2)) FROM t",
            "SELECT pg_catalog.sum(a), \"sum\"(b) n, MAX(coalesce(a, b)) FROM t",
            "SELECT sum(a)::bigint AS s, max(a)::numeric(9, 2), min(b)::pg_catalog.int8 FROM t",
            "SELECT max(d)::date FROM t",
            "SELECT lower(a), count(*) FROM t GROUP BY lower(a), now_is(b), f()",
            "SELECT a FROM t GROUP BY a",
            "SELECT a, b FROM t GROUP BY (a, b), c",
            "SELECT count, sum FROM t GROUP BY count, sum",
            "SELECT extract(year FROM d), count(*) FROM t GROUP BY extract(year FROM d)",
            "SELECT sum(CASE WHEN a > 0 THEN 1 ELSE 0 END) FROM t",
            "SELECT count(*), 'x' FROM t",
        ] {
            let scan = TableScan::parse_aggregate(sql, false);
            assert!(scan.is_ok(), "{sql}: {scan:?}");
        }
        let sql = "SELECT lower(a), CAST(max(d) AS date), sum(abs(b)) FROM t GROUP BY upper(a)";
        let references = TableScan::parse_aggregate(sql, false).unwrap().references;
        let names = |names: std::collections::BTreeSet<String>| Vec::from_iter(names);
        assert_eq!(names(references.functions), ["abs", "lower", "upper"]);
        assert_eq!(names(references.aggregates), ["max", "sum"]);
        assert_eq!(names(references.dates), ["d"]);
        assert!(references.computes && references.has_casts);
    }

    #[test]
    fn statements_that_are_not() {
        for sql in [
            // No aggregate at all: its rows are the statement's.
            "SELECT a FROM t",
            "SELECT * FROM t WHERE a > 1",
            "SELECT a + 1, lower(b) FROM t",
            // Of parts, more or other rows, or another value.
            "SELECT count(DISTINCT a) FROM t",
            "SELECT DISTINCT count(*) FROM t",
            "SELECT DISTINCT ON (a) a, count(*) FROM t GROUP BY a",
            "SELECT count(*) FILTER (WHERE a > 1) FROM t",
            "SELECT sum(a ORDER BY b) FROM t",
            "SELECT a, count(*) FROM t GROUP BY a ORDER BY a",
            "SELECT a, count(*) FROM t GROUP BY a LIMIT 5",
            "SELECT a, count(*) FROM t GROUP BY a OFFSET 5",
            "SELECT a, count(*) FROM t GROUP BY a FETCH FIRST ROW ONLY",
            "SELECT a, count(*) FROM t GROUP BY a HAVING count(*) > 1",
            "SELECT count(*) FROM t HAVING count(*) > 1",
            "SELECT sum(a) OVER (), count(*) FROM t",
            "SELECT max(count(*)) OVER () FROM t GROUP BY a",
            "SELECT count(*) FROM t WINDOW w AS ()",
            "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM t",
            "SELECT count(*) FROM t GROUP BY ROLLUP (a, b)",
            "SELECT count(*) FROM t GROUP BY CUBE (a, b)",
            "SELECT count(*) FROM t GROUP BY GROUPING SETS ((a), ())",
            "SELECT count(*) FROM t GROUP BY a, ()",
            "SELECT count(*) FROM t GROUP BY ()",
            "SELECT count(*) FROM t GROUP BY DISTINCT a",
            "SELECT count(*) FROM t GROUP BY ALL",
            "SELECT count(*) FROM t GROUP a",
            "SELECT count(*) FROM t GROUP BY",
            "SELECT a, GROUPING(a) FROM t GROUP BY ROLLUP (a)",
            "SELECT count(*) FROM t GROUP BY a GROUP BY b",
            "SELECT count(*) FROM t GROUP BY a WHERE b",
            // Aggregates within expressions.
            "SELECT sum(a) + 1 FROM t",
            "SELECT -sum(a) FROM t",
            "SELECT (sum(a)) FROM t",
            "SELECT sum(a) / count(*) FROM t",
            "SELECT coalesce(sum(a), 0) FROM t",
            "SELECT abs(sum(a)) FROM t",
            "SELECT CAST(sum(a) + 1 AS bigint) FROM t",
            "SELECT CAST(sum(a) AS bigint) + 1 FROM t",
            "SELECT CAST(sum(a) AS bigint) + CAST(sum(b) AS bigint) FROM t",
            "SELECT CAST(a AS bigint) + CAST(sum(b) AS bigint) FROM t",
            "SELECT sum(a)::bigint + 1 FROM t",
            "SELECT sum(a)::int IS NULL FROM t",
            "SELECT sum(a)::int ISNULL FROM t",
            "SELECT sum(a)::text COLLATE \"C\" FROM t",
            "SELECT max(a)::timestamp AT TIME ZONE 'UTC' FROM t",
            "SELECT count(*) ISNULL FROM t",
            "SELECT count(*) NOTNULL FROM t",
            "SELECT sum(a) BETWEEN 1 AND 2 FROM t",
            "SELECT sum(a) IN (1) FROM t",
            "SELECT sum(sum(a)) FROM t",
            "SELECT (min(a)).x FROM t",
            "SELECT sum(a)[1] FROM t",
            "SELECT ALL count(*) FROM t",
            "SELECT a, b FROM t GROUP BY count(a)",
            "SELECT CASE WHEN count(*) > 1 THEN 1 END FROM t",
            "SELECT sum (a) = 1 AS x FROM t",
            "SELECT 1 = sum(a) x FROM t",
            // More than a table, or less.
            "SELECT count(*)",
            "SELECT count(*) FROM a, b",
            "SELECT count(*) FROM a JOIN b ON true",
            "SELECT count(*) FROM (SELECT 1) x",
            "SELECT count(*) FROM f(1)",
            "SELECT count(*) FROM t TABLESAMPLE SYSTEM (1)",
            "SELECT count(*) FROM ONLY t",
            "SELECT count(*) FROM t WHERE a IN (SELECT b FROM u)",
            "SELECT count(*) FROM t WHERE a IN (TABLE u)",
            "SELECT (SELECT 1), count(*) FROM t",
            "SELECT count((SELECT a FROM u)) FROM t",
            "SELECT count(*) FROM t UNION ALL SELECT 1",
            "SELECT count(*) INTO u FROM t",
            "SELECT count(*) FROM t FOR UPDATE",
            "WITH x AS (SELECT 1) SELECT count(*) FROM x",
            "SELECT count(*) FROM t; SELECT 1",
            // What differs between transactions.
            "SELECT count(*), current_date FROM t",
            "SELECT count(*) FROM t WHERE d < 'now'",
            "SELECT count(*) FROM t GROUP BY current_user",
            "SELECT count(*) FROM t WHERE a = $1",
            "SELECT max(a || b)::date FROM t",
            "SELECT CAST(max(lower(a)) AS date) FROM t",
            "SELECT U&\"sum\"(a) FROM t",
            "SELECT FROM t GROUP BY a",
            "SELECT a, FROM t GROUP BY a",
            "",
        ] {
            let scan = TableScan::parse_aggregate(sql, false);
            assert!(scan.is_err(), "{sql}: {scan:?}");
        }
        // Others are functions like any, of which the server tells that they aggregate.
        for (sql, name) in [
            ("SELECT avg(a), count(*) FROM t", "avg"),
            ("SELECT mine.sum(a), count(*) FROM t", "sum"),
            ("SELECT \"SUM\"(a), count(*) FROM t", "SUM"),
            ("SELECT (t).sum, count(*) FROM t GROUP BY t", "sum"),
            ("SELECT count(*) FROM t WHERE sum(a) > 1", "sum"),
        ] {
            if let Ok(scan) = TableScan::parse_aggregate(sql, false) {
                assert!(scan.references.functions.contains(name), "{sql}");
            }
        }
    }
}
