package dray.page;

import java.nio.ByteBuffer;

/**
 * A list where it lies on a page. It is valid as long as its page is; threads must not share one
 * that is moved.
 */
public abstract class ListView {
    /** Whether items may be missing. */
    private final boolean nullable;
    protected ByteBuffer page;
    protected int object;
    /** Where the records of the items begin. */
    protected int records;
    private int bitmap;
    private int count;

    protected ListView(boolean nullable) {
        this.nullable = nullable;
    }

    /** Shows the list whose place is at an offset of the page. For generated accessors. */
    public final void set(ByteBuffer page, int object, int at) {
        if (this.page != page) {
            this.page = page;
        }
        this.object = object;
        count = Memory.getInt(page, at + 4);
        records = object + Memory.getInt(page, at);
        if (nullable) {
            bitmap = records;
            records += Memory.pad((count + 7) >>> 3, Record.ALIGNMENT);
        }
    }

    /** The number of items. */
    public final int size() {
        return count;
    }

    public final boolean isEmpty() {
        return count == 0;
    }

    /** Whether an item is there. */
    public final boolean has(int i) {
        check(i);
        return !nullable || Memory.getBit(page, bitmap, i);
    }

    private void check(int i) {
        if (i < 0 || i >= count) {
            throw new IndexOutOfBoundsException("item " + i + " of " + count);
        }
    }

    /** Where an item lies that is there. */
    protected final int place(int i, int stride) {
        check(i);
        if (nullable && !Memory.getBit(page, bitmap, i)) {
            throw View.missing("item " + i);
        }
        return records + i * stride;
    }

    /** The items, as bytes: a missing one is 0. */
    protected final ByteBuffer items(int stride) {
        // All items of a list are within its page.
        return Memory.slice(page, records, count * stride);
    }
}
