package dray.page;

/**
 * Items of a list of an edited object that were moved or dropped. Writers that know them from
 * before are refused.
 *
 * @param version that of the page after the change
 * @param holder a writer of the record whose field the list is
 * @param place the field
 * @param from the first of the items
 * @param end the one behind the last
 */
record Moved(int version, ViewWriter holder, Place place, int from, int end) {
    /** Whether items of a list, up to the last one, are among these. */
    boolean concerns(ListWriter<?> list, int first, int last) {
        return from <= first && last < end && isOf(list.holder, list.place);
    }

    /** Whether all items of another change are among these. */
    boolean covers(Moved other) {
        return from <= other.from && other.end <= end && isOf(other.holder, other.place);
    }

    private boolean isOf(ViewWriter holder, Place place) {
        return this.place == place && isSame(this.holder, holder);
    }

    /** Whether writers are for the same record: the object's own, or the same item of a list. */
    private static boolean isSame(ViewWriter a, ViewWriter b) {
        if (a.list == null || b.list == null) {
            return a.list == b.list;
        }
        return a.index == b.index && a.list.place == b.list.place
                && isSame(a.list.holder, b.list.holder);
    }
}
