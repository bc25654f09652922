package dray.page;

import java.nio.FloatBuffer;

/** A list of float32. */
public final class Float32List extends ListView {
    public Float32List(boolean nullable) {
        super(nullable);
    }

    /** An item, which must be there. */
    public float get(int i) {
        return Memory.getFloat(page, place(i, Float.BYTES));
    }

    /** All items, without a copy; a missing one is 0. */
    public FloatBuffer buffer() {
        return items(Float.BYTES).asFloatBuffer();
    }
}
