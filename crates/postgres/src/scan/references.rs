//! What expressions use that may be somebody's own, and so have another value in another
//! transaction: functions, operators, types. Names only, and rather too many than too few: what
//! they stand for is asked of the server.

use std::collections::BTreeSet;
use std::fmt;

use crate::sql::{Token, TokenKind, tokens};

/// Types whose values, read from text, depend neither on the time (as `now` among dates) nor on
/// what the catalog says: only the session's settings, if anything. They may be named with
/// `pg_catalog` or without.
const TIMELESS: &[&str] = &[
    "bigint",
    "bit",
    "bool",
    "boolean",
    "bytea",
    "char",
    "character",
    "decimal",
    "double",
    "float",
    "float4",
    "float8",
    "inet",
    "int",
    "int2",
    "int4",
    "int8",
    "integer",
    "interval",
    "json",
    "jsonb",
    "money",
    "name",
    "numeric",
    "oid",
    "real",
    "smallint",
    "text",
    "uuid",
    "varbit",
    "varchar",
];
/// Words before a parenthesis that is not a function's.
const NOT_FUNCTIONS: &[&str] = &[
    "and",
    "any",
    "all",
    "array",
    "as",
    "between",
    "in",
    "not",
    "operator",
    "or",
    "select",
    "some",
    "then",
    "when",
    "else",
    "where",
    "case",
    "is",
    "similar",
    "to",
    "cast",
    "row",
    "values",
    "numeric",
    "decimal",
    "varchar",
    "char",
    "character",
    "varying",
    "bit",
    "time",
    "timestamp",
    "interval",
    "float",
    "precision",
];

/// Operators that are called by other words: `IN`, `BETWEEN`, `LIKE`, `CASE x WHEN` and so on.
const WORDS_OPERATORS: &[&str] =
    &["=", "<>", "<", ">", "<=", ">=", "~~", "!~~", "~~*", "!~~*", "~", "!~"];
/// A longer row of signs is not looked at.
const SIGNS_MAX: usize = 16;

/// Why the references of an expression can't be told. Prints as half a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// A condition of a plan has no end.
    Condition,
    /// The name of a setting is an expression.
    SettingName,
    /// A text that may be a word for the present time is cast to a time.
    CastToTime,
    /// The server's encoding decides on the case of a function's name.
    FunctionNames,
    /// Too many signs in a row.
    Operators,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Condition => "a condition in its plan is not clear",
            Self::SettingName => "it asks for a setting whose name is not clear",
            Self::CastToTime => "what it casts to may depend on the time",
            Self::FunctionNames => "the server's encoding decides on its functions' names",
            Self::Operators => "its operators are not clear",
        })
    }
}

/// What expressions use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References {
    /// Functions, as they are named.
    pub functions: BTreeSet<String>,
    /// Those of them that may be types: of one argument, which is cast.
    pub casts: BTreeSet<String>,
    /// Columns that are cast to types that may read the present time from a text: if they are dates
    /// or times, it is none.
    pub dates: BTreeSet<String>,
    /// Types that something is cast to.
    pub types: BTreeSet<String>,
    /// Operators, and what parts of them may be some.
    pub operators: BTreeSet<String>,
    /// What stands before a dot: schemas, among others.
    pub schemas: BTreeSet<String>,
    /// Settings that filters ask for.
    pub settings: BTreeSet<String>,
    /// Whether there is more than columns as they are.
    pub computes: bool,
    /// Whether there are casts that can be seen.
    pub has_casts: bool,
}

impl References {
    /// What the filters of a plan use, as EXPLAIN writes them: those of the statement, and those of
    /// policies of row security, which show nowhere else. What has a word of its own for the time
    /// is `now`.
    ///
    /// # Errors
    /// If one can't be read, with the reason.
    pub fn of_filters(plan: &[String]) -> Result<Self, Unreadable> {
        const TIMES: &[&str] =
            &["current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"];
        let mut references = Self::default();
        for condition in plan.iter().filter_map(|line| line.trim_start().strip_prefix("Filter: ")) {
            let tokens = tokens(condition, false).ok_or(Unreadable::Condition)?;
            references.add_condition(&tokens)?;
            for (i, _) in tokens.iter().enumerate().filter(|(_, token)| token.is("current_setting"))
            {
                let name = tokens
                    .get(i + 2)
                    .filter(|token| token.kind == TokenKind::Literal)
                    .map(|token| token.text);
                let name = name.and_then(|text| text.strip_prefix('\'')?.strip_suffix('\''));
                references.settings.insert(name.ok_or(Unreadable::SettingName)?.to_owned());
            }
            if tokens.iter().any(|token| TIMES.iter().any(|word| token.is(word))) {
                references.functions.insert("now".to_owned());
            }
        }
        Ok(references)
    }

