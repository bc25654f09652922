package dray.spark;

import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.CollectionAccumulator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A plan of a statement, with the snapshot that all its parts are read under. {@link Snapshots}
 * gives it up when nothing can need it any more, and the server when its lease is over.
 */
final class Snapshot {
    private static final Logger LOG = LoggerFactory.getLogger(Snapshot.class);
    /** What several tasks would read quicker than one. */
    private static final long LARGE_BYTES = 64L << 20;

    private final String sql;
    private final long handle;
    /** None if the statement is read as a whole. */
    private final byte[][] parts;
    private final Receipts receipts;
    /** What has read the parts, and whether to their ends. */
    private final CollectionAccumulator<TaskRead> tasks = new CollectionAccumulator<>();
    private final long until;
    private final Snapshots snapshots;
    /** The snapshot that other scans have, too, or null. */
    private final NamedSnapshot named;
    /** When somebody last got the parts, by this host's clock. */
    private long handedOut = System.currentTimeMillis();
    private boolean isReleased;
    /** Whether a stage got the parts. */
    private boolean isRead;
    /** The RDDs that keep the rows. */
    private final Set<Integer> cached = ConcurrentHashMap.newKeySet();
    /** What was read by stages that compute only some partitions of an RDD. */
    private final Set<Pass> passes = ConcurrentHashMap.newKeySet();
    /** Why rows that were read under it can't be right, empty if nothing is wrong. */
    private volatile String problem = "";

    private Snapshot(
            String sql, long handle, byte[][] parts, long until, Snapshots snapshots,
            NamedSnapshot named) {
        this.sql = sql;
        this.handle = handle;
        this.parts = parts;
        this.until = until;
        this.snapshots = snapshots;
        this.named = named;
        receipts = new Receipts(parts.length > 1, this::differ);
    }

    /** Plans a statement, and holds the snapshot. */
    static Snapshot take(DrayOptions options, String sql, StructType schema, List<Facts> facts,
            int atMost, boolean partial, Supplier<Description> expected, SparkContext context) {
        long handle = Native.create();
        try {
            // By the driver's clock: the lease begins at the server a little later.
            AtomicLong begun = new AtomicLong(System.currentTimeMillis());
            byte[][] parts = {};
            Snapshots snapshots = Snapshots.of(context);
            NamedSnapshot named = options.snapshot() == null ? null : snapshots.named(options);
            if (named != null) {
                named.plan(handle, options, sql, atMost, partial);
            }
            if (named != null || ConnectionWait.get(options, () -> {
                begun.set(System.currentTimeMillis());
                return Native.plan(handle, options.url(), sql, options.natives(), atMost,
                        options.leaseMs(), partial, null);
            })) {
                parts = Native.parts(handle);
                checkColumns(SparkTypes.schema(handle), schema);
                LOG.info("{} parts under one snapshot: {}{}", parts.length, sql,
                        parts.length > 1 ? "" : " (one part: " + Native.reason(handle) + ")");
            } else if (isLarge(options, expected)) {
                LOG.warn("one part of about {} MiB, which one task reads: to read it in parts, run"
                        + " dray serve --source NAME=URL and give its url, dray://HOST/NAME: {}",
                        expected.get().aboutBytes() >> 20, sql);
            } else {
                LOG.info("one part, read as a whole: the database's snapshots can't be given to"
                        + " other processes (dray serve can hold those of MySQL and MariaDB): {}",
                        sql);
            }
            // The plan has locked the tables of PostgreSQL, so this stays true.
            facts.forEach(fact -> fact.check(options));
            long until = begun.get() + options.leaseMs();
            Snapshot snapshot = new Snapshot(sql, handle, parts, until, snapshots, named);
            context.register(snapshot.receipts);
            context.register(snapshot.tasks);
            snapshots.add(snapshot);
            return snapshot;
        } catch (Throwable failure) {
            Native.close(handle);
            throw failure;
        }
    }

    /** Whether a statement is large, and is read as a whole because the url is of MySQL itself. */
    static boolean isLarge(DrayOptions options, Supplier<Description> expected) {
        return options.isMySql() && expected.get().aboutBytes() > LARGE_BYTES;
    }

