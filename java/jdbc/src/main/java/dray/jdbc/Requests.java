package dray.jdbc;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;

/** Reads what the server wants, in a thread of its own: a statement runs while C comes. */
final class Requests implements Runnable {
    /** What the server may send before it has the answer to a statement. */
    private static final int PARAMETER_BYTES_MAX = 256 << 20;
    /** How long the database may take to close once the input has ended. */
    private static final long CLOSE_MS = 4000;
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Object END = new Object();

    private final FrameReader frames;
    private final ScheduledExecutorService timer;
    private final SynchronousQueue<Object> handover = new SynchronousQueue<>();
    private final ByteArrayOutputStream parameters = new ByteArrayOutputStream();
    private volatile Cancellation latest;

    Requests(FrameReader frames, ScheduledExecutorService timer) {
        this.frames = frames;
        this.timer = timer;
    }

    /** The frame O; null if the input ends first. */
    Open open() throws IOException {
        Frame frame = frames.next();
        if (frame == null) {
            return null;
        }
        if (frame.kind() != 'O') {
            throw new IOException("expected a frame O first, and got " + frame.kind());
        }
        JsonNode open = JSON.readTree(frame.payload());
        int version = open.path("version").asInt();
        if (version != Open.VERSION) {
            throw new IOException("version " + version + " of the frames, known is 1");
        }
        return new Open(
                open.path("name").asText(), open.path("uri").asText(),
                open.path("writable").asBoolean(false));
    }

    /** The next statement; null at the end of the input. */
    Query next() throws InterruptedException, IOException {
        Object next = handover.take();
        if (next instanceof IOException wrong) {
            throw wrong;
        }
        return next instanceof Query query ? query : null;
    }

    @Override
    public void run() {
        Object last = END;
        try {
            Frame frame;
            while ((frame = frames.next()) != null) {
                accept(frame);
            }
        } catch (IOException wrong) {
            last = wrong;
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
        end(last);
    }

    private void accept(Frame frame) throws IOException, InterruptedException {
        switch (frame.kind()) {
            case 'D' -> {
                if (parameters.size() > PARAMETER_BYTES_MAX) {
                    throw new IOException("parameters of more than 256 MiB");
                }
                parameters.write(frame.payload());
            }
            case 'Q' -> {
                var cancellation = new Cancellation(timer);
                Query query = query(frame.payload(), cancellation);
                latest = cancellation;
                handover.put(query);
            }
            case 'C' -> {
                if (latest != null) {
                    latest.cancel();
                }
            }
            default -> throw new IOException("a frame of the unknown kind " + frame.kind());
        }
    }

    private Query query(byte[] payload, Cancellation cancellation) throws IOException {
        JsonNode query = JSON.readTree(payload);
        byte[] row = query.path("parameters").asBoolean() ? parameters.toByteArray() : null;
        parameters.reset();
        int batchRows = query.path("batch_rows").asInt();
        long batchBytes = query.path("batch_bytes").asLong();
        long rowBytes = query.path("row_bytes").asLong();
        if (!query.path("sql").isTextual() || batchRows < 1 || batchBytes < 1 || rowBytes < 1) {
            throw new IOException("a frame Q without a statement, or without limits");
        }
        return new Query(query.path("sql").asText(), row, query.path("plan_only").asBoolean(),
                batchRows, batchBytes, rowBytes, cancellation);
    }

    /** Ends the program, whatever a driver does. */
    private void end(Object last) {
        if (latest != null) {
            latest.cancel();
        }
        timer.schedule(() -> Runtime.getRuntime().halt(1), CLOSE_MS, TimeUnit.MILLISECONDS);
        try {
            handover.put(last);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }
}
