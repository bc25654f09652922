package dray.spark;

import org.apache.spark.sql.types.StructType;

/**
 * What a statement's result will be.
 *
 * @param schema  its columns
 * @param dialect whose SQL the server takes
 * @param rows    that the server's planner expects; -1 if unknown
 * @param bytes   of Arrow data that it expects; -1 if unknown
 */
record Description(StructType schema, Dialect dialect, long rows, long bytes) {
    /** What Spark counts for a row, beside its columns. */
    private static final long ROW_BYTES = 8;

    /** The bytes that are expected, or those of so many rows in Spark; -1 if unknown. */
    long aboutBytes() {
        if (bytes >= 0 || rows < 0) {
            return bytes;
        }
        long ofRow = ROW_BYTES + schema.defaultSize();
        return rows > Long.MAX_VALUE / ofRow ? Long.MAX_VALUE : rows * ofRow;
    }

    /** Asks the server, which plans the statement and does not run it. */
    static Description of(DrayOptions options, String sql) {
        long handle = Native.create();
        try {
            ConnectionWait.run(options, () ->
                    Native.describe(handle, options.url(), sql, options.natives()));
            long[] estimates = Native.estimates(handle);
            return new Description(SparkTypes.schema(handle), Dialect.of(Native.dialect(handle)),
                    estimates[0], estimates[1]);
        } finally {
            Native.close(handle);
        }
    }
}