    /** Refuses columns other than those that Spark was told of. */
    static void checkColumns(StructType found, StructType expected) {
        if (!expected.isEmpty() && !found.equals(expected)) {
            throw new DrayException("the columns are not those that were planned: "
                    + found.simpleString() + ", expected " + expected.simpleString()
                    + " (load the table anew)");
        }
    }

    /** The descriptors of the parts, none if the statement is read as a whole. */
    byte[][] parts() {
        return parts;
    }

    /** How many partitions of Spark it has. */
    int partitions() {
        return Math.max(1, parts.length);
    }

    Receipts receipts() {
        return receipts;
    }

    /**
     * Ends what has read a part twice, with different rows. Spark's scheduler calls it when a task
     * has ended, and counts the task afterwards: if it was the last one, its job succeeds.
     */
    private void differ(String difference, Receipt before, Receipt receipt) {
        problem = difference;
        LOG.error("{}: {}", difference, sql);
        snapshots.fail(difference, List.of(before, receipt));
    }

    /** Fails if rows that were read under it can't be right. */
    void checkReceipts() {
        if (!problem.isEmpty()) {
            throw new DrayException(problem + " (load the table anew)");
        }
    }

    CollectionAccumulator<TaskRead> tasks() {
        return tasks;
    }

    /** Whether the parts can still be read by whoever gets them now. */
    synchronized boolean handOut() {
        long now = System.currentTimeMillis();
        if (isReleased || now >= until) {
            return false;
        }
        handedOut = now;
        return true;
    }

    synchronized long handedOut() {
        return handedOut;
    }

    /** Notes that a stage gets the parts. */
    synchronized void beginReading() {
        isRead = true;
    }

    /** Whether a stage got the parts, and something that had begun by then still runs. */
    boolean isStillRead() {
        long handedOut;
        synchronized (this) {
            if (!isRead) {
                return false;
            }
            handedOut = this.handedOut;
        }
        return snapshots.stillRuns(handedOut);
    }

    /**
     * Whether it is one of a name that was released, and what had begun when the parts were handed
     * out has ended. What still runs keeps the snapshot, lest it reads under two.
     */
    boolean isOutdated() {
        return named != null && named.isReleased() && !snapshots.stillRuns(handedOut());
    }

    /** Those of the application. */
    Snapshots ofApplication() {
        return snapshots;
    }

    /** Notes that an RDD keeps the rows. */
    void keepFor(int rdd) {
        cached.add(rdd);
    }

    /** Notes that stages have read some partitions of an RDD. */
    void keepFor(Pass pass) {
        passes.add(pass);
    }

    /**
     * Whether an RDD keeps some of the rows, or a later job may read on, while there are parts that
     * nobody has read to their ends.
     */
    boolean isPartlyRead() {
        return (cached.stream().anyMatch(snapshots::isCached)
                || passes.stream().anyMatch(Pass::mayGoOn))
                && receipts.count() < partitions();
    }

    boolean isOver() {
        return System.currentTimeMillis() >= until;
    }

    /**
     * Gives the snapshot up, unless somebody got the parts since then.
     *
     * @return whether it is given up
     */
    boolean release(long since) {
        synchronized (this) {
            if (isReleased || handedOut >= since) {
                return isReleased;
            }
            isReleased = true;
        }
        try {
            ScanReport report = report();
            ScanReports.add(report);
            if (report.isInconsistent()) {
                LOG.error("{}", report);
            } else {
                LOG.info("{}", report);
            }
        } finally {
            Native.close(handle);
        }
        return true;
    }

    private ScanReport report() {
        byte[][] each = receipts.each();
        long rows = receipts.rows();
        if (problem.isEmpty() && parts.length > 0 && each.length == parts.length) {
            try {
                rows = Native.verify(handle, each);
            } catch (DrayException failure) {
                problem = failure.getMessage();
            }
        }
        return new ScanReport(sql, parts.length, each.length, rows, problem);
    }
}
