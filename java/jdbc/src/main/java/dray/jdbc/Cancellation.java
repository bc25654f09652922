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
    /** A cancel that comes before the driver runs the statement has no effect. */
    private static final long AGAIN_MS = 200;

    private final ScheduledExecutorService timer;
    /** Held while a driver cancels, so that no cancel is late and meets the next statement. */
    private final Object cancelling = new Object();
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

    /** From now on, cancelling concerns this statement. */
    synchronized void attach(Statement statement) throws Failure {
        check();
        running = statement;
    }

    /** The statement has ended. */
    void detach() {
        synchronized (cancelling) {
            synchronized (this) {
                running = null;
            }
        }
    }

    private synchronized boolean runs(Statement statement) {
        return statement != null && running == statement;
    }

    /** Asks the database to end the statement, and cuts the connection if it does not. */
    void cancel() {
        Statement statement;
        synchronized (this) {
            if (cancelled) {
                return;
            }
            cancelled = true;
            statement = running;
        }
        if (statement != null) {
            // Some drivers wait for the statement in their cancel.
            timer.execute(() -> cancel(statement));
            timer.schedule(() -> abort(statement), ABORT_AFTER_MS, TimeUnit.MILLISECONDS);
        }
    }

    private void cancel(Statement statement) {
        synchronized (cancelling) {
            if (!runs(statement)) {
                return;
            }
            try {
                statement.cancel();
            } catch (SQLException | RuntimeException notSupported) {
                System.err.println("cancelling: " + notSupported.getClass().getName());
            }
        }
        timer.schedule(() -> cancel(statement), AGAIN_MS, TimeUnit.MILLISECONDS);
    }

    private void abort(Statement statement) {
        if (!runs(statement)) {
            return;
        }
        try {
            Connection connection = statement.getConnection();
            connection.abort(Runnable::run);
        } catch (SQLException | RuntimeException | AbstractMethodError failed) {
            System.err.println("cutting the connection: " + failed.getClass().getName());
        }
    }
}
