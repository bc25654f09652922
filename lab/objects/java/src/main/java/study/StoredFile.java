package study;

import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** A file of pages that is read or written, and how long that takes. Each thread has its own. */
public final class StoredFile implements Closeable {
    /** What tells the size of a page is in its first bytes. */
    public static final int HEADER = 64;

    private final FileChannel channel;
    private long nanoseconds;
    private long bytes;

    private StoredFile(FileChannel channel) {
        this.channel = channel;
    }

    public static StoredFile read(Path path) throws IOException {
        return new StoredFile(FileChannel.open(path, StandardOpenOption.READ));
    }

    public static StoredFile create(Path path) throws IOException {
        return new StoredFile(FileChannel.open(path, StandardOpenOption.CREATE,
                StandardOpenOption.TRUNCATE_EXISTING, StandardOpenOption.WRITE));
    }

    /** The path of an object's pages in a folder. */
    public static Path pages(Path folder, Kind kind) {
        return folder.resolve(kind.option() + ".pages");
    }

    /** One pread, and more of them if it reads less. */
    public void read(byte[] into, int length, long offset) throws IOException {
        long begin = System.nanoTime();
        ByteBuffer buffer = ByteBuffer.wrap(into, 0, length);
        while (buffer.hasRemaining()) {
            int count = channel.read(buffer, offset + buffer.position());
            if (count < 0) {
                throw new EOFException("the file ends at " + (offset + buffer.position()));
            }
        }
        nanoseconds += System.nanoTime() - begin;
        bytes += length;
    }

    /** The page at an offset, in an array of its own, or null at the end of the file. */
    public byte[] page(Implementation implementation, long offset) throws IOException {
        if (offset == size()) {
            return null;
        }
        byte[] header = new byte[HEADER];
        read(header, header.length, offset);
        byte[] page = new byte[implementation.pageBytes(header)];
        read(page, page.length, offset);
        bytes -= header.length;
        return page;
    }

    public void write(byte[] from, int length) throws IOException {
        long begin = System.nanoTime();
        ByteBuffer buffer = ByteBuffer.wrap(from, 0, length);
        while (buffer.hasRemaining()) {
            channel.write(buffer);
        }
        nanoseconds += System.nanoTime() - begin;
        bytes += length;
    }

    public long size() throws IOException {
        return channel.size();
    }

    /** Time in reads and writes, in nanoseconds. */
    public long nanoseconds() {
        return nanoseconds;
    }

    /** Bytes that were read or written. */
    public long bytes() {
        return bytes;
    }

    @Override
    public void close() throws IOException {
        channel.close();
    }
}
