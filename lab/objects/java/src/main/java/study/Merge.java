package study;

import java.util.List;

/** Adds sparse vectors. */
public final class Merge {
    /** Receives the entries of a sum, in ascending order of position. */
    public interface Target {
        void entry(int position, double value);
    }

    private Merge() {}

    /** Sums up two or three vectors, or any number. */
    public static void of(List<Entries> vectors, Target target) {
        Entries[] all = vectors.toArray(new Entries[0]);
        int[] at = new int[all.length];
        while (true) {
            long position = Long.MAX_VALUE;
            for (int i = 0; i < all.length; i++) {
                if (at[i] < all[i].size()) {
                    position = Math.min(position, all[i].position(at[i]));
                }
            }
            if (position == Long.MAX_VALUE) {
                return;
            }
            double sum = 0;
            for (int i = 0; i < all.length; i++) {
                if (at[i] < all[i].size() && all[i].position(at[i]) == position) {
                    sum += all[i].value(at[i]++);
                }
            }
            target.entry((int) position, sum);
        }
    }

    /** The number of entries of a sum. */
    public static int size(List<Entries> vectors) {
        int[] count = new int[1];
        of(vectors, (position, value) -> count[0]++);
        return count[0];
    }
}
