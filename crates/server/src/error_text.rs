//! The engine's errors as sentences of ours: a kind, an SQLSTATE, what was found, and what the user
//! can do.
//!
//! ```text
//!   engine's error ──▶ root: the innermost that it wraps ──▶ by its type ──▶ by its words ──▶ cleaned
//! ```
//!
//! The engine says most things by words alone, so that [`BY_WORDS`] has to know them. What it does
//! not know is cleaned all the same: no prefixes, no dumps of structures, no paths of this host, no
//! name that the engine gives itself.

use std::error::Error;
use std::io;

use arrow::error::ArrowError;
use datafusion::common::{Column, DataFusionError, SchemaError};
use datafusion::sql::sqlparser::parser::ParserError;
use dray_wire::{ErrorKind, ServerError};

use crate::catalog::FileError;

mod clean;

pub(crate) use clean::cleaned;

/// So many names are listed as candidates.
const NAMES_MAX: usize = 12;
const DEFECT: &str = "this is a defect; please report the query";
const MORE_MEMORY: &str = "raise the server's --memory, or let fewer statements run at a time";
const MORE_DISK: &str = "free some space in the server's --spill folder, or name a larger one";

/// What a statement is told.
struct Told {
    kind: ErrorKind,
    sqlstate: &'static str,
    message: String,
    hint: String,
}

impl Told {
    fn new(
        kind: ErrorKind,
        sqlstate: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { kind, sqlstate, message: message.into(), hint: hint.into() }
    }
}

/// The error of a statement that could not be planned. `tables` are the names that there are.
pub(crate) fn planning_error(
    cause: &DataFusionError,
    tables: impl FnOnce() -> Vec<String>,
) -> ServerError {
    let mut told = told(cause, ErrorKind::Query);
    if told.sqlstate == "42P01" && told.hint.is_empty() {
        told.hint = match listed(tables()) {
            names if names.is_empty() => "the server has no tables".to_owned(),
            names => format!("the tables are {names}"),
        };
    }
    server_error(told)
}

/// The error of a statement that failed while it ran.
pub(crate) fn execution_error(cause: &DataFusionError) -> ServerError {
    server_error(told(cause, ErrorKind::Execution))
}

fn server_error(Told { kind, sqlstate, message, hint }: Told) -> ServerError {
    ServerError { statement: 0, kind, sqlstate: sqlstate.into(), message, hint }
}

fn told(cause: &DataFusionError, kind: ErrorKind) -> Told {
    if let Some(full) = disk_full(cause) {
        return full;
    }
    if let Some(file) = FileError::behind(cause) {
        let (sqlstate, hint) = file.advice();
        return Told::new(ErrorKind::Execution, sqlstate, file.to_string(), hint);
    }
    let root = root(cause);
    match root {
        DataFusionError::SQL(cause, _) => syntax(cause),
        DataFusionError::SchemaError(cause, _) => schema(cause),
        DataFusionError::ResourcesExhausted(text) => resources(text),
        DataFusionError::NotImplemented(text) => unsupported(text),
        DataFusionError::Plan(text)
        | DataFusionError::Execution(text)
        | DataFusionError::Configuration(text) => {
            by_words(kind, text).unwrap_or_else(|| other(kind, text))
        }
        DataFusionError::ArrowError(cause, _) => arrow(kind, cause),
        DataFusionError::ParquetError(_) => file("a Parquet file", &root.message()),
        DataFusionError::ObjectStore(_) | DataFusionError::IoError(_) => {
            file("a file", &root.message())
        }
        DataFusionError::External(cause) => external(kind, cause.as_ref()),
        DataFusionError::Internal(text) => by_words(kind, text).unwrap_or_else(|| defect(text)),
        other => defect(&other.message()),
    }
}

/// The innermost of the engine's errors; of several, the first.
fn root(cause: &DataFusionError) -> &DataFusionError {
    let mut root = cause.find_root();
    while let DataFusionError::Collection(all) = root
        && let Some(first) = all.first()
    {
        root = first.find_root();
    }
    root
}

