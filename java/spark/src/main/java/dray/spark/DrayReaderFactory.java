package dray.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Stands for the readers of a scan at the driver. Spark keeps it with the physical plan, and
 * serializes it whenever it submits a stage. It becomes a {@link PartReaderFactory} then.
 */
final class DrayReaderFactory implements PartitionReaderFactory {
    private static final long serialVersionUID = 1;

    private final transient DrayScan scan;

    DrayReaderFactory(DrayScan scan) {
        this.scan = scan;
    }

    private Object writeReplace() {
        return scan.readerFactory();
    }

    @Override
    public boolean supportColumnarReads(InputPartition partition) {
        return true;
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
        return scan.readerFactory().createColumnarReader(partition);
    }

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
        throw new UnsupportedOperationException("Dray reads batches");
    }
}
