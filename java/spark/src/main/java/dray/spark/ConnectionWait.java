package dray.spark;

import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.apache.spark.TaskContext;

/**
 * Connects to sources that refuse connections beyond a number: of a user, a database, or all of a
 * server. Whoever is refused waits until others have ended. So this limit is kept by all executors
 * together, and costs time instead of tasks.
 */
final class ConnectionWait {
    /** PostgreSQL and Dray servers say so, whichever the limit is. */
    private static final String TOO_MANY = "53300";
    /**
     * The general SQLSTATE of a connection that was refused: MySQL has none of its own for limits,
     * and sends none at all before the login.
     */
    private static final String REFUSED = "08004";
    /** What MySQL's errors 1040, 1203 and 1226 say, and what the first is without TLS. */
    private static final Pattern TOO_MANY_OF_MYSQL =
            Pattern.compile("(?i)too many connections|max_user_connections|error 1040\\b");
    private static final String CONNECTION = "connection";
    /** The longest pause before the second try. It doubles. */
    private static final long PAUSE_MS = 200;
    private static final long PAUSE_MS_MAX = 2000;
    /** How soon a task ends that is killed. */
    private static final long LOOK_MS = 100;

    private ConnectionWait() {}

    /** Runs what connects, and again until it is let in. */
    static void run(DrayOptions options, Runnable connect) {
        get(options, () -> {
            connect.run();
            return null;
        });
    }

    /** The same, with a result. */
    static <T> T get(DrayOptions options, Supplier<T> connect) {
        long seconds = options.connectionWaitSeconds();
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
        for (long pauseMs = PAUSE_MS;; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
            try {
                return connect.get();
            } catch (DrayException failure) {
                if (!isRefused(failure)) {
                    throw failure;
                }
                long leftMs = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
                if (leftMs <= 0) {
                    throw new DrayException(failure, "others had all connections for " + seconds
                            + " s, see option connectionWait; option maxConnections limits those"
                            + " of a scan, and the driver has one more");
                }
                // Those that were refused at one moment should not come back at one moment.
                long pause = ThreadLocalRandom.current().nextLong(pauseMs / 2, pauseMs);
                sleep(Math.min(pause, leftMs));
            }
        }
    }

    /** Whether another connection would be let in once others have ended. */
    static boolean isRefused(DrayException failure) {
        return failure.sqlState().equals(TOO_MANY)
                || (failure.kind().equals(CONNECTION) || failure.sqlState().equals(REFUSED))
                && TOO_MANY_OF_MYSQL.matcher(failure.getMessage()).find();
    }

    private static void sleep(long ms) {
        TaskContext task = TaskContext.get();
        try {
            for (long left = ms; left > 0; left -= LOOK_MS) {
                if (task != null) {
                    task.killTaskIfInterrupted();
                }
                Thread.sleep(Math.min(left, LOOK_MS));
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new DrayException("waiting for a connection was interrupted", interrupted);
        }
    }
}
