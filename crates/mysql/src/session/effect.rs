//! What a statement may do to the session, and what it reads of it, as far as its text tells.

use crate::sql;

/// Statements that stay prepared.
const KEPT: [&str; 12] = [
    "select",
    "with",
    "values",
    "insert",
    "replace",
    "update",
    "delete",
    "start",
    "commit",
    "rollback",
    "savepoint",
    "release",
];
/// Others that change no database, mode or variable of the session.
const HARMLESS: [&str; 9] =
    ["show", "explain", "describe", "desc", "do", "table", "load", "kill", "get"];
/// Functions and variables that read what the last statement has left.
const FUNCTIONS: [&str; 2] = ["found_rows", "row_count"];
const VARIABLES: [&str; 2] = ["warning_count", "error_count"];

/// Whether a statement can stay prepared: until the session changes, it means the same each time.
///
/// MySQL fixes the type of a user variable when it prepares a statement.
pub(super) fn is_kept(sql: &str) -> bool {
    !has_code_in_comments(sql) && !sql.contains('@') && (is_one_of(sql, &KEPT) || is_begin(sql))
}

/// Whether a statement may change how others are read: the database, the mode, collations. If in
/// doubt it may.
pub(super) fn may_change_session(sql: &str) -> bool {
    let is_harmless = is_one_of(sql, &KEPT)
        || is_one_of(sql, &HARMLESS)
        || is_begin(sql)
        || begins_with(sql, &["set", "transaction"]);
    has_code_in_comments(sql) || !is_harmless
}

/// Whether a statement may also change what the server reports of changes: it names that setting,
/// or runs others, of which it says nothing. Only for statements that [`may_change_session`]:
/// others change nothing, though they may name it.
pub(super) fn may_change_reports(sql: &str) -> bool {
    sql.to_ascii_lowercase().contains("session_track")
        || has_code_in_comments(sql)
        || is_one_of(sql, &["call", "execute", "begin"])
        || begins_with(sql, &["set", "statement"])
}

/// Whether a statement is about the errors and warnings of the one before. A preparation that fails
/// would replace them.
pub(super) fn is_diagnostic(sql: &str) -> bool {
    let names_them = || {
        let lower = sql.to_ascii_lowercase();
        lower.contains("warnings") || lower.contains("errors")
    };
    is_one_of(sql, &["get"]) || is_one_of(sql, &["show"]) && names_them()
}

/// Whether a statement reads what the one before has left: errors, warnings, numbers of rows.
pub(super) fn reads_what_is_left(sql: &str) -> bool {
    is_diagnostic(sql) || {
        let lower = sql.to_ascii_lowercase();
        let is_called = |name: &&str| {
            lower.split(name).skip(1).any(|after| after.trim_ascii_start().starts_with('('))
        };
        FUNCTIONS.iter().any(is_called)
            || lower.contains("@@") && VARIABLES.iter().any(|name| lower.contains(name))
    }
}

/// Whether a comment has code for some servers: the first word is another one for others.
fn has_code_in_comments(sql: &str) -> bool {
    sql.contains("/*!") || sql.contains("/*M!")
}

/// BEGIN of a transaction. `BEGIN NOT ATOMIC` is a program.
fn is_begin(sql: &str) -> bool {
    let sql = sql.trim_end().trim_end_matches(';');
    let count = sql.split_ascii_whitespace().take(3).count();
    begins_with(sql, &["begin"])
        && (count == 1 || count == 2 && begins_with(sql, &["begin", "work"]))
}

fn begins_with(sql: &str, words: &[&str]) -> bool {
    let mut found = sql.split_ascii_whitespace();
    words.iter().all(|word| found.next().is_some_and(|found| found.eq_ignore_ascii_case(word)))
}

fn is_one_of(sql: &str, words: &[&str]) -> bool {
    let first = sql::first_word(sql);
    words.iter().any(|word| first.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_and_changing() {
        for (sql, kept, changing) in [
            ("SELECT 1", true, false),
            ("(select 1) union select 2", true, false),
            ("/* a */ WITH a AS (SELECT 1) SELECT 1", true, false),
            ("insert into t values (?)", true, false),
            ("SELECT @a", false, false),
            ("SELECT /*!50000 1 */", false, true),
            ("/*M!100100 SELECT 1 */", false, true),
            ("BEGIN", true, false),
            (" begin work ; ", true, false),
            ("COMMIT", true, false),
            ("ROLLBACK TO SAVEPOINT a", true, false),
            ("START TRANSACTION READ ONLY", true, false),
            ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", false, false),
            ("SHOW TABLES", false, false),
            ("DO 0", false, false),
            ("BEGIN NOT ATOMIC USE b; END", false, true),
            ("begin", true, false),
            ("USE shop2", false, true),
            ("/*!50000 USE b */", false, true),
            ("-- SELECT\nUSE b", false, true),
            ("SET sql_mode = 'ANSI'", false, true),
            ("SET NAMES utf8mb4 COLLATE utf8mb4_bin", false, true),
            ("SET STATEMENT max_statement_time = 1 FOR SELECT 1", false, true),
            ("CALL p()", false, true),
            ("EXECUTE p", false, true),
            ("DROP DATABASE shop", false, true),
            ("selectx", false, true),
            ("", false, true),
        ] {
            assert_eq!((is_kept(sql), may_change_session(sql)), (kept, changing), "{sql}");
        }
    }

    #[test]
    fn reports() {
        for (sql, changing) in [
            ("SET @@session.`Session_Track_system_variables` = ''", true),
            ("PREPARE p FROM 'SET session_track_state_change = 1'", true),
            ("CALL p()", true),
            ("/*!50000 CALL p() */", true),
            ("EXECUTE IMMEDIATE CONCAT('SET session', '_track_schema = 0')", true),
            ("BEGIN NOT ATOMIC CALL p(); END", true),
            ("SET STATEMENT max_statement_time = 1 FOR EXECUTE p", true),
            ("SET time_zone = '+05:00'", false),
            ("USE shop2", false),
            ("PREPARE p FROM 'SELECT 1'", false),
        ] {
            assert_eq!(may_change_reports(sql), changing, "{sql}");
        }
    }

    #[test]
    fn left_by_the_one_before() {
        for (sql, diagnostic, reads) in [
            ("SHOW WARNINGS", true, true),
            ("show count(*) errors", true, true),
            ("/* a */ SHOW\nERRORS LIMIT 1", true, true),
            ("GET DIAGNOSTICS @a = NUMBER", true, true),
            ("SELECT FOUND_ROWS()", false, true),
            ("select row_count () AS n", false, true),
            ("SELECT @@session.warning_count", false, true),
            ("UPDATE t SET row_count = (1)", false, false),
            ("SHOW TABLES", false, false),
            ("SELECT 'get'", false, false),
        ] {
            assert_eq!((is_diagnostic(sql), reads_what_is_left(sql)), (diagnostic, reads), "{sql}");
        }
    }
}
