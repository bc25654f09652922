package dray.jdbc;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.WritableByteChannel;
import java.util.Map;

/** Writes frames to the server. As a channel, it cuts the bytes of a stream into frames D. */
final class FrameWriter implements WritableByteChannel {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final OutputStream out;
    /** A frame D in the making, with room for its header. */
    private final byte[] data = new byte[Frame.HEADER_BYTES + Frame.DATA_BYTES_MAX];
    private int end = Frame.HEADER_BYTES;

    FrameWriter(OutputStream out) {
        this.out = out;
    }

    /** Writes a frame of JSON, behind the data so far. */
    void write(char kind, Map<String, Object> payload) throws IOException {
        flush();
        byte[] json = JSON.writeValueAsBytes(payload);
        if (json.length > Frame.JSON_BYTES_MAX) {
            throw new IOException("a frame " + kind + " of " + json.length + " bytes");
        }
        byte[] frame = new byte[Frame.HEADER_BYTES + json.length];
        header(frame, kind, json.length);
        System.arraycopy(json, 0, frame, Frame.HEADER_BYTES, json.length);
        out.write(frame);
        out.flush();
    }

    @Override
    public int write(ByteBuffer bytes) throws IOException {
        int written = bytes.remaining();
        while (bytes.hasRemaining()) {
            int part = Math.min(bytes.remaining(), data.length - end);
            bytes.get(data, end, part);
            end += part;
            if (end == data.length) {
                flush();
            }
        }
        return written;
    }

    /** Sends the data so far. */
    void flush() throws IOException {
        int bytes = end - Frame.HEADER_BYTES;
        if (bytes > 0) {
            header(data, 'D', bytes);
            out.write(data, 0, end);
            out.flush();
            end = Frame.HEADER_BYTES;
        }
    }

    /** Forgets the data that was not sent. */
    void discard() {
        end = Frame.HEADER_BYTES;
    }

    private static void header(byte[] frame, char kind, int bytes) {
        ByteBuffer.wrap(frame).order(ByteOrder.LITTLE_ENDIAN).put((byte) kind).putInt(bytes);
    }

    @Override
    public boolean isOpen() {
        return true;
    }

    /** The stream of a result ends; the output does not. */
    @Override
    public void close() {}
}
