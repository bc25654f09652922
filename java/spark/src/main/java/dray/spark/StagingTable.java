package dray.spark;

import java.util.List;
import java.util.stream.Collectors;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * The table in which the rows of a job wait for its commit. Each attempt at a task puts its number
 * beside its rows, so what attempts leave that did not count is never moved.
 *
 * @param table   its name, and its schema's
 * @param columns the target's columns that get data
 * @param data    the data's columns, in the same order
 */
record StagingTable(TableName table, List<Target.Column> columns, StructType data) {
    /** How often the locks of tasks that should have ended are waited for. */
    private static final int TRIES = 10;
    private static final String TRY = "2s";
    private static final String NO_PERMISSION = "42501";
    static final String NO_TABLE = "42P01";

    /** The column of the attempts' numbers. No column of the data has its name. */
    private String attempt() {
        String name = "dray_attempt";
        while (columns.stream().map(Target.Column::name).anyMatch(name::equals)) {
            name += "_";
        }
        return name;
    }

    /** What tasks write: the data under the names of the target's columns, and the attempt. */
    StructType rows() {
        StructType rows = new StructType();
        for (int i = 0; i < columns.size(); i++) {
            rows = rows.add(columns.get(i).name(), data.apply(i).dataType());
        }
        return rows.add(attempt(), DataTypes.LongType);
    }

    /** Creates it. It has no log, so after a crash of the server it is empty: a commit notices. */
    void create(Session session, String meaning) {
        String definitions = columns.stream()
                .map(column -> quoted(column.name()) + " " + column.type()
                        + (column.isNotNull() ? " NOT NULL" : ""))
                .collect(Collectors.joining(", "));
        try {
            session.run("CREATE UNLOGGED TABLE " + table.sql() + " (" + definitions + ", "
                    + quoted(attempt()) + " bigint NOT NULL)");
        } catch (DrayException failure) {
            if (failure.sqlState().equals(NO_PERMISSION)) {
                throw new DrayException("no staging table can be created: " + failure.getMessage()
                        + " (option stagingSchema names another schema)");
            }
            throw failure;
        }
        session.run("COMMENT ON TABLE " + table.sql() + " IS "
                + Dialect.POSTGRESQL.literal(meaning));
    }

    /** Inserts the rows of these attempts into the target, and returns their number. */
    long move(Session session, TableName target, List<WrittenRows> attempts) {
        String names = columns.stream().map(column -> quoted(column.name()))
                .collect(Collectors.joining(", "));
        String numbers = attempts.stream().map(rows -> String.valueOf(rows.attempt()))
                .collect(Collectors.joining(","));
        // COPY, too, takes values for columns that are always identities.
        return session.change("INSERT INTO " + target.sql() + " (" + names + ")"
                + " OVERRIDING SYSTEM VALUE SELECT " + names + " FROM " + table.sql()
                + " WHERE " + quoted(attempt()) + " = ANY ('{" + numbers + "}'::bigint[])");
    }

    /**
     * Begins a transaction in which nobody else uses the table. Attempts that still write, though
     * their rows don't count, lose their connections.
     */
    void beginAlone(Session session) {
        for (int i = 1;; i++) {
            session.run("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
                    + " SET LOCAL lock_timeout = '" + TRY + "'");
            session.run("SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_locks"
                    + " WHERE locktype = 'relation' AND mode = 'RowExclusiveLock'"
                    + " AND database = (SELECT oid FROM pg_catalog.pg_database"
                    + " WHERE datname = pg_catalog.current_database())"
                    + " AND relation = pg_catalog.to_regclass("
                    + Dialect.POSTGRESQL.literal(table.sql()) + ")::pg_catalog.oid");
            try {
                session.run("LOCK TABLE " + table.sql() + " IN ACCESS EXCLUSIVE MODE;"
                        + " SET LOCAL lock_timeout TO DEFAULT");
                return;
            } catch (DrayException failure) {
                if (i == TRIES || !failure.sqlState().equals(Session.LOCK_NOT_AVAILABLE)) {
                    throw failure;
                }
                session.run("ROLLBACK");
            }
        }
    }

    void drop(Session session) {
        session.run("DROP TABLE " + table.sql());
    }

    private static String quoted(String name) {
        return Dialect.POSTGRESQL.quoted(name);
    }
}
