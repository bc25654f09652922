//! Words that begin another statement where statements need nothing between them.
//!
//! To SQL Server and Sybase, `SELECT 1 AS x DELETE FROM t COMMIT` is three statements. What they
//! change is rolled back, unless one of them ends the transaction, turns transactions off, runs a
//! procedure, which may do either, or does what no rollback undoes. The words of these are refused.
//! In databases that need semicolons they are names at most, and refused as such unless what is
//! beside them shows that no statement begins there.
//!
//! Texts are read as Transact-SQL has them. Where a product of this family might see another text,
//! a word counts wherever it stands.

/// Begin a statement whatever comes behind them.
const WHOLE: [&str; 5] = ["COMMIT", "EXEC", "EXECUTE", "ROLLBACK", "SHUTDOWN"];
/// Begin a statement that goes on with a name, also one in quotes, or a variable.
const OPENING: [&str; 15] = [
    "ALTER", "BACKUP", "CALL", "CREATE", "DBCC", "DROP", "DUMP", "GRANT", "KILL", "LOAD",
    "RESTORE", "REVOKE", "SET", "TRUNCATE", "UNLOAD",
];
/// Come behind a name, and neither begin a statement nor follow a word that does.
const CLAUSES: [&str; 14] = [
    "AND", "ASC", "BETWEEN", "DESC", "FROM", "GROUP", "HAVING", "IN", "IS", "LIKE", "ORDER",
    "THEN", "UNION", "WHERE",
];

/// The first word of a statement that may begin another one; None if there is none.
pub(super) fn beginning_another(sql: &str) -> Option<&'static str> {
    // Most statements have none of them anywhere.
    let anywhere = sql.split(|c: char| !is_of_word(c)).find_map(beginning)?;
    let mut tokens = Tokens { sql, rest: sql, is_unsure: false };
    let mut around = [None; 5];
    let mut beyond = 0;
    while beyond < 2 {
        let [_, second, first, word, next] = around;
        let after_next = tokens.next();
        beyond += usize::from(after_next.is_none());
        around = [second, first, word, next, after_next];
        if let Some(Token::Word(found) | Token::Part(found)) = word
            && let Some(known) = beginning(found)
            && !is_name(known, [second, first], [next, after_next])
        {
            return Some(known);
        }
    }
    tokens.is_unsure.then_some(anywhere)
}

/// The word of a statement that a word is, or ends with: a number needs no space behind it.
fn beginning(word: &str) -> Option<&'static str> {
    let is_number = word.starts_with(|c: char| c.is_ascii_digit());
    let is_it = |known: &&&str| {
        let start = if is_number { word.len().saturating_sub(known.len()) } else { 0 };
        word.get(start..).is_some_and(|end| end.eq_ignore_ascii_case(known))
    };
    WHOLE.iter().chain(&OPENING).find(is_it).copied()
}

/// Whether what is beside a word shows that it begins no statement.
fn is_name(word: &str, before: [Option<Token>; 2], after: [Option<Token>; 2]) -> bool {
    let is_whole = WHOLE.contains(&word);
    match before {
        [_, Some(Token::Word(last))] if last.eq_ignore_ascii_case("AS") => return true,
        // A number may have a point at its end.
        [Some(Token::Word(first)), Some(Token::Sign('.'))]
            if !first.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            return true;
        }
        [Some(Token::Quoted), Some(Token::Sign('.'))] => return true,
        _ => {}
    }
    match after {
        [Some(Token::Sign(',' | ')' | '=' | '<' | '>' | '!' | '+' | '*' | '|')), _] => true,
        [Some(Token::Word(next)), _] if is_one_of(&CLAUSES, next) => true,
        // EXECUTE AS is a statement.
        [Some(Token::Word(next)), _] if next.eq_ignore_ascii_case("AS") => {
            !word.starts_with("EXEC")
        }
        // CAST(… AS char CHARACTER SET utf8mb4)
        [Some(Token::Word(_)), Some(Token::Sign(')'))] => !is_whole,
        [Some(Token::Word(_) | Token::Part(_) | Token::Quoted), _] => false,
        [Some(Token::Sign(sign)), _] if lengthens_names(sign) => false,
        _ => !is_whole,
    }
}

fn is_one_of(words: &[&str], found: &str) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case(found))
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Whether a character that is not of a word may be of a name: to SQL Server, `a$as` is one.
fn lengthens_names(c: char) -> bool {
    "@#$".contains(c) || !c.is_ascii()
}

