//! What statements may do: a file that is opened to read stays as it is, and no source lets its
//! clients reach other files or load code.

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, Result};

/// Pragmas that tell something of the file.
const PRAGMAS: [&str; 19] = [
    "application_id",
    "collation_list",
    "compile_options",
    "data_version",
    "database_list",
    "encoding",
    "foreign_key_list",
    "freelist_count",
    "function_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "journal_mode",
    "page_count",
    "page_size",
    "pragma_list",
    "table_info",
    "table_list",
    "table_xinfo",
];
/// Those of them whose value names a table or an index, and changes nothing.
const PRAGMAS_OF_TABLES: [&str; 6] =
    ["foreign_key_list", "index_info", "index_list", "index_xinfo", "table_info", "table_xinfo"];
/// Others whose value is what to look at.
const PRAGMAS_THAT_CHECK: [&str; 5] =
    ["foreign_key_check", "integrity_check", "quick_check", "schema_version", "user_version"];

/// Guards a connection whose file has been opened.
///
/// # Errors
/// If SQLite refuses a setting.
pub(crate) fn guard(connection: &mut Connection, writable: bool) -> Result<()> {
    // Not even a schema that somebody prepared may do what a statement may not.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    if writable {
        return connection.authorizer(Some(may_write));
    }
    connection.pragma_update(None, "query_only", true)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.authorizer(Some(may_read))
}

fn allow(is_allowed: bool) -> Authorization {
    if is_allowed { Authorization::Allow } else { Authorization::Deny }
}

fn may_read(context: AuthContext<'_>) -> Authorization {
    allow(match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => true,
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
        AuthAction::Pragma { pragma_name, pragma_value } => {
            reads(pragma_name, pragma_value) || !reaches_files(pragma_name)
        }
        AuthAction::Unknown { .. } => false,
        _ => true,
    })
}

fn loads_code(function: &str) -> bool {
    function.eq_ignore_ascii_case("load_extension")
}

/// Whether a pragma names places for files, or undoes what [`guard`] has set.
fn reaches_files(pragma: &str) -> bool {
    ["temp_store_directory", "data_store_directory", "writable_schema", "trusted_schema"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(pragma))
}

fn reads(pragma: &str, value: Option<&str>) -> bool {
    let is_in = |known: &[&str]| known.iter().any(|known| known.eq_ignore_ascii_case(pragma));
    match value {
        None => is_in(&PRAGMAS) || is_in(&PRAGMAS_THAT_CHECK),
        Some(_) => is_in(&PRAGMAS_OF_TABLES) || is_in(&PRAGMAS_THAT_CHECK[..3]),
    }
}
