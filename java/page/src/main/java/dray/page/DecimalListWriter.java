package dray.page;

import java.math.BigDecimal;

/** Writes a list of decimals. */
public final class DecimalListWriter extends ListWriter<ItemWriter> {
    private final int width;
    private final int scale;

    public DecimalListWriter(int width, int scale) {
        super(new ItemWriter());
        this.width = width;
        this.scale = scale;
    }

    /** Writes the next item. */
    public void add(BigDecimal value) {
        addItem(item -> item.putInteger(0, width, Numbers.unscaled(value, scale)));
    }

    /** Leaves the next item missing. */
    public void addMissing() {
        nextMissing();
    }

    /** Writes an item of an object that is edited. */
    public void set(int i, BigDecimal value) {
        setItem(i, item -> item.putInteger(0, width, Numbers.unscaled(value, scale)));
    }

    /** Makes an item of an object that is edited missing. */
    public void setMissing(int i) {
        clearItem(i);
    }
}
