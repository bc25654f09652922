package dray.page;

/** A list of items that are all missing, so that none is written. */
public final class NullListWriter extends ListWriter<ItemWriter> {
    public NullListWriter() {
        super(new ItemWriter());
    }
}
