package dray.page;

import java.util.Arrays;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.function.Supplier;

/** The objects of a page, by accessors that were generated for its schema. */
public abstract class ObjectPage<T extends View> implements Iterable<T> {
    private final VerifiedPage page;
    private final Supplier<T> view;

    /**
     * The objects of a page, shown by views.
     *
     * @throws PageException when its schema is not the one of the accessors
     */
    protected ObjectPage(VerifiedPage page, Layout layout, Supplier<T> view) {
        check(page.layout(), layout);
        this.page = page;
        this.view = view;
    }

    /** Fails unless the accessors of a layout read the objects of another. */
    static void check(Layout found, Layout generated) {
        if (!found.isSameAs(generated)) {
            throw PageException.usage("these accessors were generated for the schema with digest "
                    + hex(generated) + ", the data has the schema " + hex(found)
                    + "; generate them again with `dray accessors`");
        }
    }

    private static String hex(Layout layout) {
        return HexFormat.of().formatHex(Arrays.copyOf(layout.digest(), 8)) + "…";
    }

    public final VerifiedPage page() {
        return page;
    }

    /** The number of objects. */
    public final int size() {
        return page.size();
    }

    /** The object of a slot. */
    public final T get(int slot) {
        return get(slot, view.get());
    }

    /** The object of a slot, shown by a view that is moved there: nothing is allocated. */
    public final T get(int slot, T reused) {
        return move(page, slot, reused);
    }

    static <T extends View> T move(VerifiedPage page, int slot, T view) {
        int at = page.objectAt(slot);
        view.set(page.bytes(), at, at);
        return view;
    }

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
                    throw new NoSuchElementException("the page has " + size() + " objects");
                }
                return get(next++);
            }
        };
    }
}
