package dray.spark;

import java.util.List;
import java.util.Objects;
import java.util.OptionalInt;
import java.util.StringJoiner;

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
 */
record Statement(
        String from,
        String whole,
        List<String> select,
        List<String> where,
        List<String> groupBy,
        List<String> orderBy,
        OptionalInt limit) {
    /** Reads rows of which no column is wanted. */
    private static final String NO_COLUMN = "1 AS dray_row";

    /** All columns of a table, or of what else may stand after FROM. */
    static Statement ofTable(String table, List<String> select) {
        return new Statement(table, null, select, List.of(), List.of(), List.of(),
                OptionalInt.empty());
    }

    /** All columns of a query. */
    static Statement ofQuery(String query, List<String> select) {
        // The query may end with a comment.
        return new Statement("(" + query + "\n) AS dray_query", query, select, List.of(),
                List.of(), List.of(), OptionalInt.empty());
    }

    Statement withSelect(List<String> expressions) {
        String same = expressions.equals(select) ? whole : null;
        return new Statement(from, same, expressions, where, groupBy, orderBy, limit);
    }

    Statement withWhere(List<String> conditions) {
        String same = conditions.equals(where) ? whole : null;
        return new Statement(from, same, select, conditions, groupBy, orderBy, limit);
    }

    Statement withGroupBy(List<String> expressions) {
        String same = expressions.equals(groupBy) ? whole : null;
        return new Statement(from, same, select, where, expressions, orderBy, limit);
    }

    Statement withOrderBy(List<String> expressions) {
        String same = expressions.equals(orderBy) ? whole : null;
        return new Statement(from, same, select, where, groupBy, expressions, limit);
    }

    Statement withLimit(int rows) {
        OptionalInt most = OptionalInt.of(rows);
        return new Statement(from, null, select, where, groupBy, orderBy, most);
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
