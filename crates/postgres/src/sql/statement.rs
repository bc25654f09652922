//! What the tokens of a statement say about it.

use super::scanner::{Scanner, TokenKind};

/// A statement up to the end of its last token, if it fits between parentheses: it is one
/// statement, and its own parentheses match. `escapes` says whether backslashes escape in plain
/// strings (`standard_conforming_strings` is off).
pub fn enclosable(sql: &str, escapes: bool) -> Option<&str> {
    let mut scanner = Scanner::new(sql, escapes);
    let (mut depth, mut end, mut ended) = (0usize, 0, false);
    while let Some(token) = scanner.next()? {
        match token {
            TokenKind::Space => continue,
            TokenKind::Semicolon => {
                ended = true;
                continue;
            }
            _ if ended => return None,
            TokenKind::Open => depth += 1,
            TokenKind::Close => depth = depth.checked_sub(1)?,
            _ => {}
        }
        end = scanner.at;
    }
    (depth == 0 && end > 0).then(|| &sql[..end])
}

/// Whether COPY accepts a statement: it is a query, or a change that returns rows.
pub fn is_query(sql: &str) -> bool {
    let words = outer_words(sql);
    let has = |word: &str| words.iter().any(|other| other == word);
    let verb = match first_word(sql) {
        // Names, column lists and queries precede the verb, the latter two in parentheses.
        first if first == "with" => {
            words.iter().find(|word| is_verb(word)).cloned().unwrap_or_default()
        }
        first => first,
    };
    match verb.as_str() {
        "select" => !has("into"),
        "values" | "table" => true,
        "insert" | "update" | "delete" | "merge" => has("returning"),
        _ => false,
    }
}

/// Whether a statement contains a word, in a string or comment, too. The word is in lower case.
pub(crate) fn mentions(sql: &str, word: &str) -> bool {
    sql.as_bytes().windows(word.len()).any(|window| window.eq_ignore_ascii_case(word.as_bytes()))
}

/// Whether a statement only changes settings or the transaction, so that it returns no rows.
pub(crate) fn sets(sql: &str) -> bool {
    let words = [
        "set",
        "reset",
        "discard",
        "begin",
        "start",
        "commit",
        "end",
        "rollback",
        "abort",
        "savepoint",
        "release",
    ];
    words.contains(&first_word(sql).as_str())
}

fn is_verb(word: &str) -> bool {
    matches!(word, "select" | "values" | "table" | "insert" | "update" | "delete" | "merge")
}

/// The words outside all parentheses, in lower case.
fn outer_words(sql: &str) -> Vec<String> {
    let mut scanner = Scanner::new(sql, false);
    let (mut words, mut depth) = (Vec::new(), 0usize);
    loop {
        let start = scanner.at;
        match scanner.next() {
            Some(Some(TokenKind::Open)) => depth += 1,
            Some(Some(TokenKind::Close)) => depth = depth.saturating_sub(1),
            Some(Some(TokenKind::Word)) if depth == 0 => {
                words.push(sql.get(start..scanner.at).unwrap_or_default().to_ascii_lowercase());
            }
            Some(Some(_)) => {}
            _ => return words,
        }
    }
}

/// The highest of `$1, $2 …` in a statement, 0 without any; None if a string or comment has no end.
/// `escapes` as for [`enclosable`].
pub fn parameters_in(sql: &str, escapes: bool) -> Option<usize> {
    let mut scanner = Scanner::new(sql, escapes);
    let mut highest = 0;
    loop {
        let start = scanner.at;
        match scanner.next()? {
            None => return Some(highest),
            Some(TokenKind::Other) if sql.get(start..scanner.at) == Some("$") => {
                let digits = sql.get(scanner.at..).unwrap_or_default();
                let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
                highest = highest
                    .max(digits.get(..end).and_then(|digits| digits.parse().ok()).unwrap_or(0));
            }
            Some(_) => {}
        }
    }
}

/// Whether a query only reads, by its words: it is no change, and its WITH clause has none.
/// `escapes` as for [`enclosable`].
pub(crate) fn reads_only(sql: &str, escapes: bool) -> bool {
    if !matches!(first_word(sql).as_str(), "select" | "with" | "values" | "table") {
        return false;
    }
    let mut scanner = Scanner::new(sql, escapes);
    // A change follows a parenthesis, which `AS` opens or the clause's end closes. Elsewhere these
    // words may be names, or part of `FOR UPDATE`.
    let (mut has_with, mut after_parenthesis, mut changes) = (false, false, false);
    loop {
        let start = scanner.at;
        match scanner.next() {
            Some(None) => return !(has_with && changes),
            Some(Some(TokenKind::Space)) => continue,
            Some(Some(TokenKind::Word)) => {
                let is = |word: &str| {
                    sql.get(start..scanner.at).is_some_and(|text| text.eq_ignore_ascii_case(word))
                };
                has_with |= is("with");
                changes |= after_parenthesis
                    && ["insert", "update", "delete", "merge"].into_iter().any(is);
                after_parenthesis = false;
            }
            Some(Some(token)) => {
                after_parenthesis = matches!(token, TokenKind::Open | TokenKind::Close)
            }
            None => return false,
        }
    }
}

