package dray.spark;

import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writing into PostgreSQL. The transaction of a commit also drops the staging table: if that is
 * there afterwards, the transaction was undone.
 */
final class PostgresWrites implements WriteStatements {
    private static final Logger LOG = LoggerFactory.getLogger(PostgresWrites.class);
    private static final String FOREIGN = "f";
    private static final String VIEW = "v";
    /** What of {@code pg_class} takes rows: tables, partitioned and foreign ones, views. */
    private static final Set<String> KINDS = Set.of("r", "p", FOREIGN, VIEW);
    private static final Set<String> NO_NAME = Set.of("22023", "42602");
    private static final String NO_PERMISSION = "42501";
    private static final String NO_TABLE = "42P01";
    private static final String COMMITTED = "committed";
    private static final String ABORTED = "aborted";
    static final String LOCK_NOT_AVAILABLE = "55P03";
    /** How long readers are waited for: the job itself may be one, until it ends. */
    private static final String PATIENCE = "60s";
    /** How often the locks of tasks that should have ended are waited for. */
    private static final int TRIES = 10;
    private static final String BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
            + " SET LOCAL lock_timeout = '2s'";
    /** The locks of staging tables have their oids below it: "DRAY" in the upper half. */
    private static final long LOCKS = 0x44524159L << 32;

    @Override
    public Target find(Session session, String name) {
        List<List<String>> rows;
        try {
            rows = session.ask(9, "SELECT n.nspname, c.relname, c.relkind, a.attname,"
                    + " pg_catalog.format_type(a.atttypid, a.atttypmod),"
                    + " a.attnotnull OR t.typnotnull,"
                    + " a.atthasdef OR a.attidentity <> '' OR t.typdefault IS NOT NULL,"
                    + " a.attgenerated <> '',"
                    + " (SELECT pg_catalog.max(pg_catalog.octet_length(part))"
                    + " FROM pg_catalog.unnest(pg_catalog.parse_ident(" + literal(name)
                    + ")) AS part)"
                    + " > pg_catalog.current_setting('max_identifier_length')::integer"
                    + " FROM pg_catalog.pg_class c"
                    + " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
                    + " JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid"
                    + " JOIN pg_catalog.pg_type t ON t.oid = a.atttypid"
                    + " WHERE c.oid = pg_catalog.to_regclass(" + literal(name)
                    + ")::pg_catalog.oid"
                    + " AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum");
        } catch (DrayException failure) {
            if (NO_NAME.contains(failure.sqlState())) {
                throw Target.noName(name);
            }
            throw failure;
        }
        if (rows.isEmpty()) {
            throw new DrayException("there is no table " + name + " with columns to write into"
                    + " (a catalog creates one: df.writeTo(\"catalog.schema.table\").create())");
        }
        List<String> first = rows.get(0);
        TableName table = new TableName(Dialect.POSTGRESQL, first.get(0), first.get(1));
        if (isTrue(first.get(8))) {
            throw new DrayException(name + " is longer than names of this server, which would cut"
                    + " it to " + table.sql() + ": give the name that the table has");
        }
        if (!KINDS.contains(first.get(2))) {
            throw new DrayException(name + " is no table: it takes no rows");
        }
        return new Target(table, rows.stream()
                .map(row -> new Target.Column(row.get(3), row.get(4), isTrue(row.get(5)),
                        isTrue(row.get(6)), isTrue(row.get(7))))
                .toList());
    }

    private static boolean isTrue(String text) {
        return text.equals("t");
    }

    @Override
    public void checkEmptying(Session session, TableName table, boolean isTruncate) {
        String oid = "pg_catalog.to_regclass(" + literal(table.sql()) + ")::pg_catalog.oid";
        for (List<String> row : session.ask(
                1, "SELECT relkind FROM pg_catalog.pg_class WHERE oid = " + oid)) {
            if (row.get(0).equals(VIEW)) {
                throw new DrayException(table.sql() + " is a view: overwrite the table behind it");
            }
            if (row.get(0).equals(FOREIGN) && !isTruncate) {
                throw new DrayException(table.sql() + " is a foreign table, which can't be locked"
                        + " against other writers: overwrite the table behind it (or give option"
                        + " truncate, if the foreign server can)");
            }
        }
        if (!isTruncate) {
            checkReferences(session, table, oid);
        }
    }

