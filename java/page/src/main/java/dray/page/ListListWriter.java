package dray.page;

import java.util.function.Supplier;

/** Writes a list of lists. */
public final class ListListWriter<L extends ListWriter<?>> extends ListWriter<ItemWriter> {
    private final Supplier<L> create;
    private final L inner;

    public ListListWriter(Supplier<L> create) {
        super(new ItemWriter());
        this.create = create;
        inner = create.get();
    }

    /**
     * The next item, a list of so many items. While an object is built, one writer is moved from
     * list to list.
     */
    public L next(int count) {
        L list = isEditing() ? create.get() : inner;
        addItem(item -> item.list(count, list));
        return list;
    }

    /** Leaves the next item missing. */
    public void addMissing() {
        nextMissing();
    }

    /** An item of an object that is edited, as it is. */
    public L get(int i) {
        return itemAt(i, item).list(create.get());
    }

    /** An item of an object that is edited, made anew with so many items. */
    public L set(int i, int count) {
        L list = create.get();
        setItem(i, item -> item.list(count, list));
        return list;
    }

    /** Makes an item of an object that is edited missing. */
    public void setMissing(int i) {
        clearItem(i);
    }
}
