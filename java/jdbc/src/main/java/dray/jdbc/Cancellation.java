package dray.jdbc;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/** Ends a statement from another thread. */
final class Cancellation {
    /** How long a cancelled statement may take to end before its connection is cut. */
    private static final long ABORT_AFTER_MS = 3000;

    private final ScheduledExecutorService timer;
    private Statement running;
    private boolean cancelled;

    Cancellation(ScheduledExecutorService timer) {
        this.timer = timer;
    }

    synchronized boolean isCancelled() {
        return cancelled;
    }

    /** Fails if nobody wants the result any longer. */
    void check() throws Failure {
        if (isCancelled()) {
            throw Failure.cancelled();
        }
    }

    /** From now on, cancelling concerns this statement; null for none. */
    synchronized void attach(Statement statement) throws Failure {
        check();
        running = statement;
    }

    /** The statement has ended. */
    synchronized void detach() {
        running = null;
    }

    /** Asks the database to end the statement, and cuts the connection if it does not. */
    void cancel() {
        Statement statement;
        synchronized (this) {
            cancelled = true;
            statement = running;
        }
        if (statement == null) {
            return;
        }
        timer.schedule(() -> abort(statement), ABORT_AFTER_MS, TimeUnit.MILLISECONDS);
        // Some drivers wait for the statement here.
        timer.execute(() -> {
            try {
                statement.cancel();
            } catch (SQLException | RuntimeException notSupported) {
                System.err.println("cancelling: " + notSupported.getClass().getName());
            }
        });
    }

    private void abort(Statement statement) {
        synchronized (this) {
            if (running != statement) {
                return;
            }
        }
        try {
            Connection connection = statement.getConnection();
            connection.abort(Runnable::run);
        } catch (SQLException | RuntimeException | AbstractMethodError failed) {
            System.err.println("cutting the connection: " + failed.getClass().getName());
        }
    }
}
