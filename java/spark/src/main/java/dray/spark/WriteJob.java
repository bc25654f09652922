package dray.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A write, at the driver. Tasks fill a staging table, and the commit moves its rows into the target
 * in one transaction:
 *
 * <pre>
 *   begin   CREATE TABLE staging            tasks   rows, each with the number of its attempt
 *   commit  BEGIN · [DELETE] · INSERT … SELECT … FROM staging WHERE attempt … · mark · COMMIT
 * </pre>
 *
 * What the statements are depends on the database: {@link WriteStatements}. A new table of
 * PostgreSQL is created under another name, filled in the same way, and gets its own name in that
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
    /** Null until there is a staging table. */
    private JobLock lock;
    /** The transaction of the commit, as {@link WriteStatements#begin} names it. */
    private String transaction;

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
        target = session.statements().find(session, table);
        if (isOverwriting) {
            session.statements().checkEmptying(session, target.table(), options.isTruncate());
        }
        return target.match(data, SQLConf.get().caseSensitiveAnalysis());
    }

    /** Creates the tables, and checks that the data's types fit. */
    StagingTable begin(String application) {
        Session session = null;
        try {
            session = new Session(options);
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
            session.statements().dropAbandoned(session, shown, schema);
            staging = table;
            session.statements().create(
                    session, table, StagingTable.meaning(application, shown));
            // Types that don't fit fail here, before any row is sent.
            try (TableWriter none =
                    new TableWriter(options, table.table(), "append", table.rows())) {
                none.end();
            }
            lock = new JobLock(options, table, session);
            return table;
        } catch (Throwable failure) {
            if (session != null) {
                session.close();
            }
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
            WriteStatements statements = session.statements();
            transaction = statements.begin(session, staging, isOverwriting);
            if (isOverwriting) {
                statements.empty(session, target.table(), options.isTruncate());
            }
            long moved = statements.move(session, staging, target.table(), attempts);
            if (moved != expected) {
                throw new DrayException("tasks have written " + expected + " rows for "
                        + target.table().sql() + ", and " + moved + " were moved there: none stays"
                        + " (a trigger or rule of the table may leave rows out, and a crash of the"
                        + " server empties staging tables)");
            }
            // Rows that were checked against other types may have been rounded.
            if (!statements.find(session, target.table().sql()).equals(target)) {
                throw new DrayException("the columns of " + target.table().sql()
                        + " have changed meanwhile: write again");
            }
            if (created != null) {
                created.publish(session, unnamed);
            }
            statements.mark(session, staging);
            isEnding = true;
            session.run("COMMIT");
        } catch (DrayException failure) {
            if (!isEnding || !isCommitted(failure)) {
                throw failure;
            }
        }
        LOG.info("{} rows of {} tasks are in {}", expected, attempts.size(),
                (created == null ? target.table() : created.tableName()).sql());
        clean();
        unlock();
        staging = null;
        unnamed = null;
    }

    /** Whether a commit that was not confirmed was done. If it was not, {@link #abort} drops. */
    private boolean isCommitted(DrayException failure) {
        StagingTable table = staging;
        // Whoever looks later must not find it changed by an abort.
        staging = null;
        try (Session session = new Session(options)) {
            boolean isCommitted =
                    session.statements().isCommitted(session, table, transaction);
            staging = table;
            return isCommitted;
        } catch (DrayException second) {
            throw new DrayException("the commit has failed, and whether it was done nevertheless"
                    + " can't be found out: if "
                    + table.statements().signOfCommit(table, transaction) + ", it was",
                    failure);
        }
    }

    /** The rows are there, whatever happens now. */
    private void clean() {
        try {
            staging.statements().clean(options, staging);
        } catch (DrayException failure) {
            LOG.warn("unfinished tables may be left, drop them: {}: {}",
                    staging.statements().tables(staging), failure.getMessage());
        }
    }

    private void unlock() {
        if (lock != null) {
            lock.close();
            lock = null;
        }
    }

    /** Drops what {@link #begin} has created. It may be called more than once. */
    void abort() {
        unlock();
        if (staging == null && unnamed == null) {
            return;
        }
        try (Session session = new Session(options)) {
            if (staging != null) {
                session.statements().drop(session, staging);
            }
            if (unnamed != null) {
                session.run("DROP TABLE IF EXISTS " + unnamed.sql());
            }
            staging = null;
            unnamed = null;
        } catch (DrayException failure) {
            List<String> left = new ArrayList<>();
            if (staging != null) {
                left.addAll(staging.statements().tables(staging));
            }
            if (unnamed != null) {
                left.add(unnamed.sql());
            }
            throw new DrayException("unfinished tables may be left, drop them: " + left + ": "
                    + failure.getMessage(), failure);
        }
    }
}
