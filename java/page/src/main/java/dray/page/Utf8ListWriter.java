package dray.page;

/** Writes a list of strings. */
public final class Utf8ListWriter extends ListWriter<ItemWriter> {
    public Utf8ListWriter() {
        super(new ItemWriter());
    }

    /** Writes the next item. */
    public void add(String value) {
        addItem(item -> item.putString(0, value));
    }

    /** Leaves the next item missing. */
    public void addMissing() {
        nextMissing();
    }

    /** Writes an item of an object that is edited. */
    public void set(int i, String value) {
        setItem(i, item -> item.putString(0, value));
    }

    /** Makes an item of an object that is edited missing. */
    public void setMissing(int i) {
        clearItem(i);
    }

    /** Writes the next items. */
    public void addAll(String... values) {
        for (String value : values) {
            add(value);
        }
    }
}
