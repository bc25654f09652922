package dray.spark;

import java.util.List;
import java.util.function.Consumer;
import java.util.function.LongConsumer;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.CollectionAccumulator;

/**
 * Reads a part. A batch borrows the memory that native code received it into, until the next one
 * is asked for or the reader is closed.
 */
final class DrayReader implements PartitionReader<ColumnarBatch> {
    private final DrayOptions options;
    private final Consumer<Receipt> receipts;
    private final CollectionAccumulator<TaskRead> tasks;
    /** The task, or null if a program reads by itself. */
    private final TaskContext task;
    private final BufferAllocator allocator;
    private final long handle;
    private VectorSchemaRoot root;
    private ArrowBatch batch;
    /** Of rows that Spark adds up, else null. */
    private final PartialSums sums;
    /** Null if there are no such rows. */
    private PartialSums.Splitter splitter;
    /** Whether the batch is the splitter's. */
    private boolean isSplit;
    private boolean isWhole;
    private boolean hasEnded;
    private boolean isClosed;

    /**
     * Starts to read. {@code open} does so for the handle that it gets.
     *
     * @param receipts takes that of the part, or fails
     */
    DrayReader(DrayOptions options, StructType schema, PartialSums sums,
            Consumer<Receipt> receipts, CollectionAccumulator<TaskRead> tasks, LongConsumer open) {
        this.options = options;
        this.sums = sums;
        this.receipts = receipts;
        this.tasks = tasks;
        task = TaskContext.get();
        handle = Native.create();
        TaskWatch.begin(task, handle);
        allocator = Rows.allocator("dray part", options);
        try {
            open.accept(handle);
            begin(schema);
        } catch (Throwable failure) {
            close();
            throw failure;
        }
    }

    private void begin(StructType schema) {
        Schema arrow = SparkTypes.arrowSchema(handle, allocator);
        Snapshot.checkColumns(SparkTypes.struct(arrow.getFields()), schema);
        root = VectorSchemaRoot.create(arrow, allocator);
        // Of a statement that reads no column, only the number of rows is wanted.
        batch = new ArrowBatch(schema.isEmpty() ? List.of() : root.getFieldVectors());
        splitter = sums == null ? null : sums.splitter(root, allocator);
    }

    @Override
    public boolean next() {
        if (isSplit && splitter.next()) {
            return true;
        }
        isSplit = false;
        batch.clear();
        if (!Rows.next(handle, options, allocator, root)) {
            end();
            return false;
        }
        batch.refresh(root.getRowCount());
        isSplit = splitter != null && splitter.begin();
        return true;
    }

    private void end() {
        byte[] receipt = Native.receipt(handle);
        if (receipt != null && !isWhole) {
            receipts.accept(Receipt.of(receipt, task));
            isWhole = true;
        }
        hasEnded = true;
    }

    @Override
    public ColumnarBatch get() {
        return isSplit ? splitter.batch() : batch.get();
    }

    @Override
    public CustomTaskMetric[] currentMetricsValues() {
        return new CustomTaskMetric[] {PartsRead.of(isWhole ? 1 : 0),
            PeakBytes.of(allocator.getPeakMemoryAllocation())};
    }

    @Override
    public void close() {
        if (isClosed) {
            return;
        }
        isClosed = true;
        TaskWatch.end(handle);
        if (task != null) {
            tasks.add(new TaskRead(task.stageId(), task.partitionId(), hasEnded));
        }
        if (splitter != null) {
            splitter.close();
        }
        if (batch != null) {
            batch.clear();
        }
        if (root != null) {
            root.close();
        }
        Native.close(handle);
        allocator.close();
    }
}
