package dray.spark.pushdown;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.join.JoinType;
import org.apache.spark.sql.connector.read.SupportsPushDownJoin.ColumnWithAlias;
import org.apache.spark.sql.types.StructType;

/** Joins of two statements of the same database. */
public final class Joins {
    private Joins() { }

    /**
     * A statement and its columns.
     *
     * @param sql     {@code SELECT …}
     * @param columns the columns of its result
     */
    public record Statement(String sql, List<SourceColumn> columns) {
        /** The columns' names and types. A join may make NULLs of what has none. */
        public StructType schema() {
            var schema = new StructType();
            for (SourceColumn column : columns) {
                schema = schema.add(column.name(), column.type());
            }
            return schema;
        }
    }

    /**
     * The join as a statement, if the database finds the same rows as Spark. It sees all rows of
     * both sides, so each side must be whole.
     *
     * @param leftNames  the columns that Spark wants of the left side, and what it calls them
     * @param rightNames those of the right side; all names differ
     * @param condition  which rows belong together, in these names
     */
    public static Optional<Statement> translate(Dialect dialect, JoinType type, Statement left,
            ColumnWithAlias[] leftNames, Statement right, ColumnWithAlias[] rightNames,
            Predicate condition) {
        var columns = new ArrayList<SourceColumn>();
        String leftSide = side(dialect, left, leftNames, columns);
        String rightSide = side(dialect, right, rightNames, columns);
        String join = switch (type) {
            case INNER_JOIN -> " INNER JOIN ";
            case LEFT_OUTER_JOIN -> " LEFT JOIN ";
            case RIGHT_OUTER_JOIN -> " RIGHT JOIN ";
        };
        long names = columns.stream().map(SourceColumn::name).distinct().count();
        if (leftSide == null || rightSide == null || names != columns.size() || names == 0) {
            return Optional.empty();
        }
        try {
            String on = new Translator(dialect, columns).predicate(condition);
            List<String> all = columns.stream().map(SourceColumn::name).toList();
            return Optional.of(new Statement("SELECT " + dialect.identifiers(all) + " FROM ("
                    + leftSide + ") AS l" + join + "(" + rightSide + ") AS r ON " + on, columns));
        } catch (Untranslatable kept) {
            return Optional.empty();
        }
    }

    /** A side under the names that Spark gives it; null if it lacks one of the columns. */
    private static String side(Dialect dialect, Statement side, ColumnWithAlias[] names,
            List<SourceColumn> columns) {
        var select = new ArrayList<String>();
        for (ColumnWithAlias wanted : names) {
            String alias = wanted.alias() == null ? wanted.colName() : wanted.alias();
            Optional<SourceColumn> column = side.columns.stream()
                    .filter(c -> c.name().equals(wanted.colName())).findFirst();
            if (column.isEmpty()) {
                return null;
            }
            columns.add(column.get().as(alias));
            select.add(dialect.identifier(wanted.colName()) + " AS " + dialect.identifier(alias));
        }
        // A side of no columns still has rows.
        String list = select.isEmpty() ? "1 AS " + dialect.identifier("one")
                : String.join(", ", select);
        // It may end with a comment.
        return "SELECT " + list + " FROM (" + side.sql + "\n) AS q";
    }
}
