//! A query that can be read range by range: the filtered and projected rows of one table, or the
//! aggregates of each range by itself.
//!
//! A range is an interval of `ctid`, the place of a row in its table. Together the ranges cover the
//! table, and no two overlap. The decision here, from the statement's tokens, is conservative, and
//! the server confirms it: the plan of a range is one Tid Range Scan
//! ([`TableScan::is_range_plan`]), and all its functions are immutable.
//!
//! The table may stand in a subquery that is such a query itself, and does not aggregate. The range
//! is then a condition of the subquery:
//!
//! ```text
//!   SELECT a FROM (SELECT * FROM t WHERE t.ctid … AND (b > 5)) AS q WHERE c
//! ```

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

/// Types of texts, to which a literal may be cast whatever it has.
const TEXTS: &[&str] = &["bpchar", "text"];

/// How many subqueries may be in each other: one that the user gives, and one that a program makes
/// around it. The parser calls itself for each.
const LEVELS_MAX: usize = 2;

/// A query that reads filtered rows of one table, each row on its own, or that aggregates them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableScan {
    /// The statement up to the end of the FROM clause that has the table.
    head: String,
    /// Where the table's name begins in `head`.
    table_at: usize,
    /// The condition of the WHERE clause that follows it.
    condition: Option<String>,
    /// What follows the condition: the end of the subquery with what is after it, the GROUP BY
    /// clause, or nothing.
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
    /// Whether the query's columns are all of the table's, under their names.
    is_all_columns: bool,
}

impl TableScan {
    /// Reads a statement. `escapes` as for [`enclosable`].
    ///
    /// # Errors
    /// When the statement is not such a query, or may not be.
    pub fn parse(sql: &str, escapes: bool) -> Result<Self, NotSplittable> {
        Self::read(sql, escapes, false, LEVELS_MAX)
    }

    /// Reads a statement that aggregates rows of a table, as `spec/partitions.md` section 3.1 has
    /// it: over a range it is a partial aggregate.
    ///
    /// # Errors
    /// When the statement has another form, or may have.
    pub fn parse_aggregate(sql: &str, escapes: bool) -> Result<Self, NotSplittable> {
        Self::read(sql, escapes, true, LEVELS_MAX)
    }

    /// Reads a statement with at most so many levels of subqueries.
    fn read(
        sql: &str,
        escapes: bool,
        aggregates: bool,
        levels: usize,
    ) -> Result<Self, NotSplittable> {
        let sql = enclosable(sql, escapes).ok_or(NotSplittable::NotOneStatement)?;
        let tokens = tokens(sql, escapes).ok_or(NotSplittable::NotOneStatement)?;
        match subquery(&tokens) {
            Some((open, close)) if levels > 0 => {
                let (from, to) = (tokens[open].end, tokens[close].end - tokens[close].text.len());
                let outer = [&tokens[..=open], &tokens[close..]].concat();
                check_words(&outer, escapes, aggregates)?;
                Self::read(&sql[from..to], escapes, false, levels - 1)?.within(
                    &sql[..from],
                    &outer,
                    &sql[to..],
                    aggregates,
                )
            }
            _ => {
                check_words(&tokens, escapes, aggregates)?;
                Self::of_table(sql, &tokens, aggregates)
            }
        }
    }

