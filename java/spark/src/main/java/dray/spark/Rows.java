package dray.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.arrow.c.ArrowArray;
import org.apache.arrow.c.Data;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.spark.sql.util.ArrowUtils;

/** Small results as text, which the driver reads by itself. */
final class Rows {
    private static final long MARGIN_BYTES = 1 << 20;

    private Rows() {}

    /** All rows of a statement; null is NULL. */
    static String[][] read(DrayOptions options, String sql) {
        List<String[]> rows = new ArrayList<>();
        long handle = Native.create();
        try (BufferAllocator allocator = allocator("dray rows", options)) {
            ConnectionWait.run(options, () ->
                    Native.openQuery(handle, options.url(), sql, options.natives()));
            try (VectorSchemaRoot root = VectorSchemaRoot.create(
                    SparkTypes.arrowSchema(handle, allocator), allocator)) {
                while (next(handle, options, allocator, root)) {
                    for (int i = 0; i < root.getRowCount(); i++) {
                        rows.add(row(root, i));
                    }
                }
            }
        } finally {
            Native.close(handle);
        }
        return rows.toArray(String[][]::new);
    }

    /**
     * An allocator for one batch of the size that the options allow. Vectors have bits for NULL
     * that a batch without any lacks, so it has twice the size, and at least a MiB.
     */
    static BufferAllocator allocator(String name, DrayOptions options) {
        long bytes = Math.max(options.taskMemory(), MARGIN_BYTES);
        long most = bytes > Long.MAX_VALUE / 2 ? Long.MAX_VALUE : 2 * bytes;
        return ArrowUtils.rootAllocator().newChildAllocator(name, 0, most);
    }

    /** Replaces the rows of {@code root} by the next batch; false at the end. */
    static boolean next(long handle, DrayOptions options, BufferAllocator allocator,
            VectorSchemaRoot root) {
        root.clear();
        try (ArrowArray array = ArrowArray.allocateNew(allocator)) {
            boolean more = Native.next(handle, array.memoryAddress(), options.taskMemory());
            if (more) {
                Data.importIntoVectorSchemaRoot(allocator, array, root, null);
            }
            return more;
        }
    }

    private static String[] row(VectorSchemaRoot root, int at) {
        List<FieldVector> columns = root.getFieldVectors();
        String[] row = new String[columns.size()];
        for (int i = 0; i < row.length; i++) {
            Object value = columns.get(i).getObject(at);
            row[i] = value == null ? null : value.toString();
        }
        return row;
    }
}
