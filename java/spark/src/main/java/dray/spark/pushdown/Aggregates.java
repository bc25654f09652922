package dray.spark.pushdown;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Avg;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.connector.expressions.aggregate.Sum;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;

/**
 * An aggregation of Spark's in SQL. The database's columns are the keys of the groups, then the
 * aggregates, as in {@code schema}.
 *
 * @param select  the expressions of the select list, with their names
 * @param groupBy the expressions of {@code GROUP BY}; none if there are no groups
 * @param schema  the columns' names and types
 * @param partial whether each of several parts may compute it, and Spark from their rows the whole.
 *                Of averages Spark then wants sums and counts. Otherwise one statement must see all
 *                rows
 * @param summed  the columns that Spark adds up over the parts, by their numbers, with the type that
 *                it casts them to before
 */
public record Aggregates(List<String> select, List<String> groupBy, StructType schema,
        boolean partial, SortedMap<Integer, DataType> summed) {
    private static final int SUM_DIGITS = 10;
    private static final int AVERAGE_DIGITS = 4;
    /** Averages of fewer digits are quotients of doubles in Spark. */
    private static final int AVERAGE_PRECISION_MIN = 12;
    /** Averages of more digits are rounded by Spark before they are rounded. */
    private static final int AVERAGE_PRECISION_MAX = 18;

    /** Translates an aggregation, if the database computes exactly Spark's values. */
    public static Optional<Aggregates> translate(Dialect dialect, List<SourceColumn> columns,
            Aggregation aggregation) {
        try {
            return Optional.of(new Builder(dialect, columns).build(aggregation));
        } catch (Untranslatable kept) {
            return Optional.empty();
        }
    }

    private static final class Builder {
        private final Dialect dialect;
        private final Translator translator;
        private final List<String> select = new ArrayList<>();
        private final List<String> groupBy = new ArrayList<>();
        private StructType schema = new StructType();
        private final SortedMap<Integer, DataType> summed = new TreeMap<>();
        private boolean partial = true;

        Builder(Dialect dialect, List<SourceColumn> columns) {
            this.dialect = dialect;
            this.translator = new Translator(dialect, columns);
        }

        Aggregates build(Aggregation aggregation) throws Untranslatable {
            for (Expression expression : aggregation.groupByExpressions()) {
                Term term = translator.term(expression);
                if (term.isLiteral()) {
                    // Some databases take a number for a column's place.
                    throw new Untranslatable("groups by a literal");
                }
                dialect.checkGrouping(term);
                groupBy.add(dialect.key(term));
                add("group_", dialect.groupValue(term), term.type());
            }
            for (AggregateFunc function : aggregation.aggregateExpressions()) {
                add(function);
            }
            return new Aggregates(List.copyOf(select), List.copyOf(groupBy), schema, partial,
                    Collections.unmodifiableSortedMap(summed));
        }

        private void add(String prefix, String sql, DataType type) {
            String name = prefix + select.size();
            select.add(sql + " AS " + dialect.identifier(name));
            schema = schema.add(name, type);
        }

        private void addSummed(String prefix, String sql, DataType type, DataType cast) {
            summed.put(select.size(), cast);
            add(prefix, sql, type);
        }

        private void add(AggregateFunc function) throws Untranslatable {
            if (function instanceof CountStar) {
                addSummed("count_", "count(*)", DataTypes.LongType, DataTypes.LongType);
            } else if (function instanceof Count count) {
                addSummed("count_", count(count), DataTypes.LongType, DataTypes.LongType);
            } else if (function instanceof Min min) {
                extreme("min", translator.term(min.column()));
            } else if (function instanceof Max max) {
                extreme("max", translator.term(max.column()));
            } else if (function instanceof Sum sum && !sum.isDistinct()) {
                sum(translator.term(sum.column()));
            } else if (function instanceof Avg average && !average.isDistinct()) {
                average(translator.term(average.column()));
            } else {
                throw new Untranslatable(function.describe());
            }
        }

        private String count(Count count) throws Untranslatable {
            if (!count.isDistinct() && count.column() instanceof NamedReference reference) {
                // Of any type.
                return "count(" + dialect.identifier(translator.column(reference).name()) + ")";
            }
            Term term = translator.term(count.column());
            if (count.isDistinct()) {
                partial = false;
                dialect.checkGrouping(term);
                return "count(DISTINCT " + dialect.key(term) + ")";
            }
            return "count(" + term.sql() + ")";
        }

        private void extreme(String function, Term term) throws Untranslatable {
            if (term.type().equals(DataTypes.BooleanType)
                    || term.type().equals(DataTypes.BinaryType)) {
                throw new Untranslatable(function + " of " + term.type().sql());
            }
            add(function + "_", dialect.extreme(function, term), term.type());
        }

        private void sum(Term term) throws Untranslatable {
            // Spark casts sums of parts to the type of what is summed, if these are decimals.
            DataType type = sumType(term);
            addSummed("sum_", dialect.sum(term, type), type,
                    type instanceof DecimalType ? term.type() : type);
        }

        private static DataType sumType(Term term) throws Untranslatable {
            if (term.type() instanceof DecimalType decimal
                    && decimal.precision() + SUM_DIGITS <= DecimalType.MAX_PRECISION()) {
                return DataTypes.createDecimalType(decimal.precision() + SUM_DIGITS,
                        decimal.scale());
            } else if (term.range() != null
                    && term.range().isWithin(Range.of(DataTypes.IntegerType))) {
                // No table has the rows for an overflow.
                return DataTypes.LongType;
            }
            // Sums of floats depend on the order. Others may overflow where Spark's do not.
            throw new Untranslatable("the sum of " + term.type().sql());
        }

        private void average(Term term) throws Untranslatable {
            DataType type;
            if (term.type() instanceof DecimalType decimal
                    && decimal.precision() >= AVERAGE_PRECISION_MIN
                    && decimal.precision() <= AVERAGE_PRECISION_MAX) {
                type = DataTypes.createDecimalType(decimal.precision() + AVERAGE_DIGITS,
                        decimal.scale() + AVERAGE_DIGITS);
            } else if (term.type().equals(DataTypes.ByteType)
                    || term.type().equals(DataTypes.ShortType)) {
                // All sums on the way are exact in a double.
                type = DataTypes.DoubleType;
            } else {
                throw new Untranslatable("the average of " + term.type().sql());
            }
            add("avg_", dialect.average(term, type), type);
        }
    }
}
