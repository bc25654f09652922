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
