package dray.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A connection to PostgreSQL for statements of the connector's own. Closing it undoes an open
 * transaction.
 */
final class Session implements AutoCloseable {
    static final String LOCK_NOT_AVAILABLE = "55P03";
    /** How long readers are waited for: the job itself may be one, until it ends. */
    private static final String PATIENCE = "60s";

    private final long handle;

    Session(DrayOptions options) {
        handle = Native.create();
        try {
            checkKind(Native.openSession(handle, options.url(), options.natives()));
        } catch (Throwable failure) {
            close();
            throw failure;
        }
    }

    private static void checkKind(String kind) {
        switch (kind) {
            case "postgresql": return;
            case "mysql": throw new DrayException("Spark writes into PostgreSQL only, not into"
                    + " MySQL and MariaDB (there, the Python package and dray load write)");
            default: throw new DrayException("a Dray server only reads: to write, give the"
                    + " PostgreSQL server's own url, postgresql://…");
        }
    }

    /** Runs statements whose rows don't matter. */
    void run(String sql) {
        Native.ask(handle, sql);
    }

    /** Runs a statement that waits until nobody reads a table, within a transaction. */
    void runAlone(String sql) {
        try {
            run("SET LOCAL lock_timeout = '" + PATIENCE + "'; " + sql
                    + "; SET LOCAL lock_timeout TO DEFAULT");
        } catch (DrayException failure) {
            if (failure.sqlState().equals(LOCK_NOT_AVAILABLE)) {
                throw new DrayException("others have read the table for " + PATIENCE + ", or this"
                        + " job reads it itself (then overwrite it without truncate): "
                        + failure.getMessage());
            }
            throw failure;
        }
    }

    /** The rows of a statement with so many columns; null is NULL. */
    List<List<String>> ask(int columns, String sql) {
        List<String> values = Arrays.asList(Native.ask(handle, sql));
        List<List<String>> rows = new ArrayList<>();
        for (int i = 0; i < values.size(); i += columns) {
            rows.add(values.subList(i, i + columns));
        }
        return rows;
    }

    /** Runs a statement that changes rows, and returns their number. */
    long change(String sql) {
        return Native.change(handle, sql);
    }

    @Override
    public void close() {
        Native.close(handle);
    }
}
