package dray.spark.pushdown;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.join.JoinType;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownJoin;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownOffset;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownTopN;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A source of Spark's over the table {@code t} of a {@link Database}, which pushes all it can. */
public final class PushingSource implements TableProvider {
    /** By name, for the option {@code database}. */
    static final Map<String, Database> DATABASES = new ConcurrentHashMap<>();
    /** What was pushed by the last plan. */
    static volatile Builder last;

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return schema(DATABASES.get(options.get("database")).columns());
    }

    private static StructType schema(List<SourceColumn> columns) {
        var schema = new StructType();
        for (SourceColumn column : columns) {
            schema = schema.add(column.name(), column.type());
        }
        return schema;
    }

    @Override
    public Table getTable(StructType schema, Transform[] parts, Map<String, String> options) {
        Database database = DATABASES.get(options.get("database"));
        return new SupportsRead() {
            @Override
            public String name() {
                return database.name();
            }

            @Override
            @SuppressWarnings("deprecation")
            public StructType schema() {
                return schema;
            }

            @Override
            public Set<TableCapability> capabilities() {
                return Set.of(TableCapability.BATCH_READ);
            }

            @Override
            public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
                return new Builder(database, schema);
            }
        };
    }

    static final class Builder implements ScanBuilder, SupportsPushDownV2Filters,
            SupportsPushDownAggregates, SupportsPushDownTopN, SupportsPushDownLimit,
            SupportsPushDownOffset, SupportsPushDownRequiredColumns, SupportsPushDownJoin {
        private final Database database;
        private final Dialect dialect;
        private String from = "t";
        private List<SourceColumn> columns;
        private StructType required;
        Filters filters;
        Aggregates aggregates;
        String order = "";
        String limit = "";
        private int rows;
        boolean joined;

        Builder(Database database, StructType schema) {
            this.database = database;
            dialect = database.dialect();
            columns = database.columns();
            required = schema;
            filters = Filters.translate(dialect, columns);
            last = this;
        }

        @Override
        public Predicate[] pushPredicates(Predicate[] predicates) {
            filters = Filters.translate(dialect, columns, predicates);
            return filters.kept().toArray(new Predicate[0]);
        }

        @Override
        public Predicate[] pushedPredicates() {
            return filters.pushed().toArray(new Predicate[0]);
        }

        @Override
        public boolean supportCompletePushDown(Aggregation aggregation) {
            return Aggregates.translate(dialect, columns, aggregation).isPresent();
        }

        @Override
        public boolean pushAggregation(Aggregation aggregation) {
            Optional<Aggregates> translated = Aggregates.translate(dialect, columns, aggregation);
            translated.ifPresent(found -> aggregates = found);
            return translated.isPresent();
        }

        @Override
        public boolean pushTopN(SortOrder[] orders, int count) {
            Optional<List<String>> translated = Ordering.translate(dialect, columns, orders);
            if (aggregates != null || translated.isEmpty()) {
                return false;
            }
            order = " ORDER BY " + String.join(", ", translated.get());
            return pushLimit(count);
        }

        @Override
        public boolean pushLimit(int count) {
            rows = count;
            limit = " " + dialect.limit(count, 0);
            return true;
        }

        @Override
        public boolean pushOffset(int count) {
            if (count >= rows) {
                return false;
            }
            limit = " " + dialect.limit(rows - count, count);
            return true;
        }

        @Override
        public boolean isPartiallyPushed() {
            return false;
        }

        @Override
        public void pruneColumns(StructType wanted) {
            required = wanted;
        }

        @Override
        public boolean isOtherSideCompatibleForJoin(SupportsPushDownJoin other) {
            return other instanceof Builder builder && builder.database == database;
        }

        @Override
        public boolean pushDownJoin(SupportsPushDownJoin other, JoinType type,
                ColumnWithAlias[] left, ColumnWithAlias[] right, Predicate condition) {
            var translated = Joins.translate(dialect, type, statement(), left,
                    ((Builder) other).statement(), right, condition);
            translated.ifPresent(join -> {
                from = "(" + join.sql() + ")";
                columns = join.columns();
                required = schema(columns);
                filters = Filters.translate(dialect, columns);
                joined = true;
                last = this;
            });
            return translated.isPresent();
        }

        private Joins.Statement statement() {
            List<String> names = columns.stream().map(SourceColumn::name).toList();
            return new Joins.Statement(
                    "SELECT " + dialect.identifiers(names) + " FROM " + from + " AS t" + where(),
                    columns);
        }

        private String where() {
            List<String> conditions = filters.conditions();
            return conditions.isEmpty() ? "" : " WHERE " + String.join(" AND ", conditions);
        }

        StructType result() {
            return aggregates == null ? required : aggregates.schema();
        }

        String sql() {
            String select = aggregates != null ? String.join(", ", aggregates.select())
                    : required.isEmpty() ? "1"
                    : dialect.identifiers(Arrays.asList(required.fieldNames()));
            String group = aggregates == null || aggregates.groupBy().isEmpty() ? ""
                    : " GROUP BY " + String.join(", ", aggregates.groupBy());
            return "SELECT " + select + " FROM " + from + " AS t" + where() + group + order
                    + limit;
        }

        @Override
        public Scan build() {
            return new RowsScan(database, sql(), result());
        }
    }

    private record RowsScan(Database database, String sql, StructType readSchema)
            implements Scan, Batch {
        @Override
        public Batch toBatch() {
            return this;
        }

        @Override
        public InputPartition[] planInputPartitions() {
            StructType schema = readSchema.isEmpty() ? new StructType().add("one", "int")
                    : readSchema;
            var convert = CatalystTypeConverters.createToCatalystConverter(schema);
            var rows = new ArrayList<InternalRow>();
            try {
                for (Row row : database.rows(sql, schema)) {
                    rows.add((InternalRow) convert.apply(row));
                }
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
            return new InputPartition[] {new Rows(rows.toArray(new InternalRow[0]))};
        }

        @Override
        public PartitionReaderFactory createReaderFactory() {
            return new Readers();
        }
    }

    private record Rows(InternalRow[] rows) implements InputPartition { }

    private static final class Readers implements PartitionReaderFactory, Serializable {
        private static final long serialVersionUID = 1;

        @Override
        public PartitionReader<InternalRow> createReader(InputPartition partition) {
            InternalRow[] rows = ((Rows) partition).rows;
            return new PartitionReader<>() {
                private int place = -1;

                @Override
                public boolean next() {
                    return ++place < rows.length;
                }

                @Override
                public InternalRow get() {
                    return rows[place];
                }

                @Override
                public void close() { }
            };
        }
    }
}
