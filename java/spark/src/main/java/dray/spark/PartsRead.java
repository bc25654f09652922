package dray.spark;

import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** How many parts were read to their ends, with a receipt. The SQL tab of Spark's UI shows it. */
public final class PartsRead extends CustomSumMetric {
    private static final String NAME = "partsRead";

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public String description() {
        return "parts with a receipt";
    }

    static CustomTaskMetric of(long parts) {
        return new TaskMetric(NAME, parts);
    }
}
