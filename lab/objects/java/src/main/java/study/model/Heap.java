package study.model;

import java.util.List;

/** How much of the heap objects take, with compressed references: for the sort's budget. */
final class Heap {
    private Heap() {}

    /** A string of ASCII: the object, the array's header, the bytes. */
    static long of(String text) {
        return 24 + ((16 + text.length() + 7) & ~7L);
    }

    /** An ArrayList without its items, which may have grown by half. */
    static long of(List<?> list) {
        return 24 + 16 + 6L * list.size();
    }
}
