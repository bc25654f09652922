//! Statements that read one table, each row on its own, so that ranges of the table can be read
//! over several connections.
//!
//! The rows of the ranges together are the statement's only if each row's values and the condition
//! depend on that row alone, and if no row is in two ranges or in none. The decision here, from the
//! statement's tokens, is conservative: it knows the functions whose values depend on their
//! arguments and the session's settings, and refuses all others. A statement that one connection
//! reads in an order may have more: [`TableScan::parse_for_order`].

mod functions;
mod joined;
mod shared;

use std::fmt;

use self::functions::{is_aggregate, is_pure, takes_list};
pub use self::joined::Joined;
pub use self::shared::shared_tables;
use crate::sql::{Token, TokenKind, tokens};

/// Words that no scan of a table has, or that have another value on another connection.
const REFUSED: &[&str] = &[
    "analyse",
    "cross",
    "current_date",
    "current_role",
    "current_time",
    "current_timestamp",
    "current_user",
    "distinct",
    "distinctrow",
    "except",
    "fetch",
    "for",
    "force",
    "group",
    "having",
    "ignore",
    "intersect",
    "into",
    "join",
    "lateral",
    "limit",
    "localtime",
    "localtimestamp",
    "lock",
    "match",
    "minus",
    "natural",
    "next",
    "offset",
    "order",
    "over",
    "partition",
    "previous",
    "procedure",
    "qualify",
    "rownum",
    "session_user",
    "sql_calc_found_rows",
    "straight_join",
    "sysdate",
    "system_user",
    "tablesample",
    "union",
    "use",
    "user",
    "utc_date",
    "utc_time",
    "utc_timestamp",
    "window",
    "with",
];

/// Those of [`REFUSED`] that have the same value for all rows of a statement, or find rows.
const ALLOWED_FOR_ORDER: &[&str] = &[
    "current_date",
    "current_role",
    "current_time",
    "current_timestamp",
    "current_user",
    "localtime",
    "localtimestamp",
    "match",
    "session_user",
    "sysdate",
    "system_user",
    "user",
    "utc_date",
    "utc_time",
    "utc_timestamp",
];

/// A query that reads filtered rows of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableScan {
    /// The statement up to the end of the FROM clause.
    head: String,
    /// The condition of the WHERE clause, without a comment at its end.
    condition: Option<String>,
    /// The table as the statement names it.
    pub table: String,
    /// The database and the table, without quotes.
    pub names: (Option<String>, String),
    /// The name that qualifies the table's columns: its alias or its own.
    qualifier: String,
}

impl TableScan {
    /// Reads a statement. `escapes` says whether backslashes escape in strings.
    ///
    /// # Errors
    /// When the statement is not such a query, or may not be.
    pub fn parse(sql: &str, escapes: bool) -> Result<Self, NotSplittable> {
        Self::parse_by(&Rules::OF_SCANS, sql, escapes)
    }

    /// Reads a statement of whose ranges nothing is asked, but [`Self::in_order`]: its values may
    /// depend on more than a row.
    ///
    /// # Errors
    /// When the statement does not read filtered rows of one table, or may not do so.
    pub fn parse_for_order(sql: &str, escapes: bool) -> Result<Self, NotSplittable> {
        Self::parse_by(&Rules::OF_ORDER, sql, escapes)
    }

    fn parse_by(rules: &Rules, sql: &str, escapes: bool) -> Result<Self, NotSplittable> {
        let mut tokens = tokens(sql, escapes).ok_or(NotSplittable::NotOneStatement)?;
        if tokens.last().is_some_and(|token| token.text == ";") {
            tokens.pop();
        }
        if !tokens.first().is_some_and(|token| token.is("select")) {
            return Err(NotSplittable::NotSelect);
        }
        for (i, token) in tokens.iter().enumerate() {
            check_token(rules, &tokens[..i], *token, tokens.get(i + 1))?;
        }
        let only = |word: &str| {
            let mut found = tokens.iter().enumerate().filter(|(_, token)| token.is(word));
            match (found.next(), found.next()) {
                (None, _) => Ok(None),
                (Some((i, token)), None) if token.depth == 0 => Ok(Some(i)),
                _ => Err(NotSplittable::MoreThanFilter),
            }
        };
        let Some(from) = only("from")? else { return Err(NotSplittable::NotOneTable) };
        let end = match only("where")? {
            Some(at) if at > from + 1 && at + 1 < tokens.len() => at,
            None => tokens.len(),
            _ => return Err(NotSplittable::NotOneTable),
        };
        if only("select")? != Some(0) {
            return Err(NotSplittable::MoreThanFilter);
        }
        let (table, names, qualifier) = table(&tokens[from + 1..end])?;
        let head = sql[..tokens[end - 1].end()].to_owned();
        let condition = match (tokens.get(end), tokens.last()) {
            (Some(at), Some(last)) => Some(sql[at.end()..last.end()].to_owned()),
            _ => None,
        };
        Ok(Self { head, condition, table, names, qualifier })
    }