    /// A statement that names the table itself.
    fn of_table(sql: &str, tokens: &[Token<'_>], aggregates: bool) -> Result<Self, NotSplittable> {
        let clauses = Clauses::find(tokens)?;
        let Clauses { from, condition: end, group } = clauses;
        let (table, qualifier) = table(&tokens[from + 1..end])?;
        let mut references = References::default();
        clauses.add_references(&mut references, tokens, aggregates)?;
        let head_end = tokens[end - 1].end;
        let tail_at = tokens.get(group).map_or(sql.len(), |group| group.end - group.text.len());
        let condition = (end < group).then(|| sql[tokens[end].end..tail_at].to_owned());
        let table_at = tokens[from + 1].end - tokens[from + 1].text.len();
        Ok(Self {
            head: sql[..head_end].to_owned(),
            table_at,
            condition,
            tail: sql[tail_at..].to_owned(),
            table,
            qualifier,
            references,
            only: false,
            aggregates,
            is_all_columns: clauses.is_all_columns(tokens),
        })
    }

    /// The statement around this one, which stands alone between the parentheses of its FROM
    /// clause. `before` ends and `after` begins with a parenthesis, and `tokens` are those of both.
    fn within(
        self,
        before: &str,
        tokens: &[Token<'_>],
        after: &str,
        aggregates: bool,
    ) -> Result<Self, NotSplittable> {
        let clauses = Clauses::find(tokens)?;
        match &tokens[clauses.from + 3..clauses.condition] {
            [alias] if alias.is_name() => {}
            [word, alias] if word.is("as") && alias.is_name() => {}
            _ => return Err(NotSplittable::NotOneTable),
        }
        let mut references = self.references;
        let own_dates = std::mem::take(&mut references.dates);
        clauses.add_references(&mut references, tokens, aggregates)?;
        // The server tells the types of the table's columns, and not of others of these names.
        if !self.is_all_columns && !references.dates.is_empty() {
            return Err(Unreadable::CastToTime.into());
        }
        references.dates.extend(own_dates);
        let tail = match self.tail.as_str() {
            "" => after.to_owned(),
            tail => format!("{tail}\n{after}"),
        };
        Ok(Self {
            head: format!("{before}{}", self.head),
            table_at: before.len() + self.table_at,
            tail,
            references,
            aggregates,
            is_all_columns: self.is_all_columns && clauses.is_all_columns(tokens),
            condition: self.condition,
            table: self.table,
            qualifier: self.qualifier,
            only: self.only,
        })
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

/// Where the clauses of a statement begin, by the numbers of its tokens.
struct Clauses {
    from: usize,
    /// WHERE. Without one, what follows, as of `group`.
    condition: usize,
    /// GROUP. Without one, the number of tokens.
    group: usize,
}

impl Clauses {
    fn find(tokens: &[Token<'_>]) -> Result<Self, NotSplittable> {
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
        let condition = match outer("where") {
            (Some(at), false) if at > from && at < group => at,
            (None, _) => group,
            _ => return Err(NotSplittable::MoreThanFilter),
        };
        Ok(Self { from, condition, group })
    }

    fn list<'a, 't>(&self, tokens: &'a [Token<'t>]) -> &'a [Token<'t>] {
        &tokens[1..self.from]
    }

    fn is_all_columns(&self, tokens: &[Token<'_>]) -> bool {
        matches!(self.list(tokens), [star] if star.text == "*")
    }

    fn add_references(
        &self,
        references: &mut References,
        tokens: &[Token<'_>],
        aggregates: bool,
    ) -> Result<(), NotSplittable> {
        match aggregates {
            true => aggregate::add(references, self.list(tokens), &tokens[self.group..])?,
            false => references.add_list(self.list(tokens))?,
        }
        let condition = tokens.get(self.condition + 1..self.group).unwrap_or_default();
        Ok(references.add_condition(condition)?)
    }
}

/// The parentheses of a subquery that a FROM clause begins with, by their numbers.
fn subquery(tokens: &[Token<'_>]) -> Option<(usize, usize)> {
    let from = tokens.iter().position(|token| token.depth == 0 && token.is("from"))?;
    let [open, select, ..] = tokens.get(from + 1..)? else { return None };
    let close = tokens.iter().skip(from + 1).position(|token| token.depth == 0)?;
    (open.kind == TokenKind::Open && select.is("select")).then_some((from + 1, from + 1 + close))
}

/// Refuses words that a table scan has not.
fn check_words(tokens: &[Token<'_>], escapes: bool, aggregates: bool) -> Result<(), NotSplittable> {
    if !tokens.first().is_some_and(|token| token.is("select")) {
        return Err(NotSplittable::NotSelect);
    }
    if tokens.windows(3).any(is_unicode_escape) {
        return Err(NotSplittable::UnicodeEscapes);
    }
    for (at, token) in tokens.iter().enumerate() {
        let lower = token.text.to_ascii_lowercase();
        let is_own_group = aggregates && token.depth == 0 && lower == "group";
        match token.kind {
            TokenKind::Word
                if REFUSED.contains(&lower.as_str())
                    && !is_own_group
                    && !is_comparison(tokens, at) =>
            {
                return Err(NotSplittable::MoreThanFilter);
            }
            TokenKind::Word if UNSTABLE.contains(&lower.as_str()) => {
                return Err(NotSplittable::TimeOrUser);
            }
            TokenKind::Literal
                if may_be_unstable(token.text, escapes) && !is_cast_to_text(&tokens[at + 1..]) =>
            {
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

/// Whether a word is the one of `IS DISTINCT FROM` or `IS NOT DISTINCT FROM`.
fn is_comparison(tokens: &[Token<'_>], at: usize) -> bool {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| token.is(word));
    let follows_is = match at {
        0 => false,
        1 => is(0, "is"),
        _ => is(at - 1, "is") || is(at - 1, "not") && is(at - 2, "is"),
    };
    follows_is && is(at, "distinct") && is(at + 1, "from")
}

/// Whether a literal that these tokens follow is a text, whatever it has: it is cast to one at
/// once. Another cast of that is refused, as one of a column of texts.
fn is_cast_to_text(after: &[Token<'_>]) -> bool {
    let [one, other, name, rest @ ..] = after else { return false };
    let is_qualified = rest.first().is_some_and(|next| next.text == ".");
    one.text == ":" && other.text == ":" && TEXTS.iter().any(|text| name.is(text)) && !is_qualified
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
mod tests;
