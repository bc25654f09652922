package dray.spark;

/**
 * A stage that computes only some partitions of an RDD.
 *
 * @param id         Spark's number of the stage
 * @param rdd        the RDD's number
 * @param partitions how many partitions the RDD has
 * @param goesOnMs   how long after it another job may read on
 */
record PartialStage(int id, int rdd, int partitions, long goesOnMs) {}
