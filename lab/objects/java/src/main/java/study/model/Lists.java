package study.model;

import java.util.List;
import java.util.function.BiPredicate;

/** Equality of lists. */
final class Lists {
    private Lists() {}

    static <T> boolean same(List<T> a, List<T> b, BiPredicate<T, T> same) {
        boolean equal = a.size() == b.size();
        for (int i = 0; equal && i < a.size(); i++) {
            equal = same.test(a.get(i), b.get(i));
        }
        return equal;
    }
}