/// A disk that is full is that, whoever noticed it.
fn disk_full(cause: &DataFusionError) -> Option<Told> {
    let full = |io: &io::Error| {
        matches!(io.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    };
    let said =
        |text: &str| text.contains("No space left on device") || text.contains("os error 28");
    let mut is_full = said(&root(cause).message());
    let mut next: Option<&(dyn Error + 'static)> = Some(cause);
    while let Some(error) = next {
        is_full |= error.downcast_ref::<io::Error>().is_some_and(full);
        next = error.source();
    }
    let message = "the disk is full to which the statement spills what does not fit into memory";
    is_full.then(|| Told::new(ErrorKind::Resources, "53100", message, MORE_DISK))
}

fn syntax(cause: &ParserError) -> Told {
    let text = match cause {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => text,
        ParserError::RecursionLimitExceeded => {
            return Told::new(
                ErrorKind::Query,
                "54001",
                "the statement is nested too deeply",
                "nest it less deeply",
            );
        }
    };
    let text = clean::lowered(&clean::cleaned(text));
    // "expected: an expression, found: FROM at Line: 1, Column: 8"
    let message = match text.rsplit_once(" at Line: ") {
        Some((what, at)) => {
            format!("syntax error at line {}: {what}", at.replace("Column:", "column"))
        }
        None => format!("syntax error at the end: {text}"),
    };
    Told::new(ErrorKind::Query, "42601", message, "")
}

fn schema(cause: &SchemaError) -> Told {
    let (sqlstate, message, hint) = match cause {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let names = valid_fields.iter().map(column_name);
            let hint = match listed(names.collect()) {
                names if names.is_empty() => String::new(),
                names => format!("the columns are {names}; names with capitals need double quotes"),
            };
            ("42703", format!("there is no column {}", column_name(field)), hint)
        }
        SchemaError::AmbiguousReference { field } => {
            let message = format!("column {} could be that of several tables", field.name);
            ("42702", message, "put the table's name before it".to_owned())
        }
        SchemaError::DuplicateQualifiedField { name, .. }
        | SchemaError::DuplicateUnqualifiedField { name } => (
            "42701",
            format!("two columns are named {}", cleaned(name)),
            "name one of them with AS".to_owned(),
        ),
    };
    Told::new(ErrorKind::Query, sqlstate, message, hint)
}

/// A column as one writes it, with its table if that has a name which was given to it.
fn column_name(column: &Column) -> String {
    match &column.relation {
        Some(table) => format!("{}.{}", table.table(), column.name),
        None => column.name.clone(),
    }
}

/// Names, one behind the other, up to as many as one reads.
fn listed(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(NAMES_MAX);
    names.truncate(NAMES_MAX);
    let names = names.join(", ");
    if more > 0 { format!("{names} and {more} more") } else { names }
}

fn resources(text: &str) -> Told {
    let disk = ["disk space", "temp_directory", "would spill", "a spill file"];
    if disk.iter().any(|words| text.contains(words)) {
        let message = "the statement needs more disk space for what does not fit into memory than the server gives it";
        return Told::new(ErrorKind::Resources, "53100", message, "raise the server's --memory");
    }
    // Others than the engine's pool say themselves what they wanted.
    let message = match text.contains("Failed to allocate") || text.contains("memory consumers") {
        true => "the statement needs more memory than the server has left for it".to_owned(),
        false => clean::lowered(&cleaned(text)),
    };
    Told::new(ErrorKind::Resources, "53200", message, MORE_MEMORY)
}

fn unsupported(text: &str) -> Told {
    if let Some(told) = by_words(ErrorKind::Query, text) {
        return told;
    }
    let message = format!("this is not supported: {}", clean::lowered(&cleaned(text)));
    Told::new(ErrorKind::Query, "0A000", message, "write the query in another way")
}

fn arrow(kind: ErrorKind, cause: &ArrowError) -> Told {
    match cause {
        ArrowError::DivideByZero => Told::new(kind, "22012", "division by zero", ""),
        ArrowError::ArithmeticOverflow(text) => Told::new(
            kind,
            "22003",
            format!(
                "{} is out of its type's range",
                text.strip_prefix("Overflow happened on: ").unwrap_or(text)
            ),
            "cast to a larger type",
        ),
        ArrowError::CastError(text) => by_words(kind, text)
            .unwrap_or_else(|| Told::new(kind, "22P02", clean::lowered(&cleaned(text)), "")),
        ArrowError::ParseError(text) => by_words(kind, text)
            .unwrap_or_else(|| Told::new(kind, "22007", clean::lowered(&cleaned(text)), "")),
        ArrowError::NotYetImplemented(text) => unsupported(text),
        ArrowError::MemoryError(text) => resources(text),
        ArrowError::OffsetOverflowError(_) => {
            let message = "a column's texts or lists are longer than 2 GiB together";
            Told::new(
                ErrorKind::Limit,
                "54000",
                message,
                "select fewer rows, or cast to a large type",
            )
        }
        ArrowError::DictionaryKeyOverflowError => {
            let message = "a column has more different values than its dictionary's keys can count";
            Told::new(ErrorKind::Limit, "54000", message, "cast it to text")
        }
        ArrowError::CsvError(text) => file("a CSV file", text),
        ArrowError::JsonError(text) => file("a JSON file", text),
        ArrowError::IpcError(text) => file("an Arrow file", text),
        ArrowError::ParquetError(text) => file("a Parquet file", text),
        ArrowError::IoError(text, _) => file("a file", text),
        ArrowError::ExternalError(cause) => external(kind, cause.as_ref()),
        ArrowError::InvalidArgumentError(text)
        | ArrowError::ComputeError(text)
        | ArrowError::SchemaError(text) => by_words(kind, text)
            .unwrap_or_else(|| Told::new(kind, "22000", clean::lowered(&cleaned(text)), "")),
        other => by_words(kind, &other.to_string())
            .unwrap_or_else(|| self::other(kind, &other.to_string())),
    }
}

fn external(kind: ErrorKind, cause: &(dyn Error + 'static)) -> Told {
    use dray_sort::Error as Sort;
    match cause.downcast_ref::<Sort>() {
        Some(cause @ Sort::Memory { .. }) => {
            Told::new(ErrorKind::Resources, "53200", cause.to_string(), MORE_MEMORY)
        }
        Some(cause @ (Sort::SpillLimit { .. } | Sort::Spill { .. })) => Told::new(
            ErrorKind::Resources,
            "53100",
            clean::without_paths(&cause.to_string()),
            MORE_DISK,
        ),
        _ => by_words(kind, &cause.to_string()).unwrap_or_else(|| other(kind, &cause.to_string())),
    }
}

/// A file that can't be read, which is the server's trouble, not the statement's.
fn file(what: &str, text: &str) -> Told {
    let text = clean::lowered(&clean::without_paths(&cleaned(text)));
    let sqlstate =
        if text.contains("(os error") || text.contains("not found") { "58030" } else { "XX001" };
    Told::new(
        ErrorKind::Execution,
        sqlstate,
        format!("{what} can't be read: {text}"),
        "check the files of the server",
    )
}

fn defect(text: &str) -> Told {
    let message = format!(
        "the engine failed on this statement: {}",
        clean::lowered(&clean::without_paths(&cleaned(text)))
    );
    Told::new(ErrorKind::Internal, "XX000", message, DEFECT)
}

fn other(kind: ErrorKind, text: &str) -> Told {
    let sqlstate = if kind == ErrorKind::Query { "42000" } else { "XX000" };
    Told::new(kind, sqlstate, clean::lowered(&cleaned(text)), "")
}

/// What errors of given words are: what they contain, in small letters; the SQLSTATE; the sentence,
/// if the engine's own won't do; what to do.
type Words = (&'static str, &'static str, Option<&'static str>, &'static str);

/// The first that fits decides.
const BY_WORDS: &[Words] = &[
    ("divide by zero", "22012", Some("division by zero"), ""),
    ("division by zero", "22012", Some("division by zero"), ""),
    (
        "more than one row",
        "21000",
        Some("a subquery in the place of a value has more than one row"),
        "limit it to one row",
    ),
    ("end with its escape", "22025", None, ""),
    (
        "escape_char",
        "0A000",
        Some("ESCAPE is not supported here but with a pattern that is given"),
        "",
    ),
    ("to value of date", "22007", None, ""),
    ("to value of time", "22007", None, ""),
    ("cannot cast string", "22P02", None, ""),
    ("timezone", "22023", None, ""),
    ("error parsing timestamp", "22007", None, ""),
    ("error parsing date", "22007", None, ""),
    ("parsing timestamp", "22007", None, ""),
    (
        "date arithmetic overflow",
        "22008",
        Some("a date and an interval make a date that is out of range"),
        "",
    ),
    (
        "representable i64 range",
        "22008",
        Some("a time is out of the range of its type"),
        "cast to one with a larger unit",
    ),
    ("unable to parse date from", "22008", None, ""),
    (
        "overflow on abs",
        "22003",
        Some("the abs() of the least number is out of its type's range"),
        "cast to a larger type",
    ),
    (
        "in avgaccumulator",
        "22003",
        Some("an average is out of its type's range"),
        "cast to a smaller scale",
    ),
    (
        "nanosecond",
        "22008",
        None,
        "years 1678 to 2261 have nanoseconds; cast to TIMESTAMP(6) for others",
    ),
    ("as interval", "22007", None, ""),
    ("invalid interval", "22007", None, ""),
    ("too large to store", "22003", None, "cast to a larger type"),
    ("too small to store", "22003", None, "cast to a larger type"),
    ("can't cast value", "22003", None, "cast to a larger type"),
    ("overflow", "22003", None, "cast to a larger type"),
    ("out of range", "22003", None, ""),
    (
        "regular expression",
        "2201B",
        Some("a regular expression is not valid"),
        "check its brackets and escapes",
    ),
    ("regex", "2201B", Some("a regular expression is not valid"), "check its brackets and escapes"),
    ("must appear in the group by", "42803", None, "add it to GROUP BY, or aggregate it"),
    (
        "could not be resolved from available columns",
        "42803",
        None,
        "add it to GROUP BY, or aggregate it",
    ),
    ("aggregate function calls cannot be nested", "42803", None, ""),
    ("aggregate functions are not allowed", "42803", None, ""),
    ("window function", "42P20", None, ""),
    ("invalid function", "42883", None, "SHOW FUNCTIONS lists what there is"),
    ("candidate functions", "42883", None, "cast the arguments to types that it takes"),
    ("no function matches", "42883", None, "cast the arguments to types that it takes"),
    ("function expects", "42883", None, ""),
    ("function requires", "42883", None, ""),
    ("unique expression names", "42701", None, "give one of them another name with AS"),
    ("different number of columns", "42601", None, ""),
    ("same number of columns", "42601", None, ""),
    ("common argument type", "42804", None, "cast one of the two"),
    ("cannot coerce", "42804", None, "cast one of the two"),
    ("cannot automatically convert", "42804", None, "cast it"),
    ("incompatible", "42804", None, ""),
    ("unsupported cast", "42846", None, ""),
    ("casting from", "42846", None, ""),
    ("ambiguous", "42702", None, "put the table's name before it"),
    (
        "ddl not supported",
        "25006",
        Some("the server is read only: it takes queries, no definitions"),
        "",
    ),
    (
        "dml not supported",
        "25006",
        Some("the server is read only: it takes queries, no changes"),
        "",
    ),
    (
        "statement not supported",
        "0A000",
        Some("this kind of statement is not supported: the server takes queries"),
        "",
    ),
    (
        "outerreferencecolumn",
        "0A000",
        Some("a subquery uses a column of the query around it in a way that is not supported"),
        "write it as a join; for lists, SELECT unnest(column) FROM table",
    ),
    ("placeholder", "42P02", None, "number the parameters $1, $2, … and give a value for each"),
];

/// What an error is by its words.
fn by_words(kind: ErrorKind, text: &str) -> Option<Told> {
    if let Some(name) = missing_table(text) {
        return Some(Told::new(ErrorKind::Query, "42P01", format!("there is no table {name}"), ""));
    }
    let low = text.to_lowercase();
    let (_, sqlstate, message, hint) = BY_WORDS.iter().find(|(words, ..)| low.contains(words))?;
    let message = message.map_or_else(|| clean::lowered(&cleaned(text)), str::to_owned);
    Some(Told::new(kind, sqlstate, message, *hint))
}

/// The name in "table 'a.b.c' not found".
fn missing_table(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("able '").or_else(|| text.split_once("table function '"))?;
    let (name, rest) = rest.split_once('\'')?;
    rest.starts_with(" not found").then(|| cleaned(name))
}
