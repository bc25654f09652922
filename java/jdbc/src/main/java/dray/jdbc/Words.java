package dray.jdbc;

import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Words that begin another statement where statements need nothing between them, as SQL Server's:
 * {@code spec/bridge.md} section 4.
 */
final class Words {
    /** Begin a statement whatever comes behind them. */
    private static final List<String> WHOLE =
            List.of("COMMIT", "EXEC", "EXECUTE", "ROLLBACK", "SHUTDOWN");
    /** Begin a statement that goes on with a name, also one in quotes, or a variable. */
    private static final List<String> OPENING = List.of(
            "ALTER", "BACKUP", "CALL", "CREATE", "DBCC", "DROP", "DUMP", "GRANT", "KILL", "LOAD",
            "RESTORE", "REVOKE", "SET", "TRUNCATE", "UNLOAD");
    private static final List<String> ALL =
            Stream.concat(WHOLE.stream(), OPENING.stream()).toList();
    /** Come behind a name, and neither begin a statement nor follow a word that does. */
    private static final Set<String> CLAUSES = Set.of(
            "AND", "ASC", "BETWEEN", "DESC", "FROM", "GROUP", "HAVING", "IN", "IS", "LIKE",
            "ORDER", "THEN", "UNION", "WHERE");
    /** In place of a string, or of a name in quotes or brackets. */
    private static final Token QUOTED = new Token("''", false);
    /** Before the statement and behind it. */
    private static final Token NONE = new Token("", false);

    /** A word or a sign. {@code part} is whether a word may be a part of a longer name. */
    private record Token(String text, boolean part) {
        boolean isWord() {
            return !text.isEmpty() && isOfWord(text.charAt(0));
        }

        boolean is(String word) {
            return !part && text.equalsIgnoreCase(word);
        }
    }

    private final String sql;
    private int at;
    /** Whether the database may take something else for a text or a comment. */
    private boolean unsure;

    private Words(String sql) {
        this.sql = sql;
    }

    /** The first word that may begin another statement; null if there is none. */
    static String beginningAnother(String sql) {
        String anywhere = anywhere(sql);
        // Most statements have none.
        return anywhere == null ? null : new Words(sql).find(anywhere);
    }

    private static String anywhere(String sql) {
        int start = 0;
        for (int end = 0; end <= sql.length(); end++) {
            if (end == sql.length() || !isOfWord(sql.charAt(end))) {
                String found = beginning(sql.substring(start, end));
                if (found != null) {
                    return found;
                }
                start = end + 1;
            }
        }
        return null;
    }

    private String find(String anywhere) {
        Token second = NONE;
        Token first = NONE;
        Token word = next();
        Token next = next();
        while (!word.equals(NONE)) {
            Token afterNext = next();
            String known = beginning(word.text());
            if (known != null && !isAfterName(second, first) && !isName(known, next, afterNext)) {
                return known;
            }
            second = first;
            first = word;
            word = next;
            next = afterNext;
        }
        return unsure ? anywhere : null;
    }

    /** The word of a statement that a word is, or ends with: a number needs no space behind it. */
    private static String beginning(String word) {
        for (String known : ALL) {
            int start = isNumber(word) ? Math.max(0, word.length() - known.length()) : 0;
            if (word.length() - start == known.length()
                    && word.regionMatches(true, start, known, 0, known.length())) {
                return known;
            }
        }
        return null;
    }

    /** Whether what comes before a word makes it a name. A number may have a point at its end. */
    private static boolean isAfterName(Token second, Token first) {
        return first.is("AS") || first.is(".") && (second.equals(QUOTED)
                || second.isWord() && !second.part() && !isNumber(second.text()));
    }

    /** Whether what comes behind a word shows that it begins no statement. */
    private static boolean isName(String known, Token next, Token afterNext) {
        if (next.text().length() == 1 && ",)=<>!+*|".contains(next.text())
                || !next.part() && CLAUSES.contains(next.text().toUpperCase(Locale.ROOT))) {
            return true;
        }
        if (next.is("AS")) {
            // EXECUTE AS is a statement.
            return !known.startsWith("EXEC");
        }
        boolean isOperand = next.isWord() && (next.part() || !afterNext.is(")"))
                || next.equals(QUOTED)
                || !next.equals(NONE) && lengthensNames(next.text().charAt(0));
        return OPENING.contains(known) && !isOperand;
    }

    private static boolean isNumber(String word) {
        return !word.isEmpty() && word.charAt(0) >= '0' && word.charAt(0) <= '9';
    }

    /** Whether a character that is not of a word may be of a name: {@code a$as} is one. */
    private static boolean lengthensNames(char one) {
        return one == '@' || one == '#' || one == '$' || one > '\u007f';
    }

    private static boolean isOfWord(char one) {
        return one >= 'a' && one <= 'z' || one >= 'A' && one <= 'Z' || one >= '0' && one <= '9'
                || one == '_';
    }

    /** What comes next beside comments and spaces. */
    private Token next() {
        while (at < sql.length()) {
            int start = at;
            char one = sql.charAt(at);
            at++;
            if (one == '\'' || one == '"') {
                passQuote(one);
                return QUOTED;
            } else if (one == '[') {
                passBracket();
                return QUOTED;
            } else if (one == '%' || sql.startsWith("//", start)) {
                // They begin comments in SQL Anywhere.
                giveUp();
            } else if (sql.startsWith("--", start)) {
                passLine();
            } else if (sql.startsWith("/*", start)) {
                passComment();
            } else if (isOfWord(one)) {
                while (at < sql.length() && isOfWord(sql.charAt(at))) {
                    at++;
                }
                boolean part = start > 0 && lengthensNames(sql.charAt(start - 1))
                        || at < sql.length() && lengthensNames(sql.charAt(at));
                return new Token(sql.substring(start, at), part);
            } else if (!Character.isWhitespace(one) && !Character.isSpaceChar(one)) {
                return new Token(String.valueOf(one), false);
            }
        }
        return NONE;
    }

    private void giveUp() {
        unsure = true;
        at = sql.length();
    }

    /** A quote in a text is doubled, so that two texts come of it. */
    private void passQuote(char quote) {
        int end = sql.indexOf(quote, at);
        // Some take a backslash for an escape.
        if (end < 0 || end > at && sql.charAt(end - 1) == '\\') {
            giveUp();
        } else {
            at = end + 1;
        }
    }

    private void passBracket() {
        int end = sql.indexOf(']', at);
        if (end < 0 || sql.startsWith("]", end + 1)
                || sql.substring(at, end).chars().anyMatch(one -> "['\"".indexOf(one) >= 0)) {
            giveUp();
        } else {
            at = end + 1;
        }
    }

    private void passLine() {
        int feed = sql.indexOf('\n', at);
        int end = feed < 0 ? sql.length() : feed;
        String line = sql.substring(at, end);
        line = line.endsWith("\r") ? line.substring(0, line.length() - 1) : line;
        // Such a character may end the line.
        if (line.chars().anyMatch(one -> Character.isISOControl(one) && one != '\t'
                || one == '\u2028' || one == '\u2029')) {
            giveUp();
        } else {
            at = Math.min(end + 1, sql.length());
        }
    }

    private void passComment() {
        int end = sql.indexOf("*/", at + 1);
        // Some comments may hold others.
        if (end < 0 || sql.substring(at + 1, end + 1).contains("/*")) {
            giveUp();
        } else {
            at = end + 2;
        }
    }
}
