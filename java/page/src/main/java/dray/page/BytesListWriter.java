package dray.page;

/** Writes a list of binary values, or of bytes of a fixed width. */
public final class BytesListWriter extends ListWriter<ItemWriter> {
    private final int width;

    /** A list of binary values, or of a fixed width unless it is 0. */
    public BytesListWriter(int width) {
        super(new ItemWriter());
        this.width = width;
    }

    /** Writes the next item. */
    public void add(byte[] value) {
        addItem(item -> item.put(width, value));
    }

    /** Leaves the next item missing. */
    public void addMissing() {
        nextMissing();
    }

    /** Writes an item of an object that is edited. */
    public void set(int i, byte[] value) {
        setItem(i, item -> item.put(width, value));
    }

    /** Makes an item of an object that is edited missing. */
    public void setMissing(int i) {
        clearItem(i);
    }
}
