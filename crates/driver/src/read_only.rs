//! Which statements a source takes that may only be read.
//!
//! Each runs in a transaction that is read-only, and it is one statement: neither protocol takes
//! several at once here. But a statement could end that transaction, or begin another: `COMMIT`, or
//! MariaDB's `BEGIN NOT ATOMIC …`. So its first word must be one that only reads. What functions do
//! beside the tables, only the rights of the source's user limit.

/// Whose SQL a source takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL's.
    Postgres,
    /// MySQL's and MariaDB's.
    Mysql,
    /// That of a database whose comments and quotes are not known.
    Other,
}

impl Dialect {
    /// The first words of statements that read.
    pub fn reading_words(self) -> &'static [&'static str] {
        match self {
            Self::Postgres => &["SELECT", "WITH", "VALUES", "TABLE", "SHOW", "EXPLAIN"],
            Self::Other => &["SELECT", "WITH", "VALUES"],
            Self::Mysql => {
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
        is_whole && self.reading_words().iter().any(|known| known.eq_ignore_ascii_case(word))
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
                // MySQL takes two dashes without a space behind them for a minus and a sign.
                if self == Self::Mysql && !comment.starts_with(|c: char| c.is_ascii_whitespace()) {
                    return None;
                }
                rest = comment.split_once('\n')?.1;
            } else if let Some(comment) = rest.strip_prefix("/*") {
                rest = match self {
                    Self::Postgres => behind_nested(comment)?,
                    // Their contents are code for some versions.
                    Self::Mysql if comment.starts_with('!') || comment.starts_with("M!") => {
                        return None;
                    }
                    Self::Mysql | Self::Other => comment.split_once("*/")?.1,
                };
            } else if let Some(comment) = rest.strip_prefix('#')
                && self == Self::Mysql
            {
                rest = comment.split_once('\n')?.1;
            } else {
                return Some(rest);
            }
        }
    }
}

/// Whether a text is surely one statement. Drivers of other databases run several that semicolons
/// separate, and the second might commit. What is a text or a comment there, only the database
/// knows, so that a semicolon counts unless it is at the end or surely within quotes.
pub fn is_one_statement(sql: &str) -> bool {
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
        assert!(Dialect::Postgres.reads("--x\rSELECT 2\nSELECT 1"));
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
        ] {
            assert!(!Dialect::Mysql.reads(sql), "{sql}");
        }
        assert!(!Dialect::Postgres.reads("# a\nSELECT 1"));
        for sql in ["/* a */ SELECT 1", "-- a\nSELECT 1", "# a\nSELECT 1", "SHOW x"] {
            assert!(!Dialect::Other.reads(sql), "{sql}");
        }
        assert!(Dialect::Other.reads(" (SELECT 1)"));
    }
}
