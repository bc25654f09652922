package dray.spark;

import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** What a task tells of a metric. */
record TaskMetric(String name, long value) implements CustomTaskMetric {}