    /// Whether the statement has a condition.
    pub fn is_filtered(&self) -> bool {
        self.condition.is_some()
    }

    /// The statement for the rows whose key is at least `from` and less than `to`, both as
    /// literals; None is unlimited. The server reads them by the key's index, in its order. With
    /// either end, rows without a key are left out.
    pub fn key_range(&self, key: &Key, from: Option<&str>, to: Option<&str>) -> String {
        self.by_index(key, key.range(&self.qualifier, from, to))
    }

    /// The statement for the rows whose key is NULL.
    pub fn without_key(&self, key: &Key) -> String {
        self.by_index(key, vec![format!("{}.{} IS NULL", self.qualifier, key.column)])
    }

    fn by_index(&self, key: &Key, mut conditions: Vec<String>) -> String {
        let condition = self.condition.as_ref();
        conditions.extend(condition.map(|condition| format!("({condition})")));
        key.by_index(&self.head, &conditions)
    }

    /// The statement with its rows in the order of these columns, each with `DESC` if it descends.
    pub fn in_order(&self, columns: &[String]) -> String {
        let condition = self.condition.as_ref().map(|condition| format!(" WHERE ({condition})"));
        let columns = columns.iter().map(|column| format!("{}.{column}", self.qualifier));
        let columns = columns.collect::<Vec<_>>().join(", ");
        format!("{}{} ORDER BY {columns}", self.head, condition.unwrap_or_default())
    }

    /// A query of as many rows as [`Self::key_range`] has without the statement's condition.
    pub fn count_range(&self, key: &Key, from: Option<&str>, to: Option<&str>) -> String {
        let head = format!("SELECT 1 FROM {}", self.table);
        key.by_index(&head, &key.range(&self.table, from, to))
    }
}

/// What a table is divided by. Names are quoted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// An index, `PRIMARY` for that of the primary key.
    pub index: String,
    /// Its first column.
    pub column: String,
}

impl Key {
    fn range(&self, table: &str, from: Option<&str>, to: Option<&str>) -> Vec<String> {
        let column = &self.column;
        let from = from.map(|from| format!("{table}.{column} >= {from}"));
        let to = to.map(|to| format!("{table}.{column} < {to}"));
        from.into_iter().chain(to).collect()
    }

    fn by_index(&self, head: &str, conditions: &[String]) -> String {
        let by = format!("{head} FORCE INDEX ({})", self.index);
        match conditions {
            [] => by,
            _ => format!("{by} WHERE {}", conditions.join(" AND ")),
        }
    }
}

/// What a statement may have.
struct Rules {
    /// Words of [`REFUSED`] that are not.
    allowed: &'static [&'static str],
    /// More words before a parenthesis that call no function.
    lists: &'static [&'static str],
    /// More functions, whose values may change.
    functions: &'static [&'static str],
    /// Whether its values may depend on more than a row: on parameters, variables and all
    /// functions that are no aggregates. Double quotes are taken as they are.
    is_free: bool,
}

impl Rules {
    const OF_SCANS: Self = Self { allowed: &[], lists: &[], functions: &[], is_free: false };
    const OF_ORDER: Self =
        Self { allowed: ALLOWED_FOR_ORDER, lists: &[], functions: &[], is_free: true };
}

