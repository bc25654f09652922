package dray.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A connection to a database for statements of the connector's own. Closing it undoes an open
 * transaction.
 */
final class Session implements AutoCloseable {
    private final long handle;
    private final WriteStatements statements;

    Session(DrayOptions options) {
        handle = Native.create();
        try {
            Dialect dialect = Dialect.of(ConnectionWait.get(options, () ->
                    Native.openSession(handle, options.url(), options.natives())));
            statements = WriteStatements.of(dialect);
            if (dialect == Dialect.MYSQL) {
                MysqlWrites.set(this);
            }
        } catch (Throwable failure) {
            close();
            throw failure;
        }
    }

    /** How this database is written. */
    WriteStatements statements() {
        return statements;
    }

    /** Runs statements whose rows don't matter. */
    void run(String sql) {
        Native.ask(handle, sql);
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
