package dray.jdbc;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.TimeZone;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;

/**
 * Reads a database through its JDBC driver for {@code dray serve}, which starts this program for
 * each session and speaks {@code spec/bridge.md} with it by standard input and output.
 */
public final class Bridge {
    private final FrameWriter out;
    private final Requests requests;

    private Bridge(InputStream in, OutputStream out) {
        var timer = Executors.newScheduledThreadPool(2, Bridge::daemon);
        this.out = new FrameWriter(out);
        this.requests = new Requests(new FrameReader(in), timer);
    }

    private static Thread daemon(Runnable task) {
        var thread = new Thread(task);
        thread.setDaemon(true);
        return thread;
    }

    public static void main(String[] arguments) {
        InputStream in = System.in;
        var out = new FileOutputStream(FileDescriptor.out);
        // Drivers that print must not get between the frames.
        System.setIn(InputStream.nullInputStream());
        System.setOut(System.err);
        // Some drivers compute dates and times in this zone; UTC has no gaps.
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        // Of messages and of numbers in text. Some drivers want a country.
        Locale.setDefault(Locale.US);
        int code = 0;
        try {
            new Bridge(in, out).serve();
        } catch (IOException broken) {
            System.err.println("dray-jdbc: " + broken.getMessage());
            code = 1;
        } catch (InterruptedException ended) {
            code = 1;
        }
        // Drivers leave threads behind.
        Runtime.getRuntime().halt(code);
    }

    private void serve() throws IOException, InterruptedException {
        Open open = requests.open();
        if (open == null) {
            return;
        }
        daemon(requests).start();
        var errors = new Errors(open.uri());
        try (var database = Database.open(open)) {
            out.write('R', Map.of("version", Open.VERSION, "server", database.server(),
                    "dialect", database.dialect()));
            Query query;
            boolean usable = true;
            while (usable && (query = requests.next()) != null) {
                usable = answer(database, query, errors);
            }
        } catch (Throwable failed) {
            rethrow(failed);
            fail(errors.ofOpening(failed, open), false);
        }
    }

    /** Runs a statement, and tells whether another one can run. */
    private boolean answer(Database database, Query query, Errors errors)
            throws IOException, InterruptedException {
        try {
            long rows = new Execution(database, query, out).run();
            out.write('F', Map.of("rows", rows));
            return true;
        } catch (Throwable failed) {
            rethrow(failed);
            Failure failure = errors.ofStatement(failed, query.cancellation());
            boolean usable = failed instanceof Exception
                    && failure.kind() != Failure.Kind.CONNECTION && database.isUsable();
            fail(failure, usable);
            return usable;
        }
    }

    /** What concerns the server, and not the database. */
    private static void rethrow(Throwable failed) throws IOException, InterruptedException {
        if (failed instanceof IOException broken) {
            throw broken;
        }
        if (failed instanceof InterruptedException ended) {
            throw ended;
        }
    }

    private void fail(Failure failure, boolean usable) throws IOException {
        out.discard();
        var payload = new HashMap<String, Object>();
        payload.put("kind", failure.kind().name().toLowerCase(Locale.ROOT));
        payload.put("sqlstate", failure.sqlstate());
        payload.put("message", failure.getMessage());
        payload.put("hint", failure.hint());
        payload.put("usable", usable);
        out.write('E', payload);
    }
}
