package dray.spark;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.execution.datasources.v2.DataSourceRDD;
import org.apache.spark.sql.execution.datasources.v2.DataSourceRDDPartition;

/**
 * A part of a scan, by its number. Its descriptor is in the {@link PartReaderFactory}, which goes
 * to the executors with each stage and so has the parts of the snapshot that is held then.
 *
 * @param scan which scan of the driver's
 */
record DrayPartition(long scan, int index) implements InputPartition {
    /** Whether an RDD reads a scan's parts. */
    static boolean isOf(RDD<?> rdd, long scan) {
        return rdd instanceof DataSourceRDD && rdd.partitions().length > 0
                && rdd.partitions()[0] instanceof DataSourceRDDPartition first
                && first.inputPartition().contains(new DrayPartition(scan, 0));
    }
}
