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
    "auto_vacuum",
    "busy_timeout",
    "cache_size",
    "collation_list",
    "compile_options",
    "data_version",
    "database_list",
    "encoding",
    "foreign_key_check",
    "foreign_keys",
    "freelist_count",
    "function_list",
    "integrity_check",
    "journal_mode",
    "locking_mode",
    "module_list",
    "page_count",
    "page_size",
    "pragma_list",
    "quick_check",
    "schema_version",
    "synchronous",
    "table_list",
    "temp_store",
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
/// Pragmas that a source takes, if it is writable, with and without a value: what they do stays in
/// the file or in the client's own connection. All others are refused, and so are new ones of
/// SQLite. Some name places of files (`temp_store_directory`). Some change the whole process
/// (`hard_heap_limit`, `soft_heap_limit`), or take its memory (`cache_size`, `cache_spill`,
/// `temp_store`) or threads (`threads`); with `mmap_size`, another program could end it by
/// truncating the file. Some undo what the server has set (`busy_timeout`, `cell_size_check`,
/// `trusted_schema`, `writable_schema`), and `locking_mode` keeps the file from others while no
/// statement runs.
const PRAGMAS_THAT_WRITE: &[&str] = &[
    "analysis_limit",
    "application_id",
    "auto_vacuum",
    "automatic_index",
    "case_sensitive_like",
    "checkpoint_fullfsync",
    "count_changes",
    "defer_foreign_keys",
    "empty_result_callbacks",
    "encoding",
    "foreign_keys",
    "full_column_names",
    "fullfsync",
    "ignore_check_constraints",
    "incremental_vacuum",
    "journal_size_limit",
    "legacy_alter_table",
    "max_page_count",
    "optimize",
    "page_size",
    "query_only",
    "read_uncommitted",
    "recursive_triggers",
    "reverse_unordered_selects",
    "secure_delete",
    "short_column_names",
    "shrink_memory",
    "synchronous",
    "user_version",
    "wal_autocheckpoint",
    "wal_checkpoint",
];
/// Values of `journal_mode` that keep the journal in a file.
const JOURNAL_MODES: &[&str] = &["delete", "persist", "truncate", "wal"];
/// What SQLite limits. It recurses for each wildcard of a pattern of LIKE or GLOB, and for each
/// view in a view, of which there are no more than objects of a schema. Expressions, triggers and
/// JSON have at most 1000 levels anyway, a UNION 500 SELECTs; where these are within each other,
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
        AuthAction::Pragma { pragma_name, pragma_value } => writes(pragma_name, pragma_value),
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

fn writes(pragma: &str, value: Option<&str>) -> bool {
    let is_journal_mode = pragma.eq_ignore_ascii_case("journal_mode");
    reads(pragma, value)
        || is_among(PRAGMAS_THAT_WRITE, pragma)
        || is_journal_mode && value.is_some_and(|mode| is_among(JOURNAL_MODES, mode))
}

fn is_among(words: &[&str], word: &str) -> bool {
    words.iter().any(|known| known.eq_ignore_ascii_case(word))
}
