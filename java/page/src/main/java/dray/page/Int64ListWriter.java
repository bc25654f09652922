package dray.page;

/** Writes a list of values of eight bytes. */
public final class Int64ListWriter extends ListWriter<ItemWriter> {
    public Int64ListWriter() {
        super(new ItemWriter());
    }

    /** Writes the next item. */
    public void add(long value) {
        nextItem().putLong(0, value);
    }

    /** Leaves the next item missing. */
    public void addMissing() {
        nextMissing();
    }

    /** Writes an item of an object that is edited. */
    public void set(int i, long value) {
        itemAt(i, item).putLong(0, value);
    }

    /** Makes an item of an object that is edited missing. */
    public void setMissing(int i) {
        clearItem(i);
    }

    /** Writes the next items. */
    public void addAll(long... values) {
        for (long value : values) {
            add(value);
        }
    }
}
