package dray.page;

import java.nio.LongBuffer;

/** A list of values of eight bytes. */
public final class Int64List extends ListView {
    public Int64List(boolean nullable) {
        super(nullable);
    }

    /** An item, which must be there. */
    public long get(int i) {
        return Memory.getLong(page, place(i, Long.BYTES));
    }

    /** All items, without a copy; a missing one is 0. */
    public LongBuffer buffer() {
        return items(Long.BYTES).asLongBuffer();
    }
}
