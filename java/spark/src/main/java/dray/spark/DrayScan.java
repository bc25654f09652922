package dray.spark;

import java.util.OptionalLong;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.types.StructType;

/**
 * A scan of a statement's result. All its parts are read under one snapshot, which begins when
 * Spark asks for the partitions. If the same physical plan runs again after its snapshot was given
 * up, another one is taken.
 */
final class DrayScan implements Scan, Batch, SupportsReportStatistics {
    private final DrayOptions options;
    private final Statement statement;
    private final StructType schema;
    /** Null until it is asked for, if it is not known before. */
    private Description description;
    /** Null until partitions are asked for. */
    private Snapshot snapshot;

    DrayScan(DrayOptions options, Statement statement, StructType schema,
            Description description) {
        this.options = options;
        this.statement = statement;
        this.schema = schema;
        this.description = description;
    }

    @Override
    public StructType readSchema() {
        return schema;
    }

    @Override
    public String description() {
        return "dray [" + statement.sql() + "]";
    }

    @Override
    public ColumnarSupportMode columnarSupportMode() {
        // Without this, Spark asks for the partitions in order to explain a plan.
        return ColumnarSupportMode.SUPPORTED;
    }

    @Override
    public CustomMetric[] supportedCustomMetrics() {
        return new CustomMetric[] {new PartsRead()};
    }

    @Override
    public Statistics estimateStatistics() {
        Description expected = expected();
        return new Statistics() {
            @Override
            public OptionalLong sizeInBytes() {
                return known(expected.bytes());
            }

            @Override
            public OptionalLong numRows() {
                return known(expected.rows());
            }
        };
    }

    private static OptionalLong known(long number) {
        return number < 0 ? OptionalLong.empty() : OptionalLong.of(number);
    }

    private synchronized Description expected() {
        if (description == null) {
            description = Description.of(options, statement.sql());
        }
        return description;
    }

    @Override
    public Batch toBatch() {
        return this;
    }

    @Override
    public synchronized InputPartition[] planInputPartitions() {
        int parts = current(atMost()).partitions();
        InputPartition[] partitions = new InputPartition[parts];
        for (int i = 0; i < parts; i++) {
            partitions[i] = new DrayPartition(i);
        }
        return partitions;
    }

    private int atMost() {
        OptionalLong bytes = options.bytesPerPartition();
        long expected = bytes.isPresent() ? expected().bytes() : -1;
        int most = options.atMost();
        if (expected < 0) {
            return most;
        }
        long rest = expected % bytes.getAsLong() == 0 ? 0 : 1;
        long wanted = Math.max(1, expected / bytes.getAsLong() + rest);
        return (int) Math.min(wanted, most == 0 ? DrayOptions.PARTS_MAX : most);
    }

    /** The snapshot that is held, or a new one with at most so many parts. */
    private Snapshot current(int atMost) {
        if (snapshot == null || !snapshot.handOut()) {
            snapshot = Snapshot.take(options, statement.sql(), schema, atMost,
                    SparkContext.getOrCreate());
        }
        return snapshot;
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return new DrayReaderFactory(this);
    }

    /** What executors need to read the parts, under the snapshot that is held now. */
    synchronized PartReaderFactory readerFactory() {
        if (snapshot == null) {
            throw new IllegalStateException("a scan is read before its partitions are planned");
        }
        try {
            Snapshot current = current(snapshot.partitions());
            return new PartReaderFactory(
                    options, statement.sql(), schema, current.parts(), current.receipts());
        } catch (DrayException refused) {
            return new PartReaderFactory(refused);
        }
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof DrayScan scan && options.equals(scan.options)
                && statement.equals(scan.statement) && schema.equals(scan.schema);
    }

    @Override
    public int hashCode() {
        return statement.hashCode();
    }
}
