package dray.spark;

import java.io.Serializable;

/**
 * That a task has read a part.
 *
 * @param stage     Spark's number of the stage
 * @param partition the partition of the stage's RDD
 * @param isToEnd   whether it has read the part to its end
 */
record TaskRead(int stage, int partition, boolean isToEnd) implements Serializable {
    private static final long serialVersionUID = 1;
}
