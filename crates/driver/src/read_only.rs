//! Which statements a source takes that may only be read.
//!
//! Each runs in a transaction that is read-only, and it is one statement: neither protocol takes
//! several at once here. But a statement could end that transaction, or begin another: `COMMIT`, or
//! MariaDB's `BEGIN NOT ATOMIC …`. So its first word must be one that only reads. What functions do
//! beside the tables, only the rights of the source's user limit.

mod words;

use dray_wire::ServerError;

use crate::error::{read_only_refusal, several_refusal, word_refusal};

/// Whose SQL a source takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL's.
    Postgres,
    /// MySQL's and MariaDB's.
    Mysql,
    /// Hive's, Spark's and Impala's.
    Hive,
    /// That of a database whose comments and quotes are not known.
    Other,
}

impl Dialect {
    /// The first words of statements that read.
    pub fn reading_words(self) -> &'static [&'static str] {
        match self {
            Self::Postgres => &["SELECT", "WITH", "VALUES", "TABLE", "SHOW", "EXPLAIN"],
            Self::Other => &["SELECT", "WITH", "VALUES"],
            Self::Mysql | Self::Hive => {
                &["SELECT", "WITH", "VALUES", "TABLE", "SHOW", "EXPLAIN", "DESCRIBE", "DESC"]
            }
        }
    }

    /// Whether the first word of a statement is one of those.
    pub fn reads(self, sql: &str) -> bool {
        let Some(start) = self.start(sql) else { return false };
        let end = start.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(start.len());
        let (word, rest) = start.split_at(end);
        // SELECT_1 and SELECTé are other words.
        let is_whole = !rest.starts_with(|c: char| c.is_alphanumeric() || "_$".contains(c));
        let is_known =
            is_whole && self.reading_words().iter().any(|known| known.eq_ignore_ascii_case(word));
        is_known && !(self == Self::Hive && may_write_in_hive(word, rest))
    }

    /// A statement without what may come before its first word; None where the database might see
    /// another start.
    fn start(self, sql: &str) -> Option<&str> {
        let mut rest = sql;
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '(');
            if self == Self::Other {
                return Some(rest);
            }
            if let Some(comment) = rest.strip_prefix("--") {
                // Where Spark's ends is not where Hive's does.
                let is_unclear = |line: &str| line.contains('\r') || line.ends_with('\\');
                if self == Self::Hive && comment.split('\n').next().is_some_and(is_unclear) {
                    return None;
                }
                // MySQL takes two dashes without a space behind them for a minus and a sign.
                if self == Self::Mysql && !comment.starts_with(|c: char| c.is_ascii_whitespace()) {
                    return None;
                }
                rest = self.behind_line(comment)?;
            } else if let Some(comment) = rest.strip_prefix("/*") {
                rest = match self {
                    Self::Postgres => behind_nested(comment)?,
                    // Their contents are code for some versions.
                    Self::Mysql if comment.starts_with('!') || comment.starts_with("M!") => {
                        return None;
                    }
                    // Spark's comments may hold others, and Impala's may not.
                    Self::Hive if comment.split("*/").next().is_some_and(|c| c.contains("/*")) => {
                        return None;
                    }
                    Self::Mysql | Self::Hive | Self::Other => comment.split_once("*/")?.1,
                };
            } else if let Some(comment) = rest.strip_prefix('#')
                && self == Self::Mysql
            {
                rest = self.behind_line(comment)?;
            } else {
                return Some(rest);
            }
        }
    }

    /// What comes after a comment that ends with its line.
    fn behind_line(self, comment: &str) -> Option<&str> {
        match self {
            // A carriage return ends the line as well.
            Self::Postgres => Some(comment.split_once(['\n', '\r'])?.1),
            // Nothing else ends the line, and a zero may end the statement.
            _ => comment.split_once('\n').filter(|(line, _)| !line.contains('\0')).map(|(_, s)| s),
        }
    }
}

/// Refuses what may write at a source `name`, in a database whose SQL is not known: all but one
/// statement that begins with a word that reads.
///
/// # Errors
/// With SQLSTATE 25006, if it may be something else.
pub fn check_reads(name: &str, sql: &str) -> Result<(), ServerError> {
    if !Dialect::Other.reads(sql) {
        return Err(read_only_refusal(name, Dialect::Other.reading_words()));
    }
    if !is_one_statement(sql) {
        return Err(several_refusal(name));
    }
    match words::beginning_another(sql) {
        Some(word) => Err(word_refusal(name, word)),
        None => Ok(()),
    }
}

