package dray.spark;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A snapshot that several scans of an application have: those with the same url and the same option
 * {@code snapshot}. A plan of a statement that reads nothing holds it, so it locks no table. Before
 * the lease of that plan is over, another one under the same snapshot takes its place.
 */
final class NamedSnapshot {
    private static final Logger LOG = LoggerFactory.getLogger(NamedSnapshot.class);
    private static final String NOTHING = "SELECT 1 AS dray_snapshot";
    /** The server does not have the snapshot any more. */
    private static final String ENDED = "72000";
    /** The server's snapshots can't be shared. */
    private static final String NOT_SUPPORTED = "0A000";
    /** Nothing is held. */
    private static final long NONE = 0;

    private final DrayOptions options;
    private final String name;
    private final AtomicBoolean isRenewing = new AtomicBoolean();
    /** Of the plan that holds it, from the first use until the release. */
    private volatile long handle = NONE;
    /** When the lease is over, by this host's clock. */
    private volatile long until;
    /** Names it to planners. */
    private byte[] part;
    /** Whether a scan was planned under it. */
    private boolean isUsed;
    private volatile boolean isReleased;
    /** Why it can't be used any more, or null. */
    private DrayException ended;

    /** One that begins when it is used first. */
    NamedSnapshot(DrayOptions options) {
        this.options = options;
        name = options.snapshot();
    }

    /**
     * Plans a statement under this snapshot.
     *
     * @param planned gets the plan
     */
    void plan(long planned, DrayOptions scan, String sql, int atMost, boolean partial) {
        byte[] under = part();
        while (true) {
            try {
                byte[] earlier = under;
                ConnectionWait.get(scan, () -> Native.plan(planned, scan.url(), sql,
                        scan.natives(), atMost, scan.leaseMs(), partial, earlier));
                break;
            } catch (DrayException failure) {
                under = renewed(under, failure);
            }
        }
        synchronized (this) {
            isUsed = true;
        }
    }

    /**
     * The part that has taken the place of another one while a statement was planned with that one,
     * whose plan is given up by then. Fails if the snapshot itself has ended.
     */
    private synchronized byte[] renewed(byte[] before, DrayException failure) {
        boolean isHeld = handle != NONE && ended == null && !isReleased;
        if (failure.sqlState().equals(ENDED) && isHeld && part != before) {
            return part;
        }
        throw explained(failure);
    }

    private synchronized byte[] part() {
        if (isReleased) {
            throw released();
        }
        if (ended != null) {
            throw ended;
        }
        if (handle == NONE) {
            hold(null);
            LOG.info("the snapshot \"{}\" begins", name);
            return part;
        }
        long late = System.currentTimeMillis() - until;
        if (late >= 0) {
            throw explained(new DrayException(
                    "its lease ended " + late / 1000 + " s ago", ENDED, "execution"));
        }
        if (isDue()) {
            renew();
        }
        return part;
    }

    /** Makes a plan that holds a new snapshot, or that of an earlier plan. */
    private void hold(byte[] earlier) {
        long holder = Native.create();
        try {
            AtomicLong begun = new AtomicLong();
            if (!ConnectionWait.get(options, () -> {
                begun.set(System.currentTimeMillis());
                return Native.plan(holder, options.url(), NOTHING, options.natives(), 1,
                        options.leaseMs(), false, earlier);
            })) {
                throw new DrayException("option snapshot is \"" + name + "\", and this database"
                        + " has no snapshot that several scans can share (without the option, each"
                        + " scan has its own)");
            }
            part = Native.parts(holder)[0];
            until = begun.get() + options.leaseMs();
        } catch (Throwable failure) {
            Native.close(holder);
            throw failure;
        }
        long before = handle;
        handle = holder;
        close(before);
    }

    private static void close(long handle) {
        if (handle != NONE) {
            Native.close(handle);
        }
    }

    /** Whether the lease should begin anew. */
    boolean isDue() {
        return handle != NONE && !isRenewing.get()
                && until - System.currentTimeMillis() < options.leaseMs() / 2;
    }

    /** Lets the lease begin anew, if it should. */
    void renew() {
        if (isDue() && isRenewing.compareAndSet(false, true)) {
            try {
                holdOn();
            } finally {
                isRenewing.set(false);
            }
        }
    }

    private synchronized void holdOn() {
        if (handle == NONE || ended != null) {
            return;
        }
        try {
            hold(part);
        } catch (DrayException failure) {
            DrayException explained = explained(failure);
            // It is tried again, unless the snapshot has ended.
            LOG.warn("the lease of the snapshot \"{}\" can't begin anew: {}", name,
                    explained.getMessage());
        }
    }

    private synchronized DrayException explained(DrayException failure) {
        switch (failure.sqlState()) {
            case ENDED:
                if (isReleased) {
                    return released();
                }
                ended = new DrayException(failure, "the snapshot \"" + name + "\" has ended, so"
                        + " this scan can't see what others with that option have seen: to begin a"
                        + " new one, call dray.spark.NamedSnapshots.release(\"" + name + "\") or"
                        + " use another name; option lease says how long it is kept while nothing"
                        + " runs");
                giveUp();
                return ended;
            case NOT_SUPPORTED:
                if (!isUsed) {
                    giveUp();
                }
                return failure;
            default:
                return failure;
        }
    }

    private DrayException released() {
        return new DrayException("the snapshot \"" + name + "\" was released while a scan was"
                + " planned under it (run the query again)");
    }

    private synchronized void giveUp() {
        long held = handle;
        handle = NONE;
        close(held);
    }

    boolean isNamed(String other) {
        return name.equals(other);
    }

    boolean isReleased() {
        return isReleased;
    }

    /** Gives it up. What was planned under it holds it until it is read. */
    void release() {
        isReleased = true;
        giveUp();
        LOG.info("the snapshot \"{}\" is released", name);
    }
}
