package study;

import java.io.BufferedInputStream;
import java.io.Closeable;
import java.io.DataInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import study.implementation.HandWritten;
import study.model.Plain;

/** An input file: u64 objects; then for each a u32 length, and fields as HandWritten has them. */
public final class Input implements Closeable {
    private final DataInputStream stream;
    private final HandWritten format;
    private long left;

    public Input(Path path, Kind kind) throws IOException {
        stream = new DataInputStream(new BufferedInputStream(Files.newInputStream(path), 1 << 20));
        format = new HandWritten(kind);
        left = Long.reverseBytes(stream.readLong());
    }

    /** The next object, or null behind the last. */
    public Plain next() throws IOException {
        if (left == 0) {
            return null;
        }
        left--;
        byte[] record = new byte[Integer.reverseBytes(stream.readInt())];
        stream.readFully(record);
        return format.openMessage(record).plain();
    }

    @Override
    public void close() throws IOException {
        stream.close();
    }
}
