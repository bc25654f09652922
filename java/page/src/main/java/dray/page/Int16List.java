package dray.page;

import java.nio.ShortBuffer;

/** A list of values of two bytes. */
public final class Int16List extends ListView {
    public Int16List(boolean nullable) {
        super(nullable);
    }

    /** An item, which must be there. */
    public short get(int i) {
        return Memory.getShort(page, place(i, Short.BYTES));
    }

    /** An item of a list of uint16. */
    public int getUnsigned(int i) {
        return get(i) & 0xffff;
    }

    /** An item of a list of float16. */
    public float getFloat(int i) {
        return Numbers.halfToFloat(get(i));
    }

    /** All items, without a copy; a missing one is 0. */
    public ShortBuffer buffer() {
        return items(Short.BYTES).asShortBuffer();
    }
}
