package dray.page;

/** Writes a list of booleans. */
public final class BooleanListWriter extends ListWriter<ItemWriter> {
    public BooleanListWriter() {
        super(new ItemWriter());
    }

    /** Writes the next item. */
    public void add(boolean value) {
        nextItem().putBoolean(0, value);
    }

    /** Leaves the next item missing. */
    public void addMissing() {
        nextMissing();
    }

    /** Writes an item of an object that is edited. */
    public void set(int i, boolean value) {
        itemAt(i, item).putBoolean(0, value);
    }

    /** Makes an item of an object that is edited missing. */
    public void setMissing(int i) {
        clearItem(i);
    }

    /** Writes the next items. */
    public void addAll(boolean... values) {
        for (boolean value : values) {
            add(value);
        }
    }
}
