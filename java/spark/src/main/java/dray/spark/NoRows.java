package dray.spark;

import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Reads a partition for which a later plan of the same scan, of a smaller table, has no part. */
final class NoRows implements PartitionReader<ColumnarBatch> {
    @Override
    public boolean next() {
        return false;
    }

    @Override
    public ColumnarBatch get() {
        throw new IllegalStateException("there are no rows");
    }

    @Override
    public void close() {}
}
