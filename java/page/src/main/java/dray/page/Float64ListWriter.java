package dray.page;

/** Writes a list of float64. */
public final class Float64ListWriter extends ListWriter<ItemWriter> {
    public Float64ListWriter() {
        super(new ItemWriter());
    }

    /** Writes the next item. */
    public void add(double value) {
        nextItem().putDouble(0, value);
    }

    /** Leaves the next item missing. */
    public void addMissing() {
        nextMissing();
    }

    /** Writes an item of an object that is edited. */
    public void set(int i, double value) {
        itemAt(i, item).putDouble(0, value);
    }

    /** Makes an item of an object that is edited missing. */
    public void setMissing(int i) {
        clearItem(i);
    }

    /** Writes the next items. */
    public void addAll(double... values) {
        for (double value : values) {
            add(value);
        }
    }
}
