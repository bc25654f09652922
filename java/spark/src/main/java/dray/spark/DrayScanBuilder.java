package dray.spark;

import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.types.StructType;

/** What Spark pushes down becomes part of the scan's {@link Statement}. */
final class DrayScanBuilder implements SupportsPushDownRequiredColumns, SupportsPushDownLimit {
    /**
     * The largest limit that is pushed down. A statement with a limit is one part, so a larger one
     * is better read in parallel until Spark has enough rows.
     */
    private static final int LIMIT_MAX = 65_536;

    private final DrayOptions options;
    private final Description table;
    private Statement statement;
    private StructType schema;

    DrayScanBuilder(DrayOptions options, Description table, Statement statement) {
        this.options = options;
        this.table = table;
        this.statement = statement;
        schema = table.schema();
    }

    @Override
    public void pruneColumns(StructType required) {
        schema = required;
        statement = statement.withSelect(DrayTable.columns(required, table.dialect()));
    }

    @Override
    public boolean pushLimit(int limit) {
        if (limit > LIMIT_MAX) {
            return false;
        }
        statement = statement.withLimit(limit);
        return true;
    }

    @Override
    public boolean isPartiallyPushed() {
        // A statement with a limit is one part, unless the server can't tell that it is one.
        return true;
    }

    @Override
    public Scan build() {
        return new DrayScan(options, table, statement, schema);
    }
}
