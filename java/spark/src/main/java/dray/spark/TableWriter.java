package dray.spark;

import org.apache.arrow.c.ArrowArray;
import org.apache.arrow.c.ArrowSchema;
import org.apache.arrow.c.Data;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.types.StructType;

/**
 * Writes rows into a table, in a transaction of its own. Rows become columns here, and native code
 * borrows their memory until the server has them.
 */
final class TableWriter implements AutoCloseable {
    private final DrayOptions options;
    private final Schema schema;
    private final BufferAllocator allocator;
    private final long handle;
    private final long rowsMax;
    private final long bytesMax;
    /** The batch that is filled, and its writer; null between two batches. */
    private VectorSchemaRoot root;
    private ArrowWriter columns;
    private long rows;
    private long bytes;
    private boolean isClosed;

    /**
     * Starts to write.
     *
     * @param mode as in {@link Native#beginWrite}
     */
    TableWriter(DrayOptions options, TableName table, String mode, StructType rows) {
        this.options = options;
        schema = ArrowTypes.schema(rows);
        rowsMax = options.batchRows();
        bytesMax = options.batchBytes();
        handle = Native.create();
        TaskWatch.begin(TaskContext.get(), handle);
        allocator = Rows.allocator("dray write", options);
        try {
            begin(table, mode);
        } catch (Throwable failure) {
            close();
            throw failure;
        }
    }

    private void begin(TableName table, String mode) {
        try (ArrowSchema struct = ArrowSchema.allocateNew(allocator)) {
            Data.exportSchema(allocator, schema, null, struct);
            try {
                String[] name = {table.schema(), table.name()};
                ConnectionWait.run(options, () -> Native.beginWrite(handle, options.url(),
                        options.natives(), name, mode, struct.memoryAddress()));
            } finally {
                struct.release();
            }
        }
    }

    /** Writes a row, which has so many bytes in Spark. */
    void write(InternalRow row, int rowBytes) {
        if (columns == null) {
            // Vectors are not used again: native code reads those that were handed over.
            root = VectorSchemaRoot.create(schema, allocator);
            columns = ArrowWriter.create(root);
        }
        columns.write(row);
        rows++;
        bytes += rowBytes;
        if (rows >= rowsMax || bytes >= bytesMax) {
            flush();
        }
    }

    private void flush() {
        columns.finish();
        try (ArrowArray struct = ArrowArray.allocateNew(allocator)) {
            Data.exportVectorSchemaRoot(allocator, root, null, struct);
            Native.write(handle, struct.memoryAddress());
        } finally {
            clear();
        }
    }

    private void clear() {
        if (root != null) {
            root.close();
        }
        root = null;
        columns = null;
        rows = 0;
        bytes = 0;
    }

    /** Commits the rows, and returns their number as the server has counted them. */
    long end() {
        if (columns != null) {
            flush();
        }
        return Native.endWrite(handle);
    }

    /** Undoes everything, unless {@link #end} has been there. */
    @Override
    public void close() {
        if (isClosed) {
            return;
        }
        isClosed = true;
        TaskWatch.end(handle);
        clear();
        Native.close(handle);
        allocator.close();
    }
}