/// Whether no semicolon separates several statements in a text. Drivers of other databases run
/// them, and the second might commit. What is a text or a comment there, only the database knows,
/// so that a semicolon counts unless it is at the end or surely within quotes.
fn is_one_statement(sql: &str) -> bool {
    let sql = sql.trim_end();
    let sql = sql.strip_suffix(';').unwrap_or(sql);
    if !sql.contains(';') {
        return true;
    }
    // Escapes, comments, and quotes of some databases.
    if ["\\", "--", "/*", "#", "$", "`", "["].iter().any(|unsure| sql.contains(unsure)) {
        return false;
    }
    let mut quote = None;
    for one in sql.chars() {
        match (quote, one) {
            (None, ';') => return false,
            (None, '\'' | '"') => quote = Some(one),
            (Some(open), _) if open == one => quote = None,
            _ => {}
        }
    }
    quote.is_none()
}

/// Whether a statement that begins with a word that reads may write in Hive, Spark or Impala, which
/// have no transactions that are read-only: `WITH … INSERT`, and `EXPLAIN ANALYZE` and `EXPLAIN
/// REOPTIMIZATION`, which run what they explain. What else may do so one day, nobody knows: EXPLAIN
/// takes no words that write either. A word counts wherever it stands, also in a string, and so
/// does what the server replaces by a variable's text.
fn may_write_in_hive(first: &str, rest: &str) -> bool {
    const WRITING: [&str; 5] = ["INSERT", "UPDATE", "DELETE", "MERGE", "UPSERT"];
    const OTHERS: [&str; 7] =
        ["ANALYZE", "REOPTIMIZATION", "CREATE", "ALTER", "DROP", "TRUNCATE", "LOAD"];
    let words: &[&[&str]] = match first.to_ascii_uppercase().as_str() {
        "WITH" => &[&WRITING],
        "EXPLAIN" => &[&WRITING, &OTHERS],
        _ => return false,
    };
    let is_one =
        |found: &str| words.iter().copied().flatten().any(|word| word.eq_ignore_ascii_case(found));
    rest.contains("${") || rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(is_one)
}

