package dray.page;

import java.util.Iterator;
import java.util.stream.IntStream;

/** A list of binary values, or of values of a fixed width that Java has no type for. */
public final class BytesList extends ListView implements Iterable<Bytes> {
    private final int width;

    /** A list of binary values, or of a fixed width unless it is 0. */
    public BytesList(boolean nullable, int width) {
        super(nullable);
        this.width = width;
    }

    /** An item, which must be there. */
    public Bytes get(int i) {
        return width > 0 ? new Bytes(page, place(i, width), width)
                : Bytes.of(page, object, place(i, Record.STRING_BYTES));
    }

    /** The items; null for a missing one. */
    @Override
    public Iterator<Bytes> iterator() {
        return IntStream.range(0, size()).mapToObj(i -> has(i) ? get(i) : null).iterator();
    }
}
