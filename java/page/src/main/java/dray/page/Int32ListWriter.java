package dray.page;

/** Writes a list of values of four bytes. */
public final class Int32ListWriter extends ListWriter<ItemWriter> {
    public Int32ListWriter() {
        super(new ItemWriter());
    }

    /** Writes the next item. */
    public void add(int value) {
        nextItem().putInt(0, value);
    }

    /** Leaves the next item missing. */
    public void addMissing() {
        nextMissing();
    }

    /** Writes an item of an object that is edited. */
    public void set(int i, int value) {
        itemAt(i, item).putInt(0, value);
    }

    /** Makes an item of an object that is edited missing. */
    public void setMissing(int i) {
        clearItem(i);
    }

    /** Writes the next items. */
    public void addAll(int... values) {
        for (int value : values) {
            add(value);
        }
    }
}