/// What comes after a comment, which may hold others.
fn behind_nested(mut rest: &str) -> Option<&str> {
    let mut depth = 1_usize;
    while depth > 0 {
        let (at, opens) = match (rest.find("/*"), rest.find("*/")) {
            (Some(open), Some(close)) if open < close => (open, true),
            (_, Some(close)) => (close, false),
            _ => return None,
        };
        depth = if opens { depth.checked_add(1)? } else { depth - 1 };
        rest = rest.get(at + 2..)?;
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_read() {
        for sql in [
            "SELECT 1",
            "  ((select 1) union select 2)",
            "-- what\n /* it */ With x AS (SELECT 1) TABLE x",
            "values (1)",
            "SHOW server_version",
            "explain select 1",
            "SELECT(1)",
            "select'1'",
        ] {
            assert!(Dialect::Postgres.reads(sql), "{sql}");
            assert!(Dialect::Mysql.reads(sql), "{sql}");
        }
        assert!(Dialect::Mysql.reads("# a\nDESC t"));
        assert!(Dialect::Postgres.reads("/* /* */ DELETE */ SELECT 1"));
        assert!(Dialect::Postgres.reads("--x\rSELECT 2"));
        assert!(Dialect::Postgres.reads("--x\r\n--y\n\rSELECT 1"));
        // To MySQL and MariaDB a carriage return is one more character of the comment.
        assert!(Dialect::Mysql.reads("-- x\rDELETE FROM t\nSELECT 1"));
    }

    #[test]
    fn one_statement_or_several() {
        for sql in [
            "SELECT 1",
            "SELECT 1 ;\n",
            "SELECT ';'",
            "SELECT 'it''s; so' AS \"a;b\"; ",
            "SELECT '\\', $1 -- #",
        ] {
            assert!(is_one_statement(sql), "{sql}");
        }
        for sql in [
            "SELECT 1; SELECT 2",
            "SELECT 1;;",
            "SELECT '\\'; COMMIT --'",
            "SELECT $$'$$; COMMIT; SELECT ';'",
            "SELECT 1 -- '\n; COMMIT",
            "SELECT `'`; COMMIT; `'`",
            "SELECT 1 /* ' */; COMMIT /* ' */",
            "SELECT 1 # '\n; COMMIT # '",
            "SELECT '; COMMIT",
            "SELECT [']; COMMIT; SELECT [']",
        ] {
            assert!(!is_one_statement(sql), "{sql}");
        }
    }

    #[test]
    fn refusals_of_unknown_databases() {
        assert!(check_reads("s", "SELECT 1").is_ok());
        for (sql, why) in [
            ("DELETE FROM t", "a statement must begin with SELECT, WITH, VALUES"),
            ("SELECT 1; COMMIT", "it takes one statement at a time"),
            ("SELECT 1 AS x DELETE FROM t COMMIT", "the word COMMIT may begin another statement"),
        ] {
            let refused = check_reads("s", sql).unwrap_err();
            assert_eq!(refused.sqlstate, "25006");
            let start = format!("the source s is read-only: {why}");
            assert!(refused.message.starts_with(&start), "{}", refused.message);
        }
    }

    #[test]
    fn statements_that_may_write() {
        for sql in [
            "",
            ";",
            "--",
            "/*",
            "-- SELECT 1",
            "COMMIT",
            "DELETE FROM t",
            "SET TRANSACTION READ WRITE",
            "BEGIN NOT ATOMIC COMMIT; DELETE FROM t; END",
            "SET STATEMENT tx_read_only = 0 FOR DELETE FROM t",
            "SELECTED",
            "SELECT_1",
            "SELECT\u{e9}",
            "; SELECT 1",
            "\u{a0}SELECT 1",
            "\0SELECT 1",
        ] {
            assert!(!Dialect::Postgres.reads(sql), "{sql}");
            assert!(!Dialect::Mysql.reads(sql), "{sql}");
        }
        for sql in [
            "/*! DELETE FROM t; */ SELECT 1",
            "/*M! DELETE FROM t; */ SELECT 1",
            "/* /* */ DELETE FROM t -- */ SELECT 1",
            "--DELETE\nSELECT 1",
            "-- x\rSELECT 1",
            "# x\rSELECT 1",
            "-- x\0DELETE FROM t\nSELECT 1",
        ] {
            assert!(!Dialect::Mysql.reads(sql), "{sql}");
        }
        for sql in [
            "--x\rCOPY (SELECT 1) TO PROGRAM 'true' /*\nSELECT 1 */",
            "--x\rDELETE FROM t\nSELECT 1",
            "-- SELECT 1\r",
        ] {
            assert!(!Dialect::Postgres.reads(sql), "{sql}");
        }
        assert!(!Dialect::Postgres.reads("# a\nSELECT 1"));
        for sql in ["/* a */ SELECT 1", "-- a\nSELECT 1", "# a\nSELECT 1", "SHOW x"] {
            assert!(!Dialect::Other.reads(sql), "{sql}");
        }
        assert!(Dialect::Other.reads(" (SELECT 1)"));
    }

    #[test]
    fn statements_for_hive() {
        for sql in [
            "SELECT 1",
            "-- a\n/* b */ (select 'INSERT')",
            "WITH x AS (SELECT 1 AS inserted) SELECT * FROM x",
            "EXPLAIN SELECT inserted, updates FROM t",
            "explain extended with x AS (SELECT 1) SELECT * FROM x",
            "DESCRIBE t",
            "VALUES (1)",
        ] {
            assert!(Dialect::Hive.reads(sql), "{sql}");
        }
        for sql in [
            "FROM t INSERT INTO u SELECT 1",
            "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x",
            "with x as (select 1)insert/**/into t select * from x",
            "WITH x AS (SELECT 1) FROM x INSERT INTO t SELECT 1",
            "WITH x AS (SELECT 1) MERGE INTO t USING x",
            "WITH x AS (SELECT 1) ${hivevar:rest}",
            "EXPLAIN ANALYZE SELECT 1",
            "EXPLAIN REOPTIMIZATION SELECT 1",
            "explain/**/reoptimization\ninsert INTO t SELECT 1",
            "EXPLAIN INSERT INTO t SELECT 1",
            "EXPLAIN CREATE TABLE t AS SELECT 1",
            "EXPLAIN FROM t INSERT INTO u SELECT 1",
            "EXPLAIN ${hivevar:rest}",
            "-- \\\nDELETE FROM t",
            "-- \rDROP TABLE t\nSELECT 1",
            "/* /* */ DROP TABLE t -- */ SELECT 1",
            "SET x=1",
            "DROP TABLE t",
        ] {
            assert!(!Dialect::Hive.reads(sql), "{sql}");
        }
    }
}
