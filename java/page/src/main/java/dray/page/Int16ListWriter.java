package dray.page;

/** Writes a list of values of two bytes. */
public final class Int16ListWriter extends ListWriter<ItemWriter> {
    public Int16ListWriter() {
        super(new ItemWriter());
    }

    /** Writes the next item. */
    public void add(short value) {
        nextItem().putShort(0, value);
    }

    /** Leaves the next item missing. */
    public void addMissing() {
        nextMissing();
    }

    /** Writes an item of an object that is edited. */
    public void set(int i, short value) {
        itemAt(i, item).putShort(0, value);
    }

    /** Makes an item of an object that is edited missing. */
    public void setMissing(int i) {
        clearItem(i);
    }

    /** Writes the next items. */
    public void addAll(short... values) {
        for (short value : values) {
            add(value);
        }
    }
}