#[derive(Debug, Clone, Copy)]
enum Token<'a> {
    /// A word, or a number.
    Word(&'a str),
    /// A word that may be a part of a longer name.
    Part(&'a str),
    /// A string, or a name in quotes or brackets.
    Quoted,
    Sign(char),
}

/// What a statement has beside comments and spaces, up to where it is unsure what the database
/// takes for a text.
struct Tokens<'a> {
    sql: &'a str,
    rest: &'a str,
    is_unsure: bool,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        while let Some(first) = self.rest.chars().next() {
            let rest = self.rest.get(first.len_utf8()..).unwrap_or_default();
            let (token, behind) = match first {
                '\'' | '"' => (Some(Token::Quoted), behind_quote(rest, first)),
                '[' => (Some(Token::Quoted), behind_bracket(rest)),
                '-' if rest.starts_with('-') => (None, behind_line(rest)),
                '/' if rest.starts_with('*') => (None, behind_comment(rest)),
                // They begin comments in SQL Anywhere.
                '/' if rest.starts_with('/') => (None, None),
                '%' => (None, None),
                _ if is_of_word(first) => {
                    let end = self.rest.find(|c: char| !is_of_word(c)).unwrap_or(self.rest.len());
                    let (word, behind) = self.rest.split_at(end);
                    let before = self.sql.get(..self.sql.len() - self.rest.len());
                    let is_part = before.is_some_and(|sql| sql.ends_with(lengthens_names))
                        || behind.starts_with(lengthens_names);
                    let token = if is_part { Token::Part(word) } else { Token::Word(word) };
                    (Some(token), Some(behind))
                }
                _ if first.is_whitespace() => (None, Some(rest)),
                sign => (Some(Token::Sign(sign)), Some(rest)),
            };
            let Some(behind) = behind else {
                self.is_unsure = true;
                self.rest = "";
                return None;
            };
            self.rest = behind;
            if token.is_some() {
                return token;
            }
        }
        None
    }
}

/// What comes after a quoted text. A quote in it is doubled, so that two texts come of it.
fn behind_quote(rest: &str, quote: char) -> Option<&str> {
    // Some take a backslash for an escape.
    rest.split_once(quote).filter(|(text, _)| !text.ends_with('\\')).map(|(_, behind)| behind)
}

fn behind_bracket(rest: &str) -> Option<&str> {
    let (name, behind) = rest.split_once(']')?;
    let is_plain = !name.contains(['[', '\'', '"']) && !behind.starts_with(']');
    is_plain.then_some(behind)
}

fn behind_line(rest: &str) -> Option<&str> {
    let (line, behind) = rest.split_once('\n').unwrap_or((rest, ""));
    let line = line.strip_suffix('\r').unwrap_or(line);
    // Such a character may end the line.
    let is_break = |c: char| (c.is_control() && c != '\t') || "\u{2028}\u{2029}".contains(c);
    (!line.contains(is_break)).then_some(behind)
}

