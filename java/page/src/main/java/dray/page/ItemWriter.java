package dray.page;

/** Writes an item that is no struct. */
final class ItemWriter extends ViewWriter {
    /** Remembers where a list is. */
    static final class Holder extends ViewWriter {}

    /** Writes bytes of a fixed width, or of any length if it is 0. */
    void put(int width, byte[] value) {
        if (width > 0) {
            putFixed(0, width, value);
        } else {
            putBytes(0, value);
        }
    }

    /** Makes a list of the item. */
    <L extends ListWriter<?>> L list(int count, L writer) {
        return putList(0, count, writer);
    }

    <L extends ListWriter<?>> L list(L writer) {
        return editList(0, writer);
    }
}
