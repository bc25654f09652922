package dray.page;

import java.nio.ByteBuffer;

/** A list of values of one byte. */
public final class Int8List extends ListView {
    public Int8List(boolean nullable) {
        super(nullable);
    }

    /** An item, which must be there. */
    public byte get(int i) {
        return page.get(place(i, Byte.BYTES));
    }

    /** An item of a list of uint8. */
    public int getUnsigned(int i) {
        return get(i) & 0xff;
    }

    /** All items, without a copy; a missing one is 0. */
    public ByteBuffer buffer() {
        return items(1).asReadOnlyBuffer();
    }
}
