package dray.jdbc;

import java.sql.Statement;
import java.util.Locale;
import java.util.Properties;

/** What is to be known of some drivers, by the name behind {@code jdbc:} in a uri. */
enum Product {
    POSTGRESQL, MYSQL, MARIADB, SQLITE, DUCKDB, ORACLE, SQLSERVER, OTHER;

    private static final int FETCH_ROWS = 1000;
    private static final int FETCH_WIDE_ROWS = 64;

    static Product of(String uri) {
        String[] parts = uri.toLowerCase(Locale.ROOT).split(":", 3);
        return switch (parts.length < 2 ? "" : parts[1]) {
            case "postgresql", "redshift" -> POSTGRESQL;
            case "mysql" -> MYSQL;
            case "mariadb" -> MARIADB;
            case "sqlite" -> SQLITE;
            case "duckdb" -> DUCKDB;
            case "oracle" -> ORACLE;
            case "sqlserver" -> SQLSERVER;
            default -> OTHER;
        };
    }

    /**
     * Properties without which values would change, or results fill the memory. The uri's win, but
     * not with MySQL's driver.
     */
    Properties properties(boolean writable) {
        var properties = new Properties();
        switch (this) {
            case POSTGRESQL -> properties.setProperty("ApplicationName", "dray");
            case MYSQL, MARIADB -> {
                // A tinyint(1) may be 2, and a year is no date.
                properties.setProperty("tinyInt1isBit", "false");
                properties.setProperty("yearIsDateType", "false");
                // As text, a float has six digits.
                properties.setProperty("useServerPrepStmts", "true");
            }
            case SQLITE -> {
                if (!writable) {
                    // SQLITE_OPEN_READONLY: later, the driver takes no setReadOnly.
                    properties.setProperty("open_mode", "1");
                }
            }
            case DUCKDB -> {
                properties.setProperty("jdbc_stream_results", "true");
                properties.setProperty("duckdb.read_only", Boolean.toString(!writable));
            }
            default -> { }
        }
        return properties;
    }

    /** Whether a statement's floats come as text, rounded: it was not prepared by the server. */
    boolean roundsFloats(Statement statement) {
        return (this == MYSQL || this == MARIADB)
                && !statement.getClass().getSimpleName().startsWith("Server");
    }

    /** The number that makes the driver give rows as they come. */
    int fetchSize(int batchRows) {
        return switch (this) {
            case MYSQL -> Integer.MIN_VALUE;
            // It holds so many rows in memory, of up to a gigabyte each.
            case POSTGRESQL -> Math.min(batchRows, FETCH_WIDE_ROWS);
            default -> Math.min(batchRows, FETCH_ROWS);
        };
    }

    /** Whose SQL it takes, as {@code spec/protocol.md} section 14 names it. */
    String dialect() {
        return switch (this) {
            case POSTGRESQL -> "postgresql";
            case MYSQL, MARIADB -> "mysql";
            default -> "sql";
        };
    }
}
