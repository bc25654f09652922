package dray.systems;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.util.Locale;

/**
 * Reads a result by JDBC, every value by the getter of its type, and throws it away:
 * {@code Drain URL STATEMENT FETCH_SIZE [NAME=VALUE...]}. Prints a measurement as JSON.
 */
public final class Drain {
    private Drain() {}

    public static void main(String[] words) {
        try {
            run(words);
        } catch (SQLException error) {
            System.err.println("drain: " + error.getMessage());
            System.exit(1);
        }
    }

    private static void run(String[] words) throws SQLException {
        var properties = new java.util.Properties();
        for (int word = 3; word < words.length; word++) {
            var pair = words[word].split("=", 2);
            properties.setProperty(pair[0], pair[1]);
        }
        // Loads the driver before the clock starts.
        DriverManager.getDriver(words[0]);
        long began = System.nanoTime();
        try (var connection = DriverManager.getConnection(words[0], properties)) {
            long connected = System.nanoTime();
            // PostgreSQL's driver reads in parts only inside a transaction. Others ignore it.
            inTransaction(connection);
            try (var statement = connection.createStatement()) {
                statement.setFetchSize(Integer.parseInt(words[2]));
                drain(statement, words[1], began, connected);
            }
        }
    }

    private static void inTransaction(Connection connection) throws SQLException {
        if (connection.getMetaData().supportsTransactions()) {
            connection.setAutoCommit(false);
        }
    }

    private static void drain(Statement statement, String sql, long began, long connected)
            throws SQLException {
        try (var result = statement.executeQuery(sql)) {
            long executed = System.nanoTime();
            int[] types = types(result.getMetaData());
            long rows = 0;
            long first = 0;
            long others = 0;
            while (result.next()) {
                first += value(result, types[0], 1);
                for (int column = 1; column < types.length; column++) {
                    others += value(result, types[column], column + 1);
                }
                rows++;
            }
            long ended = System.nanoTime();
            var connection = result.getStatement().getConnection();
            if (!connection.getAutoCommit()) {
                connection.commit();
            }
            print(began, connected, executed, ended, rows, first, others);
        }
    }

    private static int[] types(ResultSetMetaData columns) throws SQLException {
        int[] types = new int[columns.getColumnCount()];
        for (int column = 0; column < types.length; column++) {
            types[column] = columns.getColumnType(column + 1);
        }
        return types;
    }

    /** A number that depends on the value, so that no read is left out. */
    private static long value(ResultSet result, int type, int column) throws SQLException {
        return switch (type) {
            case Types.TINYINT, Types.SMALLINT, Types.INTEGER -> result.getInt(column);
            case Types.BIGINT -> result.getLong(column);
            case Types.REAL, Types.FLOAT, Types.DOUBLE -> (long) result.getDouble(column);
            case Types.DECIMAL, Types.NUMERIC -> {
                var number = result.getBigDecimal(column);
                yield number == null ? 0 : number.scale();
            }
            case Types.DATE -> result.getDate(column) == null ? 0 : 1;
            case Types.TIMESTAMP -> result.getTimestamp(column) == null ? 0 : 1;
            default -> {
                var text = result.getString(column);
                yield text == null ? 0 : text.length();
            }
        };
    }

    private static void print(
            long began,
            long connected,
            long executed,
            long ended,
            long rows,
            long first,
            long others) {
        System.out.printf(
                Locale.ROOT,
                "{\"connect_s\": %.6f, \"execute_s\": %.6f, \"transfer_s\": %.6f, "
                        + "\"total_s\": %.6f, \"rows\": %d, \"arrow_bytes\": null, "
                        + "\"details\": {\"first_column_sum\": %d, \"others\": %d}}%n",
                (connected - began) / 1e9,
                (executed - connected) / 1e9,
                (ended - executed) / 1e9,
                (ended - began) / 1e9,
                rows,
                first,
                others);
    }
}
