package dray.page;

/** A list of booleans. */
public final class BooleanList extends ListView {
    public BooleanList(boolean nullable) {
        super(nullable);
    }

    /** An item, which must be there. */
    public boolean get(int i) {
        return page.get(place(i, 1)) != 0;
    }
}
