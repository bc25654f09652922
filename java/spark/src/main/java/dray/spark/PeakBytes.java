package dray.spark;

import java.util.Arrays;
import java.util.Locale;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/**
 * The most bytes of batches that a task has held at a time, outside of Spark's own memory. The SQL
 * tab of Spark's UI shows those of the task that has held the most.
 */
public final class PeakBytes implements CustomMetric {
    private static final String NAME = "peakBytes";

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public String description() {
        return "peak bytes of batches";
    }

    @Override
    public String aggregateTaskMetrics(long[] ofTasks) {
        return String.format(Locale.ROOT, "%,d", Arrays.stream(ofTasks).max().orElse(0));
    }

    static CustomTaskMetric of(long bytes) {
        return new TaskMetric(NAME, bytes);
    }
}
