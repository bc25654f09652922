package dray.jdbc;

import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;

/** Reads the frames of the server. */
final class FrameReader {
    private final DataInputStream in;

    FrameReader(InputStream in) {
        this.in = new DataInputStream(in);
    }

    /** The next frame; null at the end of the input. */
    Frame next() throws IOException {
        int kind = in.read();
        if (kind < 0) {
            return null;
        }
        int bytes = Integer.reverseBytes(in.readInt());
        if (bytes < 0 || bytes > Frame.bytesMax((char) kind)) {
            throw new IOException("a frame " + (char) kind + " of "
                    + Integer.toUnsignedString(bytes) + " bytes");
        }
        byte[] payload = in.readNBytes(bytes);
        if (payload.length < bytes) {
            throw new EOFException("the input ended within a frame");
        }
        return new Frame((char) kind, payload);
    }
}
