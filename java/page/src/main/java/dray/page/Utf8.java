package dray.page;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** A string where it lies, as UTF-8, on a page. It is valid as long as the page is. */
public final class Utf8 implements Comparable<Utf8> {
    private final ByteBuffer page;
    private final int object;
    /** Where its place is; the complement of where its bytes are, if it has none. */
    private final int at;
    /** Of one without a place. That of others is in the place, which may be changed. */
    private final int fixedLength;

    private Utf8(ByteBuffer page, int object, int at, int fixedLength) {
        this.page = page;
        this.object = object;
        this.at = at;
        this.fixedLength = fixedLength;
    }

    /** The bytes from an offset on. */
    public Utf8(ByteBuffer page, int from, int length) {
        this(page, 0, ~from, length);
    }

    /** The string whose place is at an offset of an object's page. For generated accessors. */
    public static Utf8 of(ByteBuffer page, int object, int at) {
        return new Utf8(page, object, at, 0);
    }

    /** Where the bytes begin. Only who needs them looks it up. */
    private int from() {
        return at < 0 ? ~at : Bytes.start(page, object, at);
    }

    /** The number of bytes. */
    public int length() {
        return at < 0 ? fixedLength : Memory.getInt(page, at);
    }

    public byte get(int i) {
        if (i < 0 || i >= length()) {
            throw new IndexOutOfBoundsException("byte " + i + " of " + length());
        }
        return page.get(from() + i);
    }

    public byte[] toByteArray() {
        var bytes = new byte[length()];
        page.get(from(), bytes);
        return bytes;
    }

    /** A view of the bytes. */
    public ByteBuffer buffer() {
        return Memory.slice(page, from(), length());
    }

    /** The order of Unicode code points, which is that of the bytes. */
    @Override
    public int compareTo(Utf8 other) {
        return Bytes.compare(page, from(), length(), other.page, other.from(), other.length());
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Utf8 string && length() == string.length() && compareTo(string) == 0;
    }

    @Override
    public int hashCode() {
        return Bytes.hash(page, from(), length());
    }

    /** Whether it has the same characters. */
    public boolean contentEquals(String other) {
        return toString().equals(other);
    }

    /** The characters, as a new string. */
    @Override
    public String toString() {
        return new String(toByteArray(), StandardCharsets.UTF_8);
    }
}
