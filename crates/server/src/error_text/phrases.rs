//! Errors that are recognised by phrases in their text.

use dray_wire::ErrorKind;

use super::{UserError, clean, cleaned};

/// How to translate errors whose text contains a phrase.
struct Phrase {
    /// Written in lower case.
    phrase: &'static str,
    sqlstate: &'static str,
    /// None keeps the engine's message, cleaned.
    message: Option<&'static str>,
    hint: &'static str,
}

const fn entry(
    phrase: &'static str,
    sqlstate: &'static str,
    message: Option<&'static str>,
    hint: &'static str,
) -> Phrase {
    Phrase { phrase, sqlstate, message, hint }
}

/// The first match counts.
const PHRASES: &[Phrase] = &[
    entry("divide by zero", "22012", Some("division by zero"), ""),
    entry("division by zero", "22012", Some("division by zero"), ""),
    entry(
        "more than one row",
        "21000",
        Some("a subquery used as a value has more than one row"),
        "limit it to one row",
    ),
    entry("end with its escape", "22025", None, ""),
    entry("escape_char", "0A000", Some("ESCAPE is supported only with a constant pattern"), ""),
    entry("to value of date", "22007", None, ""),
    entry("to value of time", "22007", None, ""),
    entry("cannot cast string", "22P02", None, ""),
    entry("timezone", "22023", None, ""),
    entry("error parsing timestamp", "22007", None, ""),
    entry("error parsing date", "22007", None, ""),
    entry("parsing timestamp", "22007", None, ""),
    entry(
        "date arithmetic overflow",
        "22008",
        Some("the sum of a date and an interval is out of range"),
        "",
    ),
    entry(
        "representable i64 range",
        "22008",
        Some("a time is out of its type's range"),
        "cast to a type with a larger unit",
    ),
    entry("unable to parse date from", "22008", None, ""),
    entry(
        "overflow on abs",
        "22003",
        Some("abs() of the lowest number is out of its type's range"),
        "cast to a larger type",
    ),
    entry(
        "in avgaccumulator",
        "22003",
        Some("an average is out of its type's range"),
        "cast to a smaller scale",
    ),
    entry(
        "nanosecond",
        "22008",
        None,
        "nanoseconds cover the years 1678 to 2261; cast to TIMESTAMP(6) for others",
    ),
    entry("as interval", "22007", None, ""),
    entry("invalid interval", "22007", None, ""),
    entry("too large to store", "22003", None, "cast to a larger type"),
    entry("too small to store", "22003", None, "cast to a larger type"),
    entry("can't cast value", "22003", None, "cast to a larger type"),
    entry("overflow", "22003", None, "cast to a larger type"),
    entry("out of range", "22003", None, ""),
    entry(
        "regular expression",
        "2201B",
        Some("a regular expression is not valid"),
        "check its brackets and escapes",
    ),
    entry(
        "regex",
        "2201B",
        Some("a regular expression is not valid"),
        "check its brackets and escapes",
    ),
    entry("must appear in the group by", "42803", None, "add it to GROUP BY, or aggregate it"),
    entry(
        "could not be resolved from available columns",
        "42803",
        None,
        "add it to GROUP BY, or aggregate it",
    ),
    entry("aggregate function calls cannot be nested", "42803", None, ""),
    entry("aggregate functions are not allowed", "42803", None, ""),
    entry("window function", "42P20", None, ""),
    entry("invalid function", "42883", None, "SHOW FUNCTIONS lists the functions"),
    entry(
        "candidate functions",
        "42883",
        None,
        "cast the arguments to types that the function accepts",
    ),
    entry(
        "no function matches",
        "42883",
        None,
        "cast the arguments to types that the function accepts",
    ),
    entry("function expects", "42883", None, ""),
    entry("function requires", "42883", None, ""),
    entry("unique expression names", "42701", None, "give one of them another name with AS"),
    entry("different number of columns", "42601", None, ""),
    entry("same number of columns", "42601", None, ""),
    entry("common argument type", "42804", None, "cast one of the two"),
    entry("cannot coerce", "42804", None, "cast one of the two"),
    entry("cannot automatically convert", "42804", None, "cast it"),
    entry("incompatible", "42804", None, ""),
    entry("unsupported cast", "42846", None, ""),
    entry("casting from", "42846", None, ""),
    entry("ambiguous", "42702", None, "put the table's name before it"),
    entry(
        "ddl not supported",
        "25006",
        Some("the server is read only: it accepts queries, no definitions"),
        "",
    ),
    entry(
        "dml not supported",
        "25006",
        Some("the server is read only: it accepts queries, no changes"),
        "",
    ),
    entry(
        "statement not supported",
        "0A000",
        Some("this kind of statement is not supported: the server accepts queries"),
        "",
    ),
    entry(
        "outerreferencecolumn",
        "0A000",
        Some("a subquery uses a column of the outer query in a way that is not supported"),
        "rewrite it as a join; for lists, SELECT unnest(column) FROM table",
    ),
    entry(
        "placeholder",
        "42P02",
        None,
        "number the parameters $1, $2, … and give a value for each",
    ),
];

/// Translates an error by the phrases in its text.
pub(super) fn by_phrase(kind: ErrorKind, text: &str) -> Option<UserError> {
    if let Some(name) = missing_table(text) {
        return Some(UserError::new(
            ErrorKind::Query,
            "42P01",
            format!("there is no table {name}"),
            "",
        ));
    }
    let low = text.to_lowercase();
    let Phrase { sqlstate, message, hint, .. } =
        PHRASES.iter().find(|entry| low.contains(entry.phrase))?;
    let message = message.map_or_else(|| clean::lowercase_first(&cleaned(text)), str::to_owned);
    Some(UserError::new(kind, sqlstate, message, *hint))
}

/// The name in "table 'a.b.c' not found".
fn missing_table(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("able '").or_else(|| text.split_once("table function '"))?;
    let (name, rest) = rest.split_once('\'')?;
    rest.starts_with(" not found").then(|| cleaned(name))
}
