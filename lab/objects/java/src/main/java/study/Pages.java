package study;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** What all pages have in common. */
public final class Pages {
    /** Bytes of a page. One with a larger object has a multiple of it. */
    public static final int BYTES = 256 << 10;

    private Pages() {}

    /** The bytes that a page needs which is filled up to `used`. */
    public static int padded(long used) {
        long bytes = (used + BYTES - 1) / BYTES * BYTES;
        if (bytes > Integer.MAX_VALUE - 16) {
            throw new UsageException("a page of " + bytes + " bytes is too large for Java");
        }
        return (int) bytes;
    }

    /** A view of bytes in the order that all formats here have. */
    public static ByteBuffer view(byte[] bytes) {
        return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }
}