    /// Adds what a list of results uses.
    pub(crate) fn add_list(&mut self, tokens: &[Token<'_>]) -> Result<(), Unreadable> {
        let mut items = tokens.split(|token| token.depth == 0 && token.text == ",");
        match items.all(is_column) {
            true => self.add(tokens),
            false => self.add_condition(tokens),
        }
    }

    /// Adds what an expression uses.
    pub(crate) fn add_condition(&mut self, tokens: &[Token<'_>]) -> Result<(), Unreadable> {
        self.computes |= !tokens.is_empty();
        self.add(tokens)
    }

    fn add(&mut self, tokens: &[Token<'_>]) -> Result<(), Unreadable> {
        self.dates.extend(cast_to_times(tokens).ok_or(Unreadable::CastToTime)?);
        self.add_called(tokens)?;
        for pair in tokens.windows(2) {
            if pair[1].text == "." {
                self.schemas.extend(folded(&pair[0]));
            }
            // date '2024-01-01'
            if pair[1].kind == TokenKind::Literal {
                self.types.extend(folded(&pair[0]));
            }
        }
        for (i, token) in tokens.iter().enumerate() {
            let is_cast = token.text == ":" && i > 0 && tokens[i - 1].text == ":"
                || token.depth > 0 && token.is("as");
            self.has_casts |= is_cast || token.is("cast");
            if is_cast {
                let after = &tokens[i + 1..];
                let names = after.iter().take_while(|token| token.is_name() || token.text == ".");
                self.types.extend(names.flat_map(folded));
            }
        }
        self.types.extend(self.casts.iter().cloned());
        self.has_casts |= !self.casts.is_empty();
        self.add_operators(tokens)
    }

    /// Adds the functions that an expression may call: names before a parenthesis, and after a dot,
    /// where `t.f` is `f(t)` if the table has no column of that name. And those with one argument,
    /// which is cast if the name is a type's.
    fn add_called(&mut self, tokens: &[Token<'_>]) -> Result<(), Unreadable> {
        for (i, token) in tokens.iter().enumerate() {
            let is_attribute = i > 0 && tokens[i - 1].text == ".";
            if token.is_name() && (is_attribute || is_called(tokens, i)) {
                let name = token.name().ok_or(Unreadable::FunctionNames)?;
                if !is_called(tokens, i) || !has_several(&tokens[i + 1..]) {
                    self.casts.insert(name.clone());
                }
                self.functions.insert(name);
            }
        }
        Ok(())
    }

    /// Adds the operators: each part of a row of signs may be one.
    fn add_operators(&mut self, tokens: &[Token<'_>]) -> Result<(), Unreadable> {
        let is_sign = |token: &Token<'_>| matches!(token.text.as_bytes(), [sign] if b"+-*/<>=~!@#%^&|`?".contains(sign));
        let touch = |a: &Token<'_>, b: &Token<'_>| is_sign(a) && is_sign(b) && a.end + 1 == b.end;
        for signs in tokens.chunk_by(touch).filter(|signs| is_sign(&signs[0])) {
            if signs.len() > SIGNS_MAX {
                return Err(Unreadable::Operators);
            }
            let row = signs.iter().map(|sign| sign.text).collect::<String>();
            let parts =
                (0..row.len()).flat_map(|from| (from + 1..=row.len()).map(move |to| (from, to)));
            self.operators.extend(parts.map(|(from, to)| row[from..to].to_owned()));
        }
        self.operators.extend(WORDS_OPERATORS.iter().map(|operator| (*operator).to_owned()));
        Ok(())
    }
}

/// Whether the name at this place stands before a parenthesis as a function's does.
pub(crate) fn is_called(tokens: &[Token<'_>], at: usize) -> bool {
    let token = &tokens[at];
    token.is_name()
        && tokens.get(at + 1).is_some_and(|next| next.kind == TokenKind::Open)
        && !(token.kind == TokenKind::Word
            && NOT_FUNCTIONS.contains(&token.text.to_ascii_lowercase().as_str()))
}

/// What a name may be after it was folded. Where the server's encoding decides which letters are,
/// both ways.
pub(crate) fn folded(token: &Token<'_>) -> Vec<String> {
    match token.kind {
        TokenKind::Word => vec![token.text.to_ascii_lowercase(), token.text.to_lowercase()],
        TokenKind::Quoted => token.name().into_iter().collect(),
        _ => vec![],
    }
}

/// Whether an item of a list is a column, all columns, or one with another name.
fn is_column(item: &[Token<'_>]) -> bool {
    let is_path = |path: &[Token<'_>]| {
        path.iter().enumerate().all(|(i, token)| match i % 2 {
            0 => token.is_name() || token.text == "*",
            _ => token.text == ".",
        })
    };
    match item {
        [not, ..] if not.is("not") => false,
        [path @ .., word, alias] if word.is("as") && alias.is_name() && path.len() % 2 == 1 => {
            is_path(path)
        }
        [path @ .., alias] if alias.is_name() && path.len() % 2 == 1 => is_path(path),
        path => path.len() % 2 == 1 && is_path(path),
    }
}

/// Whether a parenthesis that opens here surely has more than one argument in it.
fn has_several(tokens: &[Token<'_>]) -> bool {
    let inside = tokens
        .iter()
        .take_while(|token| tokens.first().is_some_and(|open| token.depth >= open.depth));
    let mut own = inside.filter(|token| token.depth == tokens[0].depth);
    // Commas within brackets would be those of an array.
    own.clone().any(|token| token.text == ",") && own.all(|token| token.text != "[")
}

/// The columns that are cast to a type that may read the present time, or what the catalog has just
/// then, from a text; none if something else is cast to one, but for literals, which have been
/// looked at.
fn cast_to_times(tokens: &[Token<'_>]) -> Option<BTreeSet<String>> {
    let is_literal = |what: &[Token<'_>]| {
        what.last().is_some_and(|one| one.kind == TokenKind::Literal || one.is("null"))
    };
    let mut columns = BTreeSet::new();
    for (i, token) in tokens.iter().enumerate() {
        // x::type
        if token.text == ":"
            && i > 0
            && tokens[i - 1].text == ":"
            && tokens[i - 1].end + 1 == token.end
        {
            let what = &tokens[..i - 1];
            if !is_literal(what) && !is_timeless(&tokens[i + 1..]) {
                columns.insert(last_column(what)?);
            }
        }
        // CAST (x AS type)
        if token.is("cast")
            && let Some(open) = tokens.get(i + 1).filter(|next| next.kind == TokenKind::Open)
        {
            let inside = &tokens[i + 2..];
            let as_at = inside.iter().position(|token| token.depth <= open.depth && token.is("as"));
            let (what, to) = inside.split_at(as_at?);
            let is_harmless = what.len() == 1 && is_literal(what) || is_timeless(&to[1..]);
            let is_name = what.len() == 1 || what.len() == 3 && what[1].text == ".";
            if !is_harmless {
                columns.insert(last_column(what).filter(|_| is_name)?);
            }
        }
        // JSON_VALUE (… RETURNING type)
        if token.is("returning") {
            return None;
        }
    }
    Some(columns)
}

/// The column that an expression ends with, as its name or with one that says whose it is.
fn last_column(tokens: &[Token<'_>]) -> Option<String> {
    // One in parentheses of its own, not those of a call.
    let tokens = match tokens {
        [before @ .., open, inner, close]
            if open.kind == TokenKind::Open
                && close.kind == TokenKind::Close
                && !before
                    .last()
                    .is_some_and(|last| last.is_name() || last.kind == TokenKind::Close) =>
        {
            std::slice::from_ref(inner)
        }
        _ => tokens,
    };
    let (column, before) = tokens.split_last()?;
    let before = match before {
        [before @ .., owner, dot] if dot.text == "." && owner.is_name() => before,
        _ => before,
    };
    // Here the name is none of a column, or of another one: a type's, a collation's, an
    // attribute's, the end of a CASE.
    let is_other = |before: &Token<'_>| matches!(before.text, ":" | ".") || before.is("collate");
    let is_column = column.is_name() && !column.is("end");
    column.name().filter(|_| is_column && !before.last().is_some_and(is_other))
}

/// Whether a type's name begins here that is among the [`TIMELESS`] ones.
fn is_timeless(tokens: &[Token<'_>]) -> bool {
    let unqualified = match tokens {
        [schema, dot, rest @ ..] if schema.is("pg_catalog") && dot.text == "." => rest,
        _ => tokens,
    };
    let is_qualified = unqualified.get(1).is_some_and(|next| next.text == ".");
    let name = unqualified.first().and_then(Token::name);
    !is_qualified && name.is_some_and(|name| TIMELESS.contains(&name.as_str()))
}
