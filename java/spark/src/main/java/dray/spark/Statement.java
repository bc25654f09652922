package dray.spark;

import java.util.List;
import java.util.Objects;
import java.util.OptionalInt;
import java.util.StringJoiner;
import java.util.regex.Pattern;

/**
 * The SELECT of a scan. This is the only place where SQL of a scan is put together: whatever is
 * pushed down becomes another statement by one of the {@code with} methods.
 *
 * @param from    what stands after FROM
 * @param whole   the statement if nothing is pushed down, null if it is put together anyway
 * @param select  the expressions of the result's columns, with their names
 * @param where   conditions that all have to hold
 * @param groupBy expressions
 * @param orderBy expressions with directions
 * @param limit   the most rows
 * @param offset  how many rows before them are skipped
 */
record Statement(
        String from,
        String whole,
        List<String> select,
        List<String> where,
        List<String> groupBy,
        List<String> orderBy,
        OptionalInt limit,
        int offset) {
    /** Reads rows of which no column is wanted. */
    private static final String NO_COLUMN = "1 AS dray_row";
    private static final String NAME =
            "(?:[\\p{L}_][\\p{L}\\p{N}_$]*|\"(?:[^\"]|\"\")+\"|`(?:[^`]|``)+`)";
    /** A table and nothing else, maybe with another name. */
    private static final Pattern TABLE = Pattern.compile("\\s*(?:ONLY\\s+)?" + NAME
            + "(?:\\s*\\.\\s*" + NAME + "){0,2}(?:\\s+(?:AS\\s+)?" + NAME + ")?\\s*",
            Pattern.CASE_INSENSITIVE);
    /** What may be an order, also with a comment within. */
    private static final Pattern ORDER =
            Pattern.compile("\\border\\b.*\\bby\\b", Pattern.CASE_INSENSITIVE | Pattern.DOTALL);

    /**
     * All columns of a table, or of what else may stand after FROM. What may be more than one table
     * is a query, since a condition or an order after it could mean something else.
     */
    static Statement ofTable(String table, List<String> select) {
        if (!TABLE.matcher(table).matches()) {
            return ofQuery("SELECT * FROM " + table, select);
        }
        return new Statement(table, null, select, List.of(), List.of(), List.of(),
                OptionalInt.empty(), 0);
    }

    /** All columns of a query. */
    static Statement ofQuery(String query, List<String> select) {
        // The query may end with a comment.
        return new Statement("(" + query + "\n) AS dray_query", query, select, List.of(),
                List.of(), List.of(), OptionalInt.empty(), 0);
    }

    /**
     * Whether it is a query that may have an order. Another statement around it may lose the order,
     * as MariaDB's does.
     */
    boolean isOrderedQuery() {
        return whole != null && ORDER.matcher(whole).find();
    }

    Statement withSelect(List<String> expressions) {
        String same = expressions.equals(select) ? whole : null;
        return new Statement(from, same, expressions, where, groupBy, orderBy, limit, offset);
    }

    Statement withWhere(List<String> conditions) {
        String same = conditions.equals(where) ? whole : null;
        return new Statement(from, same, select, conditions, groupBy, orderBy, limit, offset);
    }

    Statement withGroupBy(List<String> expressions) {
        String same = expressions.equals(groupBy) ? whole : null;
        return new Statement(from, same, select, where, expressions, orderBy, limit, offset);
    }

    Statement withOrderBy(List<String> expressions) {
        String same = expressions.equals(orderBy) ? whole : null;
        return new Statement(from, same, select, where, groupBy, expressions, limit, offset);
    }

    Statement withLimit(int rows) {
        OptionalInt most = OptionalInt.of(rows);
        return new Statement(from, null, select, where, groupBy, orderBy, most, 0);
    }

    /** Skips the first of the rows that the limit leaves, which are more. */
    Statement withOffset(int rows) {
        OptionalInt rest = OptionalInt.of(limit.orElseThrow() - rows);
        return new Statement(from, null, select, where, groupBy, orderBy, rest, rows);
    }

    /** The statement as SQL. */
    String sql() {
        if (whole != null) {
            return whole;
        }
        StringJoiner sql = new StringJoiner(" ");
        sql.add("SELECT").add(select.isEmpty() ? NO_COLUMN : String.join(", ", select));
        sql.add("FROM").add(from);
        clause(sql, "WHERE", " AND ", where);
        clause(sql, "GROUP BY", ", ", groupBy);
        clause(sql, "ORDER BY", ", ", orderBy);
        limit.ifPresent(rows -> sql.add("LIMIT").add(String.valueOf(rows)));
        if (offset > 0) {
            sql.add("OFFSET").add(String.valueOf(offset));
        }
        return sql.toString();
    }

    private static void clause(StringJoiner sql, String name, String between, List<String> what) {
        if (!what.isEmpty()) {
            sql.add(name).add(String.join(between, what));
        }
    }

    Statement {
        Objects.requireNonNull(from);
        select = List.copyOf(select);
        where = List.copyOf(where);
        groupBy = List.copyOf(groupBy);
        orderBy = List.copyOf(orderBy);
    }
}
