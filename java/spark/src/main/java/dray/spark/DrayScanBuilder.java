package dray.spark;

import dray.spark.pushdown.Aggregates;
import dray.spark.pushdown.Filters;
import dray.spark.pushdown.Joins;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Avg;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.join.JoinType;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownJoin;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownOffset;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownTopN;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What Spark pushes down becomes part of the scan's {@link Statement}. Spark asks in this order:
 * filters, a join, aggregates, a limit, an offset, columns.
 */
final class DrayScanBuilder implements SupportsPushDownV2Filters, SupportsPushDownJoin,
        SupportsPushDownAggregates, SupportsPushDownTopN, SupportsPushDownLimit,
        SupportsPushDownOffset, SupportsPushDownRequiredColumns {
    /**
     * The largest limit that is pushed down. A statement with a limit is one part, so a larger one
     * is better read in parallel until Spark has enough rows.
     */
    private static final int LIMIT_MAX = 65_536;
    /**
     * The same of the result of a join, and of an aggregate by one statement: the bytes that a part
     * of a table has.
     */
    private static final long RESULT_BYTES_MAX = 64 << 20;
    /** The kinds of errors by which a database refuses a statement, and not the session. */
    private static final Set<String> REFUSED = Set.of("query", "execution", "limit", "resources");
    private static final Logger LOG = LoggerFactory.getLogger(DrayScanBuilder.class);

    private final DrayOptions options;
    private final Dialect dialect;
    private final Description table;
    private Supplier<Optional<Pushdown>> pushdown;
    private Predicate[] pushed = {};
    /** What the database can aggregate of what Spark last asked for, else null. */
    private Aggregates aggregates;
    /** Whether Spark was refused an average, and asks for sums and counts in place of it. */
    private boolean keepsAverages;
    /** What each part aggregates, once that was decided; empty if one statement aggregates all. */
    private Optional<PartialAggregates> partial = Optional.empty();
    private boolean isPartialDecided;
    private boolean isAggregated;
    private Statement statement;
    private StructType schema;
    /** What must still be true when the statement runs. */
    private List<Facts> facts = List.of();
    /** A statement whose result is known, and that result. */
    private Statement described;
    private Description result;

    DrayScanBuilder(DrayOptions options, Description table, Supplier<Optional<Pushdown>> pushdown,
            Statement statement) {
        this.options = options;
        dialect = table.dialect();
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
                predicates.length == 0 || losesOrder() ? Optional.empty() : pushdown.get();
        if (translation.isEmpty()) {
            return predicates;
        }
        Filters filters = translation.get().filters(predicates);
        if (!filters.conditions().isEmpty()) {
            statement = statement.withWhere(filters.conditions());
            facts = translation.get().facts();
        }
        pushed = filters.pushed().toArray(Predicate[]::new);
        return filters.kept().toArray(Predicate[]::new);
    }

    @Override
    public Predicate[] pushedPredicates() {
        return pushed.clone();
    }

    @Override
    public boolean isOtherSideCompatibleForJoin(SupportsPushDownJoin other) {
        return other instanceof DrayScanBuilder side && options.isSameSource(side.options)
                && pushdown.get().isPresent() && side.pushdown.get().isPresent();
    }

    /** Both sides become one statement, if its result is small. */
    @Override
    public boolean pushDownJoin(SupportsPushDownJoin other, JoinType type, ColumnWithAlias[] left,
            ColumnWithAlias[] right, Predicate condition) {
        DrayScanBuilder side = (DrayScanBuilder) other;
        Pushdown translation = pushdown.get().orElseThrow();
        Pushdown ofSide = side.pushdown.get().orElseThrow();
        Optional<Joins.Statement> translated = Joins.translate(translation.dialect(), type,
                whole(), left, side.whole(), right, condition);
        if (translated.isEmpty()) {
            return false;
        }
        Joins.Statement join = translated.get();
        Optional<Description> joined = describe(join.sql(), join.schema());
        if (joined.isEmpty()
                || !isWorthIt(joined.get().bytes(), bytes(left), side.bytes(right))) {
            return false;
        }
        schema = join.schema();
        statement = Statement.ofQuery(join.sql(), DrayTable.columns(schema, dialect));
        described = statement;
        result = joined.get();
        // The server does not divide a join.
        partial = Optional.empty();
        Pushdown ofJoin = translation.join(ofSide, join.columns());
        facts = ofJoin.facts();
        pushdown = () -> Optional.of(ofJoin);
        return true;
    }

    /**
     * What a statement that is pushed down will return. None if that has other columns than Spark
     * expects, or if the database refuses the statement, which may be longer or wider than it
     * takes. Spark then does the work.
     */
    private Optional<Description> describe(String sql, StructType expected) {
        try {
            Description found = Description.of(options, sql);
            boolean same = expected.isEmpty() || found.schema().equals(expected);
            return same ? Optional.of(found) : Optional.empty();
        } catch (DrayException refused) {
            if (!REFUSED.contains(refused.kind())) {
                throw refused;
            }
            LOG.warn("the database does not take a statement, so Spark does its work: {}: {}",
                    refused.getMessage(), sql);
            return Optional.empty();
        }
    }

    /** The statement with all columns that a join may want. */
    private Joins.Statement whole() {
        Pushdown translation = pushdown.get().orElseThrow();
        List<String> names = translation.columns().stream()
                .map(column -> dialect.quoted(column.name())).toList();
        return new Joins.Statement(statement.withSelect(names).sql(), translation.columns());
    }

    /** What Spark would read for its own join; -1 if unknown. */
    private long bytes(ColumnWithAlias[] columns) {
        StructType wanted = new StructType(Stream.of(columns)
                .map(column -> schema.apply(column.colName())).toArray(StructField[]::new));
        Statement read = statement.withSelect(DrayTable.columns(wanted, dialect));
        return describe(read.sql(), wanted).map(Description::bytes).orElse(-1L);
    }

    /** Spark reads both sides in parallel, and the database's join comes as one part. */
    private static boolean isWorthIt(long joined, long left, long right) {
        return joined >= 0 && left >= 0 && right >= 0 && joined <= RESULT_BYTES_MAX
                && joined <= left + right;
    }

    /**
     * Whether one statement aggregates all rows, so that nothing but the result travels. If not,
     * Spark asks for partial aggregates by {@link #pushAggregation}.
     */
    @Override
    public boolean supportCompletePushDown(Aggregation aggregation) {
        boolean averages = hasAverages(aggregation);
        aggregates = keepsAverages ? null
                : translated(aggregation).filter(this::isExact).orElse(null);
        if (aggregates != null && partial().isEmpty() && isLarge()) {
            aggregates = null;
        }
        // Its sums and counts would give another average, or Spark would have asked for it first.
        keepsAverages |= averages && aggregates == null;
        return aggregates != null && partial().isEmpty();
    }

    /** Whether what one statement aggregates is better made of rows that Spark reads in parallel. */
    private boolean isLarge() {
        return options.aggregation() != DrayOptions.Aggregation.WHOLE
                && result.bytes() > RESULT_BYTES_MAX;
    }

    private static boolean hasAverages(Aggregation aggregation) {
        return Stream.of(aggregation.aggregateExpressions()).anyMatch(Avg.class::isInstance);
    }

    /** Spark asks again about the same rows and groups, so this is decided once. */
    private Optional<PartialAggregates> partial() {
        if (!isPartialDecided) {
            partial = PartialAggregates.decide(options, table, statement, aggregates, result);
            isPartialDecided = true;
        }
        return partial;
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
        Optional<Description> found = describe(aggregated.sql(), aggregates.schema());
        found.ifPresent(known -> {
            described = aggregated;
            result = known;
        });
        return found.isPresent();
    }

    @Override
    public boolean pushAggregation(Aggregation aggregation) {
        // Spark also asks for sums and counts of parts instead of averages.
        boolean same = aggregates != null
                && translated(aggregation).equals(Optional.of(aggregates));
        if (!same || partial().isPresent() && hasAverages(aggregation)) {
            return false;
        }
        partial = partial().map(found -> found.of(aggregates));
        isAggregated = true;
        facts = pushdown.get().orElseThrow().facts();
        statement = aggregated(aggregates);
        schema = aggregates.schema();
        return true;
    }

    @Override
    public boolean pushTopN(SortOrder[] orders, int limit) {
        if (limit > LIMIT_MAX || isAggregated) {
            return false;
        }
        Optional<List<String>> terms =
                pushdown.get().flatMap(translation -> translation.ordering(orders));
        terms.ifPresent(found -> {
            statement = statement.withOrderBy(found).withLimit(limit);
            facts = pushdown.get().orElseThrow().facts();
        });
        return terms.isPresent();
    }

    @Override
    public boolean pushLimit(int limit) {
        if (limit > LIMIT_MAX || dialect.translation().isEmpty() || isPartial() || losesOrder()) {
            return false;
        }
        statement = statement.withLimit(limit);
        return true;
    }

    /**
     * Whether another statement around a query may lose its order. Only PostgreSQL is known to keep
     * it.
     */
    private boolean losesOrder() {
        return dialect != Dialect.POSTGRESQL && statement.isOrderedQuery();
    }

    private boolean isPartial() {
        return isAggregated && partial.isPresent();
    }

    /** A statement with a limit is one part. */
    @Override
    public boolean isPartiallyPushed() {
        return false;
    }

    @Override
    public boolean pushOffset(int offset) {
        // Without a limit, Spark skips rows of parts that it reads in parallel.
        if (statement.limit().isEmpty() || offset >= statement.limit().getAsInt()) {
            return false;
        }
        statement = statement.withOffset(offset);
        return true;
    }

    /** Reads columns whole: Spark may want only some fields of a struct, but takes all of them. */
    @Override
    public void pruneColumns(StructType required) {
        if (dialect == Dialect.OTHER || losesOrder() && !required.isEmpty()) {
            // Spark takes more columns than it needs.
            return;
        }
        List<String> names = List.of(required.fieldNames());
        if (names.equals(List.of(schema.fieldNames()))) {
            return;
        }
        StructType all = schema;
        schema = new StructType(names.stream().map(name -> all.apply(name))
                .toArray(StructField[]::new));
        statement = statement.withSelect(DrayTable.columns(schema, dialect));
    }

    @Override
    public Scan build() {
        return new DrayScan(options, statement, schema,
                isPartial() ? partial.orElseThrow() : null, facts,
                statement.equals(described) ? result : null);
    }
}
