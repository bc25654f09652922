package dray.spark;

import dray.spark.pushdown.Aggregates;
import dray.spark.pushdown.Dialect;
import dray.spark.pushdown.Filters;
import dray.spark.pushdown.Ordering;
import dray.spark.pushdown.SourceColumn;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
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
 * @param facts   what is known of them
 */
record Pushdown(Dialect dialect, List<SourceColumn> columns, List<Facts> facts) {
    private static final Logger LOG = LoggerFactory.getLogger(Pushdown.class);

    /** How the database writes what Spark means. None if Spark does the work. */
    static Optional<Dialect> dialect(DrayOptions options, Description table) {
        return options.isPushDown() ? table.dialect().translation() : Optional.empty();
    }

    /** Asks the database for the types of its columns. None as in {@link #dialect}. */
    static Optional<Pushdown> of(DrayOptions options, Description table, String from) {
        return dialect(options, table).map(dialect -> of(options, table.schema(), dialect, from));
    }

    private static Pushdown of(DrayOptions options, StructType schema, Dialect dialect,
            String from) {
        List<String> names = List.of(schema.fieldNames());
        Optional<String> sql = names.isEmpty() ? Optional.empty() : dialect.describe(from, names);
        try {
            String[][] rows = sql.isEmpty() ? new String[0][] : Rows.read(options, sql.get());
            List<SourceColumn> columns = SourceColumn.list(schema, rows).stream()
                    .filter(column -> options.isExact(column.type())).toList();
            return new Pushdown(dialect, columns,
                    sql.map(asked -> Facts.of(asked, rows)).stream().toList());
        } catch (DrayException unknown) {
            LOG.warn("the database does not tell the types of {}, so Spark filters and aggregates"
                    + " its rows: {}", from, unknown.getMessage());
            return new Pushdown(dialect, List.of(), List.of());
        }
    }

    /** The same database, for the columns of a join with another side. */
    Pushdown join(Pushdown side, List<SourceColumn> joined) {
        return new Pushdown(dialect, joined,
                Stream.of(facts, side.facts).flatMap(List::stream).distinct().toList());
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