    /**
     * DELETE would also delete or change rows of tables with such foreign keys. It empties
     * partitions and tables that inherit, too.
     */
    private static void checkReferences(Session session, TableName table, String oid) {
        List<List<String>> references = session.ask(2, "WITH RECURSIVE emptied (oid) AS"
                + " (SELECT " + oid + " UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i"
                + " JOIN emptied ON emptied.oid = i.inhparent)"
                + " SELECT c.conname, c.conrelid::pg_catalog.regclass"
                + " FROM pg_catalog.pg_constraint c JOIN emptied ON emptied.oid = c.confrelid"
                + " WHERE c.contype = 'f' AND c.confdeltype IN ('c', 'n', 'd')"
                + " ORDER BY c.conparentid, c.oid");
        if (!references.isEmpty()) {
            throw Target.referenced(table, references.get(0).get(0), references.get(0).get(1));
        }
    }

    /** It has no log, so after a crash of the server it is empty: a commit notices. */
    @Override
    public void create(Session session, StagingTable staging, String meaning) {
        String table = staging.table().sql();
        try {
            session.run("CREATE UNLOGGED TABLE " + table + " (" + staging.definitions() + ")");
        } catch (DrayException failure) {
            if (failure.sqlState().equals(NO_PERMISSION)) {
                throw StagingTable.notCreated(failure);
            }
            throw failure;
        }
        lock(session, staging.table());
        // Without a comment nobody drops it.
        session.run("COMMENT ON TABLE " + table + " IS " + literal(meaning));
    }

    private static String key(String oid) {
        return LOCKS + " + " + oid + "::bigint";
    }

    @Override
    public void lock(Session session, TableName staging) {
        session.run("SELECT pg_catalog.pg_advisory_lock("
                + key("pg_catalog.to_regclass(" + literal(staging.sql()) + ")::pg_catalog.oid")
                + ")");
    }

    @Override
    public void dropAbandoned(Session session, TableName target, String schema) {
        for (List<String> row : session.ask(3, "SELECT c.oid, c.relname,"
                + " pg_catalog.obj_description(c.oid, 'pg_class')"
                + " FROM pg_catalog.pg_class c"
                + " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
                + " WHERE n.nspname = " + literal(schema)
                + " AND pg_catalog.starts_with(c.relname::text, "
                + literal(target.unfinishedPrefix()) + ")"
                + " AND pg_catalog.pg_has_role(c.relowner, 'USAGE')")) {
            TableName left = new TableName(Dialect.POSTGRESQL, schema, row.get(1));
            if (StagingTable.isMeaning(row.get(2), target)) {
                dropUnlocked(session, left, row.get(0));
            }
        }
    }

    private static void dropUnlocked(Session session, TableName left, String oid) {
        try {
            session.run(BEGIN);
            if (isTrue(session.ask(1, "SELECT pg_catalog.pg_try_advisory_xact_lock(" + key(oid)
                    + ")").get(0).get(0))) {
                endAttempts(session, left);
                session.run("DROP TABLE " + left.sql());
                LOG.info("dropped {}, which a driver has left that was killed", left.sql());
            }
            session.run("COMMIT");
        } catch (DrayException failure) {
            LOG.warn("{} is left of a driver that was killed, drop it: {}", left.sql(),
                    failure.getMessage());
            session.run("ROLLBACK");
        }
    }

    /**
     * The number of the transaction. The server still knows how it has ended when the staging table
     * is gone, whoever has dropped it.
     */
    @Override
    public String begin(Session session, StagingTable staging, boolean isOverwriting) {
        beginAlone(session, staging.table());
        return session.ask(1, "SELECT pg_catalog.txid_current()").get(0).get(0);
    }

    private static void beginAlone(Session session, TableName table) {
        for (int i = 1;; i++) {
            session.run(BEGIN);
            endAttempts(session, table);
            try {
                session.run("LOCK TABLE " + table.sql() + " IN ACCESS EXCLUSIVE MODE;"
                        + " SET LOCAL lock_timeout TO DEFAULT");
                return;
            } catch (DrayException failure) {
                if (i == TRIES || !failure.sqlState().equals(LOCK_NOT_AVAILABLE)) {
                    throw failure;
                }
                session.run("ROLLBACK");
            }
        }
    }

