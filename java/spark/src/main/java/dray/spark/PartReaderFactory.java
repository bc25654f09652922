package dray.spark;

import java.util.BitSet;
import java.util.Map;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.CollectionAccumulator;

/** Makes the readers of a scan's parts, at the executors. */
final class PartReaderFactory implements PartitionReaderFactory {
    private static final long serialVersionUID = 1;

    private final DrayOptions options;
    private final String sql;
    private final StructType schema;
    /** Of parts with partial aggregates, else null. */
    private final PartialSums sums;
    /** None if the statement is read as a whole. */
    private final byte[][] parts;
    private final Receipts receipts;
    /** The receipts that the driver had when the stage began. */
    private final Map<Receipts.Key, Receipt> known;
    private final CollectionAccumulator<TaskRead> tasks;
    /** The partitions of the stage's RDD for which no part can be read. */
    private final BitSet refusedPartitions;
    /** Why no part can be read, or null. */
    private final DrayException refused;

    PartReaderFactory(DrayOptions options, String sql, StructType schema, PartialSums sums,
            byte[][] parts, Receipts receipts, CollectionAccumulator<TaskRead> tasks,
            BitSet refusedPartitions) {
        this.options = options;
        this.sql = sql;
        this.schema = schema;
        this.sums = sums;
        this.parts = parts;
        this.receipts = receipts;
        known = receipts.known();
        this.tasks = tasks;
        this.refusedPartitions = refusedPartitions;
        refused = null;
    }

    /**
     * Makes no readers. Spark may not need any: it also hands a scan to stages that find all of
     * its rows in a cache.
     */
    PartReaderFactory(DrayException refused) {
        options = null;
        sql = null;
        schema = null;
        sums = null;
        parts = null;
        receipts = null;
        known = null;
        tasks = null;
        refusedPartitions = null;
        this.refused = refused;
    }

    @Override
    public boolean supportColumnarReads(InputPartition partition) {
        return true;
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
        if (refused != null) {
            throw refused;
        }
        if (refusedPartitions.get(TaskContext.getPartitionId())) {
            throw new DrayException("a part can't be read after others of its table, by a job of"
                    + " its own as for toLocalIterator(): their snapshot has ended with its lease,"
                    + " or has been released (load the table anew; option lease: how many"
                    + " seconds parts can be read; cache() and count() read all of it first)");
        }
        int index = ((DrayPartition) partition).index();
        if (index > 0 && index >= parts.length) {
            return new NoRows();
        }
        return new DrayReader(options, schema, sums, this::add, tasks,
                handle -> open(handle, index));
    }

    /** Adds the receipt of a part that was read. Fails if it differs from one that is known. */
    void add(Receipt receipt) {
        receipts.add(receipt, known);
    }

    private void open(long handle, int index) {
        TaskContext task = TaskContext.get();
        String url = options.urlOfPart(index, task == null ? 0 : task.attemptNumber());
        ConnectionWait.run(options, () -> {
            if (parts.length > 0) {
                Native.openPart(handle, parts[index], url, options.natives());
            } else {
                Native.openQuery(handle, options.url(), sql, options.nativesOfWhole());
            }
        });
    }

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
        throw new UnsupportedOperationException("Dray reads batches");
    }
}
