package dray.page;

import java.util.Iterator;
import java.util.stream.IntStream;

/** A list of strings. */
public final class Utf8List extends ListView implements Iterable<Utf8> {
    public Utf8List(boolean nullable) {
        super(nullable);
    }

    /** An item, which must be there. */
    public Utf8 get(int i) {
        return Utf8.of(page, object, place(i, Record.STRING_BYTES));
    }

    /** The items; null for a missing one. */
    @Override
    public Iterator<Utf8> iterator() {
        return IntStream.range(0, size()).mapToObj(i -> has(i) ? get(i) : null).iterator();
    }
}
