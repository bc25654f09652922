//! Names of tables and columns.

use arrow::datatypes::Schema;
use dray_postgres::{CancelCheck as SocketCheck, Session, Socket};

use crate::error::{Error, Result};
use crate::write::WriteOptions;

/// The bytes of a name that every server takes (`NAMEDATALEN`, less one).
pub(super) const NAME_BYTES: usize = 63;

/// A name as SQL writes it.
pub(super) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A string literal that means the same whether or not backslashes escape in plain strings.
pub(super) fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// Checks the names of the table, its schema and the data's columns.
///
/// # Errors
/// When one is empty, has a NUL, or is longer than the server's names: the server would cut it, and
/// a table of the shorter name may be another one.
pub(super) fn check_names(
    session: &mut Session<Socket>,
    table: &str,
    schema: &Schema,
    options: &WriteOptions,
    check: SocketCheck<'_>,
) -> Result<()> {
    let columns = schema.fields().iter().map(|field| ("a column", field.name().as_str()));
    let place = options.schema.as_deref().map(|name| ("the schema", name));
    let mut longest = ("", "");
    for (what, name) in [("the table", table)].into_iter().chain(place).chain(columns) {
        if name.is_empty() {
            let error = Error::usage(format!("{what} has an empty name"));
            return Err(match what {
                "the schema" => error.with_hint("leave it out for the session's own"),
                _ => error.with_hint("give it a name of at least one character"),
            });
        }
        if name.contains('\0') {
            let what = format!("the name {name:?} has a NUL, which PostgreSQL does not take");
            return Err(Error::usage(what));
        }
        if name.len() > longest.1.len() {
            longest = (what, name);
        }
    }
    let (what, name) = longest;
    if name.len() <= NAME_BYTES {
        return Ok(());
    }
    let max = "SELECT pg_catalog.current_setting('max_identifier_length')";
    let max = session.ask(max, check)?.into_iter().flatten().flatten().next();
    match max.and_then(|max| max.parse().ok()).unwrap_or(NAME_BYTES) {
        max if name.len() > max => {
            let bytes = name.len();
            let what =
                format!("the name {name:?} of {what} has {bytes} bytes, and names have {max}");
            Err(Error::usage(what).with_hint("shorten it: the server would cut it"))
        }
        _ => Ok(()),
    }
}
