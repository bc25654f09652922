package dray.page;

import java.util.Iterator;
import java.util.NoSuchElementException;

/** A list of structs, whose accessors are generated. */
public abstract class StructList<T extends View> extends ListView implements Iterable<T> {
    protected StructList(boolean nullable) {
        super(nullable);
    }

    /** An item, which must be there. */
    public abstract T get(int i);

    /** An item, which must be there, shown by a view that is moved there: nothing is allocated. */
    public abstract T get(int i, T reused);

    /** The items; null for a missing one. */
    @Override
    public final Iterator<T> iterator() {
        return new Iterator<>() {
            private int next;

            @Override
            public boolean hasNext() {
                return next < size();
            }

            @Override
            public T next() {
                if (next >= size()) {
                    throw new NoSuchElementException("the list has " + size() + " items");
                }
                int i = next++;
                return has(i) ? get(i) : null;
            }
        };
    }
}
