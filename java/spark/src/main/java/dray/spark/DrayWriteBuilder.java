package dray.spark;

import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;

/** What Spark wants to write into a table that is there. */
final class DrayWriteBuilder implements SupportsTruncate {
    private final DrayOptions options;
    private final String table;
    private final StructType data;
    private boolean isOverwriting;

    DrayWriteBuilder(DrayOptions options, String table, StructType data) {
        this.options = options;
        this.table = table;
        this.data = data;
    }

    @Override
    public WriteBuilder truncate() {
        isOverwriting = true;
        return this;
    }

    @Override
    public Write build() {
        return new DrayWrite(options, WriteJob.into(options, table, data, isOverwriting));
    }
}
