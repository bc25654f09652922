package dray.page;

import java.util.Iterator;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/** A list of lists. */
public final class ListList<T extends ListView> extends ListView implements Iterable<T> {
    private final Supplier<T> item;

    /** A list of lists of a kind. */
    public ListList(boolean nullable, Supplier<T> item) {
        super(nullable);
        this.item = item;
    }

    /** An item, which must be there. */
    public T get(int i) {
        return get(i, item.get());
    }

    /** An item, which must be there, shown by a list that is moved there. */
    public T get(int i, T reused) {
        reused.set(page, object, place(i, Record.LIST_BYTES));
        return reused;
    }

    /** The items; null for a missing one. */
    @Override
    public Iterator<T> iterator() {
        return IntStream.range(0, size()).mapToObj(i -> has(i) ? get(i) : null).iterator();
    }
}
