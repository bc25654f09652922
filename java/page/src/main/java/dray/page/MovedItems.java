package dray.page;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Which items of a list of an edited object were moved or dropped, and by which version of the
 * page. Writers that know them from before are refused.
 */
final class MovedItems {
    /** Moves of all items from one on: a later one has a greater version. */
    private final TreeMap<Integer, Integer> from = new TreeMap<>();
    /** Single items that were dropped. */
    private final TreeMap<Integer, Integer> single = new TreeMap<>();

    /** Tells a list from all others of an object: its field, and the items and fields around it. */
    static List<Integer> path(ViewWriter holder, Place place) {
        var path = new ArrayList<Integer>();
        path.add(place.tail());
        for (ViewWriter item = holder; item.list != null; item = item.list.holder) {
            path.add(item.index);
            path.add(item.list.place.tail());
        }
        return path;
    }

    /** An item and all behind it were moved or dropped. */
    void moveFrom(int item, int version) {
        from.tailMap(item, true).clear();
        single.tailMap(item, true).clear();
        from.put(item, version);
    }

    /** An item was dropped, and the others stay. */
    void drop(int item, int version) {
        single.put(item, version);
    }

    /** Whether all items from one to another were moved or dropped after a version. */
    boolean isLater(int version, int first, int last) {
        Map.Entry<Integer, Integer> moved = from.floorEntry(first);
        Integer dropped = first == last ? single.get(first) : null;
        return moved != null && moved.getValue() - version > 0
                || dropped != null && dropped - version > 0;
    }
}
