package dray.page;

import java.nio.IntBuffer;

/** A list of values of four bytes. */
public final class Int32List extends ListView {
    public Int32List(boolean nullable) {
        super(nullable);
    }

    /** An item, which must be there. */
    public int get(int i) {
        return Memory.getInt(page, place(i, Integer.BYTES));
    }

    /** An item of a list of uint32. */
    public long getUnsigned(int i) {
        return get(i) & 0xffff_ffffL;
    }

    /** All items, without a copy; a missing one is 0. */
    public IntBuffer buffer() {
        return items(Integer.BYTES).asIntBuffer();
    }
}