    /** Ends the sessions that write into a staging table. */
    private static void endAttempts(Session session, TableName table) {
        session.run("SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_locks"
                + " WHERE locktype = 'relation' AND mode = 'RowExclusiveLock'"
                + " AND database = (SELECT oid FROM pg_catalog.pg_database"
                + " WHERE datname = pg_catalog.current_database())"
                + " AND relation = pg_catalog.to_regclass(" + literal(table.sql())
                + ")::pg_catalog.oid");
    }

    @Override
    public void empty(Session session, TableName target, boolean isTruncate) {
        if (isTruncate) {
            runAlone(session, "TRUNCATE " + target.sql());
            return;
        }
        // Others read on. Nobody else writes, or rows of two jobs would stay. Rows that a policy
        // hides would stay, too.
        session.run("LOCK TABLE " + target.sql() + " IN SHARE ROW EXCLUSIVE MODE;"
                + " SET LOCAL row_security = off");
        // A key may have been added since the job began.
        checkEmptying(session, target, false);
        session.change("DELETE FROM " + target.sql());
        if (!session.ask(1, "SELECT 1 FROM " + target.sql() + " LIMIT 1").isEmpty()) {
            throw new DrayException("rows of " + target.sql() + " stay although they were deleted:"
                    + " a trigger or a rule keeps them (option truncate empties the table without"
                    + " them)");
        }
        session.run("SET LOCAL row_security TO DEFAULT");
    }

    /** Runs a statement that waits until nobody reads a table, within a transaction. */
    static void runAlone(Session session, String sql) {
        try {
            session.run("SET LOCAL lock_timeout = '" + PATIENCE + "'; " + sql
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

    @Override
    public long move(
            Session session, StagingTable staging, TableName target, List<WrittenRows> attempts) {
        String numbers = attempts.stream().map(rows -> String.valueOf(rows.attempt()))
                .collect(Collectors.joining(","));
        // COPY, too, takes values for columns that are always identities.
        return session.change("INSERT INTO " + target.sql() + " (" + staging.names() + ")"
                + " OVERRIDING SYSTEM VALUE SELECT " + staging.names()
                + " FROM " + staging.table().sql()
                + " WHERE " + staging.attempt() + " = ANY ('{" + numbers + "}'::bigint[])");
    }

    @Override
    public void mark(Session session, StagingTable staging) {
        session.run("DROP TABLE " + staging.table().sql());
    }

    @Override
    public List<String> tables(StagingTable staging) {
        return List.of(staging.table().sql());
    }

    @Override
    public boolean isCommitted(Session session, StagingTable staging, String transaction) {
        try {
            // It waits for the end of the transaction.
            session.run("DROP TABLE " + staging.table().sql());
            return false;
        } catch (DrayException failure) {
            if (!failure.sqlState().equals(NO_TABLE)) {
                throw failure;
            }
        }
        String status = session.ask(1, "SELECT pg_catalog.txid_status(" + transaction + ")")
                .get(0).get(0);
        if (!COMMITTED.equals(status) && !ABORTED.equals(status)) {
            throw new DrayException("the server does not know how the transaction " + transaction
                    + " has ended");
        }
        return COMMITTED.equals(status);
    }

    @Override
    public String signOfCommit(StagingTable staging, String transaction) {
        return "SELECT txid_status(" + transaction + ") is 'committed'";
    }

    /** Nothing is left. */
    @Override
    public void clean(DrayOptions options, StagingTable staging) {}

    @Override
    public void drop(Session session, StagingTable staging) {
        try {
            beginAlone(session, staging.table());
            session.run("DROP TABLE " + staging.table().sql());
            session.run("COMMIT");
        } catch (DrayException failure) {
            // It was never created, or the commit was undone and somebody has looked.
            if (!failure.sqlState().equals(NO_TABLE)) {
                throw failure;
            }
            session.run("ROLLBACK");
        }
    }

    private static String literal(String text) {
        return Dialect.POSTGRESQL.literal(text);
    }
}
