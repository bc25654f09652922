package dray.spark;

import java.util.BitSet;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicLong;
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
    private static final AtomicLong SCANS = new AtomicLong();

    private final long number = SCANS.incrementAndGet();
    private final DrayOptions options;
    private final Statement statement;
    private final StructType schema;
    /** If each part aggregates its own rows, else null. */
    private final PartialAggregates partial;
    /** What must still be true when the statement runs. */
    private final List<Facts> facts;
    /** Null until it is asked for, if it is not known before. */
    private Description description;
    /** Null until partitions are asked for. */
    private Snapshot snapshot;
    private final ReadStages stages;

    DrayScan(DrayOptions options, Statement statement, StructType schema,
            PartialAggregates partial, List<Facts> facts, Description description) {
        this.options = options;
        this.statement = statement;
        this.schema = schema;
        this.partial = partial;
        this.facts = facts;
        this.description = description;
        stages = new ReadStages(number);
    }

    @Override
    public StructType readSchema() {
        return schema;
    }

    @Override
    public String description() {
        return (partial == null ? "dray [" : "dray, each part by itself [") + statement.sql() + "]";
    }

    @Override
    public ColumnarSupportMode columnarSupportMode() {
        // Without this, Spark asks for the partitions in order to explain a plan.
        return ColumnarSupportMode.SUPPORTED;
    }

    @Override
    public CustomMetric[] supportedCustomMetrics() {
        return new CustomMetric[] {new PartsRead(), new PeakBytes()};
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
            partitions[i] = new DrayPartition(number, i);
        }
        return partitions;
    }

    private int atMost() {
        if (statement.limit().isPresent()) {
            // Spark counts the rows no more.
            return 1;
        }
        OptionalLong bytes = options.bytesPerPartition();
        long expected = bytes.isEmpty() ? -1
                : partial == null ? expected().bytes() : partial.read().bytes();
        int most = options.atMost();
        if (expected < 0) {
            return most;
        }
        long rest = expected % bytes.getAsLong() == 0 ? 0 : 1;
        long wanted = Math.max(1, expected / bytes.getAsLong() + rest);
        return (int) Math.min(wanted, most == 0 ? DrayOptions.PARTS_MAX : most);
    }

    /**
     * The snapshot that is held, or a new one with at most so many parts. None follows one whose
     * rows can't be right: what has read them must not go on.
     */
    private Snapshot current(int atMost) {
        if (snapshot != null) {
            snapshot.checkReceipts();
        }
        if (snapshot == null || snapshot.isOutdated() || !snapshot.handOut()) {
            snapshot = Snapshot.take(options, statement.sql(), schema, facts, atMost,
                    partial != null, this::expected, SparkContext.getOrCreate());
            stages.beginSnapshot();
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
            if (snapshot.isOver() && snapshot.isStillRead()) {
                // A stage that runs again would mix the rows of another snapshot with those it has.
                throw new DrayException("the lease is over, and what began to read under it still"
                        + " runs (option lease: how many seconds parts can be read)");
            }
            Snapshot current = current(snapshot.partitions());
            BitSet refused = stages.check(current);
            current.beginReading();
            PartialSums sums = partial == null ? null : partial.sums();
            return new PartReaderFactory(options, statement.sql(), schema, sums, current.parts(),
                    current.receipts(), current.tasks(), refused);
        } catch (DrayException refused) {
            return new PartReaderFactory(refused);
        }
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof DrayScan scan && options.equals(scan.options)
                && statement.equals(scan.statement) && schema.equals(scan.schema)
                && (partial == null) == (scan.partial == null) && facts.equals(scan.facts);
    }

    @Override
    public int hashCode() {
        return statement.hashCode();
    }
}
