package dray.jdbc;

import java.util.Locale;
import java.util.Set;
import java.util.regex.Pattern;

/** Which statements a source takes that may only be read: {@code spec/bridge.md} section 4. */
final class ReadOnly {
    private static final Pattern START = Pattern.compile(
            "[\\s(]*+([A-Za-z]++)(?![\\w$\\x{80}-\\x{10ffff}])");
    private static final Set<String> WORDS = Set.of("SELECT", "WITH", "VALUES");
    /** Begin statements whose rows may be many, and which run within a transaction. */
    private static final Set<String> TRANSACTIONAL = Set.of("SELECT", "WITH", "VALUES", "TABLE",
            "SHOW", "EXPLAIN", "INSERT", "UPDATE", "DELETE", "MERGE");
    /** What makes it depend on the database where a text or a comment ends. */
    private static final Pattern UNSURE = Pattern.compile("\\\\|--|/\\*|[#$`\\[]");
    private static final Pattern QUOTED = Pattern.compile("'[^']*'|\"[^\"]*\"");

    private ReadOnly() {}

    /** Whether a statement begins with a word that reads. */
    static boolean reads(String sql) {
        return begins(sql, WORDS);
    }

    /** Whether a statement, behind comments, can run within a transaction and give many rows. */
    static boolean isTransactional(String sql) {
        return begins(behindComments(sql), TRANSACTIONAL);
    }

    private static boolean begins(String sql, Set<String> words) {
        var start = START.matcher(sql);
        return start.lookingAt() && words.contains(start.group(1).toUpperCase(Locale.ROOT));
    }

    /** A statement without comments before it, which may be within each other as PostgreSQL's. */
    private static String behindComments(String sql) {
        int depth = 0;
        int at = 0;
        while (at < sql.length()) {
            char one = sql.charAt(at);
            if (sql.startsWith("/*", at)) {
                depth++;
                at += 2;
            } else if (depth > 0 && sql.startsWith("*/", at)) {
                depth--;
                at += 2;
            } else if (depth == 0 && sql.startsWith("--", at)) {
                int feed = sql.indexOf('\n', at);
                at = feed < 0 ? sql.length() : feed;
            } else if (depth > 0 || one == '(' || Character.isWhitespace(one)) {
                at++;
            } else {
                break;
            }
        }
        return sql.substring(at);
    }

    /**
     * Whether no semicolon separates several statements in a text: drivers run them, and the
     * second might commit.
     */
    static boolean isOne(String sql) {
        String text = sql.strip();
        text = text.endsWith(";") ? text.substring(0, text.length() - 1) : text;
        if (text.indexOf(';') < 0) {
            return true;
        }
        String unquoted = QUOTED.matcher(text).replaceAll("");
        return !UNSURE.matcher(text).find() && unquoted.indexOf(';') < 0
                && unquoted.indexOf('\'') < 0 && unquoted.indexOf('"') < 0;
    }

    /** Refuses what may write. */
    static void check(String source, String sql) throws Failure {
        String word = Words.beginningAnother(sql);
        String rule;
        if (!reads(sql)) {
            rule = "a statement must begin with SELECT, WITH, VALUES";
        } else if (!isOne(sql)) {
            rule = "it takes one statement at a time, and here a semicolon may separate several";
        } else if (word != null) {
            rule = "the word " + word + " may begin another statement; put it into quotes if it is"
                    + " a name";
        } else {
            return;
        }
        throw new Failure(Failure.Kind.QUERY, "25006",
                "the source " + source + " is read-only: " + rule,
                "the server's option --source-writable lets its clients write");
    }
}
