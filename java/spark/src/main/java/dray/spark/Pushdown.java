package dray.spark;

import dray.spark.pushdown.Aggregates;
import dray.spark.pushdown.Dialect;
import dray.spark.pushdown.Filters;
import dray.spark.pushdown.Ordering;
import dray.spark.pushdown.SourceColumn;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the database can do for scans of a table or query.
 *
 * @param columns those that it computes with as Spark does
 */
record Pushdown(Dialect dialect, List<SourceColumn> columns) {
    private static final Logger LOG = LoggerFactory.getLogger(Pushdown.class);

    /** How the database writes what Spark means. None if Spark does the work. */
    static Optional<Dialect> dialect(DrayOptions options, Description table) {
        return options.isPushDown() ? table.dialect().translation() : Optional.empty();
    }

    /** Asks the database for the types of its columns. None as in {@link #dialect}. */
    static Optional<Pushdown> of(DrayOptions options, Description table, String from) {
        return dialect(options, table).map(dialect -> new Pushdown(dialect,
                columns(options, table.schema(), dialect, from)));
    }

    private static List<SourceColumn> columns(DrayOptions options, StructType schema,
            Dialect dialect, String from) {
        List<String> names = List.of(schema.fieldNames());
        if (names.isEmpty()) {
            return List.of();
        }
        try {
            Optional<String> sql = dialect.describe(from, names);
            String[][] rows = sql.isEmpty() ? new String[0][] : Rows.read(options, sql.get());
            return SourceColumn.list(schema, rows).stream()
                    .filter(column -> options.isExact(column.type())).toList();
        } catch (DrayException unknown) {
            LOG.warn("the database does not tell the types of {}, so Spark filters and aggregates"
                    + " its rows: {}", from, unknown.getMessage());
            return List.of();
        }
    }

    Filters filters(Predicate... predicates) {
        return Filters.translate(dialect, columns, predicates);
    }

    Optional<Aggregates> aggregates(Aggregation aggregation) {
        return Aggregates.translate(dialect, columns, aggregation);
    }

    Optional<List<String>> ordering(SortOrder... orders) {
        return Ordering.translate(dialect, columns, orders);
    }
}
