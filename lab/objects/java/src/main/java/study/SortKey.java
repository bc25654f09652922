package study;

/** The sort key of line items, which have two. */
public final class SortKey {
    private SortKey() {}

    /** An integer that is ordered as the pair is. */
    public static long of(int orderKey, int lineNumber) {
        return ((long) orderKey << 32) + ((long) lineNumber - Integer.MIN_VALUE);
    }
}
