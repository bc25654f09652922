//! What expressions refer to: functions, operators, types. The user may have defined any of them,
//! so that an expression has another value in another transaction. These are only names, rather too
//! many than too few; the server knows what they stand for.

use std::collections::BTreeSet;
use std::fmt;

use crate::sql::{Token, TokenKind, tokens};

/// Types whose input from text depends on nothing but the session's settings: not on the time, as
/// the date `now` does, and not on the catalog. They may be qualified with `pg_catalog`.
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
/// Words that may precede a parenthesis and are no functions.
const NOT_FUNCTIONS: &[&str] = &[
    "and",
    "any",
    "all",
    "array",
    "as",
    "between",
    "from",
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

/// Operators behind words: `IN`, `BETWEEN`, `LIKE`, `CASE x WHEN` and so on.
const WORD_OPERATORS: &[&str] =
    &["=", "<>", "<", ">", "<=", ">=", "~~", "!~~", "~~*", "!~~*", "~", "!~"];
/// The most signs in a row that are analyzed.
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

/// What expressions refer to, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References {
    /// Functions.
    pub functions: BTreeSet<String>,
    /// Functions that must be the server's own aggregates.
    pub aggregates: BTreeSet<String>,
    /// Functions of one argument, which may be types that the argument is cast to.
    pub casts: BTreeSet<String>,
    /// Columns that are cast to a type whose input may depend on the time. If the column is itself
    /// a date or time, the cast does not.
    pub dates: BTreeSet<String>,
    /// The target types of casts.
    pub types: BTreeSet<String>,
    /// Operators, and parts of sign sequences that may be operators.
    pub operators: BTreeSet<String>,
    /// Names before a dot, schemas among them.
    pub schemas: BTreeSet<String>,
    /// Settings that filters read.
    pub settings: BTreeSet<String>,
    /// Whether anything is computed, beyond plain columns.
    pub computes: bool,
    /// Whether there are explicit casts.
    pub has_casts: bool,
}

impl References {
    /// The references of a plan's filters as EXPLAIN prints them: those of the statement, and those
    /// of row security policies, which appear nowhere else. Words for the time count as `now`.
    ///
    /// # Errors
    /// When a filter can't be read.
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

    /// Adds the references of a SELECT list.
    pub(crate) fn add_list(&mut self, tokens: &[Token<'_>]) -> Result<(), Unreadable> {
        let mut items = tokens.split(|token| token.depth == 0 && token.text == ",");
        match items.all(is_column) {
            true => self.add(tokens),
            false => self.add_condition(tokens),
        }
    }

    /// Adds the references of an expression.
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

    /// Adds the functions that an expression may call: names before a parenthesis, and names after
    /// a dot, since `t.f` is `f(t)` if the table has no column `f`. With one argument, the name may
    /// be a type that the argument is cast to.
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

    /// Adds the operators. Each part of a sequence of signs may be one.
    fn add_operators(&mut self, tokens: &[Token<'_>]) -> Result<(), Unreadable> {
        const SIGNS: &[u8] = b"+-*/<>=~!@#%^&|`?";
        let is_sign =
            |token: &Token<'_>| matches!(token.text.as_bytes(), [sign] if SIGNS.contains(sign));
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
        self.operators.extend(WORD_OPERATORS.iter().map(|operator| (*operator).to_owned()));
        Ok(())
    }
}

/// Whether the token is a name before a parenthesis, as in a function call.
pub(crate) fn is_called(tokens: &[Token<'_>], at: usize) -> bool {
    let token = &tokens[at];
    token.is_name()
        && tokens.get(at + 1).is_some_and(|next| next.kind == TokenKind::Open)
        && !(token.kind == TokenKind::Word
            && NOT_FUNCTIONS.contains(&token.text.to_ascii_lowercase().as_str()))
}

/// The names that a token may fold to: two if the server's encoding decides.
pub(crate) fn folded(token: &Token<'_>) -> Vec<String> {
    match token.kind {
        TokenKind::Word => vec![token.text.to_ascii_lowercase(), token.text.to_lowercase()],
        TokenKind::Quoted => token.name().into_iter().collect(),
        _ => vec![],
    }
}

/// Whether an item of a list is a column, with or without an alias, or all columns.
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

/// Whether the parenthesis that opens here surely encloses more than one argument.
fn has_several(tokens: &[Token<'_>]) -> bool {
    let inside = tokens
        .iter()
        .take_while(|token| tokens.first().is_some_and(|open| token.depth >= open.depth));
    let mut own = inside.filter(|token| token.depth == tokens[0].depth);
    // Commas inside of brackets belong to an array.
    own.clone().any(|token| token.text == ",") && own.all(|token| token.text != "[")
}

/// The columns that are cast to a type whose input may depend on the time or the catalog. None if
/// anything else is cast to such a type. Literals don't count: they are checked elsewhere.
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

/// The column that an expression ends with, qualified or not.
fn last_column(tokens: &[Token<'_>]) -> Option<String> {
    // A column in parentheses that are not a call's.
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
    // Otherwise the name belongs to a type, a collation, an attribute, or it ends a CASE.
    let is_other = |before: &Token<'_>| matches!(before.text, ":" | ".") || before.is("collate");
    let is_column = column.is_name() && !column.is("end");
    column.name().filter(|_| is_column && !before.last().is_some_and(is_other))
}

/// Whether the name of a [`TIMELESS`] type begins here.
fn is_timeless(tokens: &[Token<'_>]) -> bool {
    let unqualified = match tokens {
        [schema, dot, rest @ ..] if schema.is("pg_catalog") && dot.text == "." => rest,
        _ => tokens,
    };
    let is_qualified = unqualified.get(1).is_some_and(|next| next.text == ".");
    let name = unqualified.first().and_then(Token::name);
    !is_qualified && name.is_some_and(|name| TIMELESS.contains(&name.as_str()))
}
