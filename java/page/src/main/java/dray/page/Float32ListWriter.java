package dray.page;

/** Writes a list of float32. */
public final class Float32ListWriter extends ListWriter<ItemWriter> {
    public Float32ListWriter() {
        super(new ItemWriter());
    }

    /** Writes the next item. */
    public void add(float value) {
        nextItem().putFloat(0, value);
    }

    /** Leaves the next item missing. */
    public void addMissing() {
        nextMissing();
    }

    /** Writes an item of an object that is edited. */
    public void set(int i, float value) {
        itemAt(i, item).putFloat(0, value);
    }

    /** Makes an item of an object that is edited missing. */
    public void setMissing(int i) {
        clearItem(i);
    }

    /** Writes the next items. */
    public void addAll(float... values) {
        for (float value : values) {
            add(value);
        }
    }
}
