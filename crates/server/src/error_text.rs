//! Translates the engine's errors for users: a kind, an SQLSTATE, what was found, and what the user
//! can do.
//!
//! ```text
//!   engine's error ──▶ root cause ──▶ by its type ──▶ by its phrases ──▶ cleaned
//! ```
//!
//! Most of the engine's errors differ in their text alone, so `phrases.rs` matches on the text. All
//! texts are cleaned: no prefixes, no dumps of structures, no paths of this host, no mention of the
//! engine's name.

use std::error::Error;
use std::io;

use arrow::error::ArrowError;
use datafusion::common::{Column, DataFusionError, SchemaError};
use datafusion::sql::sqlparser::parser::ParserError;
use dray_wire::{ErrorKind, ServerError};

use crate::catalog::FileError;

mod clean;
mod phrases;

pub(crate) use clean::cleaned;
use phrases::by_phrase;

/// Maximum number of candidate names to list.
const NAMES_MAX: usize = 12;
const DEFECT: &str = "this is a defect; please report the query";
const MORE_MEMORY: &str = "raise the server's --memory, or let fewer statements run at a time";
const MORE_SPILL: &str = "raise the server's --spill-max";
const MORE_DISK: &str = "free some space in the server's --spill folder, or name a larger one";

/// An error for the user.
struct UserError {
    kind: ErrorKind,
    sqlstate: &'static str,
    message: String,
    hint: String,
}

impl UserError {
    fn new(
        kind: ErrorKind,
        sqlstate: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { kind, sqlstate, message: message.into(), hint: hint.into() }
    }
}

/// The error of a statement that could not be planned. `tables` lists the existing tables.
pub(crate) fn planning_error(
    cause: &DataFusionError,
    tables: impl FnOnce() -> Vec<String>,
) -> ServerError {
    let mut error = translate(cause, ErrorKind::Query);
    if error.sqlstate == "42P01" && error.hint.is_empty() {
        error.hint = match list(tables()) {
            names if names.is_empty() => "the server has no tables".to_owned(),
            names => format!("the tables are {names}"),
        };
    }
    server_error(error)
}

/// The error of a statement that failed while it ran.
pub(crate) fn execution_error(cause: &DataFusionError) -> ServerError {
    server_error(translate(cause, ErrorKind::Execution))
}

fn server_error(UserError { kind, sqlstate, message, hint }: UserError) -> ServerError {
    ServerError { statement: 0, kind, sqlstate: sqlstate.into(), message, hint }
}

fn translate(cause: &DataFusionError, kind: ErrorKind) -> UserError {
    if let Some(full) = disk_full(cause) {
        return full;
    }
    if let Some(file) = FileError::source_of(cause) {
        let (sqlstate, hint) = file.advice();
        return UserError::new(ErrorKind::Execution, sqlstate, file.to_string(), hint);
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
            by_phrase(kind, text).unwrap_or_else(|| other(kind, text))
        }
        DataFusionError::ArrowError(cause, _) => arrow(kind, cause),
        DataFusionError::ParquetError(_) => file("a Parquet file", &root.message()),
        DataFusionError::ObjectStore(_) | DataFusionError::IoError(_) => {
            file("a file", &root.message())
        }
        DataFusionError::External(cause) => external(kind, cause.as_ref()),
        DataFusionError::Internal(text) => by_phrase(kind, text).unwrap_or_else(|| defect(text)),
        other => defect(&other.message()),
    }
}

/// The innermost of the engine's errors; the first one of a collection.
fn root(cause: &DataFusionError) -> &DataFusionError {
    let mut root = cause.find_root();
    while let DataFusionError::Collection(all) = root
        && let Some(first) = all.first()
    {
        root = first.find_root();
    }
    root
}

