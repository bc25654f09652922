//! Names that are not UTF-8, which SQLite takes from programs that give it other bytes. Here they
//! can't become names of columns, and the library that calls SQLite panics at them.

use rusqlite::{Connection, Result};

/// All that the file defines. Its name is a part of what made it.
const OBJECTS: &str = "SELECT type, CAST(name AS BLOB), CAST(sql AS BLOB) FROM sqlite_schema";
/// The names of a table's columns with their types.
const COLUMNS: &str = "SELECT CAST(name AS BLOB), CAST(type AS BLOB) FROM pragma_table_xinfo(?)";

/// A clause about an object of the file which has such a name, or whose columns have.
///
/// # Errors
/// If the file can't be read.
pub(crate) fn name_that_is_no_text(connection: &Connection) -> Result<Option<String>> {
    let mut objects = connection.prepare(OBJECTS)?;
    let mut rows = objects.query(())?;
    while let Some(row) = rows.next()? {
        let (kind, name, sql): (String, Vec<u8>, Option<Vec<u8>>) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        let shown = name.escape_ascii();
        let Ok(name) = std::str::from_utf8(&name) else {
            let what = format!("the {kind} {shown} has a name that is not UTF-8; rename it");
            return Ok(Some(what));
        };
        // Most files need no look at each column.
        let is_text = sql.is_none_or(|sql| std::str::from_utf8(&sql).is_ok());
        let has_columns = matches!(kind.as_str(), "table" | "view");
        // A view of what is not there can't be read anyway.
        if !is_text && has_columns && !has_columns_of_text(connection, name).unwrap_or(true) {
            let what = format!(
                "the {kind} {shown} has a column whose name or type is not UTF-8; rename it"
            );
            return Ok(Some(what));
        }
    }
    Ok(None)
}

/// Whether the names and the declared types of a table's columns are UTF-8.
fn has_columns_of_text(connection: &Connection, table: &str) -> Result<bool> {
    let mut columns = connection.prepare(COLUMNS)?;
    let mut rows = columns.query([table])?;
    while let Some(row) = rows.next()? {
        for text in [row.get::<_, Option<Vec<u8>>>(0)?, row.get(1)?].iter().flatten() {
            if std::str::from_utf8(text).is_err() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
