package dray.page;

/** A list of items that are all missing. */
public final class NullList extends ListView {
    public NullList() {
        super(false);
    }
}
