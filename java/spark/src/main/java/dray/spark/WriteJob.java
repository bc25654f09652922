package dray.spark;

import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A write, at the driver. Tasks fill a staging table, and the commit moves its rows into the target
 * in one transaction, which also drops it:
 *
 * <pre>
 *   begin   CREATE UNLOGGED TABLE staging          tasks   COPY staging FROM STDIN
 *   commit  BEGIN · [DELETE | TRUNCATE] · INSERT … SELECT … FROM staging · DROP staging · COMMIT
 * </pre>
 *
 * A new table is created under another name, filled in the same way, and gets its own name in that
 * transaction.
 */
final class WriteJob {
    private static final Logger LOG = LoggerFactory.getLogger(WriteJob.class);

    private final DrayOptions options;
    private final StructType data;
    private final boolean isOverwriting;
    /** The table as SQL writes it, null if it is new. */
    private final String existing;
    /** The table that is created, else null. */
    private final NewTable created;
    /** Under which name it is created. */
    private TableName unnamed;
    private Target target;
    private StagingTable staging;

    private WriteJob(DrayOptions options, StructType data, boolean isOverwriting, String existing,
            NewTable created) {
        this.options = options;
        this.data = data;
        this.isOverwriting = isOverwriting;
        this.existing = existing;
        this.created = created;
    }

    /** Rows for a table that is there. Refuses what can't be written before anything runs. */
    static WriteJob into(DrayOptions options, String table, StructType data,
            boolean isOverwriting) {
        WriteJob job = new WriteJob(options, data, isOverwriting, table, null);
        ArrowTypes.schema(data);
        try (Session session = new Session(options)) {
            job.find(session, table);
        }
        return job;
    }

    /** Rows for a new table. */
    static WriteJob into(DrayOptions options, NewTable table, StructType data) {
        return new WriteJob(options, data, false, null, table);
    }

    private List<Target.Column> find(Session session, String table) {
        target = Target.find(session, table);
        if (isOverwriting && !options.isTruncate()) {
            checkReferences(session);
        }
        return target.match(data, SQLConf.get().caseSensitiveAnalysis());
    }

    /** DELETE would also delete or change rows of tables with such foreign keys. */
    private void checkReferences(Session session) {
        List<List<String>> references = session.ask(2, "SELECT conname, conrelid::regclass"
                + " FROM pg_catalog.pg_constraint WHERE contype = 'f'"
                + " AND confdeltype IN ('c', 'n', 'd') AND confrelid = pg_catalog.to_regclass("
                + Dialect.POSTGRESQL.literal(target.table().sql()) + ")");
        if (!references.isEmpty()) {
            throw new DrayException("overwriting " + target.table().sql() + " would also delete or"
                    + " change rows of " + references.get(0).get(1) + ", by its foreign key "
                    + references.get(0).get(0) + ": overwrite the table in the database");
        }
    }

    /** Creates the tables, and checks that the data's types fit. */
    StagingTable begin(String application) {
        try (Session session = new Session(options)) {
            if (created != null) {
                unnamed = created.tableName().unfinished(created.tableName().schema());
                created.create(session, options, unnamed);
            }
            List<Target.Column> columns =
                    find(session, unnamed == null ? existing : unnamed.sql());
            String schema = options.stagingSchema() == null
                    ? target.table().schema() : options.stagingSchema();
            TableName shown = created == null ? target.table() : created.tableName();
            StagingTable table = new StagingTable(shown.unfinished(schema), columns, data);
            staging = table;
            table.create(session, "rows that Spark application " + application + " writes into "
                    + shown.sql());
            // Types that don't fit fail here, before any row is sent.
            try (TableWriter none =
                    new TableWriter(options, table.table(), "append", table.rows())) {
                none.end();
            }
            return table;
        } catch (Throwable failure) {
            try {
                abort();
            } catch (DrayException left) {
                failure.addSuppressed(left);
            }
            throw failure;
        }
    }

    /** Moves the rows of these attempts into the target. */
    void commit(List<WrittenRows> attempts) {
        long expected = attempts.stream().mapToLong(WrittenRows::rows).sum();
        boolean isEnding = false;
        try (Session session = new Session(options)) {
            staging.beginAlone(session);
            if (isOverwriting) {
                empty(session);
            }
            long moved = staging.move(session, target.table(), attempts);
            if (moved != expected) {
                throw new DrayException("tasks have written " + expected + " rows for "
                        + target.table().sql() + ", and " + moved + " were moved there: none stays"
                        + " (a trigger or rule of the table may leave rows out, and a crash of the"
                        + " server empties staging tables)");
            }
            // Rows that were checked against other types may have been rounded.
            if (!Target.find(session, target.table().sql()).equals(target)) {
                throw new DrayException("the columns of " + target.table().sql()
                        + " have changed meanwhile: write again");
            }
            if (created != null) {
                created.publish(session, unnamed);
            }
            staging.drop(session);
            isEnding = true;
            session.run("COMMIT");
        } catch (DrayException failure) {
            if (!isEnding || !isCommitted(failure)) {
                throw failure;
            }
        }
        LOG.info("{} rows of {} tasks are in {}", expected, attempts.size(),
                (created == null ? target.table() : created.tableName()).sql());
        staging = null;
        unnamed = null;
    }

    private void empty(Session session) {
        if (options.isTruncate()) {
            session.runAlone("TRUNCATE " + target.table().sql());
            return;
        }
        // Others read on. Nobody else writes, or rows of two jobs would stay. Rows that a policy
        // hides would stay, too.
        session.run("LOCK TABLE " + target.table().sql() + " IN SHARE ROW EXCLUSIVE MODE;"
                + " SET LOCAL row_security = off");
        session.change("DELETE FROM " + target.table().sql());
        session.run("SET LOCAL row_security TO DEFAULT");
    }

    /**
     * Whether a commit that was not confirmed was done: then the staging table is gone. If it
     * is not, it is dropped, which waits for the transaction's end.
     */
    private boolean isCommitted(DrayException failure) {
        try (Session session = new Session(options)) {
            staging.drop(session);
            staging = null;
            return false;
        } catch (DrayException second) {
            if (second.sqlState().equals(StagingTable.NO_TABLE)) {
                return true;
            }
            String name = staging.table().sql();
            // Whoever looks later must not find it gone because of an abort.
            staging = null;
            throw new DrayException("the commit has failed, and whether it was done nevertheless"
                    + " can't be found out: if the table " + name + " is gone, it was", failure);
        }
    }

    /** Drops what {@link #begin} has created. It may be called more than once. */
    void abort() {
        if (staging == null && unnamed == null) {
            return;
        }
        try (Session session = new Session(options)) {
            if (staging != null) {
                dropStaging(session);
            }
            if (unnamed != null) {
                session.run("DROP TABLE IF EXISTS " + unnamed.sql());
            }
            staging = null;
            unnamed = null;
        } catch (DrayException failure) {
            throw new DrayException("unfinished tables may be left, drop them: "
                    + Stream.of(staging == null ? null : staging.table(), unnamed)
                    .filter(name -> name != null).map(TableName::sql).toList()
                    + ": " + failure.getMessage(), failure);
        }
    }

    private void dropStaging(Session session) {
        try {
            staging.beginAlone(session);
            staging.drop(session);
            session.run("COMMIT");
        } catch (DrayException failure) {
            // It was never created.
            if (!failure.sqlState().equals(StagingTable.NO_TABLE)) {
                throw failure;
            }
            session.run("ROLLBACK");
        }
    }
}
