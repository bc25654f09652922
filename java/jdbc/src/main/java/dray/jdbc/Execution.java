package dray.jdbc;

import java.io.IOException;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.util.Collections;
import java.util.Locale;

/** Runs a statement and sends its result: {@code spec/bridge.md} section 3. */
final class Execution {
    private final Database database;
    private final Query query;
    private final FrameWriter out;

    Execution(Database database, Query query, FrameWriter out) {
        this.database = database;
        this.query = query;
        this.out = out;
    }

    /** Sends the columns and the rows, and returns how many rows there were. */
    long run() throws SQLException, IOException, Failure {
        boolean succeeded = false;
        try (PreparedStatement statement = database.prepare(query)) {
            query.cancellation().attach(statement);
            long rows = query.planOnly() ? plan(statement) : execute(statement);
            succeeded = true;
            return rows;
        } finally {
            query.cancellation().detach();
            end(succeeded);
        }
    }

    /** A rollback that fails must not hide why the statement has. */
    private void end(boolean succeeded) throws SQLException {
        try {
            database.end(succeeded);
        } catch (SQLException broken) {
            if (succeeded) {
                throw broken;
            }
            System.err.println("rolling back: " + broken.getSQLState());
        }
    }

    private long plan(PreparedStatement statement) throws SQLException, IOException, Failure {
        var columns = statement.getMetaData();
        checkFloats(statement, columns);
        if (columns == null && ReadOnly.reads(query.sql())) {
            throw new Failure(Failure.Kind.QUERY, "0A000",
                    "the driver does not tell a statement's columns without running it",
                    "run it with a limit of 0 rows");
        }
        try (var writer = new ResultWriter(columns, database.product(), query, out)) {
            begin();
            writer.end();
        }
        return 0;
    }

    private long execute(PreparedStatement statement) throws SQLException, IOException, Failure {
        if (query.parameters() != null) {
            Parameters.set(statement, query.parameters());
        }
        statement.setFetchSize(database.product().fetchSize(query.batchRows()));
        if (!findResult(statement, statement.execute())) {
            try (var writer = new ResultWriter(null, database.product(), query, out)) {
                begin();
                writer.end();
            }
            return 0;
        }
        boolean complete = false;
        try {
            long rows = send(statement, statement.getResultSet());
            if (database.product() != Product.SQLITE
                    && findResult(statement, statement.getMoreResults())) {
                throw new Failure(Failure.Kind.QUERY, "0A000",
                        "the statement has several results", "run one statement at a time");
            }
            complete = true;
            return rows;
        } finally {
            if (!complete) {
                database.stop(statement);
            }
        }
    }

    /** Of a result that fails, the statement closes what is left. */
    private long send(PreparedStatement statement, ResultSet result)
            throws SQLException, IOException, Failure {
        long rows;
        var columns = result.getMetaData();
        checkFloats(statement, columns);
        try (var writer = new ResultWriter(columns, database.product(), query, out)) {
            begin();
            rows = writer.writeRows(result);
            writer.end();
        }
        result.close();
        return rows;
    }

    /** Refuses floats that the database has rounded. */
    private void checkFloats(PreparedStatement statement, ResultSetMetaData columns)
            throws SQLException, Failure {
        if (columns == null || !database.product().roundsFloats(statement)) {
            return;
        }
        for (int column = 1; column <= columns.getColumnCount(); column++) {
            String type = columns.getColumnTypeName(column);
            if (type != null && type.toUpperCase(Locale.ROOT).startsWith("FLOAT")) {
                throw Failure.ofColumn(columns.getColumnLabel(column),
                        "the database gives six digits of a float, unless the source's uri lets"
                                + " it prepare statements (useServerPrepStmts=true)",
                        "cast the column to double");
            }
        }
    }

    /** Goes on to a result of rows; those of changed rows alone are passed over. */
    private static boolean findResult(PreparedStatement statement, boolean isResult)
            throws SQLException {
        boolean found = isResult;
        while (!found && statement.getUpdateCount() >= 0) {
            found = statement.getMoreResults();
        }
        return found;
    }

    private void begin() throws IOException {
        out.write('B', Collections.singletonMap("estimated_rows", null));
    }
}
