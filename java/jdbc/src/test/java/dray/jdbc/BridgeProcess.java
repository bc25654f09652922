package dray.jdbc;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.Channels;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.arrow.vector.types.pojo.Schema;

/** The bridge as a process, and the server's end of its frames. */
final class BridgeProcess implements AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Process process;
    private final DataInputStream in;
    private final OutputStream out;
    final Path log;

    BridgeProcess(Path folder, String... options) throws IOException {
        log = folder.resolve("bridge-" + System.nanoTime() + ".log");
        var command = new ArrayList<String>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of("-Xmx128m", "--add-opens=java.base/java.nio=ALL-UNNAMED"));
        command.addAll(List.of(options));
        command.addAll(List.of("-cp", classPath(), "dray.jdbc.Bridge"));
        process = new ProcessBuilder(command).directory(folder.toFile())
                .redirectError(log.toFile()).start();
        in = new DataInputStream(process.getInputStream());
        out = process.getOutputStream();
    }

    static String classPath() {
        String tested = System.getProperty("surefire.test.class.path");
        return tested != null ? tested : System.getProperty("java.class.path");
    }

    /** An opened bridge; fails if the database could not be opened. */
    static BridgeProcess open(Path folder, String uri, boolean writable, String... options)
            throws IOException {
        var bridge = new BridgeProcess(folder, options);
        JsonNode answer = bridge.open(uri, writable);
        if (!answer.has("server")) {
            throw new IOException(answer.toString());
        }
        return bridge;
    }

    /** The answer to O: the frame R or E. */
    JsonNode open(String uri, boolean writable) throws IOException {
        send('O', JSON.writeValueAsBytes(
                Map.of("version", 1, "name", "test", "uri", uri, "writable", writable)));
        return JSON.readTree(next().payload());
    }

    void send(char kind, byte[] payload) throws IOException {
        var header = ByteBuffer.allocate(5).order(ByteOrder.LITTLE_ENDIAN);
        header.put((byte) kind).putInt(payload.length);
        out.write(header.array());
        out.write(payload);
        out.flush();
    }

    Frame next() throws IOException {
        int kind = in.read();
        if (kind < 0) {
            throw new EOFException("the bridge has ended");
        }
        int bytes = Integer.reverseBytes(in.readInt());
        return new Frame((char) kind, in.readNBytes(bytes));
    }

    void startQuery(String sql, boolean hasParameters, boolean planOnly, int batchRows)
            throws IOException {
        startQuery(sql, hasParameters, planOnly, batchRows, 256 << 20);
    }

    private void startQuery(String sql, boolean hasParameters, boolean planOnly, int batchRows,
            int rowBytes) throws IOException {
        var query = new HashMap<String, Object>();
        query.put("sql", sql);
        query.put("parameters", hasParameters);
        query.put("plan_only", planOnly);
        query.put("batch_rows", batchRows);
        query.put("batch_bytes", 1 << 20);
        query.put("row_bytes", rowBytes);
        send('Q', JSON.writeValueAsBytes(query));
    }

    Result query(String sql) throws IOException {
        startQuery(sql, false, false, 1000);
        return result();
    }

    Result query(String sql, int rowBytes) throws IOException {
        startQuery(sql, false, false, 1000, rowBytes);
        return result();
    }

    /** Runs a statement with parameters: the row of a batch. */
    Result query(String sql, VectorSchemaRoot parameters) throws IOException {
        var stream = new ByteArrayOutputStream();
        try (var writer = new ArrowStreamWriter(parameters, null, Channels.newChannel(stream))) {
            writer.writeBatch();
        }
        send('D', stream.toByteArray());
        startQuery(sql, true, false, 1000);
        return result();
    }

    /** What came for a statement; an error if its frames are not in order. */
    Result result() throws IOException {
        var stream = new ByteArrayOutputStream();
        String kinds = "";
        while (true) {
            Frame frame = next();
            kinds += frame.kind();
            switch (frame.kind()) {
                case 'D' -> stream.write(frame.payload());
                case 'B' -> { }
                case 'F' -> {
                    if (!kinds.matches("BD+F")) {
                        throw new IOException("frames " + kinds);
                    }
                    long rows = JSON.readTree(frame.payload()).get("rows").asLong();
                    return read(stream.toByteArray(), rows);
                }
                case 'E' -> {
                    return new Result(null, List.of(), JSON.readTree(frame.payload()));
                }
                default -> throw new IOException(kinds + new String(
                        frame.payload(), StandardCharsets.UTF_8));
            }
        }
    }

    private static Result read(byte[] stream, long expected) throws IOException {
        var rows = new ArrayList<List<Object>>();
        try (var allocator = new RootAllocator();
                var reader = new ArrowStreamReader(new ByteArrayInputStream(stream), allocator)) {
            var root = reader.getVectorSchemaRoot();
            while (reader.loadNextBatch()) {
                for (int row = 0; row < root.getRowCount(); row++) {
                    var values = new ArrayList<Object>();
                    for (var vector : root.getFieldVectors()) {
                        values.add(vector.getObject(row));
                    }
                    rows.add(values);
                }
            }
            if (rows.size() != expected) {
                throw new IOException(rows.size() + " rows, and F says " + expected);
            }
            return new Result(root.getSchema(), rows, null);
        }
    }

    /** Ends the input, and returns how the bridge ends. */
    int end() throws IOException, InterruptedException {
        out.close();
        return process.waitFor();
    }

    boolean isAlive() {
        return process.isAlive();
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }

    /** A result, or an error. */
    record Result(Schema schema, List<List<Object>> rows, JsonNode error) {
        /** The rows as text, null as {@code null}. */
        List<List<String>> texts() {
            if (error != null) {
                throw new AssertionError(error.toString());
            }
            return rows.stream().map(row -> row.stream().map(Result::text).toList()).toList();
        }

        String type(int column) {
            return schema.getFields().get(column).getType().toString();
        }

        private static String text(Object value) {
            return value instanceof byte[] bytes
                    ? java.util.HexFormat.of().formatHex(bytes) : String.valueOf(value);
        }

        String message() {
            return error.get("message").asText();
        }

        String sqlstate() {
            return error.get("sqlstate").asText();
        }

        String kind() {
            return error.get("kind").asText();
        }
    }
}
