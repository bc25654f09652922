package dray.spark;

import org.apache.spark.sql.connector.read.InputPartition;

/**
 * A part of a scan, by its number. Its descriptor is in the {@link PartReaderFactory}, which goes
 * to the executors with each stage and so has the parts of the snapshot that is held then.
 */
record DrayPartition(int index) implements InputPartition {}