/// Refuses a token that no such statement has. `before` are the tokens before it.
fn check_token(
    rules: &Rules,
    before: &[Token<'_>],
    token: Token<'_>,
    after: Option<&Token<'_>>,
) -> Result<(), NotSplittable> {
    // A word right behind a name and its dot is a name; the dot of `1.` is a number's.
    let follows_dot = matches!(before, [.., name, dot] if dot.text == "." && is_name(name));
    let is_called = after.is_some_and(|after| after.text == "(");
    match token.kind {
        // A sequence of Oracle's mode.
        TokenKind::Word if token.is("nextval") || token.is("lastval") => {
            Err(NotSplittable::Word(token.text.to_ascii_uppercase()))
        }
        TokenKind::Word | TokenKind::Name if follows_dot && is_called && !rules.is_free => {
            Err(NotSplittable::Function(token.text.to_owned()))
        }
        TokenKind::Word if follows_dot => Ok(()),
        TokenKind::Word => {
            let lower = token.text.to_ascii_lowercase();
            let is_adjacent = after.is_some_and(|after| after.at == token.end());
            let is = |word: &&str| *word == lower;
            if REFUSED.iter().any(is) && !rules.allowed.iter().any(is) {
                return Err(NotSplittable::Word(token.text.to_ascii_uppercase()));
            }
            if rules.is_free {
                return match is_called && is_aggregate(&lower) {
                    true => Err(NotSplittable::MoreThanFilter),
                    false => Ok(()),
                };
            }
            let takes_list = takes_list(&lower) || rules.lists.iter().any(is);
            let is_known = is_pure(&lower) || rules.functions.iter().any(is);
            match is_called && !takes_list && !(is_adjacent && is_known) {
                true => Err(NotSplittable::Function(token.text.to_owned())),
                false => Ok(()),
            }
        }
        TokenKind::Name if is_called && !rules.is_free => {
            Err(NotSplittable::Function(token.text.to_owned()))
        }
        TokenKind::Name | TokenKind::Literal => Ok(()),
        TokenKind::Quoted if rules.is_free => Ok(()),
        // In ANSI mode a name, else a string.
        TokenKind::Quoted => Err(NotSplittable::DoubleQuotes),
        TokenKind::Other => match token.text {
            "?" | "@" | ":" if rules.is_free => Ok(()),
            "?" => Err(NotSplittable::Parameters),
            "@" | ":" => Err(NotSplittable::Variables),
            ";" => Err(NotSplittable::NotOneStatement),
            _ => Ok(()),
        },
    }
}

/// The table of a FROM clause, its names, and the name that qualifies its columns.
#[expect(clippy::type_complexity, reason = "taken apart at once")]
fn table(from: &[Token<'_>]) -> Result<(String, (Option<String>, String), String), NotSplittable> {
    let wrong = NotSplittable::NotOneTable;
    let (names, rest) = match from {
        [database, dot, table, rest @ ..]
            if dot.text == "." && is_name(database) && is_name(table) =>
        {
            ((Some(*database), *table), rest)
        }
        [table, rest @ ..] if is_name(table) => ((None, *table), rest),
        _ => return Err(wrong),
    };
    let (database, table) = names;
    let alias = match rest {
        [] => table,
        [alias] if is_name(alias) && !alias.is("as") => *alias,
        [word, alias] if word.is("as") && is_name(alias) => *alias,
        _ => return Err(wrong),
    };
    let text = match database {
        Some(database) => format!("{}.{}", database.text, table.text),
        None => table.text.to_owned(),
    };
    let names = (database.map(|name| unquoted(name.text)), unquoted(table.text));
    Ok((text, names, alias.text.to_owned()))
}

fn is_name(token: &Token<'_>) -> bool {
    match token.kind {
        TokenKind::Name => true,
        TokenKind::Word => !token.text.starts_with(|c: char| c.is_ascii_digit()),
        _ => false,
    }
}

/// A name without its backticks.
fn unquoted(name: &str) -> String {
    match name.strip_prefix('`').and_then(|name| name.strip_suffix('`')) {
        Some(inner) => inner.replace("``", "`"),
        None => name.to_owned(),
    }
}

/// Why a statement is not a [`TableScan`]. Prints as half a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotSplittable {
    /// Not one whole statement, or code or optimizer hints in a comment.
    NotOneStatement,
    /// It does not begin with SELECT.
    NotSelect,
    /// It has a subquery, or clauses in an unusual order.
    MoreThanFilter,
    /// A word that may make it more than the filtered rows of a table.
    Word(String),
    /// A function that may have another value on another connection.
    Function(String),
    /// It has parameters.
    Parameters,
    /// It has variables.
    Variables,
    /// It has double quotes, whose meaning depends on a setting.
    DoubleQuotes,
    /// Not exactly one table in its FROM clause.
    NotOneTable,
}

impl fmt::Display for NotSplittable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotOneStatement => {
                "it is not one plain statement, or a comment has code or optimizer hints"
            }
            Self::NotSelect => "it is not a plain SELECT",
            Self::MoreThanFilter => "it is more than the filtered rows of one table",
            Self::Word(word) => return write!(f, "it has the word {word}"),
            Self::Function(name) => {
                return write!(f, "it calls {name}, which may differ between connections or rows");
            }
            Self::Parameters => "it has parameters",
            Self::Variables => "it has variables",
            Self::DoubleQuotes => "it has double quotes (write '…' for strings, `…` for names)",
            Self::NotOneTable => "it does not read one table",
        })
    }
}

#[cfg(test)]
mod tests;
