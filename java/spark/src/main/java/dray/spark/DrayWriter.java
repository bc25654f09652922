package dray.spark;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.StructType;

/** Writes the rows of an attempt at a task into the staging table. */
final class DrayWriter implements DataWriter<InternalRow> {
    private final DrayOptions options;
    private final TableName staging;
    private final StructType rows;
    private final long attempt;
    /** The attempt's number, and perhaps the row's, as {@link StagingTable#rows} has them. */
    private final GenericInternalRow own;
    /** A row with those beside it. */
    private final JoinedRow row = new JoinedRow();
    /** Null until a row is not in Spark's own format. */
    private UnsafeProjection projection;
    /** Null until the first row comes: tasks without rows need no connection. */
    private TableWriter writer;
    private long count;

    DrayWriter(DrayOptions options, TableName staging, StructType rows, long attempt) {
        this.options = options;
        this.staging = staging;
        this.rows = rows;
        this.attempt = attempt;
        own = new GenericInternalRow(StagingTable.hasRowNumbers(staging)
                ? new Object[] {attempt, 0L} : new Object[] {attempt});
        row.withRight(own);
    }

    @Override
    public void write(InternalRow given) {
        if (writer == null) {
            writer = new TableWriter(options, staging, "append", rows);
        }
        if (own.numFields() > 1) {
            own.update(1, count);
        }
        UnsafeRow unsafe = given instanceof UnsafeRow known ? known : projected(given);
        writer.write(row.withLeft(unsafe), unsafe.getSizeInBytes());
        count++;
    }

    private UnsafeRow projected(InternalRow given) {
        if (projection == null) {
            int columns = rows.length() - own.numFields();
            projection = UnsafeProjection.create(
                    new StructType(Arrays.copyOf(rows.fields(), columns)));
        }
        return projection.apply(given);
    }

    @Override
    public WriterCommitMessage commit() {
        long counted = writer == null ? 0 : writer.end();
        if (counted != count) {
            throw new DrayException("the server has counted " + counted + " rows, and " + count
                    + " were sent");
        }
        return new WrittenRows(attempt, counted);
    }

    @Override
    public void abort() {
        close();
    }

    @Override
    public void close() {
        if (writer != null) {
            writer.close();
        }
    }
}