fn behind_comment(rest: &str) -> Option<&str> {
    let rest = rest.strip_prefix('*')?;
    let end = rest.find("*/")?;
    // Some comments may hold others.
    let is_plain = rest.get(..=end).is_some_and(|text| !text.contains("/*"));
    rest.get(end + 2..).filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_begin_no_other() {
        for sql in [
            "SELECT 1",
            "SELECT 'COMMIT', \"exec\", [rollback], '''commit''' -- commit\n/* EXEC p */",
            "SELECT committed, set_1, _commit, execs FROM t",
            "SELECT commit, t.rollback, \"t\".set, [t].call, load FROM t WHERE kill = 1",
            "SELECT x AS commit FROM t ORDER BY load DESC, backup",
            "SELECT \u{e9}t.x AS commit, load AS a$b FROM #t WHERE @x = kill",
            "SELECT commit AS c, max(dump), (load) FROM t GROUP BY call HAVING kill > 1",
            "SELECT truncate(1.5, 1), {fn TRUNCATE(1.5, 1)}",
            "SELECT CAST(a AS char CHARACTER SET utf8mb4) FROM t",
            "SELECT '%' FROM t WHERE a LIKE '100%' -- 'commit'\r\n",
            "SELECT a % 2 FROM t",
            "SELECT 1 // 2",
            "SELECT 'C:\\'",
        ] {
            assert_eq!(beginning_another(sql), None, "{sql}");
        }
    }

    #[test]
    fn statements_that_may_begin_another() {
        for (sql, word) in [
            ("SELECT 1 AS x DELETE FROM t COMMIT", "COMMIT"),
            ("SELECT 1 delete from t commit tran select 2", "COMMIT"),
            ("SELECT 1 COMMIT(SELECT 1)", "COMMIT"),
            ("SELECT 1COMMIT", "COMMIT"),
            ("SELECT 1.COMMIT", "COMMIT"),
            ("SELECT 1eCOMMIT", "COMMIT"),
            ("SELECT 'a'COMMIT", "COMMIT"),
            ("SELECT $COMMIT", "COMMIT"),
            ("SELECT 1\u{a0}COMMIT", "COMMIT"),
            ("SELECT 1/**/COMMIT--", "COMMIT"),
            ("SELECT 1 -- a\nCOMMIT", "COMMIT"),
            ("SELECT 1 IF 1 = 1 BEGIN COMMIT END", "COMMIT"),
            ("SELECT 1 EXEC sp_executesql N'COMMIT'", "EXEC"),
            ("SELECT 1 EXEC ('COM' + 'MIT')", "EXEC"),
            ("SELECT 1 execute [p]", "EXECUTE"),
            ("SELECT 1 EXECUTE AS USER = 'x'", "EXECUTE"),
            ("SELECT 1 ROLLBACK", "ROLLBACK"),
            ("SELECT 1 SET IMPLICIT_TRANSACTIONS OFF", "SET"),
            ("SELECT 1 CHARACTER SET IMPLICIT_TRANSACTIONS OFF", "SET"),
            ("SELECT 1 SET @a = 1", "SET"),
            ("SELECT 1 KILL 55", "KILL"),
            ("SELECT 1 {call p()}", "CALL"),
            ("SELECT 1 CALL \"p\"()", "CALL"),
            ("SELECT 1 CREATE TABLE t (i int)", "CREATE"),
            ("SELECT 1 TRUNCATE TABLE t", "TRUNCATE"),
            ("SELECT 1 SHUTDOWN", "SHUTDOWN"),
            // Parts of longer names are neither AS nor a clause, nor a table's name.
            ("SELECT 1 AS a$as COMMIT", "COMMIT"),
            ("SELECT * FROM #as COMMIT", "COMMIT"),
            ("SELECT @as COMMIT", "COMMIT"),
            ("SELECT 1 \u{e9}as COMMIT", "COMMIT"),
            ("SELECT 1 as\u{e9} COMMIT", "COMMIT"),
            ("SELECT 1 COMMIT as#l: SELECT 2", "COMMIT"),
            ("SELECT 1 COMMIT in\u{e9}: SELECT 2", "COMMIT"),
            ("SELECT $e.COMMIT", "COMMIT"),
            ("SELECT 1 {call \u{e9}p()}", "CALL"),
            ("SELECT 1 {call #p()}", "CALL"),
            ("SELECT (1) KILL $x)", "KILL"),
            // A backslash escapes nothing, or it does.
            ("SELECT 'a\\' COMMIT --'", "COMMIT"),
            ("SELECT 'a\\' , ' COMMIT '", "COMMIT"),
            // Where a comment ends, the database knows.
            ("SELECT 1 --\r'\nCOMMIT --'", "COMMIT"),
            ("SELECT 1 /* /* */ ' */ COMMIT -- '", "COMMIT"),
            ("SELECT 1 /*/*/ ' */ */ COMMIT -- '", "COMMIT"),
            ("SELECT 1 // '\n COMMIT // '", "COMMIT"),
            ("SELECT 1 % '\n COMMIT % '", "COMMIT"),
            ("SELECT [a]] ' [b] COMMIT '", "COMMIT"),
            ("SELECT ['] COMMIT [']", "COMMIT"),
            ("SELECT 'COMMIT", "COMMIT"),
            ("SELECT \"commit", "COMMIT"),
        ] {
            assert_eq!(beginning_another(sql), Some(word), "{sql}");
        }
    }

    #[test]
    fn long_statements() {
        let list = "'commit',".repeat(200_000);
        assert_eq!(beginning_another(&format!("SELECT 1 IN ({list} 1)")), None);
        assert_eq!(beginning_another(&format!("SELECT 1 IN ({list} 1) COMMIT")), Some("COMMIT"));
    }
}
