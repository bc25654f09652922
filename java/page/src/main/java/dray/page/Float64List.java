package dray.page;

import java.nio.DoubleBuffer;

/** A list of float64. */
public final class Float64List extends ListView {
    public Float64List(boolean nullable) {
        super(nullable);
    }

    /** An item, which must be there. */
    public double get(int i) {
        return Memory.getDouble(page, place(i, Double.BYTES));
    }

    /** All items, without a copy; a missing one is 0. */
    public DoubleBuffer buffer() {
        return items(Double.BYTES).asDoubleBuffer();
    }
}
