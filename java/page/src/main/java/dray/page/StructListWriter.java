package dray.page;

import java.util.function.Supplier;

/** Writes a list of structs. */
public class StructListWriter<T extends ViewWriter> extends ListWriter<T> {
    private final Supplier<T> create;

    protected StructListWriter(Supplier<T> create) {
        super(create.get());
        this.create = create;
    }

    /** The next item. One writer is moved from item to item. */
    public final T next() {
        return nextItem();
    }

    /** Leaves the next item missing. */
    public final void addMissing() {
        nextMissing();
    }

    /** An item of an object that is edited. It becomes present if it was missing. */
    public final T get(int i) {
        return itemAt(i, create.get());
    }

    /** Makes an item of an object that is edited missing. */
    public final void setMissing(int i) {
        clearItem(i);
    }
}
