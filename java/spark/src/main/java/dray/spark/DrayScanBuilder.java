package dray.spark;

import dray.spark.pushdown.Aggregates;
import dray.spark.pushdown.Filters;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownTopN;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructType;

/**
 * What Spark pushes down becomes part of the scan's {@link Statement}. Spark asks in this order:
 * filters, aggregates, a limit, columns.
 */
final class DrayScanBuilder implements SupportsPushDownV2Filters, SupportsPushDownAggregates,
        SupportsPushDownTopN, SupportsPushDownLimit, SupportsPushDownRequiredColumns {
    /**
     * The largest limit that is pushed down. A statement with a limit is one part, so a larger one
     * is better read in parallel until Spark has enough rows.
     */
    private static final int LIMIT_MAX = 65_536;

    private final DrayOptions options;
    private final Description table;
    private final Supplier<Optional<Pushdown>> pushdown;
    private Predicate[] pushed = {};
    /** What the database aggregates, else null. */
    private Aggregates complete;
    private Statement statement;
    private StructType schema;
    /** A statement whose result is known, and that result. */
    private Statement described;
    private Description result;

    DrayScanBuilder(DrayOptions options, Description table, Supplier<Optional<Pushdown>> pushdown,
            Statement statement) {
        this.options = options;
        this.table = table;
        this.pushdown = pushdown;
        this.statement = statement;
        schema = table.schema();
        described = statement;
        result = table;
    }

    @Override
    public Predicate[] pushPredicates(Predicate[] predicates) {
        Optional<Pushdown> translation =
                predicates.length == 0 ? Optional.empty() : pushdown.get();
        if (translation.isEmpty()) {
            return predicates;
        }
        Filters filters = translation.get().filters(predicates);
        statement = statement.withWhere(filters.conditions());
        pushed = filters.pushed().toArray(Predicate[]::new);
        return filters.kept().toArray(Predicate[]::new);
    }

    @Override
    public Predicate[] pushedPredicates() {
        return pushed.clone();
    }

    /** All rows are aggregated by one statement, so that nothing but the result travels. */
    @Override
    public boolean supportCompletePushDown(Aggregation aggregation) {
        complete = translated(aggregation).filter(this::isExact).orElse(null);
        return complete != null;
    }

    private Optional<Aggregates> translated(Aggregation aggregation) {
        return pushdown.get().flatMap(translation -> translation.aggregates(aggregation));
    }

    private Statement aggregated(Aggregates aggregates) {
        return statement.withSelect(aggregates.select()).withGroupBy(aggregates.groupBy());
    }

    /** Whether the database's result has the types by which Spark reads it. */
    private boolean isExact(Aggregates aggregates) {
        Statement aggregated = aggregated(aggregates);
        Description found = Description.of(options, aggregated.sql());
        if (!SparkTypes.areSame(found.schema(), aggregates.schema())) {
            return false;
        }
        described = aggregated;
        result = found;
        return true;
    }

    @Override
    public boolean pushAggregation(Aggregation aggregation) {
        // Spark also asks for sums and counts of parts instead of averages.
        if (complete == null || !translated(aggregation).equals(Optional.of(complete))) {
            return false;
        }
        statement = aggregated(complete);
        schema = complete.schema();
        return true;
    }

    @Override
    public boolean pushTopN(SortOrder[] orders, int limit) {
        if (limit > LIMIT_MAX || complete != null) {
            return false;
        }
        Optional<List<String>> terms =
                pushdown.get().flatMap(translation -> translation.ordering(orders));
        terms.ifPresent(found -> statement = statement.withOrderBy(found).withLimit(limit));
        return terms.isPresent();
    }

    @Override
    public boolean pushLimit(int limit) {
        if (limit > LIMIT_MAX || table.dialect().translation().isEmpty()) {
            return false;
        }
        statement = statement.withLimit(limit);
        return true;
    }

    @Override
    public boolean isPartiallyPushed() {
        // A statement with a limit is one part, unless the server can't tell that it is one.
        return true;
    }

    @Override
    public void pruneColumns(StructType required) {
        schema = required;
        statement = statement.withSelect(DrayTable.columns(required, table.dialect()));
    }

    @Override
    public Scan build() {
        return new DrayScan(options, statement, schema,
                statement.equals(described) ? result : null);
    }
}
