package study;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;

/** Where each object of a stored file is: the page's offset and size, and its position there. */
public final class Index {
    private final ByteBuffer entries;

    private Index(ByteBuffer entries) {
        this.entries = entries.order(ByteOrder.LITTLE_ENDIAN);
    }

    public static Index of(Path folder, Kind kind) throws IOException {
        Path path = path(folder, kind);
        try (FileChannel channel = FileChannel.open(path)) {
            if (channel.size() > Integer.MAX_VALUE - 16) {
                throw new UsageException(path + " is too large for this harness");
            }
        }
        return new Index(ByteBuffer.wrap(Files.readAllBytes(path)));
    }

    public static Path path(Path folder, Kind kind) {
        return folder.resolve(kind.option() + ".index");
    }

    public int size() {
        return entries.limit() / 16;
    }

    public long offset(int object) {
        return entries.getLong(object * 16);
    }

    public int pageBytes(int object) {
        return entries.getInt(object * 16 + 8);
    }

    public int position(int object) {
        return entries.getInt(object * 16 + 12);
    }

    /** The first object behind the page of `object`, or `end` if that comes before. */
    public int endOfPage(int object, int end) {
        long offset = offset(object);
        int next = object + 1;
        while (next < end && offset(next) == offset) {
            next++;
        }
        return next;
    }

    /** Checks that objects from `start` on are there. */
    public void require(long start, long count) {
        if (start < 0 || count < 0 || start + count > size()) {
            throw new UsageException("objects " + start + " to " + (start + count)
                    + " were asked for, and there are " + size());
        }
    }
}
