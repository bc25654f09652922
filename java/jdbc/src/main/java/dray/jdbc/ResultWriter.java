package dray.jdbc;

import java.io.IOException;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.util.ArrayList;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.Schema;

/** Writes a result as an Arrow IPC stream. */
final class ResultWriter implements AutoCloseable {
    /** How often a driver that ignores a cancellation is stopped between rows. */
    private static final int ROWS_BETWEEN_CHECKS = 256;

    private final Query query;
    private final FrameWriter out;
    /** Beside the heap, as much as the heap may have. */
    private final RootAllocator allocator = new RootAllocator(Runtime.getRuntime().maxMemory());
    private final VectorSchemaRoot root;
    private final ArrowStreamWriter writer;
    private final Appender[] appenders;
    private final String[] names;
    private boolean began;

    /** A writer of a result with these columns; null for a statement without a result. */
    ResultWriter(ResultSetMetaData columns, Product product, Query query, FrameWriter out)
            throws SQLException, Failure {
        this.query = query;
        this.out = out;
        int count = columns == null ? 0 : columns.getColumnCount();
        var types = new ArrayList<ColumnType>();
        for (int column = 1; column <= count; column++) {
            types.add(ColumnType.of(columns, column, product));
        }
        var fields = types.stream().map(ColumnType::field).toList();
        names = fields.stream().map(Field::getName).toArray(String[]::new);
        root = VectorSchemaRoot.create(new Schema(fields), allocator);
        appenders = new Appender[count];
        for (int column = 0; column < count; column++) {
            appenders[column] = types.get(column).appender().make(root.getVector(column));
        }
        writer = new ArrowStreamWriter(root, null, out);
    }

    /** Writes all rows, and returns how many there were. */
    long writeRows(ResultSet rows) throws SQLException, IOException, Failure {
        begin();
        long written = 0;
        int inBatch = 0;
        long bytes = 0;
        while (rows.next()) {
            long row = append(rows, inBatch);
            bytes += row;
            inBatch++;
            if (row > query.rowBytes()) {
                throw new Failure(Failure.Kind.LIMIT, "54000", "a row needs " + row
                        + " bytes, over the limit of " + query.rowBytes()
                        + "; raise row_bytes_max to that", "");
            }
            if (inBatch % ROWS_BETWEEN_CHECKS == 0) {
                query.cancellation().check();
            }
            // As if the next row were as large as this one.
            if (inBatch >= query.batchRows() || bytes + row > query.batchBytes()) {
                written += writeBatch(inBatch);
                inBatch = 0;
                bytes = 0;
            }
        }
        return inBatch > 0 ? written + writeBatch(inBatch) : written;
    }

    private long append(ResultSet rows, int at) throws SQLException, Failure {
        long bytes = 0;
        for (int column = 0; column < appenders.length; column++) {
            try {
                bytes += appenders[column].append(rows, column + 1, at);
            } catch (ArithmeticException | java.time.DateTimeException outOfRange) {
                throw Failure.ofColumn(names[column], outOfRange.getMessage(),
                        "cast the column to another type, or to text");
            }
        }
        return bytes;
    }

    private long writeBatch(int rows) throws IOException, Failure {
        query.cancellation().check();
        root.setRowCount(rows);
        writer.writeBatch();
        out.flush();
        // Gives the memory of large values back.
        root.clear();
        return rows;
    }

    private void begin() throws IOException {
        if (!began) {
            began = true;
            writer.start();
            out.flush();
        }
    }

    /** Writes the schema, if it was not written yet, and the mark of the stream's end. */
    void end() throws IOException {
        begin();
        writer.end();
        out.flush();
    }

    @Override
    public void close() {
        // Not the writer: closing it would end the stream of a result that failed.
        root.close();
        allocator.close();
    }
}
