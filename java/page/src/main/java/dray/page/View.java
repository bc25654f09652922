package dray.page;

import java.nio.ByteBuffer;
import java.util.NoSuchElementException;

/**
 * An object, or a struct within one, where it lies on a page: what generated accessors extend. It
 * is small and can be moved to another object. It is valid as long as its page is; threads must
 * not share one that is moved.
 */
public abstract class View {
    /** The page, where the object begins on it, and where the record of this view does. */
    protected ByteBuffer page;
    protected int object;
    protected int at;

    protected final void set(ByteBuffer page, int object, int at) {
        if (this.page != page) {
            this.page = page;
        }
        this.object = object;
        this.at = at;
    }

    /** Whether a bit of the byte at an offset of the record is set. */
    protected final boolean has(int offset, int mask) {
        return (page.get(at + offset) & mask) != 0;
    }

    /** Fails unless the validity bit of a field is set. */
    protected final void need(int offset, int mask, String field) {
        if (!has(offset, mask)) {
            throw missing(field);
        }
    }

    static NoSuchElementException missing(String field) {
        return new NoSuchElementException(field + " is missing; ask whether it is there before");
    }
}
