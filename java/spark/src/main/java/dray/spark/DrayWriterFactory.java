package dray.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.types.StructType;

/** Makes the writers of a job's tasks, at the executors. */
final class DrayWriterFactory implements DataWriterFactory {
    private static final long serialVersionUID = 1;

    private final DrayOptions options;
    private final TableName staging;
    private final StructType rows;

    DrayWriterFactory(DrayOptions options, TableName staging, StructType rows) {
        this.options = options;
        this.staging = staging;
        this.rows = rows;
    }

    @Override
    public DataWriter<InternalRow> createWriter(int partition, long attempt) {
        return new DrayWriter(options, staging, rows, attempt);
    }
}
