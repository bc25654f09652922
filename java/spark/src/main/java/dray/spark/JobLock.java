package dray.spark;

import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A session that holds the lock of a job's staging table as long as the driver lives. Whoever gets
 * the lock knows that the table was left. The lock protects nothing else: a job whose session broke
 * may lose its staging table, and then fails.
 */
final class JobLock implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(JobLock.class);
    /** Shorter than what servers, and networks between, let sessions be idle. */
    private static final long PERIOD_S = 60;
    private static final ScheduledExecutorService CLOCK =
            Executors.newSingleThreadScheduledExecutor(run -> {
                Thread thread = new Thread(run, "dray job locks");
                thread.setDaemon(true);
                return thread;
            });

    private final DrayOptions options;
    private final StagingTable staging;
    private final ScheduledFuture<?> looking;
    private volatile Session session;
    private volatile boolean isClosed;

    /** Takes over a session that has the lock. */
    JobLock(DrayOptions options, StagingTable staging, Session session) {
        this.options = options;
        this.staging = staging;
        this.session = session;
        looking = CLOCK.scheduleWithFixedDelay(
                this::keep, PERIOD_S, PERIOD_S, TimeUnit.SECONDS);
    }

    private void keep() {
        try {
            session.run("SELECT 1");
        } catch (DrayException broken) {
            lockAgain();
        }
    }

    private void lockAgain() {
        session.close();
        if (isClosed) {
            return;
        }
        try {
            session = new Session(options);
            staging.statements().lock(session, staging.table());
        } catch (DrayException failure) {
            LOG.warn("the lock of {} is lost, and is tried again: {}", staging.table().sql(),
                    failure.getMessage());
        }
        if (isClosed) {
            session.close();
        }
    }

    @Override
    public void close() {
        isClosed = true;
        looking.cancel(false);
        session.close();
    }
}
