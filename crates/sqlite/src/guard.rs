//! What statements may do: a file that is opened to read stays as it is, and no source lets its
//! clients reach other files or load code.

use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, Result};

use crate::stack::Stack;

/// Pragmas that tell something of the file, without a value.
const PRAGMAS: &[&str] = &[
    "application_id",
    "collation_list",
    "compile_options",
    "data_version",
    "database_list",
    "encoding",
    "foreign_key_check",
    "freelist_count",
    "function_list",
    "integrity_check",
    "journal_mode",
    "page_count",
    "page_size",
    "pragma_list",
    "quick_check",
    "schema_version",
    "table_list",
    "user_version",
];
/// Those whose value is what to look at, and changes nothing.
const PRAGMAS_OF_TABLES: &[&str] = &[
    "foreign_key_check",
    "foreign_key_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "quick_check",
    "table_info",
    "table_xinfo",
];
/// Pragmas that name places for files, or undo what [`guard`] has set.
const PRAGMAS_THAT_ESCAPE: &[&str] =
    &["data_store_directory", "temp_store_directory", "trusted_schema", "writable_schema"];
/// What SQLite limits. It recurses for each wildcard of a pattern of LIKE or GLOB, and for each view
/// in a view, of which there are no more than objects of a schema. Expressions, triggers and JSON
/// have at most 1000 levels anyway, a UNION 500 SELECTs; where these are within each other,
/// [`Stack`] bounds them.
const LIMITS: &[(Limit, i32)] = &[
    // The longest value, or row of a table, in bytes.
    (Limit::SQLITE_LIMIT_LENGTH, 256 << 20),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000),
    (Limit::SQLITE_LIMIT_SCHEMA, 10_000),
];

/// The memory of SQLite in this process, in bytes, which all connections share: some values of the
/// greatest length. A row of a result is in it as a whole.
const HEAP_BYTES_MAX: u64 = 1 << 30;

/// Limits what a connection does, before it reads its file.
///
/// # Errors
/// If SQLite refuses a setting.
pub(crate) fn limit(connection: &Connection) -> Result<()> {
    for (limit, value) in LIMITS {
        connection.set_limit(*limit, *value)?;
    }
    let sql = format!("PRAGMA hard_heap_limit = {HEAP_BYTES_MAX}");
    connection.query_row(&sql, (), |_| Ok(()))
}

/// Guards a connection whose file has been opened. Its statements have this stack.
///
/// # Errors
/// If SQLite refuses a setting.
pub(crate) fn guard(connection: &mut Connection, writable: bool, stack: &Arc<Stack>) -> Result<()> {
    // Not even a schema that somebody prepared may do what a statement may not.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    let may = if writable { may_write } else { may_read };
    if !writable {
        connection.pragma_update(None, "query_only", true)?;
        connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    }
    let stack = stack.clone();
    connection.authorizer(Some(move |context: AuthContext<'_>| match stack.has_room() {
        true => may(context),
        false => Authorization::Deny,
    }))
}

fn allow(is_allowed: bool) -> Authorization {
    if is_allowed { Authorization::Allow } else { Authorization::Deny }
}

fn may_read(context: AuthContext<'_>) -> Authorization {
    allow(match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => true,
        // An index of boxes prepares them when it is opened to read. They can't run: the session
        // refuses statements that are not read-only, and SQLite has the file open to read.
        AuthAction::Insert { .. } | AuthAction::Update { .. } | AuthAction::Delete { .. } => true,
        AuthAction::Function { function_name } => !loads_code(function_name),
        AuthAction::Pragma { pragma_name, pragma_value } => reads(pragma_name, pragma_value),
        _ => false,
    })
}

fn may_write(context: AuthContext<'_>) -> Authorization {
    allow(match context.action {
        AuthAction::Function { function_name } => !loads_code(function_name),
        // VACUUM attaches a file without a name.
        AuthAction::Attach { filename } => filename.is_empty(),
        AuthAction::Pragma { pragma_name, .. } => !is_among(PRAGMAS_THAT_ESCAPE, pragma_name),
        AuthAction::Unknown { .. } => false,
        _ => true,
    })
}

fn loads_code(function: &str) -> bool {
    function.eq_ignore_ascii_case("load_extension")
}

fn reads(pragma: &str, value: Option<&str>) -> bool {
    is_among(if value.is_none() { PRAGMAS } else { PRAGMAS_OF_TABLES }, pragma)
}

fn is_among(pragmas: &[&str], pragma: &str) -> bool {
    pragmas.iter().any(|known| known.eq_ignore_ascii_case(pragma))
}
