package dray.page;

import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.function.Supplier;

/** The objects of a page file, by accessors that were generated for its schema. */
public abstract class ObjectFile<T extends View> implements Iterable<T> {
    private final PageFile file;
    private final Supplier<T> view;

    /**
     * The objects of a file, shown by views.
     *
     * @throws PageException when its schema is not the one of the accessors
     */
    protected ObjectFile(PageFile file, Layout layout, Supplier<T> view) {
        ObjectPage.check(file.layout(), layout);
        this.file = file;
        this.view = view;
    }

    public final PageFile file() {
        return file;
    }

    /** The number of objects. */
    public final long size() {
        return file.size();
    }

    /** An object by its number. */
    public final T object(long ordinal) {
        return object(ordinal, view.get());
    }

    /** An object by its number, shown by a view that is moved there: nothing is allocated. */
    public final T object(long ordinal, T reused) {
        int page = file.pageOf(ordinal);
        return ObjectPage.move(file.page(page), (int) (ordinal - file.firstOf(page)), reused);
    }

    /** The objects with a key, in the order of their numbers. */
    protected final List<T> find(List<List<String>> paths, Object... values) {
        if (!file.key().equals(paths)) {
            throw PageException.usage("these accessors find objects by " + paths
                    + ", the key of this file is " + file.key());
        }
        return Arrays.stream(file.find(values)).mapToObj(this::object).toList();
    }

    /** All objects in their order. A page is checked when its first object comes. */
    @Override
    public final Iterator<T> iterator() {
        return new Iterator<>() {
            private int nextPage;
            private VerifiedPage page;
            private int slot;

            @Override
            public boolean hasNext() {
                return page != null && slot < page.size() || nextPage < file.pageCount();
            }

            @Override
            public T next() {
                if (!hasNext()) {
                    throw new NoSuchElementException("the file has " + size() + " objects");
                }
                if (page == null || slot == page.size()) {
                    page = file.page(nextPage++);
                    slot = 0;
                }
                return ObjectPage.move(page, slot++, view.get());
            }
        };
    }
}
