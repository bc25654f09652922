package study;

import java.io.OutputStream;
import java.util.Arrays;

/** Bytes that are written one behind the other into an array that grows. */
public final class Sink extends OutputStream {
    /** The array. It is another one after each growth. */
    public byte[] bytes;

    /** Where the next byte goes. */
    public int at;

    public Sink(int capacity) {
        bytes = new byte[capacity];
    }

    /** Makes room for more bytes. */
    public void reserve(int more) {
        long needed = (long) at + more;
        if (needed > bytes.length) {
            long capacity = Math.min(Math.max(needed, 2L * bytes.length), Integer.MAX_VALUE - 16);
            if (capacity < needed) {
                throw new UsageException("an object of " + needed + " bytes is too large for Java");
            }
            bytes = Arrays.copyOf(bytes, (int) capacity);
        }
    }

    @Override
    public void write(int value) {
        reserve(1);
        bytes[at++] = (byte) value;
    }

    @Override
    public void write(byte[] from, int offset, int length) {
        reserve(length);
        System.arraycopy(from, offset, bytes, at, length);
        at += length;
    }
}
