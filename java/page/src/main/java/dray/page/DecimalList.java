package dray.page;

import java.math.BigDecimal;
import java.util.Iterator;
import java.util.stream.IntStream;

/** A list of decimals of any width. */
public final class DecimalList extends ListView implements Iterable<BigDecimal> {
    private final int width;
    private final int scale;

    public DecimalList(boolean nullable, int width, int scale) {
        super(nullable);
        this.width = width;
        this.scale = scale;
    }

    /** An item, which must be there. */
    public BigDecimal get(int i) {
        return new BigDecimal(Numbers.getInteger(page, place(i, width), width), scale);
    }

    /** The items; null for a missing one. */
    @Override
    public Iterator<BigDecimal> iterator() {
        return IntStream.range(0, size()).mapToObj(i -> has(i) ? get(i) : null).iterator();
    }
}