/// The first word of a statement in lower case, without opening parentheses.
fn first_word(sql: &str) -> String {
    let mut scanner = Scanner::new(sql, false);
    loop {
        let start = scanner.at;
        match scanner.next() {
            Some(Some(TokenKind::Space | TokenKind::Open | TokenKind::Semicolon)) => {}
            Some(Some(_)) => {
                return sql.get(start..scanner.at).unwrap_or_default().to_ascii_lowercase();
            }
            _ => return String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_fit_between_parentheses() {
        for (sql, expected) in [
            ("SELECT 1", "SELECT 1"),
            (" SELECT 1 ; -- done", " SELECT 1"),
            (
                "SELECT ')' /* ( /* ) */ */ || $$)$$ || \")\" -- (",
                "SELECT ')' /* ( /* ) */ */ || $$)$$ || \")\"",
            ),
            ("SELECT $a$ $b$ ; $a$, $1", "SELECT $a$ $b$ ; $a$, $1"),
            ("SELECT E'\\'(' || 'it''s ('", "SELECT E'\\'(' || 'it''s ('"),
            ("SELECT a$1(2)", "SELECT a$1(2)"),
            ("SELECT E'a'\n '\\'('", "SELECT E'a'\n '\\'('"),
            ("SELECT E'a' -- b\r\n-- c\n\t'\\'('", "SELECT E'a' -- b\r\n-- c\n\t'\\'('"),
            ("SELECT 'a'\n'\\' ; ", "SELECT 'a'\n'\\'"),
            ("SELECT E'a' AS b, '\\'", "SELECT E'a' AS b, '\\'"),
            ("SELECT E'a'\n/* */'\\'", "SELECT E'a'\n/* */'\\'"),
        ] {
            assert_eq!(enclosable(sql, false), Some(expected));
        }
        assert_eq!(enclosable("SELECT '\\' || ('", true), Some("SELECT '\\' || ('"));
    }

    #[test]
    fn statements_that_do_not() {
        for sql in [
            "",
            ";",
            "SELECT 1)",
            "(SELECT 1",
            "SELECT 1; SELECT 2",
            "SELECT 'x",
            "SELECT /* 1",
            "SELECT $a$ $b$",
        ] {
            assert_eq!(enclosable(sql, false), None, "{sql}");
        }
        // To the server the string continues with escapes and ends before the parenthesis.
        for sql in ["SELECT E'a'\n'\\'') TO PROGRAM $$x$$ --'", "SELECT 1e'\\'||')'"] {
            assert_eq!(enclosable(sql, false), None, "{sql}");
        }
        assert_eq!(enclosable("SELECT 1) TO PROGRAM 'x' --", false), None);
    }

    #[test]
    fn what_only_reads() {
        for sql in [
            "SELECT 1",
            "/* c */ (VALUES (1))",
            "WITH x AS (SELECT 1) TABLE x",
            "SELECT a FROM t FOR UPDATE",
            "WITH x AS (SELECT 'delete') SELECT a AS insert FROM x FOR NO KEY UPDATE",
            "SELECT (delete) FROM t",
        ] {
            assert!(reads_only(sql, false), "{sql}");
        }
        for sql in [
            "/* c */ INSERT INTO t VALUES (1) RETURNING a",
            "-- c\nDELETE FROM t RETURNING a",
            "WITH x AS (INSERT INTO t VALUES (1) RETURNING a) SELECT * FROM x",
            "WITH x AS MATERIALIZED (/* c */ Update t SET a = 1 RETURNING a) TABLE x",
            "WITH x AS (SELECT 1) DELETE FROM t RETURNING a",
            "((WITH x AS (MERGE INTO t USING u ON true WHEN MATCHED THEN DO NOTHING) SELECT 1))",
            "SHOW work_mem",
            "",
        ] {
            assert!(!reads_only(sql, false), "{sql}");
        }
    }

    #[test]
    fn statements_that_copy_takes() {
        for sql in [
            "SELECT 1",
            "-- x\n((select 1))",
            "VALUES (1)",
            "TABLE t",
            "INSERT INTO t VALUES (1) RETURNING a",
            "update t set a = 1 returning *",
            "WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x FOR UPDATE",
            "WITH RECURSIVE x(a) AS MATERIALIZED (SELECT 1), y AS (SELECT 2) \
             INSERT INTO t TABLE x RETURNING 1",
            "SELECT 'into', \"into\", (SELECT 1) FROM t",
        ] {
            assert!(is_query(sql), "{sql}");
        }
        for sql in [
            "",
            "SHOW work_mem",
            "UPDATE t SET a = 1",
            "DELETE FROM t WHERE 'returning' = \"returning\"",
            "INSERT INTO t SELECT f(returning) FROM u",
            "WITH x AS (DELETE FROM t RETURNING *) INSERT INTO u TABLE x",
            "SELECT 1 AS a INTO u",
            "WITH x AS (SELECT 1) SELECT * INTO u FROM x",
        ] {
            assert!(!is_query(sql), "{sql}");
        }
    }

    #[test]
    fn parameters_are_counted() {
        for (sql, expected) in [
            ("SELECT 1", Some(0)),
            ("SELECT $1, $3::text", Some(3)),
            ("SELECT '$4', $$ $5 $$, \"$6\", a$7 -- $8\n, /* $9 */ $2", Some(2)),
            ("SELECT $a$ $5 $a$, $1", Some(1)),
            ("SELECT '", None),
        ] {
            assert_eq!(parameters_in(sql, false), expected, "{sql}");
        }
    }

    #[test]
    fn first_words() {
        for (sql, expected) in [
            ("select 1", "select"),
            (" /* SHOW */ ((Select 1))", "select"),
            ("-- x\nEXPLAIN SELECT", "explain"),
            ("", ""),
        ] {
            assert_eq!(first_word(sql), expected);
        }
    }
}
