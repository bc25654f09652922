package dray.page;

import java.nio.ByteBuffer;

/** A binary value where it lies on a page. It is valid as long as the page is. */
public final class Bytes implements Comparable<Bytes> {
    private final ByteBuffer page;
    private final int object;
    /** Where its place is; the complement of where its bytes are, if it has none. */
    private final int at;
    /** Of one without a place. That of others is in the place, which may be changed. */
    private final int fixedLength;

    private Bytes(ByteBuffer page, int object, int at, int fixedLength) {
        this.page = page;
        this.object = object;
        this.at = at;
        this.fixedLength = fixedLength;
    }

    /** The bytes from an offset on. */
    public Bytes(ByteBuffer page, int from, int length) {
        this(page, 0, ~from, length);
    }

    /** The value whose place is at an offset of an object's page. For generated accessors. */
    public static Bytes of(ByteBuffer page, int object, int at) {
        return new Bytes(page, object, at, 0);
    }

    /** Where the bytes of a string begin whose place is at an offset of the page. */
    static int start(ByteBuffer page, int object, int at) {
        int length = Memory.getInt(page, at);
        return length <= Record.INLINE_MAX ? at + 4 : object + Memory.getInt(page, at + 12);
    }

    /** Where the bytes begin. Only who needs them looks it up. */
    private int from() {
        return at < 0 ? ~at : start(page, object, at);
    }

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

    static int compare(ByteBuffer a, int aFrom, int aLength, ByteBuffer b, int bFrom, int bLength) {
        int shorter = Math.min(aLength, bLength);
        int i = 0;
        while (i <= shorter - 8
                && Memory.getLong(a, aFrom + i) == Memory.getLong(b, bFrom + i)) {
            i += 8;
        }
        for (; i < shorter; i++) {
            int order = Byte.compareUnsigned(a.get(aFrom + i), b.get(bFrom + i));
            if (order != 0) {
                return order;
            }
        }
        return Integer.compare(aLength, bLength);
    }

    static int hash(ByteBuffer page, int from, int length) {
        int hash = 0;
        for (int i = 0; i < length; i++) {
            hash = 31 * hash + page.get(from + i);
        }
        return hash;
    }

    /** The order of unsigned bytes. */
    @Override
    public int compareTo(Bytes other) {
        return compare(page, from(), length(), other.page, other.from(), other.length());
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Bytes bytes && length() == bytes.length() && compareTo(bytes) == 0;
    }

    @Override
    public int hashCode() {
        return hash(page, from(), length());
    }

    /** The bytes in hexadecimal. */
    @Override
    public String toString() {
        return java.util.HexFormat.of().formatHex(toByteArray());
    }
}
