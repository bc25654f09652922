package dray.page;

/** Writes a list of values of one byte. */
public final class Int8ListWriter extends ListWriter<ItemWriter> {
    public Int8ListWriter() {
        super(new ItemWriter());
    }

    /** Writes the next item. */
    public void add(byte value) {
        nextItem().putByte(0, value);
    }

    /** Leaves the next item missing. */
    public void addMissing() {
        nextMissing();
    }

    /** Writes an item of an object that is edited. */
    public void set(int i, byte value) {
        itemAt(i, item).putByte(0, value);
    }

    /** Makes an item of an object that is edited missing. */
    public void setMissing(int i) {
        clearItem(i);
    }

    /** Writes the next items. */
    public void addAll(byte... values) {
        for (byte value : values) {
            add(value);
        }
    }
}