/// The error of a full disk, at any level of the chain.
fn disk_full(cause: &DataFusionError) -> Option<UserError> {
    let full = |io: &io::Error| {
        matches!(io.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    };
    let says_full =
        |text: &str| text.contains("No space left on device") || text.contains("os error 28");
    let mut is_full = says_full(&root(cause).message());
    let mut next: Option<&(dyn Error + 'static)> = Some(cause);
    while let Some(error) = next {
        is_full |= error.downcast_ref::<io::Error>().is_some_and(full);
        next = error.source();
    }
    let message = "the statement needs to spill to disk, and the disk is full";
    is_full.then(|| UserError::new(ErrorKind::Resources, "53100", message, MORE_DISK))
}

fn syntax(cause: &ParserError) -> UserError {
    let text = match cause {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => text,
        ParserError::RecursionLimitExceeded => {
            return UserError::new(
                ErrorKind::Query,
                "54001",
                "the statement is nested too deeply",
                "nest it less deeply",
            );
        }
    };
    let text = clean::lowercase_first(&clean::cleaned(text));
    // "expected: an expression, found: FROM at Line: 1, Column: 8"
    let message = match text.rsplit_once(" at Line: ") {
        Some((what, at)) => {
            format!("syntax error at line {}: {what}", at.replace("Column:", "column"))
        }
        None => format!("syntax error at the end: {text}"),
    };
    UserError::new(ErrorKind::Query, "42601", message, "")
}

fn schema(cause: &SchemaError) -> UserError {
    let (sqlstate, message, hint) = match cause {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let names = valid_fields.iter().map(column_name);
            let hint = match list(names.collect()) {
                names if names.is_empty() => String::new(),
                names => format!("the columns are {names}; names with capitals need double quotes"),
            };
            ("42703", format!("there is no column {}", column_name(field)), hint)
        }
        SchemaError::AmbiguousReference { field } => {
            let message = format!("column {} exists in several tables", field.name);
            ("42702", message, "put the table's name before it".to_owned())
        }
        SchemaError::DuplicateQualifiedField { name, .. }
        | SchemaError::DuplicateUnqualifiedField { name } => (
            "42701",
            format!("two columns are named {}", cleaned(name)),
            "name one of them with AS".to_owned(),
        ),
    };
    UserError::new(ErrorKind::Query, sqlstate, message, hint)
}

/// A column's name, qualified by its table if that is known.
fn column_name(column: &Column) -> String {
    match &column.relation {
        Some(table) => format!("{}.{}", table.table(), column.name),
        None => column.name.clone(),
    }
}

/// A list of at most [`NAMES_MAX`] names.
fn list(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(NAMES_MAX);
    names.truncate(NAMES_MAX);
    let names = names.join(", ");
    if more > 0 { format!("{names} and {more} more") } else { names }
}

fn resources(text: &str) -> UserError {
    let disk = ["disk space", "temp_directory", "would spill", "a spill file"];
    if disk.iter().any(|words| text.contains(words)) {
        let message = "the statement needs more disk space to spill than the server allows";
        return UserError::new(ErrorKind::Resources, "53100", message, MORE_SPILL);
    }
    // Errors that are not from the engine's pool already say what was needed.
    let message = match text.contains("Failed to allocate") || text.contains("memory consumers") {
        true => "the statement needs more memory than the server has left for it".to_owned(),
        false => clean::lowercase_first(&cleaned(text)),
    };
    UserError::new(ErrorKind::Resources, "53200", message, MORE_MEMORY)
}

fn unsupported(text: &str) -> UserError {
    if let Some(error) = by_phrase(ErrorKind::Query, text) {
        return error;
    }
    let message = format!("this is not supported: {}", clean::lowercase_first(&cleaned(text)));
    UserError::new(ErrorKind::Query, "0A000", message, "rewrite the query")
}

fn arrow(kind: ErrorKind, cause: &ArrowError) -> UserError {
    match cause {
        ArrowError::DivideByZero => UserError::new(kind, "22012", "division by zero", ""),
        ArrowError::ArithmeticOverflow(text) => UserError::new(
            kind,
            "22003",
            format!(
                "{} is out of its type's range",
                text.strip_prefix("Overflow happened on: ").unwrap_or(text)
            ),
            "cast to a larger type",
        ),
        ArrowError::CastError(text) => by_phrase(kind, text).unwrap_or_else(|| {
            UserError::new(kind, "22P02", clean::lowercase_first(&cleaned(text)), "")
        }),
        ArrowError::ParseError(text) => by_phrase(kind, text).unwrap_or_else(|| {
            UserError::new(kind, "22007", clean::lowercase_first(&cleaned(text)), "")
        }),
        ArrowError::NotYetImplemented(text) => unsupported(text),
        ArrowError::MemoryError(text) => resources(text),
        ArrowError::OffsetOverflowError(_) => {
            let message = "a column's strings or lists exceed 2 GiB in total";
            UserError::new(
                ErrorKind::Limit,
                "54000",
                message,
                "select fewer rows, or cast to a large type",
            )
        }
        ArrowError::DictionaryKeyOverflowError => {
            let message =
                "a column has more distinct values than its dictionary's keys can address";
            UserError::new(ErrorKind::Limit, "54000", message, "cast it to text")
        }
        ArrowError::CsvError(text) => file("a CSV file", text),
        ArrowError::JsonError(text) => file("a JSON file", text),
        ArrowError::IpcError(text) => file("an Arrow file", text),
        ArrowError::ParquetError(text) => file("a Parquet file", text),
        ArrowError::IoError(text, _) => file("a file", text),
        ArrowError::ExternalError(cause) => external(kind, cause.as_ref()),
        ArrowError::InvalidArgumentError(text)
        | ArrowError::ComputeError(text)
        | ArrowError::SchemaError(text) => by_phrase(kind, text).unwrap_or_else(|| {
            UserError::new(kind, "22000", clean::lowercase_first(&cleaned(text)), "")
        }),
        other => by_phrase(kind, &other.to_string())
            .unwrap_or_else(|| self::other(kind, &other.to_string())),
    }
}

fn external(kind: ErrorKind, cause: &(dyn Error + 'static)) -> UserError {
    use dray_sort::Error as Sort;
    match cause.downcast_ref::<Sort>() {
        Some(cause @ Sort::Memory { .. }) => {
            UserError::new(ErrorKind::Resources, "53200", cause.to_string(), MORE_MEMORY)
        }
        Some(cause @ Sort::SpillLimit { .. }) => {
            UserError::new(ErrorKind::Resources, "53100", cause.to_string(), MORE_SPILL)
        }
        Some(cause @ Sort::Spill { .. }) => UserError::new(
            ErrorKind::Resources,
            "53100",
            clean::without_paths(&cause.to_string()),
            MORE_DISK,
        ),
        _ => by_phrase(kind, &cause.to_string()).unwrap_or_else(|| other(kind, &cause.to_string())),
    }
}

/// The error of a file that can't be read, which is a problem of the server, not of the statement.
fn file(what: &str, text: &str) -> UserError {
    let text = clean::lowercase_first(&clean::without_paths(&cleaned(text)));
    let sqlstate =
        if text.contains("(os error") || text.contains("not found") { "58030" } else { "XX001" };
    UserError::new(
        ErrorKind::Execution,
        sqlstate,
        format!("{what} can't be read: {text}"),
        "check the server's files",
    )
}

fn defect(text: &str) -> UserError {
    let message = format!(
        "the engine failed on this statement: {}",
        clean::lowercase_first(&clean::without_paths(&cleaned(text)))
    );
    UserError::new(ErrorKind::Internal, "XX000", message, DEFECT)
}

fn other(kind: ErrorKind, text: &str) -> UserError {
    let sqlstate = if kind == ErrorKind::Query { "42000" } else { "XX000" };
    UserError::new(kind, sqlstate, clean::lowercase_first(&cleaned(text)), "")
}
